#include "base/source_error.h"

#include <algorithm>
#include <string>

namespace strata {

Error ErrorAt(std::string_view file, std::string_view text, size_t offset, std::string_view what,
              const TextPlace& place) {
  offset = std::min(offset, text.size());
  const std::string_view before = text.substr(0, offset);
  const auto line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const size_t line_begin =
      before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const size_t column = offset - line_begin;
  std::string_view shown = text.substr(line_begin);
  shown = shown.substr(0, shown.find_first_of("\r\n"));
  // Of a long line, the neighbourhood of the place.
  constexpr size_t kWidth = 100;
  size_t caret = column;
  std::string prefix;
  if (caret > kWidth - 20) {
    const size_t cut = caret - (kWidth - 20);
    shown.remove_prefix(std::min(cut, shown.size()));
    caret -= cut;
    prefix = "…";
  }
  std::string excerpt(shown.substr(0, kWidth));
  for (char& c : excerpt) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  const size_t indent = caret + (prefix.empty() ? 0 : 1);
  return Error("{}:{}:{}: {}\n  {}{}\n  {}^", file, place.lines + line, place.columns + column + 1,
               what, prefix, excerpt, std::string(indent, ' '));
}

}  // namespace strata
