#pragma once
#include <string>
#include <string_view>

#include "diff/model/graph_diff.h"
#include "diff/policy/policy.h"

namespace strata {

/// The diff as `strata.diff/1` (docs/json.md), with a line break at the end. `before_ref` and
/// `after_ref` say where the graphs are from. With a verdict, what violates the policy stands
/// first.
std::string DiffJson(const GraphDiff& diff, std::string_view before_ref, std::string_view after_ref,
                     const PolicyVerdict* verdict = nullptr);

}  // namespace strata
