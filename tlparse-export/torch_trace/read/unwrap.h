#pragma once
#include <string>
#include <string_view>

namespace strata {

/// Joins the lines that a terminal broke at its width in printed graphs and logs: a line as wide as
/// the widest ones goes on in the next one, unless that begins as a line of its own: with the
/// prefix of a log line or, where the line has none, with the indentation of code. Quotes (`> `)
/// are removed first. A text in which a single line with a prefix would go on is returned as it is.
std::string Unwrapped(std::string text);

}  // namespace strata
