#pragma once
#include <string>

#include "ir/graph.h"

namespace strata {

/// `layers.0.attention.wo (runtime/models/llama3.cc:79)`, for messages; the node's name where it
/// has no module.
std::string WhereOf(const Graph& graph, NodeId node);

}  // namespace strata
