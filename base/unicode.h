#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace strata {

/// Foreign text as a terminal, a page or a comment may show it: valid UTF-8 on one line, with
/// characters that are not seen or that reorder others (controls, bidirectional marks, zero-width
/// characters, tags) written as `\x1b` and `\u{202e}`. Never cut.
std::string Visible(std::string_view text);

/// The same with its line breaks kept: for a message of several lines.
std::string VisibleLines(std::string_view text);

/// `<`, `>`, `&` and quotes as HTML and XML write them, in text and in attributes.
std::string EscapeMarkup(std::string_view text);

/// Columns that the text takes in a terminal: 2 for East Asian wide characters and emoji, 0 for
/// combining marks. REQUIRES: valid UTF-8 without controls, such as `Visible` gives.
size_t DisplayWidth(std::string_view text);

/// The number of bytes at the beginning of `text` that fit into `columns`; never splits a
/// character from its combining marks. At least one character if there is one.
size_t BytesThatFit(std::string_view text, size_t columns);

/// Appends the UTF-8 bytes of a code point. REQUIRES: code <= 0x10FFFF.
void AppendUtf8(uint32_t code, std::string& out);
/// Bytes of the UTF-8 character at `text[i]`; 0 if it is invalid (overlong, surrogate, truncated).
size_t Utf8Length(std::string_view text, size_t i);
bool IsUtf8(std::string_view text);

}  // namespace strata
