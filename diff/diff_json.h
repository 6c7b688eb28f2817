#pragma once
#include <string>
#include <string_view>

#include "diff/diff.h"

namespace strata {

/// The diff as `strata.diff/1` (docs/json.md), with a line break at the end. `before_ref` and
/// `after_ref` say where the graphs are from.
std::string DiffJson(const GraphDiff& diff, std::string_view before_ref,
                     std::string_view after_ref);

}  // namespace strata
