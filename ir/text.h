#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace strata {

/// The candidate that `word` is most likely a misspelling of: fewest insertions, deletions,
/// substitutions and swaps of neighbours, at most a third of the longer word. Ties go to the first.
std::optional<std::string_view> ClosestMatch(std::string_view word,
                                             std::span<const std::string> candidates);

/// `, did you mean 'x'` when something is close, else nothing: the tail of an error message.
std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);

/// Foreign text as a message may show it: on one line (control characters escaped as in JSON,
/// always UTF-8) and cut after `max_bytes`, with an ellipsis.
std::string OneLine(std::string_view text, size_t max_bytes = 60);

/// A word as a POSIX shell reads it back, for commands in messages: `out/x.txt`, `"a b"`, `'$x'`;
/// with characters that are not seen as bash and zsh do: `$'a\x1b'`.
std::string ShellWord(std::string_view word);

/// A name as it stands in the selector of a REF, and back: `,`, `#` and `%` are written `%2C`,
/// `%23` and `%25`.
std::string SelectorValue(std::string_view name);
std::string FromSelectorValue(std::string_view text);

/// `a, b, c and 4 more`: at most `limit` names, for messages.
std::string Enumerate(std::span<const std::string> names, size_t limit = 5);

constexpr bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
/// A letter, a digit or an underscore, in ASCII.
constexpr bool IsWordChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c) || c == '_';
}
/// The value of a hexadecimal digit of either case; -1 for anything else.
constexpr int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}
/// Without blanks (spaces only) at both ends.
std::string_view TrimBlanks(std::string_view text);

/// The UTF-8 bytes of a code point. REQUIRES: code <= 0x10FFFF.
void AppendUtf8(uint32_t code, std::string& out);
/// Bytes of the UTF-8 character at `text[i]`, 0 when there is none (overlong, surrogate, cut off).
size_t Utf8Length(std::string_view text, size_t i);
bool IsUtf8(std::string_view text);

}  // namespace strata
