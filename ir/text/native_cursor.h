#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/text/native_text.h"

namespace strata {

/// A place in a native text, and the words that its grammar is made of. What is taken is behind the
/// place afterwards; blanks before a word are passed over. Errors show the place. Names and texts
/// are valid as long as the cursor and its text.
class NativeCursor {
 public:
  NativeCursor(std::string_view text, std::string_view file, const TextOrigin* origin = nullptr)
      : text_(text), file_(file), origin_(origin) {}

 protected:
  Error Fail(std::string_view what) const { return FailAt(at_, what); }
  Error FailAt(size_t offset, std::string_view what) const;

  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void SkipBlanks() {
    while (Peek() == ' ')
      ++at_;
  }
  /// Blank lines, and comments from `//` to the end of a line.
  void SkipBlankLines();
  Status EndOfLine();
  bool Take(char c) {
    SkipBlanks();
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  Status Expect(char c) {
    if (Take(c)) return Ok();
    return Fail(fmt::format("expected '{}'", c));
  }
  static bool IsNameChar(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  /// The run of name characters here, not taken.
  std::string_view PeekWord() {
    SkipBlanks();
    size_t end = at_;
    while (end < text_.size() && IsNameChar(text_[end]))
      ++end;
    return text_.substr(at_, end - at_);
  }
  bool TakeWord(std::string_view word) {
    if (!IsWord(word) || IsNameChar(Peek(word.size()))) return false;
    at_ += word.size();
    return true;
  }
  /// `word` directly followed by `(`.
  bool TakeCall(std::string_view word) { return TakeWordAnd(word, '('); }
  bool TakeKey(std::string_view key) { return TakeWordAnd(key, '='); }

  /// A text in single or double quotes, its escapes resolved.
  Result<std::string_view> Quoted();

  /// An identifier, or `%` and a quoted text.
  Result<std::string_view> Name();

  /// Identifiers joined by dots, or `%` and a quoted text.
  Result<std::string_view> Path();

  Result<int64_t> Integer(int64_t min = INT64_MIN, int64_t max = INT64_MAX);

  std::string_view text_, file_;
  const TextOrigin* origin_;
  size_t at_ = 0;

 private:
  /// The rest of a quoted text that begins at `begin`, from its first escape on.
  Result<std::string_view> Unescape(size_t begin);

  /// Whether the name characters of `word` are here; more of them may follow.
  bool IsWord(std::string_view word) {
    SkipBlanks();
    return text_.substr(at_).starts_with(word);
  }
  bool TakeWordAnd(std::string_view word, char next) {
    if (!IsWord(word) || Peek(word.size()) != next) return false;
    at_ += word.size() + 1;
    return true;
  }

  std::deque<std::string> unescaped_;  // texts that are not written as they are
};

}  // namespace strata
