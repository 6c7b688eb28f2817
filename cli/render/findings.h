#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "store/check.h"

namespace strata::cli {

/// Damage of a trace and contradictions of its provenance, a line each, then their number.
std::string FindingsText(std::string_view path, const std::vector<Finding>& findings,
                         const std::vector<std::string>& contradictions);

}  // namespace strata::cli
