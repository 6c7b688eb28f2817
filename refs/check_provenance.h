#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace strata {

/// Contradictions between the provenance that a trace records for its passes and the structure of
/// their graphs, a line each. Errors: a trace or a graph that cannot be loaded.
Result<std::vector<std::string>> CheckProvenance(const std::string& path);

}  // namespace strata
