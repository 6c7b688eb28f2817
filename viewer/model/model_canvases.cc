#include <algorithm>
#include <ranges>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "scene/words.h"
#include "viewer/model/model.h"

namespace strata::viewer {

void Model::Pin() {
  if (!graph_) return Say("Open a graph first");
  if (pinned_.size() + 1 == kMostCanvases) {
    return Say(fmt::format("{} graphs are shown, the most that fit", kMostCanvases));
  }
  Canvas canvas;
  canvas.title = Title();
  canvas.graph = std::make_unique<GraphModel>(graph_->shared_comparison(), workers_);
  canvas.graph->Begin(graph_->Keep(), graph_->selected(), hops_);
  pinned_.push_back(std::move(canvas));
  PlaceCanvasesAgain();
  Say("This graph stays; choose another one");
}

void Model::Unpin(size_t index) {
  if (index < pinned_.size()) pinned_.erase(pinned_.begin() + static_cast<std::ptrdiff_t>(index));
  PlaceCanvasesAgain();
}

void Model::UnpinAll() {
  pinned_.clear();
  PlaceCanvasesAgain();
}

void Model::PlaceCanvasesAgain() {
  for (const Canvas& canvas : pinned_)
    canvas.graph->PlaceAgain();
  if (graph_) graph_->PlaceAgain();
}

namespace {

/// What is in the middle of a graph, or the selected node where it is drawn.
GraphModel::Kept AnchorOf(const GraphModel& graph) {
  GraphModel::Kept kept = graph.Keep();
  const SceneBox* box = graph.geometry()->BoxOf(graph.selected());
  if (box == nullptr) return kept;
  kept.node = graph.comparison().NameOf(graph.selected());
  kept.node_at = {graph.camera.ToStageX(box->x), graph.camera.ToStageY(box->y)};
  return kept;
}

}  // namespace

void Model::SyncCanvases() {
  if (pinned_.empty() || !graph_) {
    seen_.graph = nullptr;
    return;
  }
  std::vector<GraphModel*> graphs;
  std::vector<Seen*> seen;
  for (Canvas& canvas : pinned_) {
    graphs.push_back(canvas.graph.get());
    seen.push_back(&canvas.seen);
  }
  graphs.push_back(graph_.get());
  seen.push_back(&seen_);
  const auto now = [](GraphModel* graph) {
    return Seen{graph, graph->camera, graph->selected(), graph->geometry()};
  };
  const GraphModel* leader = nullptr;
  bool moved = false, selected = false;
  for (size_t i = 0; synced && i < graphs.size(); ++i) {
    const Seen& last = *seen[i];
    // A layout that arrived moves its camera by itself.
    if (last.graph != graphs[i] || last.geometry != graphs[i]->geometry()) continue;
    moved = !(last.camera == graphs[i]->camera);
    selected = last.selected != graphs[i]->selected();
    if (!moved && !selected) continue;
    leader = graphs[i];
    break;
  }
  for (size_t i = 0; i < graphs.size(); ++i) {
    GraphModel& other = *graphs[i];
    if (leader != nullptr && &other != leader && other.geometry() != nullptr) {
      if (moved) other.PlaceLike(AnchorOf(*leader));
      if (selected) {
        other.Select(leader->selected().valid()
                         ? other.comparison().Find(leader->comparison().NameOf(leader->selected()))
                         : SceneNodeId());
      }
    }
    *seen[i] = now(graphs[i]);
  }
}

void Model::StepOverlay(int n) {
  const std::vector<std::pair<std::string, std::string>>* list = overlays();
  if (list == nullptr || list->empty()) return Say("This graph has nothing to colour by");
  std::vector<std::string> keys = {""};
  for (const auto& [key, label] : *list)
    keys.push_back(key);
  const auto found = std::ranges::find(keys, overlay_key);
  const auto at = found == keys.end() ? 0 : found - keys.begin();
  const auto count = static_cast<std::ptrdiff_t>(keys.size());
  const std::ptrdiff_t next = ((at + n) % count + count) % count;
  overlay_key = keys[static_cast<size_t>(next)];
  Say(next == 0 ? "No overlay" : "Overlay: " + (*list)[static_cast<size_t>(next - 1)].second);
}

void Model::StepLabels() {
  std::vector<std::string> choices(kLineLabels.begin(), kLineLabels.begin() + 4);
  if (const auto* list = overlays()) {
    // What the automatic placement says, where it says anything.
    for (const std::string_view key : kLineLabels | std::views::drop(4)) {
      if (std::ranges::any_of(*list, [&](const auto& entry) { return entry.first == key; }))
        choices.emplace_back(key);
    }
  }
  const auto at = std::ranges::find(choices, labels) - choices.begin();
  labels = choices[static_cast<size_t>(at + 1) % choices.size()];
  Say(labels.empty() ? "Nothing on the lines" : "On the lines: " + labels);
}

const std::vector<std::pair<std::string, std::string>>* Model::overlays() {
  if (!graph_) return nullptr;
  const std::string key = fmt::format("{}", comparison()->id());
  return overlays_.Get(
      workers_, key, [shared = graph_->shared_comparison()] { return AvailableOverlays(*shared); });
}

const Overlay* Model::overlay() {
  if (!graph_ || overlay_key.empty()) return nullptr;
  const std::string key = fmt::format("{} {}", comparison()->id(), overlay_key);
  return overlay_.Get(workers_, key, [shared = graph_->shared_comparison(), key = overlay_key] {
    return Overlay::Make(*shared, key);
  });
}

}  // namespace strata::viewer
