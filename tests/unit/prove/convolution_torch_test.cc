// Definitions of convolutions and what networks of them are made of, against ATen: PV-3.

#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/unit/prove/against_torch.h"

namespace strata::prove {
namespace {

/// A convolution and its backward, with and without some gradients. `arguments`: from `stride` on.
void CheckConvolution(std::string_view input, std::string_view weight, std::string_view result,
                      int channels, std::string_view arguments) {
  CheckAgainstTorch(fmt::format(R"(
  x = placeholder : f64{0}
  w = placeholder : f64{1}
  b = placeholder : f64[{3}]
  g = placeholder : f64{2}
  y = aten.convolution.default(x, w, b, {4}) : f64{2}
  z = aten.convolution.default(x, w, None, {4}) : f64{2}
  (dx, dw, db) = aten.convolution_backward.default(g, x, w, [{3}], {4}, [True, True, True]) as all : (f64{0}, f64{1}, f64[{3}])
  (_, ew, _) = aten.convolution_backward.default(g, x, w, None, {4}, [False, True, False]) as one : (f64[], f64{1}, f64[])
  output([y, z, dx, dw, db, ew])
)",
                                input, weight, result, channels, arguments));
}

TEST_CASE("PV-3: convolutions and their backwards are ATen's") {
  SUBCASE("in one dimension") {
    CheckConvolution("[2, 3, 9]", "[4, 3, 3]", "[2, 4, 9]", 4, "[1], [1], [1], False, [0], 1");
    CheckConvolution("[2, 3, 9]", "[4, 3, 2]", "[2, 4, 3]", 4, "[4], [2], [3], False, [0], 1");
  }
  SUBCASE("in two dimensions") {
    CheckConvolution("[2, 3, 6, 5]", "[4, 3, 3, 2]", "[2, 4, 4, 4]", 4,
                     "[1, 1], [0, 0], [1, 1], False, [0, 0], 1");
    CheckConvolution("[2, 3, 7, 8]", "[4, 3, 3, 3]", "[2, 4, 4, 2]", 4,
                     "[2, 3], [1, 0], [1, 2], False, [0, 0], 1");
  }
  SUBCASE("one integer stands for all dimensions") {
    CheckConvolution("[1, 2, 5, 5]", "[2, 2, 3, 3]", "[1, 2, 3, 3]", 2,
                     "[2], [1], [1], False, [0], 1");
  }
  SUBCASE("in three dimensions") {
    CheckConvolution("[2, 2, 4, 5, 3]", "[3, 2, 2, 3, 1]", "[2, 3, 3, 3, 5]", 3,
                     "[1, 2, 1], [0, 1, 1], [1, 1, 1], False, [0, 0, 0], 1");
  }
  SUBCASE("in groups, and of each channel alone") {
    CheckConvolution("[2, 4, 5, 5]", "[6, 2, 3, 3]", "[2, 6, 3, 3]", 6,
                     "[2, 2], [1, 1], [1, 1], False, [0, 0], 2");
    CheckConvolution("[2, 4, 5, 5]", "[8, 1, 3, 3]", "[2, 8, 5, 5]", 8,
                     "[1, 1], [1, 1], [1, 1], False, [0, 0], 4");
  }
}

TEST_CASE("PV-3: transposed convolutions and their backwards are ATen's") {
  CheckConvolution("[2, 3, 4]", "[3, 2, 3]", "[2, 2, 8]", 2, "[2], [1], [1], True, [1], 1");
  CheckConvolution("[2, 4, 3, 4]", "[4, 3, 3, 2]", "[2, 3, 6, 13]", 3,
                   "[2, 3], [1, 0], [1, 1], True, [1, 2], 1");
  CheckConvolution("[2, 4, 3, 4]", "[4, 3, 3, 2]", "[2, 6, 5, 9]", 6,
                   "[1, 2], [1, 0], [2, 2], True, [0, 0], 2");
}

}  // namespace
}  // namespace strata::prove
