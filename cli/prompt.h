#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::cli {

/// Words that may stand after `text`, the part of a line up to the word that is completed.
using Completer = std::vector<std::string> (*)(std::string_view text);

/// What Tab adds to a line, and the words to list when there are several: the longest beginning
/// that all words share, and a blank after the only one.
struct Completion {
  std::string added;
  std::vector<std::string> choices;  ///< more than one; else empty
};
Completion Complete(std::string_view line, Completer words_after);

/// Reads lines from a terminal: Tab completes, the arrows go through earlier lines. Where standard
/// input or output is not a terminal it reads as it is.
class Prompt {
 public:
  Prompt(std::string_view mark, Completer words_after) : mark_(mark), words_after_(words_after) {}

  /// A line without its end; none at the end of the input.
  std::optional<std::string> Read();

 private:
  std::optional<std::string> ReadTerminal();
  /// Writes the line again, behind the mark.
  void Show(std::string_view line) const;
  void OnTab(std::string& line) const;
  void OnArrow(std::string& line, size_t& at) const;

  const std::string mark_;
  const Completer words_after_;
  std::vector<std::string> past_;
};

}  // namespace strata::cli
