#include "runtime/control/words.h"

#include <charconv>
#include <cmath>

#include "base/text.h"

namespace strata {

std::vector<std::string_view> SplitWords(std::string_view text) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBlanks = " \t";
  for (size_t begin = text.find_first_not_of(kBlanks); begin != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

Result<int64_t> ParseCount(std::string_view word) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
  if (error != std::errc() || end != word.data() + word.size() || count < 1)
    return Error("not a whole number from 1: {}", OneLine(word));
  return count;
}

Result<double> ParseNumber(std::string_view word) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(number))
    return Error("not a number: {}", OneLine(word));
  return number;
}

}  // namespace strata
