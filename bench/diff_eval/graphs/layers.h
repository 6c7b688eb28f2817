#pragma once
#include <vector>

#include "ir/graph.h"

namespace strata::bench {

/// One of the layers that a graph repeats: the nodes of `layers.3.…`, and how it hangs between the
/// layers before and behind it.
struct Layer {
  std::vector<NodeId> forward, backward;  ///< in program order; `backward` may be empty
  std::vector<NodeId> inputs;             ///< placeholders that it alone reads
  /// What it takes from the layer before it and gives to the one behind it, and the gradients of
  /// both. None where there is no such layer, or no backward pass.
  ValueId in, out, grad_in, grad_out;

  /// Neighbours on both sides, so that it can be taken out.
  bool IsInner() const { return in.valid() && out.valid(); }
};

/// The layers of a graph by the module paths of its nodes, in order. Empty when there are none, or
/// when neighbours have more in common than one value per direction.
std::vector<Layer> FindLayers(const Graph& graph);

}  // namespace strata::bench
