#pragma once
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace strata {

/// Microseconds that nodes took in a step, by name.
using NodeTimes = std::map<std::string, double, std::less<>>;

/// Reads `strata.profile/1`, what `strata profile REF --json` prints. Errors: text of another form.
Result<NodeTimes> ParseProfile(std::string_view json);
/// The same of a file.
Result<NodeTimes> ReadProfile(const std::string& path);

}  // namespace strata
