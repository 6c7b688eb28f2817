#pragma once
#include <complex>
#include <optional>
#include <string>
#include <string_view>

namespace strata {

// Complex numbers are raw literals (ArgKind::kRaw), as Python prints them: `2j`, `(1-2.5e-05j)`.

/// The number of a raw literal; none: it is another one, such as `torch.strided`.
std::optional<std::complex<double>> ParseComplex(std::string_view literal);

std::string PrintComplex(std::complex<double> number);

}  // namespace strata
