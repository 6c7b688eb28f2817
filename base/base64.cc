#include "base/base64.h"

#include <cstdint>

namespace strata {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string ToBase64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      out += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

std::optional<std::string> FromBase64(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3);
  uint32_t group = 0;
  size_t digits = 0, padding = 0;
  for (char c : text) {
    if (c == '\n' || c == '\r') continue;
    const size_t digit = c == '=' ? 0 : kDigits.find(c);
    if (digit == std::string_view::npos || (c != '=' && padding > 0)) return std::nullopt;
    padding += c == '=' ? 1 : 0;
    group = group << 6 | static_cast<uint32_t>(digit);
    if (++digits % 4 != 0) continue;
    if (padding > 2) return std::nullopt;
    for (size_t k = 0; k < 3 - padding; ++k)
      out += static_cast<char>(group >> (16 - 8 * k) & 0xFF);
    group = 0;
  }
  if (digits % 4 != 0) return std::nullopt;
  return out;
}

}  // namespace strata
