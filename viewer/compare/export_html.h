#pragma once
#include <string>

#include "base/result.h"
#include "viewer/compare/comparison.h"

namespace strata::viewer {

/// Writes the report of a whole trace, which `file` names for the user, as one HTML file; without
/// a trace (""), that of the comparison. Takes seconds for large graphs. Errors: the trace cannot
/// be read, the file cannot be written.
Status WriteHtml(const std::string& trace, const std::string& file, const Comparison& comparison,
                 const std::string& path);

}  // namespace strata::viewer
