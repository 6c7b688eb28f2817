#pragma once
#include <set>

#include "ir/graph.h"

namespace strata {

/// Communication of a step that can run beside computation: what is made of parameters alone can be
/// gathered before it is needed, and values from which views and casts alone make gradients of
/// parameters can be reduced while the computation goes on.
struct Prefetchable {
  std::set<NodeId> from_parameters;  ///< parameters, and calls on nothing but these
  /// Calls on one tensor that only such calls read, or the output, as gradients.
  std::set<NodeId> to_gradients;

  /// Whether a redistribution of what `producer` made for the call `reader` can.
  bool Has(NodeId producer, NodeId reader) const {
    return from_parameters.contains(producer) || to_gradients.contains(reader);
  }
};

/// Of a step: its outputs are the loss and the gradients of its parameters, in their order.
/// `place` may have seen it.
Prefetchable PrefetchableOf(const Graph& graph);

}  // namespace strata
