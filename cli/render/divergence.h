#pragma once
#include <optional>
#include <string>

#include "diff/history/bisect.h"
#include "diff/history/history.h"

namespace strata::cli {

/// Where the runs `a` and `b` diverge, with the command that shows the difference; none: they
/// agree.
std::string DivergenceText(const std::optional<Divergence>& divergence, const History& a,
                           const History& b);

/// The same as `strata.bisect/1` (docs/json.md).
std::string DivergenceJson(const std::optional<Divergence>& divergence, const History& a,
                           const History& b);

}  // namespace strata::cli
