#pragma once
#include <optional>
#include <string>
#include <vector>

#include "diff/history/bisect.h"
#include "diff/history/history.h"
#include "diff/history/history_code.h"

namespace strata::cli {

/// Where the runs `a` and `b` diverge, with the command that shows the difference; none: their
/// graphs agree. Behind it `code`, how their generated code differs.
std::string DivergenceText(const std::optional<Divergence>& divergence,
                           const std::vector<CodeDifference>& code, const History& a,
                           const History& b);

/// The same as `strata.bisect/1` (docs/json.md).
std::string DivergenceJson(const std::optional<Divergence>& divergence,
                           const std::vector<CodeDifference>& code, const History& a,
                           const History& b);

}  // namespace strata::cli
