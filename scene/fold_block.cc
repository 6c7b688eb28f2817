#include "scene/fold_block.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <utility>

namespace strata {
namespace {

SceneBox NodeBox(const ScenePlace& place) {
  SceneBox box;
  box.node = place.node;
  box.members = {place.node};
  box.x = place.x;
  return box;
}

}  // namespace

BlockFolder::BlockFolder(const Scene& scene, const SceneView& view) : scene_(scene), view_(view) {
  const SceneCounts& counts = scene.clusters[Scene::kRoot].counts;
  all_ = view.hops == SceneView::kAllHops || counts.differences() == 0;
}

bool BlockFolder::ByHand(SceneNodeId node) const {
  return view_.hidden.contains(node) || (view_.only && !view_.only->contains(node));
}
bool BlockFolder::IsHidden(SceneNodeId node, bool unfolded) const {
  if (unfolded) return false;
  if (ByHand(node)) return true;
  const SceneNode& n = scene_.nodes[node];
  return !all_ && !view_.only && n.status == SceneStatus::kSame && int32_t{n.distance} > view_.hops;
}

void BlockFolder::Flush(std::vector<ScenePlace>& pending,
                        std::vector<std::vector<SceneBox>>& rows) const {
  if (pending.size() == 1 && !ByHand(pending[0].node)) {
    rows.push_back({NodeBox(pending[0])});
  } else if (!pending.empty()) {
    SceneBox fold;
    for (const ScenePlace& place : pending) {
      fold.members.push_back(place.node);
      fold.by_hand |= ByHand(place.node);
    }
    rows.push_back({std::move(fold)});
  }
  pending.clear();
}

std::vector<std::vector<SceneBox>> BlockFolder::FoldLane(const SceneBlock& block, bool backward,
                                                         bool unfolded) const {
  std::map<int32_t, std::vector<const ScenePlace*>> rows;
  for (const ScenePlace& place : block.places) {
    if (place.backward == backward) rows[place.row].push_back(&place);
  }
  std::vector<std::vector<SceneBox>> shown;
  std::vector<ScenePlace> pending;
  for (const auto& [row, places] : rows) {
    std::vector<SceneBox> visible;
    for (const ScenePlace* place : places) {
      if (!IsHidden(place->node, unfolded)) visible.push_back(NodeBox(*place));
    }
    if (!visible.empty()) {
      Flush(pending, shown);
      shown.push_back(std::move(visible));
    }
    for (const ScenePlace* place : places) {
      if (IsHidden(place->node, unfolded)) pending.push_back(*place);
    }
  }
  Flush(pending, shown);
  return shown;
}

FoldedBlock BlockFolder::Fold(const SceneBlock& block, ClusterId cluster, int32_t number) const {
  const bool unfolded = view_.unfolded.contains({cluster, number});
  std::array<std::vector<std::vector<SceneBox>>, 2> lanes = {FoldLane(block, false, unfolded),
                                                             FoldLane(block, true, unfolded)};
  FoldedBlock folded;
  folded.height = static_cast<int32_t>(std::max(lanes[0].size(), lanes[1].size()));
  for (size_t backward = 0; backward < 2; ++backward) {
    // Backward runs up: its first nodes stand at the bottom.
    const int32_t first = backward == 0 ? 0 : folded.height - static_cast<int32_t>(lanes[1].size());
    for (size_t i = 0; i < lanes[backward].size(); ++i) {
      for (SceneBox& box : lanes[backward][i]) {
        box.backward = backward != 0;
        box.row = first + static_cast<int32_t>(i);
        box.cluster = cluster;
        box.block = number;
        folded.boxes.push_back(std::move(box));
      }
    }
  }
  return folded;
}

}  // namespace strata
