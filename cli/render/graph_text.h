#pragma once
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace strata::cli {

/// A graph with its bodies as `strata.show/1` (docs/json.md).
std::string GraphJson(const Graph& graph, std::string_view ref);

/// A graph with its bodies for Graphviz: a box per printed node, a cluster per body.
std::string GraphDot(const Graph& graph);

}  // namespace strata::cli
