#pragma once
#include <set>

#include "ir/graph.h"

namespace strata {

/// The value whose memory `value` lies in: itself, unless it is a view or an in-place result.
ValueId OwnerOf(const Graph& graph, ValueId value);

/// Whether a node writes to memory of its operands.
bool Mutates(const Graph& graph, NodeId node);

/// Owners of memory that nodes may write to: of all operands of those that write.
std::set<ValueId> WrittenMemory(const Graph& graph);

}  // namespace strata
