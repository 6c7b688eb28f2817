#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "diff/history/history.h"

namespace strata {

/// The pass of Inductor whose graphs PyTorch writes in every form: logs and debug folders.
inline constexpr std::string_view kPostGradPass = "post_grad_graph";

/// Whether all graphs come from a folder of TORCH_COMPILE_DEBUG. It holds the graphs that Inductor
/// compiled, and names no compilations: each after kPostGradPass, and before it as no log has it,
/// with views that Inductor has made reshapes when it logs `before_post_grad_graph`.
bool IsOfDebugFolder(const History& history);

/// Graphs, as indices of History::records, by the id that AOTAutograd gives each graph,
/// `0_forward`: debug folders are named after it
/// (`model__0_forward_1`), and in a log generated code begins with it (GeneratedCode::aot_id). Ids
/// that fit several graphs are left out: code from a cache has the id of another process.
std::map<std::string, int32_t> GraphsByAotId(const History& history);

}  // namespace strata
