#include "refs/control_words.h"

#include <utility>

#include "base/text.h"

namespace strata {

std::vector<std::string> ControlWordsAfter(std::string_view text) {
  static const std::pair<std::string_view, std::vector<std::string>> kWords[] = {
      {"",
       {"back", "break", "breaks", "continue", "delete", "help", "pause", "print", "save", "set",
        "status", "step", "stop", "where"}},
      {"break", {"if", "inf", "module", "nan", "node", "op", "pass", "step"}},
      {"break if", {"abs_max", "inf", "max", "mean", "min", "nan"}},
      {"step", {"node", "pass", "step"}},
      {"back", {"node", "step"}},
      {"delete", {"all"}},
      {"set", {"optimizer.lr"}}};
  for (const auto& [before, words] : kWords) {
    if (TrimBlanks(text) == before) return words;
  }
  return {};
}

}  // namespace strata
