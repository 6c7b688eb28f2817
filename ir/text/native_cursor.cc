#include "ir/text/native_cursor.h"

#include <algorithm>
#include <charconv>

#include "base/source_error.h"
#include "ir/text/native_words.h"

namespace strata {

Error NativeCursor::FailAt(size_t offset, std::string_view what) const {
  if (origin_ == nullptr) return ErrorAt(file_, text_, offset, what);
  const auto next =
      std::ranges::upper_bound(origin_->pieces, offset, {}, &TextOrigin::Piece::begin);
  if (next == origin_->pieces.begin()) return ErrorAt(file_, origin_->text, 0, what);
  const TextOrigin::Piece& piece = *std::prev(next);
  const size_t inside = piece.verbatim ? offset - piece.begin : 0;
  return ErrorAt(file_, origin_->text, piece.at + inside, what);
}

void NativeCursor::SkipBlankLines() {
  for (;;) {
    while (!AtEnd() && (Peek() == ' ' || Peek() == '\n' || Peek() == '\r' || Peek() == '\t'))
      ++at_;
    if (Peek() != '/' || Peek(1) != '/') return;
    while (!AtEnd() && Peek() != '\n')
      ++at_;
  }
}

Status NativeCursor::EndOfLine() {
  SkipBlanks();
  if (Peek() == '/' && Peek(1) == '/') {
    while (!AtEnd() && Peek() != '\n')
      ++at_;
  }
  if (Peek() == '\r') ++at_;
  if (AtEnd() || Peek() == '\n') return Ok();
  return Fail("expected the end of the line");
}

Result<std::string_view> NativeCursor::Quoted() {
  SkipBlanks();
  const char quote = Peek();
  if (quote != '\'' && quote != '"') return Fail("expected a quoted text");
  const size_t begin = at_++;
  while (Peek() != quote) {
    if (AtEnd() || Peek() == '\n') return FailAt(begin, "this quote is not closed");
    if (Peek() == '\\') return Unescape(begin);
    ++at_;
  }
  return text_.substr(begin + 1, at_++ - begin - 1);
}

Result<std::string_view> NativeCursor::Unescape(size_t begin) {
  std::string& value = unescaped_.emplace_back(text_.substr(begin + 1, at_ - begin - 1));
  while (Peek() != text_[begin]) {
    if (AtEnd() || Peek() == '\n') return FailAt(begin, "this quote is not closed");
    char c = text_[at_++];
    if (c == '\\') {
      const char escape = Peek();
      ++at_;
      switch (escape) {
        case 'n':
          c = '\n';
          break;
        case 'r':
          c = '\r';
          break;
        case 't':
          c = '\t';
          break;
        case '\\':
        case '\'':
        case '"':
          c = escape;
          break;
        case 'x': {
          unsigned byte = 0;
          const char* from = text_.data() + at_;
          const char* to = text_.data() + std::min(at_ + 2, text_.size());
          if (std::from_chars(from, to, byte, 16).ptr != from + 2) {
            return Fail("expected two hex digits after \\x");
          }
          at_ += 2;
          c = static_cast<char>(byte);
          break;
        }
        default:
          return FailAt(at_ - 2, "unknown escape; known are \\n \\r \\t \\\\ \\' \\\" \\xNN");
      }
    }
    value += c;
  }
  ++at_;
  return std::string_view(value);
}

Result<std::string_view> NativeCursor::Name() {
  SkipBlanks();
  if (Peek() == '%') {
    ++at_;
    return Quoted();
  }
  const std::string_view word = PeekWord();
  if (!IsPlainName(word)) return Fail("expected a name");
  at_ += word.size();
  return word;
}

Result<std::string_view> NativeCursor::Path() {
  SkipBlanks();
  if (Peek() == '%') {
    ++at_;
    return Quoted();
  }
  size_t end = at_;
  while (end < text_.size() && (IsNameChar(text_[end]) || text_[end] == '.'))
    ++end;
  if (end == at_ || (Peek() >= '0' && Peek() <= '9')) return Fail("expected an operator or path");
  const std::string_view path = text_.substr(at_, end - at_);
  at_ = end;
  return path;
}

Result<int64_t> NativeCursor::Integer(int64_t min, int64_t max) {
  SkipBlanks();
  int64_t number = 0;
  const auto [end, problem] =
      std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
  if (problem == std::errc::result_out_of_range) return Fail("this number exceeds 64 bits");
  if (problem != std::errc{}) return Fail("expected a number");
  if (number < min || number > max) return Fail("this number is out of range");
  at_ = static_cast<size_t>(end - text_.data());
  return number;
}

}  // namespace strata
