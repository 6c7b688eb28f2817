#include "base/shell.h"

#include <cstdint>

#include <fmt/format.h>

#include "base/unicode.h"

namespace strata {

std::string ShellWord(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  if (const std::string shown = Visible(word); shown != word) {
    // What a terminal would not show as it is: as bash and zsh write it.
    std::string quoted = "$'";
    for (const char c : word) {
      if (c < ' ' || c > '~') {
        quoted += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
      } else {
        if (c == '\'' || c == '\\') quoted += '\\';
        quoted += c;
      }
    }
    return quoted + "'";
  }
  if (word.find_first_of("\"$`\\!'") == std::string_view::npos) return fmt::format("\"{}\"", word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace strata
