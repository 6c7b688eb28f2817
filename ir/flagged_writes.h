#pragma once

#include "ir/graph.h"

namespace strata {

/// Whether a call writes its result to its first operand, as `inplace` says:
/// `torch.nn.functional.relu(x, inplace=True)`.
bool WritesResultByFlag(const Graph& graph, NodeId node);

/// Whether a call writes to an operand because an argument has it do so: to its first operand as
/// above, to the statistics of a batch norm in training, or to a table with `max_norm`.
bool WritesByFlag(const Graph& graph, NodeId node);

}  // namespace strata
