#include "scene/open_slabs.h"

#include <cstddef>

#include "scene/index.h"

namespace strata {
namespace {

constexpr size_t kSmallScene = 60;  // nodes; all of its differences are opened

}  // namespace

std::vector<std::vector<int32_t>> ChildrenOf(const Scene& scene) {
  std::vector<std::vector<int32_t>> children(scene.clusters.size());
  for (size_t i = 1; i < scene.clusters.size(); ++i)
    children[At(scene.clusters[i].parent)].push_back(static_cast<int32_t>(i));
  return children;
}

void OpenTo(const Scene& scene, int32_t cluster, std::set<int32_t>& open) {
  for (int32_t c = cluster; c >= 0; c = scene.clusters[At(c)].parent)
    open.insert(c);
}

void OpenOnlyChild(const Scene& scene, int32_t cluster, std::set<int32_t>& open) {
  while (true) {
    const std::vector<SceneBlock>& blocks = scene.clusters[At(cluster)].blocks;
    if (blocks.size() != 1 || blocks[0].clusters.size() != 1) return;
    cluster = blocks[0].clusters[0];
    open.insert(cluster);
  }
}

std::set<int32_t> FirstOpen(const Scene& scene) {
  std::set<int32_t> open = {0};
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
    for (size_t i = 0; i < scene.clusters.size(); ++i)
      open.insert(static_cast<int32_t>(i));
  }
  OpenOnlyChild(scene, 0, open);
  return open;
}

}  // namespace strata
