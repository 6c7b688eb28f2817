#include "viewer/model/graph_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "scene/open_slabs.h"

namespace strata::viewer {
namespace {

constexpr double kTwoLines = 0.78;  // below this zoom nodes show one line

}  // namespace

GraphModel::GraphModel(std::shared_ptr<const Comparison> comparison, Workers& workers)
    : comparison_(std::move(comparison)),
      workers_(workers),
      slot_(fmt::format("layout {}", static_cast<void*>(this))) {}

GraphModel::~GraphModel() {
  workers_.Cancel(slot_);
  workers_.Dispose(std::move(geometry_));
}

GraphModel::Kept GraphModel::Keep() const {
  Kept kept;
  kept.open = OpenPaths();
  kept.scale = camera.scale;
  if (geometry_ == nullptr || !placed_) return kept;
  const double x = stage_.room / 2, y = stage_.height / 2;
  const auto distance = [&](const SceneRect& rect) {
    return std::abs(camera.ToStageX(rect.x + rect.width / 2) - x) +
           std::abs(camera.ToStageY(rect.y + std::min(rect.height, 40.0) / 2) - y);
  };
  double nearest = std::numeric_limits<double>::infinity();
  for (const SceneBox& box : geometry_->boxes) {
    if (!box.node.valid() || distance(box) >= nearest) continue;
    nearest = distance(box);
    kept.node = comparison_->NameOf(box.node);
    kept.node_at = {camera.ToStageX(box.x), camera.ToStageY(box.y)};
  }
  nearest = std::numeric_limits<double>::infinity();
  for (const SceneSlab& slab : geometry_->slabs) {
    if (slab.cluster == Scene::kRoot || distance(slab) >= nearest) continue;
    nearest = distance(slab);
    kept.path = comparison_->cluster(slab.cluster).path;
    kept.path_at = {camera.ToStageX(slab.x), camera.ToStageY(slab.y)};
  }
  return kept;
}

SceneView GraphModel::FirstView(const Comparison& comparison, const std::vector<std::string>& open,
                                int32_t hops) {
  const Scene& scene = comparison.scene();
  SceneView view;
  view.hops = hops;
  for (const std::string& path : open) {
    const ClusterId cluster = comparison.FindCluster(path);
    if (cluster.valid()) OpenTo(scene, cluster, view.open);
  }
  if (view.open.size() == 1) view.open = FirstOpen(scene);
  return view;
}

void GraphModel::Begin(const std::optional<Kept>& kept, SceneNodeId selected, int32_t hops,
                       const std::optional<LaidOut>& ahead) {
  const std::vector<std::string> open = kept ? kept->open : std::vector<std::string>();
  const bool prepared = ahead && ahead->view.hops == hops && ahead->open == open;
  // Finding thousands of open slabs by name takes long; the work ahead has done it mostly.
  view_ = prepared ? ahead->view : FirstView(*comparison_, open, hops);
  if (selected.valid())
    OpenTo(comparison_->scene(), comparison_->node(selected).cluster, view_.open);
  kept_ = kept;
  selected_ = selected;
  if (prepared && ahead->view == view_) {
    ++layouts_;
    Arrive(ahead->geometry, {});
  } else {
    Layout({});
  }
}

bool GraphModel::laying_out() const {
  return workers_.busy(slot_);
}

void GraphModel::Layout(Anchor anchor) {
  ++layouts_;
  workers_.Post(
      slot_,
      [comparison = comparison_, view = view_, anchor = std::move(anchor),
       this](const Outdated& outdated) -> Workers::Deliver {
        auto geometry =
            std::make_shared<const SceneGeometry>(MakeGeometry(comparison->scene(), view));
        if (outdated) return {};
        // This object cancels its slot before it goes away, so a delivery finds it.
        return [this, geometry = std::move(geometry), anchor] { Arrive(geometry, anchor); };
      });
}

void GraphModel::Arrive(std::shared_ptr<const SceneGeometry> geometry, const Anchor& anchor) {
  std::shared_ptr<const SceneGeometry> before = std::exchange(geometry_, std::move(geometry));
  const SceneRect* from = anchor && before != nullptr ? anchor(*before) : nullptr;
  const SceneRect* to = from != nullptr ? anchor(*geometry_) : nullptr;
  if (to != nullptr) {
    camera.x += (from->x - to->x) * camera.scale;
    camera.y += (from->y - to->y) * camera.scale;
  }
  workers_.Dispose(std::move(before));
  if (!placed_ && stage_.width > 0) PlaceKept();
  if (reveal_.valid()) {
    if (camera.scale < kTwoLines) {
      camera.scale = std::min(1.0, std::max(kTwoLines, (stage_.room - 32) / geometry_->width));
    }
    Center(std::exchange(reveal_, SceneNodeId()));
  }
  if (reveal_cluster_.valid()) CenterCluster(std::exchange(reveal_cluster_, ClusterId()));
}

void GraphModel::PlaceLike(const Kept& kept) {
  if (!PlaceAt(kept)) camera.scale = kept.scale;
}

bool GraphModel::PlaceAt(const Kept& kept) {
  const SceneBox* box =
      kept.node.empty() ? nullptr : geometry_->BoxOf(comparison_->Find(kept.node));
  const SceneSlab* slab =
      kept.path.empty() ? nullptr : geometry_->SlabOf(comparison_->FindCluster(kept.path));
  if (box == nullptr && slab == nullptr) return false;
  const ScenePoint at = box != nullptr ? kept.node_at : kept.path_at;
  const SceneRect& rect = box != nullptr ? static_cast<const SceneRect&>(*box) : *slab;
  camera = {at.x - rect.x * kept.scale, at.y - rect.y * kept.scale, kept.scale};
  return true;
}

void GraphModel::PlaceKept() {
  placed_ = true;
  if (kept_ && PlaceAt(*kept_)) return;
  Home();
}

void GraphModel::Relayout(const Anchor& anchor) {
  Layout(anchor);
}

// --- Camera ---

void GraphModel::SetStage(const Stage& stage) {
  stage_ = stage;
  if (!placed_ && geometry_ != nullptr && stage.width > 0) PlaceKept();
}

void GraphModel::PlaceAgain() {
  placed_ = false;
  kept_.reset();
}

void GraphModel::Pan(double dx, double dy) {
  camera.x += dx;
  camera.y += dy;
}

void GraphModel::Zoom(double factor) {
  camera.Zoom(factor, stage_.room / 2, stage_.height / 2);
}

void GraphModel::Fit(double left, double top, double right, double bottom) {
  camera.scale =
      std::max(Camera::kLeast, std::min({1.0, (stage_.room - 32) / std::max(1.0, right - left),
                                         (stage_.height - 32) / std::max(1.0, bottom - top)}));
  camera.x = stage_.room / 2 - (left + right) / 2 * camera.scale;
  camera.y = std::min(16.0, stage_.height / 2 - (top + bottom) / 2 * camera.scale);
}

void GraphModel::FitAll() {
  if (geometry_ != nullptr) Fit(0, 0, geometry_->width, geometry_->height);
}

void GraphModel::FitSelection() {
  if (geometry_ == nullptr) return;
  constexpr double kFar = std::numeric_limits<double>::infinity();
  double left = kFar, top = kFar, right = -kFar, bottom = -kFar;
  for (SceneNodeId node : lit_ ? *lit_ : std::set<SceneNodeId>{selected_}) {
    const SceneBox* box = geometry_->BoxOf(node);
    if (box == nullptr) continue;
    left = std::min(left, box->x);
    top = std::min(top, box->y);
    right = std::max(right, box->right());
    bottom = std::max(bottom, box->bottom());
  }
  if (left < right) {
    Fit(left, top, right, bottom);
    // A selection above the middle of the scene is not moved to the top of the stage.
    camera.y = stage_.height / 2 - (top + bottom) / 2 * camera.scale;
  } else {
    FitAll();
  }
}

void GraphModel::Center(SceneNodeId node) {
  if (geometry_ == nullptr || !node.valid()) return;
  const SceneRect* rect = geometry_->BoxOf(node);
  if (rect == nullptr)
    rect = geometry_->ClosedSlabOf(comparison_->scene(), comparison_->node(node).cluster);
  if (rect == nullptr) return;
  const double spare = stage_.room - geometry_->width * camera.scale;
  // Empty space beside the graph stays out of sight.
  camera.x =
      spare > 0
          ? spare / 2
          : std::min(16.0, std::max(spare - 16,
                                    stage_.room / 2 - (rect->x + rect->width / 2) * camera.scale));
  camera.y = std::min(16.0, stage_.height / 2 - (rect->y + rect->height / 2) * camera.scale);
}

void GraphModel::Home() {
  if (geometry_ == nullptr) return;
  // A part of a window shows smaller boxes, with their names, so that more of both lanes is in
  // sight.
  const double least = stage_.room < 640 ? 0.45 : 0.5;
  camera.scale = std::min(1.0, std::max(least, (stage_.room - 32) / geometry_->width));
  camera.x = std::max(16.0, (stage_.room - geometry_->width * camera.scale) / 2);
  camera.y = 16;
  SceneNodeId first = selected_;
  for (SceneNodeId node : comparison_->changes_by_cause()) {
    if (first.valid()) break;
    if (geometry_->BoxOf(node) != nullptr) first = node;
  }
  Center(first);
}

// --- Selection ---

void GraphModel::Select(SceneNodeId node) {
  if (node != selected_ && selected_.valid()) last_ = selected_;
  selected_ = node;
  cursor_ = {};
  lit_.reset();
}

void GraphModel::Reveal(SceneNodeId node) {
  if (!node.valid()) return;
  Select(node);
  const SceneView before = view_;
  view_.hidden.erase(node);
  if (view_.only && !view_.only->contains(node)) view_.only.reset();
  const SceneNode& n = comparison_->node(node);
  OpenTo(comparison_->scene(), n.cluster, view_.open);
  const bool folds = view_.hops != SceneView::kAllHops && !comparison_->changes().empty();
  if (folds && n.status == SceneStatus::kSame && int32_t{n.distance} > view_.hops) {
    const std::vector<SceneBlock>& blocks = comparison_->cluster(n.cluster).blocks;
    for (size_t b = 0; b < blocks.size(); ++b) {
      if (std::ranges::find(blocks[b].places, node, &ScenePlace::node) != blocks[b].places.end())
        view_.unfolded.insert({n.cluster, static_cast<int32_t>(b)});
    }
  }
  reveal_ = node;
  if (view_ == before && geometry_ != nullptr) {
    if (camera.scale < kTwoLines) {
      camera.scale = std::min(1.0, std::max(kTwoLines, (stage_.room - 32) / geometry_->width));
    }
    Center(std::exchange(reveal_, SceneNodeId()));
  } else {
    done_.push_back(before);
    undone_.clear();
    Layout({});
  }
}

void GraphModel::RevealCluster(ClusterId cluster) {
  const SceneView before = view_;
  OpenTo(comparison_->scene(), cluster, view_.open);
  cursor_ = cluster;
  reveal_cluster_ = cluster;
  if (view_ == before && geometry_ != nullptr) {
    CenterCluster(std::exchange(reveal_cluster_, ClusterId()));
  } else {
    done_.push_back(before);
    undone_.clear();
    Layout({});
  }
}

void GraphModel::CenterCluster(ClusterId cluster) {
  const SceneSlab* slab = geometry_->SlabOf(cluster);
  if (slab == nullptr) return;
  camera.scale = std::max(camera.scale, 0.5);
  const double spare = stage_.room - geometry_->width * camera.scale;
  camera.x = spare > 0 ? spare / 2 : std::min(16.0, 16 - slab->x * camera.scale);
  camera.y = std::min(16.0, 48 - slab->y * camera.scale);
}

SceneNodeId GraphModel::Nearest(int dx, int dy) const {
  if (geometry_ == nullptr) return {};
  const SceneBox* from = geometry_->BoxOf(selected_);
  SceneNodeId best;
  double least = std::numeric_limits<double>::infinity();
  for (const SceneBox& box : geometry_->boxes) {
    if (!box.node.valid()) continue;
    if (from == nullptr) return box.node;
    const double x = box.x - from->x, y = box.y - from->y;
    const double along = x * dx + y * dy, across = std::abs(x * dy) + std::abs(y * dx);
    if (along <= 1 || along + 2 * across >= least) continue;
    least = along + 2 * across;
    best = box.node;
  }
  return best;
}

}  // namespace strata::viewer
