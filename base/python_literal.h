#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace strata {

/// Appends a number in decimal.
void AppendInt(int64_t value, std::string& out);
/// Appends a number as Python prints it: `1e-05`, `0.5`, `inf`, `3.0`.
void AppendFloat(double value, std::string& out);
/// Appends a string literal as Python's repr prints it, with the quotes.
void AppendQuoted(std::string_view text, std::string& out);

}  // namespace strata
