#include "base/complete.h"

#include <algorithm>

namespace strata {

Completion Complete(std::string_view line, const WordsAfter& words_after) {
  const size_t blank = line.rfind(' ');
  const size_t begin = blank == std::string_view::npos ? 0 : blank + 1;
  const std::string_view typed = line.substr(begin);
  Completion completion;
  for (std::string& word : words_after(line.substr(0, begin))) {
    if (word.starts_with(typed)) completion.choices.push_back(std::move(word));
  }
  if (completion.choices.empty()) return completion;
  std::string_view shared = completion.choices.front();
  for (const std::string& word : completion.choices) {
    const auto differs = std::ranges::mismatch(shared, word).in1;
    shared = shared.substr(0, static_cast<size_t>(differs - shared.begin()));
  }
  completion.added = shared.substr(typed.size());
  if (completion.choices.size() == 1) {
    completion.added += ' ';
    completion.choices.clear();
  }
  return completion;
}

}  // namespace strata
