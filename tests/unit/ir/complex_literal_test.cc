#include "ir/complex_literal.h"

#include <cmath>
#include <complex>
#include <limits>
#include <string>

#include <doctest/doctest.h>

namespace strata {
namespace {

TEST_CASE("complex literals are read and printed as Python prints them") {
  const double infinite = std::numeric_limits<double>::infinity();
  const std::pair<std::string, std::complex<double>> cases[] = {
      {"2j", {0, 2}},
      {"-2j", {0, -2}},
      {"(1+2j)", {1, 2}},
      {"(-1.5-2.5e-05j)", {-1.5, -2.5e-05}},
      {"(1e+16-0j)", {1e16, -0.0}},
      {"(-0+1j)", {-0.0, 1}},
      {"(inf-infj)", {infinite, -infinite}},
  };
  for (const auto& [text, number] : cases) {
    CAPTURE(text);
    const auto read = ParseComplex(text);
    REQUIRE(read);
    CHECK_EQ(*read, number);
    CHECK_EQ(std::signbit(read->real()), std::signbit(number.real()));
    CHECK_EQ(PrintComplex(number), text);
  }
  const auto no_number = ParseComplex("(nan+nanj)");
  REQUIRE(no_number);
  CHECK(std::isnan(no_number->imag()));
}

TEST_CASE("other raw literals are no complex numbers") {
  for (const char* text : {"", "j", "()", "torch.strided", "Ellipsis", "1+2j", "(1+2)", "(1++2j)",
                           "(1 2j)", "(1+2jj)", "2", "(1+2j", "(2)"})
    CHECK_MESSAGE(!ParseComplex(text), text);
}

}  // namespace
}  // namespace strata
