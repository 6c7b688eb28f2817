#pragma once
#include <string_view>

namespace strata {

/// The operator of a fused node: `strata.fused.default(body, x, y, …)` computes what the graph
/// `body` does with its inputs; a list of results, in the order of the body's outputs. Results may
/// be inputs that the body writes in place.
inline constexpr std::string_view kFusedOp = "strata.fused.default";

}  // namespace strata
