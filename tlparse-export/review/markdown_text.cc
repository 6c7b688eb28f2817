#include "tlparse-export/review/markdown_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"

namespace strata {
namespace {

constexpr size_t kMaxUrl = 2'000;

}  // namespace

std::string MarkdownCode(std::string_view text, bool in_table) {
  std::string shown = Visible(text);
  size_t longest = 0, run = 0;
  for (char c : shown) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  if (in_table) {
    for (size_t at = 0; (at = shown.find('|', at)) != std::string::npos; at += 2)
      shown.insert(at, "\\");
  }
  const bool needs_blanks = shown.empty() || shown.front() == '`' || shown.back() == '`' ||
                            shown.front() == ' ' || shown.back() == ' ';
  const std::string ticks(longest + 1, '`');
  const std::string_view blank = needs_blanks ? " " : "";
  return fmt::format("{}{}{}{}{}", ticks, blank, shown, blank, ticks);
}

Result<std::string> MarkdownUrl(std::string_view url, std::string_view what) {
  if (!url.starts_with("https://") && !url.starts_with("http://")) {
    return Error("not a URL: {} {}: it begins with https:// or http://", what, OneLine(url));
  }
  if (url.size() > kMaxUrl) return Error("too long: {}: a URL of at most {} bytes", what, kMaxUrl);
  std::string out = "<";
  for (char c : url) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7f || c == '<' || c == '>' || c == '\\' || c == '`') {
      out += fmt::format("%{:02X}", byte);
    } else {
      out += c;
    }
  }
  return out + ">";
}

}  // namespace strata
