#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace re2 {
class RE2;
}

namespace strata {

/// Cuts text into the matches of a regular expression and what lies between them: `Split` of
/// Hugging Face's tokenizers with the behaviour `Isolated`.
///
/// Expressions are those of Oniguruma, with Unicode's classes, as far as RE2 has them; and one
/// lookahead, with which all these tokenizers end: `…|\s+(?!\S)|\s+`, blanks but for the last
/// before a word. Letters, numbers and marks are those of RE2's Unicode (Debian 12: 14), which may
/// be older than Oniguruma's.
class RegexSplitter {
 public:
  /// Errors: an expression with another lookahead, or one that RE2 does not know.
  static Result<RegexSplitter> Compile(std::string_view pattern);
  RegexSplitter(RegexSplitter&&) noexcept;
  RegexSplitter& operator=(RegexSplitter&&) noexcept;
  ~RegexSplitter();

  /// Appends the pieces of `text` (UTF-8), none empty; together they are the text.
  void Split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  RegexSplitter() = default;
  std::unique_ptr<re2::RE2> regex_;
  bool has_blanks_ = false;  // group 1 is the alternative with the lookahead
};

/// The expression of GPT-2, which `ByteLevel` has built in.
inline constexpr std::string_view kGpt2Pattern =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace strata
