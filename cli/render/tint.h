#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace strata::cli {

enum class Tint : uint8_t { kNone, kAdded, kRemoved, kChanged, kMoved, kDim, kBold };

/// `text` in a colour of a terminal with 256. Okabe and Ito's palette, which is distinct under
/// colour blindness; a sign repeats the meaning without colour.
inline std::string Tinted(bool colours, Tint tint, std::string_view text, bool underlined = false) {
  if (!colours || text.empty() || (tint == Tint::kNone && !underlined)) return std::string(text);
  static constexpr std::string_view kCodes[] = {"",        "38;5;36", "38;5;166", "38;5;178",
                                                "38;5;74", "2",       "1"};
  const std::string_view code = kCodes[static_cast<size_t>(tint)];
  return fmt::format("\x1b[{}{}m{}\x1b[0m", underlined ? (code.empty() ? "4" : "4;") : "", code,
                     text);
}

}  // namespace strata::cli
