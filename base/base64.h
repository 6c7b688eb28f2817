#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace strata {

/// Bytes as text of RFC 4648's first alphabet, padded, without line breaks.
std::string ToBase64(std::string_view bytes);

/// None for text that ToBase64 does not write; line breaks in it are passed over.
std::optional<std::string> FromBase64(std::string_view text);

}  // namespace strata
