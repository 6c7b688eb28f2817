#pragma once
#include <set>

#include "ir/graph.h"

namespace strata {

/// The operand in whose memory the results of `node` may lie, by its operator: that of a view, or
/// what an in-place operator writes. Invalid: they have memory of their own.
ValueId SharedOperand(const Graph& graph, NodeId node);

/// The value whose memory `value` lies in: itself, unless it is a view or an in-place result. The
/// texts of PyTorch do not state aliases: in a foreign graph, the value in whose memory it may lie.
ValueId OwnerOf(const Graph& graph, ValueId value);

/// Whether a node writes to memory of its operands.
bool Mutates(const Graph& graph, NodeId node);

/// Owners of memory that nodes may write to: of all operands of those that write.
std::set<ValueId> WrittenMemory(const Graph& graph);

}  // namespace strata
