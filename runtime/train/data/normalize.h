#pragma once
#include <string>
#include <string_view>

namespace strata {

/// The normalization form C of a UTF-8 text (UAX #15): characters are composed with their combining
/// marks where Unicode has a composed character. Characters newer than Unicode 9 are kept as they
/// are, as in Hugging Face's tokenizers 0.23; so are invalid bytes.
std::string NormalizeNfc(std::string_view text);

}  // namespace strata
