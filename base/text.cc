#include "base/text.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"

namespace strata {
std::string OneLine(std::string_view text, size_t max_bytes) {
  std::string quoted;
  AppendJsonString(text.substr(0, max_bytes), quoted);
  return quoted.substr(1, quoted.size() - 2) + (text.size() > max_bytes ? "…" : "");
}

std::string Enumerate(std::span<const std::string> names, size_t limit) {
  std::string shown =
      fmt::format("{}", fmt::join(names.first(std::min(limit, names.size())), ", "));
  if (names.size() <= limit) return shown;
  return fmt::format("{} and {} more", shown, names.size() - limit);
}

std::string_view TrimBlanks(std::string_view text) {
  while (text.starts_with(' '))
    text.remove_prefix(1);
  while (text.ends_with(' '))
    text.remove_suffix(1);
  return text;
}

std::string_view TakeLine(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

}  // namespace strata
