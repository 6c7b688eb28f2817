#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "ir/graph.h"
#include "ir/module.h"

namespace strata::testing {

/// The module of a native text; ends the test program with the parser's message when it is wrong.
std::unique_ptr<Module> ParseOrDie(std::string_view text);

/// The node of that name. REQUIRES: there is one.
NodeId NodeNamed(const Graph& graph, std::string_view name);

/// The only result of the node of that name.
ValueId ValueNamed(const Graph& graph, std::string_view name);

}  // namespace strata::testing
