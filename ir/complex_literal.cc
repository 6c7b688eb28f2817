#include "ir/complex_literal.h"

#include <charconv>
#include <cmath>
#include <system_error>

#include <fmt/format.h>

namespace strata {
namespace {

/// Takes a number with or without a sign off `text`.
std::optional<double> TakeNumber(std::string_view& text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with('+')) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

}  // namespace

std::optional<std::complex<double>> ParseComplex(std::string_view literal) {
  const bool is_sum = literal.starts_with('(') && literal.ends_with(')');
  if (is_sum) literal = literal.substr(1, literal.size() - 2);
  const std::optional<double> first = TakeNumber(literal);
  if (!first) return std::nullopt;
  if (literal == "j") return std::complex(0.0, *first);
  if (!is_sum || literal.empty() || (literal[0] != '+' && literal[0] != '-')) return std::nullopt;
  const std::optional<double> second = TakeNumber(literal);
  if (!second || literal != "j") return std::nullopt;
  return std::complex(*first, *second);
}

std::string PrintComplex(std::complex<double> number) {
  if (number.real() == 0 && !std::signbit(number.real())) return fmt::format("{}j", number.imag());
  return fmt::format("({}{:+}j)", number.real(), number.imag());
}

}  // namespace strata
