#include "base/python_literal.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <iterator>

#include <fmt/format.h>

namespace strata {

void AppendFloat(double value, std::string& out) {
  if (std::isnan(value)) {
    out += "nan";
    return;
  }
  if (std::isinf(value)) {
    out += value < 0 ? "-inf" : "inf";
    return;
  }
  // Shortest digits that read back to the same number, in Python's layout: scientific outside
  // [1e-4, 1e16).
  char digits[40];
  const double magnitude = std::fabs(value);
  const bool scientific = magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16);
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value,
                    scientific ? std::chars_format::scientific : std::chars_format::fixed);
  const std::string_view text(digits, static_cast<size_t>(end.ptr - digits));
  out += text;
  if (!scientific && text.find('.') == std::string_view::npos) out += ".0";
}

void AppendQuoted(std::string_view text, std::string& out) {
  const bool use_double =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = use_double ? '"' : '\'';
  out += quote;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  out += quote;
}

}  // namespace strata
