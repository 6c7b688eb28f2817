#pragma once
#include <string>
#include <string_view>

namespace strata {

/// Escapes a name for the selector of a REF: `,`, `#` and `%` become `%2C`, `%23` and `%25`.
std::string SelectorValue(std::string_view name);
/// Reverses `SelectorValue`. Other escapes stay as they are.
std::string FromSelectorValue(std::string_view text);

}  // namespace strata
