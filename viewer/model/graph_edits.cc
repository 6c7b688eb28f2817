#include <algorithm>
#include <deque>
#include <map>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/open_slabs.h"
#include "scene/words.h"
#include "viewer/model/graph_model.h"

namespace strata::viewer {

// --- Open, fold, hide ---

GraphModel::Anchor GraphModel::AtSelection() const {
  return [node = selected_](const SceneGeometry& geometry) -> const SceneRect* {
    if (const SceneBox* box = geometry.BoxOf(node)) return box;
    return geometry.slabs.size() > 1 ? &geometry.slabs[SlabId{1}] : nullptr;
  };
}

void GraphModel::Toggle(ClusterId cluster, bool below) {
  done_.push_back(view_);
  undone_.clear();
  const bool close = view_.open.contains(cluster);
  std::vector<ClusterId> pending = {cluster};
  while ((close || below) && !pending.empty()) {
    const ClusterId c = pending.back();
    pending.pop_back();
    if (close) {
      view_.open.erase(c);
    } else {
      view_.open.insert(c);
    }
    const std::vector<ClusterId>& children = comparison_->ChildrenOf(c);
    pending.insert(pending.end(), children.begin(), children.end());
  }
  if (!close && !below) {
    view_.open.insert(cluster);
    // The first of equal slabs stands for all.
    if (comparison_->cluster(cluster).repeats > 0)
      view_.open.insert(comparison_->ChildrenOf(cluster).front());
    OpenOnlyChild(comparison_->scene(), cluster, view_.open);
  }
  cursor_ = cluster;
  Relayout([cluster](const SceneGeometry& geometry) -> const SceneRect* {
    return geometry.SlabOf(cluster);
  });
}

void GraphModel::OpenAll(bool open) {
  done_.push_back(view_);
  undone_.clear();
  view_.open = {Scene::kRoot};
  if (open) {
    for (ClusterId c : IdsOf(comparison_->scene().clusters))
      view_.open.insert(view_.open.end(), c);
  }
  Relayout(AtSelection());
}

void GraphModel::Unfold(const SceneBox& box) {
  done_.push_back(view_);
  undone_.clear();
  view_.unfolded.insert({box.cluster, box.block});
  Relayout([cluster = box.cluster](const SceneGeometry& geometry) -> const SceneRect* {
    return geometry.SlabOf(cluster);
  });
}

void GraphModel::SetHops(int32_t hops) {
  done_.push_back(view_);
  undone_.clear();
  view_.hops = hops;
  view_.unfolded.clear();
  Relayout(AtSelection());
}

ClusterId GraphModel::cursor() const {
  if (cursor_.valid()) return cursor_;
  return selected_.valid() ? comparison_->node(selected_).cluster : ClusterId();
}

void GraphModel::ToggleHere(bool below) {
  if (cursor() > Scene::kRoot) Toggle(cursor(), below);
}

std::string GraphModel::Step(bool inward) {
  if (geometry_ == nullptr) return "";
  ClusterId c = cursor();
  if (inward && !c.valid()) {
    const SceneSlab* closed = nullptr;
    for (const SceneSlab& slab : geometry_->slabs) {
      if (!slab.open && (closed == nullptr || (slab.differs && !closed->differs))) closed = &slab;
    }
    if (closed == nullptr) return "Every slab is open";
    c = closed->cluster;
  } else if (inward && view_.open.contains(c)) {
    const std::vector<ClusterId>& children = comparison_->ChildrenOf(c);
    const auto box = std::ranges::find_if(
        geometry_->boxes, [&](const SceneBox& b) { return b.cluster == c && b.node.valid(); });
    if (children.empty() && box != geometry_->boxes.end()) {
      const SceneNodeId node = box->node;
      Select(node);
      Center(node);
      return comparison_->NameOf(node);
    }
    if (!children.empty()) c = children.front();
  } else if (!inward) {
    if (!c.valid()) {
      for (const SceneSlab& slab : geometry_->slabs) {
        if (slab.open) c = slab.cluster;
      }
    }
    while (c > Scene::kRoot && !view_.open.contains(c))
      c = comparison_->cluster(c).parent;
    if (c <= Scene::kRoot) return "Every slab around is closed";
  }
  if (view_.open.contains(c) != inward) Toggle(c);
  cursor_ = c;
  return Visible(comparison_->cluster(c).path);
}

std::string GraphModel::Hide() {
  if (!selected_.valid()) return "Select a node first";
  done_.push_back(view_);
  undone_.clear();
  view_.hidden.insert(selected_);
  Relayout(AtSelection());
  return fmt::format("{} hidden, X shows all",
                     Plural(static_cast<int64_t>(view_.hidden.size()), "node"));
}

std::string GraphModel::ShowAll() {
  done_.push_back(view_);
  undone_.clear();
  view_.hidden.clear();
  view_.only.reset();
  isolated_ = {};
  Relayout(AtSelection());
  return "All nodes are shown";
}

std::set<SceneNodeId> GraphModel::Grow(const std::set<SceneNodeId>& set, bool inputs,
                                       bool outputs) const {
  std::set<SceneNodeId> next = set;
  for (SceneNodeId node : set) {
    if (inputs) {
      for (const Comparison::Neighbour& other : comparison_->InputsOf(node))
        next.insert(other.node);
    }
    if (outputs) {
      for (const Comparison::Neighbour& other : comparison_->OutputsOf(node))
        next.insert(other.node);
    }
  }
  return next;
}

std::string GraphModel::Isolate() {
  if (!selected_.valid()) return "Select a node first";
  done_.push_back(view_);
  undone_.clear();
  if (!view_.only || isolated_ != selected_) {
    view_.only = std::set<SceneNodeId>{selected_};
    isolated_ = selected_;
    reach_ = 0;
  }
  view_.only = Grow(*view_.only, true, true);
  view_.open = {Scene::kRoot};
  for (SceneNodeId node : *view_.only)
    OpenTo(comparison_->scene(), comparison_->node(node).cluster, view_.open);
  reveal_ = selected_;
  Layout({});
  return fmt::format("{} within {}, Esc shows all",
                     Plural(static_cast<int64_t>(view_.only->size()), "node"),
                     Plural(++reach_, "step"));
}

std::string GraphModel::Swap(std::vector<SceneView>& from, std::vector<SceneView>& to) {
  to.push_back(view_);
  view_ = from.back();
  from.pop_back();
  Layout(AtSelection());
  return "";
}

std::string GraphModel::Undo() {
  if (done_.empty()) return "Nothing to undo";
  Swap(done_, undone_);
  return "Undone";
}

std::string GraphModel::Redo() {
  if (undone_.empty()) return "Nothing to redo";
  Swap(undone_, done_);
  return "Done again";
}

std::vector<std::string> GraphModel::OpenPaths() const {
  std::vector<std::string> paths;
  for (ClusterId c : view_.open) {
    if (c > Scene::kRoot) paths.push_back(comparison_->cluster(c).path);
  }
  return paths;
}

// --- Highlight ---

std::string GraphModel::Light(bool upstream) {
  if (!selected_.valid()) return "Select a node first";
  if (!lit_ || lit_upstream_ != upstream || lit_from_ != selected_) {
    lit_ = std::set<SceneNodeId>{selected_};
    lit_upstream_ = upstream;
    lit_from_ = selected_;
  }
  lit_ = Grow(*lit_, upstream, !upstream);
  return fmt::format("{} {}", Plural(static_cast<int64_t>(lit_->size()), "node"),
                     upstream ? "upstream" : "downstream");
}

std::string GraphModel::Path() {
  if (!last_.valid() || !selected_.valid()) return "Select two nodes, one after the other";
  const auto search = [&](SceneNodeId start, SceneNodeId end) {
    std::map<SceneNodeId, SceneNodeId> via = {{start, {}}};
    std::deque<SceneNodeId> queue = {start};
    while (!queue.empty() && !via.contains(end)) {
      const SceneNodeId node = queue.front();
      queue.pop_front();
      for (const Comparison::Neighbour& other : comparison_->OutputsOf(node)) {
        if (via.try_emplace(other.node, node).second) queue.push_back(other.node);
      }
    }
    std::set<SceneNodeId> way;
    for (SceneNodeId node = via.contains(end) ? end : SceneNodeId(); node.valid(); node = via[node])
      way.insert(node);
    return way;
  };
  std::set<SceneNodeId> way = search(last_, selected_);
  if (way.empty()) way = search(selected_, last_);
  if (way.empty()) return "No value flows between the two nodes";
  done_.push_back(view_);
  undone_.clear();
  for (SceneNodeId node : way)
    OpenTo(comparison_->scene(), comparison_->node(node).cluster, view_.open);
  lit_ = std::move(way);
  lit_from_ = {};
  Relayout(AtSelection());
  return fmt::format("A way over {}", Plural(static_cast<int64_t>(lit_->size()), "node"));
}

bool GraphModel::Clear() {
  if (lit_) {
    lit_.reset();
    return true;
  }
  if (view_.only) {
    ShowAll();
    return true;
  }
  return false;
}

}  // namespace strata::viewer
