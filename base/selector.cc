#include "base/selector.h"

#include <iterator>

#include <fmt/format.h>

#include "base/text.h"

namespace strata {

std::string SelectorValue(std::string_view name) {
  std::string out;
  for (char c : name) {
    if (c == ',' || c == '#' || c == '%') {
      fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out;
}

std::string FromSelectorValue(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view escape = text.substr(i, 3);
    if (escape == "%2C" || escape == "%23" || escape == "%25") {
      out += static_cast<char>(HexDigit(escape[1]) * 16 + HexDigit(escape[2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace strata
