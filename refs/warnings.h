#pragma once
#include <functional>
#include <string_view>

namespace strata {

/// Receives each warning as one line without a prefix. Empty: warnings are dropped.
using WarningSink = std::function<void(std::string_view)>;

}  // namespace strata
