#pragma once
#include <string_view>

#include "base/result.h"
#include "diff/patch/patch.h"

namespace strata {

/// Errors read `file:line:column: what`, then the line and a caret.
Result<Patch> ParsePatch(std::string_view text, std::string_view file = "<patch>");

}  // namespace strata
