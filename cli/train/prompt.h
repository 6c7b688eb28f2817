#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/complete.h"

namespace strata::cli {

/// Reads lines from a terminal: Tab completes, the arrows go through earlier lines. Where standard
/// input or output is not a terminal it reads as it is.
class Prompt {
 public:
  Prompt(std::string_view mark, WordsAfter words_after)
      : mark_(mark), words_after_(std::move(words_after)) {}

  /// A line without its end; none at the end of the input.
  std::optional<std::string> Read();

 private:
  std::optional<std::string> ReadTerminal();
  /// Writes the line again, behind the mark.
  void Show(std::string_view line) const;
  void OnTab(std::string& line) const;
  void OnArrow(std::string& line, size_t& at) const;

  const std::string mark_;
  const WordsAfter words_after_;
  std::vector<std::string> past_;
};

}  // namespace strata::cli
