#pragma once
#include <string>
#include <string_view>

namespace strata {

/// Joins the lines that a terminal broke at its width in printed graphs and logs: a line as wide as
/// the widest ones goes on in the next one, unless that begins as a line of its own: with the
/// prefix of a log line where the text has some, else with the indentation of code. Quotes (`> `)
/// are removed first. A text with prefixes in which fewer than two lines go on is returned as it
/// is.
std::string Unwrapped(std::string text);

}  // namespace strata
