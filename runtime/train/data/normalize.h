#pragma once
#include <string>
#include <string_view>

namespace strata {

/// Unicode's normalization form C of `text` (UTF-8): accents are part of their letters where there
/// is such a letter (UAX #15; data of Unicode 9, as in Hugging Face's library). Bytes that are no
/// UTF-8 stay as they are.
std::string NormalizeNfc(std::string_view text);

}  // namespace strata
