#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "scene/scene.h"

/// The steps of MakeScene, in their order.
namespace strata::internal {

/// The place of what has none, after all others.
inline constexpr SceneNodeId kNoOrder{std::numeric_limits<int32_t>::max()};

/// Consumers and producers of each node, as one array with offsets.
struct Adjacency {
  std::vector<int32_t> begin;  ///< of node i: target[begin[i] … begin[i + 1]]
  std::vector<SceneNodeId> target;

  std::span<const SceneNodeId> of(SceneNodeId node) const {
    const auto i = static_cast<size_t>(node.index);
    return {target.data() + begin[i], static_cast<size_t>(begin[i + 1] - begin[i])};
  }
};
Adjacency Producers(const Scene& scene);
Adjacency Consumers(const Scene& scene);

/// For programs without module paths: of each scene node the path `block.3` when operators repeat
/// in equal blocks, else "". Empty when module paths are known or nothing repeats. REQUIRES: nodes
/// are there.
IdVector<SceneNodeId, std::string> PathsByStructure(const GraphDiff& diff, const Scene& scene);

/// Builds `scene.clusters` from the paths of the nodes, counts, and groups equal neighbours.
/// REQUIRES: nodes are there.
void MakeClusters(const GraphDiff& diff, const SceneOptions& options, Scene& scene);

/// Fills the blocks of every cluster. REQUIRES: clusters and edges are there.
void LayOut(const SceneOptions& options, Scene& scene);

}  // namespace strata::internal
