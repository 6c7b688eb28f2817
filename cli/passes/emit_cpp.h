#pragma once
#include <string>
#include <string_view>

#include "base/folder.h"
#include "base/result.h"
#include "ir/graph.h"

namespace strata::cli {

/// The one of Inductor's operators that PyTorch has in C++, too: as `aten._to_copy`.
inline constexpr std::string_view kCastPrim = "prims.convert_element_type.default";

/// Writes a C++ project that runs `graph` with LibTorch alone: step.cpp has a line per node, with
/// its module path and source line; a fused node is a function of the operators that it was made
/// of, so that the results are those of the executor, bit for bit, where fusion was
/// `numerics=bitwise`. `ref` names the graph in a comment.
///
/// Errors (kUnsupported): operators of Strata's own, dynamic sizes, calls of methods and modules.
Status WriteCppProgram(const Graph& graph, std::string_view ref, const AtomicFolder& folder);

}  // namespace strata::cli
