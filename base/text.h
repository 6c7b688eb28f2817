#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace strata {

/// Foreign text for a message: one line (control characters escaped as in JSON, always UTF-8), cut
/// after `max_bytes` with an ellipsis.
std::string OneLine(std::string_view text, size_t max_bytes = 60);

/// Joins at most `limit` names for a message: `a, b, c and 4 more`.
std::string Enumerate(std::span<const std::string> names, size_t limit = 5);

/// Removes spaces (no other white space) at both ends.
std::string_view TrimBlanks(std::string_view text);

/// Takes the first line off `text`, with its end. Returns it without; "" if `text` is empty.
std::string_view TakeLine(std::string_view& text);

constexpr bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
/// A letter, a digit or an underscore, in ASCII.
constexpr bool IsWordChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c) || c == '_';
}
/// The value of a hexadecimal digit of either case; -1 for anything else.
constexpr int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace strata
