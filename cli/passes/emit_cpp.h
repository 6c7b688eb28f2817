#pragma once
#include <string>
#include <string_view>

#include "base/folder.h"
#include "base/result.h"
#include "ir/graph.h"

namespace strata::cli {

/// Whether a program in C++ has `op`, one of the operators `prims.*` that Inductor's decompositions
/// leave in graphs.
bool HasCppPrim(std::string_view op);

/// Writes a C++ project that runs `graph` with LibTorch alone: step.cpp has a line per node, with
/// its module path and source line; a fused node is a function of the operators that it was made
/// of, so that the results are those of the executor, bit for bit, where fusion was
/// `numerics=bitwise`. `ref` names the graph in a comment. Where the graph calls operators
/// `prims.*`, the project has the source of the executor's.
///
/// Errors (kUnsupported): operators of Strata's own, dynamic sizes, calls of methods and modules.
Status WriteCppProgram(const Graph& graph, std::string_view ref, const AtomicFolder& folder);

}  // namespace strata::cli
