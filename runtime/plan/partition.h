#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "ir/graph.h"
#include "ir/symbol_sizes.h"
#include "runtime/plan/plan.h"

namespace strata {

/// The parts of a split add up to what is split: those whose sizes are values. None: `node` does
/// not split by values, or the whole is not known at these sizes.
std::optional<SizePartition> PartitionOf(const Graph& graph, NodeId node, const SymbolSizes& sizes,
                                         const std::function<SlotId(ValueId)>& slot_of);

}  // namespace strata
