#include "base/unicode.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utf8proc.h>

#include <fmt/format.h>

namespace strata {
namespace {

struct Range {
  uint32_t first, last;
};

template <size_t N>
bool IsIn(const Range (&ranges)[N], uint32_t code) {
  const Range* const found = std::ranges::upper_bound(ranges, code, {}, &Range::first);
  return found != std::begin(ranges) && code <= std::prev(found)->last;
}

// Characters without a picture, and those that change the order or direction of others (the
// "Trojan Source" set).
constexpr Range kInvisible[] = {
    {0x0000, 0x001F}, {0x007F, 0x009F}, {0x00AD, 0x00AD}, {0x034F, 0x034F},
    {0x061C, 0x061C}, {0x115F, 0x1160}, {0x17B4, 0x17B5}, {0x180B, 0x180F},
    {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F}, {0x3164, 0x3164},
    {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0xE0000, 0xE0FFF}};

/// REQUIRES: `length` bytes from `i` are one character.
uint32_t Decode(std::string_view text, size_t i, size_t length) {
  const auto byte = [&](size_t k) { return static_cast<uint32_t>(static_cast<uint8_t>(text[k])); };
  if (length == 1) return byte(i);
  uint32_t code = byte(i) & (0x7Fu >> length);
  for (size_t k = 1; k < length; ++k)
    code = code << 6 | (byte(i + k) & 0x3F);
  return code;
}

size_t ColumnsOf(uint32_t code) {
  return static_cast<size_t>(utf8proc_charwidth(static_cast<utf8proc_int32_t>(code)));
}

std::string Show(std::string_view text, bool keeps_lines) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8Length(text, i);
    if (length == 0) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<uint8_t>(text[i]));
      ++i;
      continue;
    }
    const uint32_t code = Decode(text, i, length);
    if (!IsIn(kInvisible, code) || (keeps_lines && code == '\n')) {
      out += text.substr(i, length);
    } else if (code < 0x80) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", code);
    } else {
      fmt::format_to(std::back_inserter(out), "\\u{{{:x}}}", code);
    }
    i += length;
  }
  return out;
}

}  // namespace

std::string Visible(std::string_view text) {
  return Show(text, false);
}

std::string VisibleLines(std::string_view text) {
  return Show(text, true);
}

std::string EscapeMarkup(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

size_t DisplayWidth(std::string_view text) {
  size_t columns = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t length = std::max<size_t>(Utf8Length(text, i), 1);
    columns += ColumnsOf(Decode(text, i, length));
    i += length;
  }
  return columns;
}

size_t BytesThatFit(std::string_view text, size_t columns) {
  size_t used = 0, i = 0;
  while (i < text.size()) {
    const size_t length = std::max<size_t>(Utf8Length(text, i), 1);
    used += ColumnsOf(Decode(text, i, length));
    if (used > columns && i > 0) return i;
    i += length;
  }
  return i;
}

void AppendUtf8(uint32_t code, std::string& out) {
  const auto add = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | (code >> 6));
    add(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    add(0xE0 | (code >> 12));
    add(0x80 | ((code >> 6) & 0x3F));
    add(0x80 | (code & 0x3F));
  } else {
    add(0xF0 | (code >> 18));
    add(0x80 | ((code >> 12) & 0x3F));
    add(0x80 | ((code >> 6) & 0x3F));
    add(0x80 | (code & 0x3F));
  }
}

size_t Utf8Length(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) {
    return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u;
  };
  const auto follows = [&](size_t k) { return (byte(k) & 0xC0) == 0x80; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool overlong = first == 0xE0 && second < 0xA0;
    const bool surrogate = first == 0xED && second > 0x9F;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool overlong = first == 0xF0 && second < 0x90;
    const bool too_large = first == 0xF4 && second > 0x8F;
    return follows(1) && follows(2) && follows(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8Length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

}  // namespace strata
