#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "ir/graph.h"
#include "ir/symbol_sizes.h"
#include "runtime/plan/plan.h"

namespace strata {

/// The parts of an `aten.split_with_sizes` whose sizes are values, and what they add up to: the
/// dimension that is split less the parts of known size, in elements. None: `node` does not split
/// by values, or the dimension is not known at these sizes.
std::optional<SizePartition> PartitionOf(const Graph& graph, NodeId node, const SymbolSizes& sizes,
                                         const std::function<SlotId(ValueId)>& slot_of);

}  // namespace strata
