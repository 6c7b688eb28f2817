#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "ir/graph.h"

namespace strata {

/// Calls and inputs of layers that are alike, which get one strategy together.
struct Twins {
  std::map<NodeId, NodeId> root_of;  ///< of every node; a node without twins is its own root

  /// The first node of the nodes that are alike.
  NodeId Root(NodeId node) const {
    const auto found = root_of.find(node);
    return found == root_of.end() ? node : found->second;
  }
};

/// Modules of layers are alike in a phase when their calls are: the same operators on the same
/// types, in this order. `layers.3.attention.wq` is of layer 3. Layers before layer `split` are
/// not alike with others, and neither are nodes of which `decided` says something else.
Twins FindTwins(const Graph& graph, int64_t split = 0,
                const std::function<std::string(NodeId)>& decided = {});
/// One more than the highest number of a layer.
int64_t NumLayers(const Graph& graph);
/// Every node alone.
inline Twins NoTwins() {
  return {};
}

/// "layers.*.attention.wq" of "layers.3.attention.wq"; `layer`: 3, or -1 outside of layers.
std::string WithoutLayer(std::string_view path, int64_t& layer);

}  // namespace strata
