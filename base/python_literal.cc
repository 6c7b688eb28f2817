#include "base/python_literal.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <iterator>

#include <fmt/format.h>

namespace strata {

void AppendInt(int64_t value, std::string& out) {
  char digits[20];
  const char* const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, static_cast<size_t>(end - digits));
}

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
  size_t plain = 0;  // where characters begin that stand for themselves
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (c != quote && c != '\\' && byte >= 0x20 && byte != 0x7f) continue;
    out += text.substr(plain, i - plain);
    plain = i + 1;
    if (c == quote || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    }
  }
  out += text.substr(plain);
  out += quote;
}

}  // namespace strata
