#include "scene/open_slabs.h"

#include <cstddef>

namespace strata {
namespace {

constexpr size_t kSmallScene = 60;  // nodes; all of its differences are opened

}  // namespace

IdVector<ClusterId, std::vector<ClusterId>> ChildrenOf(const Scene& scene) {
  IdVector<ClusterId, std::vector<ClusterId>> children(scene.clusters.size());
  for (ClusterId id : IdsOf(scene.clusters)) {
    const ClusterId parent = scene.clusters[id].parent;
    if (parent.valid()) children[parent].push_back(id);
  }
  return children;
}

void OpenTo(const Scene& scene, ClusterId cluster, std::set<ClusterId>& open) {
  for (ClusterId c = cluster; c.valid(); c = scene.clusters[c].parent)
    open.insert(c);
}

void OpenOnlyChild(const Scene& scene, ClusterId cluster, std::set<ClusterId>& open) {
  while (true) {
    const std::vector<SceneBlock>& blocks = scene.clusters[cluster].blocks;
    if (blocks.size() != 1 || blocks[0].clusters.size() != 1) return;
    cluster = blocks[0].clusters[0];
    open.insert(cluster);
  }
}

std::set<ClusterId> FirstOpen(const Scene& scene) {
  std::set<ClusterId> open = {Scene::kRoot};
  const bool small = scene.nodes.size() <= kSmallScene;
  const SceneNode* first = nullptr;
  for (const SceneNode& node : scene.nodes) {
    if (node.status == SceneStatus::kSame) continue;
    if (small) OpenTo(scene, node.cluster, open);
    const bool cause = node.status != SceneStatus::kDerived;
    if (first == nullptr || (cause && first->status == SceneStatus::kDerived)) first = &node;
  }
  if (first != nullptr) {
    OpenTo(scene, first->cluster, open);
  } else if (small) {
    for (ClusterId id : IdsOf(scene.clusters))
      open.insert(id);
  }
  OpenOnlyChild(scene, Scene::kRoot, open);
  return open;
}

}  // namespace strata
