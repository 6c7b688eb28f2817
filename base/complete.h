#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// Words that may stand after `text`, the part of a line up to the word that is completed.
using WordsAfter = std::function<std::vector<std::string>(std::string_view text)>;

/// What Tab adds to a line, and the words to list when there are several: the longest beginning
/// that all words share, and a blank after the only one.
struct Completion {
  std::string added;
  std::vector<std::string> choices;  ///< more than one; else empty
};
Completion Complete(std::string_view line, const WordsAfter& words_after);

}  // namespace strata
