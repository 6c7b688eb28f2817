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

TEST_CASE("PV-3: batch norms by the mean of the batch are ATen's, of variance 1") {
  // Signs and their opposites: the only variance of which ATen's root is exact here is 1.
  CheckAgainstTorch(R"(
  x = placeholder : f64[3, 4, 5]
  w = placeholder : f64[4]
  b = placeholder : f64[4]
  rm = placeholder : f64[4]
  rv = placeholder : f64[4]
  positive = aten.gt.Scalar(x, 0) : b8[3, 4, 5]
  ones = aten.ones_like.default(x) : f64[3, 4, 5]
  minus = aten.neg.default(ones) : f64[3, 4, 5]
  sign = aten.where.self(positive, ones, minus) : f64[3, 4, 5]
  other = aten.neg.default(sign) : f64[3, 4, 5]
  both = aten.cat.default([sign, other]) : f64[6, 4, 5]
  image = aten.add.Tensor(both, 3) : f64[6, 4, 5]
  (y, m, r, nm, nv) = aten._native_batch_norm_legit_functional.default(image, w, b, rm, rv, True, 0.25, 0.0) as f : (f64[6, 4, 5], f64[4], f64[4], f64[4], f64[4])
  (z, mz, rz) = aten._native_batch_norm_legit.no_stats(image, None, b, True, 0.25, 0.0) as g : (f64[6, 4, 5], f64[4], f64[4])
  (u, mu, ru) = aten.native_batch_norm.default(image, w, None, None, None, True, 0.25, 0.0) as h : (f64[6, 4, 5], f64[4], f64[4])
  output([y, m, r, nm, nv, z, mz, rz, u, mu, ru])
)");
}

TEST_CASE("PV-3: batch norms by running statistics are ATen's") {
  CheckAgainstTorch(R"(
  x = placeholder : f64[3, 4, 5]
  w = placeholder : f64[4]
  b = placeholder : f64[4]
  g = placeholder : f64[3, 4, 5]
  rm = placeholder : f64[4]
  rv = aten.ones_like.default(rm) : f64[4]
  (y, _, _) = aten._native_batch_norm_legit_no_training.default(x, w, b, rm, rv, 0.25, 0.0) as e : (f64[3, 4, 5], f64[0], f64[0])
  (z, _, _) = aten._native_batch_norm_legit_functional.default(x, w, b, rm, rv, False, 0.25, 0.0) as f : (f64[3, 4, 5], f64[0], f64[0])
  (dx, dw, db) = aten.native_batch_norm_backward.default(g, x, w, rm, rv, None, None, False, 0.0, [True, True, True]) as back : (f64[3, 4, 5], f64[4], f64[4])
  output([y, z, dx, dw, db])
)");
}

TEST_CASE("PV-3: the backwards of batch norms and group norms are ATen's") {
  CheckAgainstTorch(R"(
  g = placeholder : f64[2, 4, 2, 2]
  x = placeholder : f64[2, 4, 2, 2]
  m = placeholder : f64[4]
  r = placeholder : f64[4]
  w = placeholder : f64[4]
  (dx, dw, db) = aten.native_batch_norm_backward.default(g, x, w, None, None, m, r, True, 0.0, [True, True, True]) as back : (f64[2, 4, 2, 2], f64[4], f64[4])
  (ex, ew, _) = aten.native_batch_norm_backward.default(g, x, None, None, None, m, r, True, 0.0, [True, True, False]) as free : (f64[2, 4, 2, 2], f64[4], f64[])
  output([dx, dw, db, ex, ew])
)");
  CheckAgainstTorch(R"(
  g = placeholder : f64[2, 6, 2, 2]
  x = placeholder : f64[2, 6, 2, 2]
  m = placeholder : f64[2, 3]
  r = placeholder : f64[2, 3]
  w = placeholder : f64[6]
  (dx, dw, db) = aten.native_group_norm_backward.default(g, x, m, r, w, 2, 6, 4, 3, [True, True, True]) as back : (f64[2, 6, 2, 2], f64[6], f64[6])
  (ex, _, _) = aten.native_group_norm_backward.default(g, x, m, r, None, 2, 6, 4, 3, [True, False, False]) as free : (f64[2, 6, 2, 2], f64[], f64[])
  output([dx, dw, db, ex])
)");
}

TEST_CASE("PV-3: group norms are ATen's, of variance 1") {
  CheckAgainstTorch(R"(
  x = placeholder : f64[2, 4, 2]
  w = placeholder : f64[4]
  b = placeholder : f64[4]
  positive = aten.gt.Scalar(x, 0) : b8[2, 4, 2]
  ones = aten.ones_like.default(x) : f64[2, 4, 2]
  minus = aten.neg.default(ones) : f64[2, 4, 2]
  sign = aten.where.self(positive, ones, minus) : f64[2, 4, 2]
  other = aten.neg.default(sign) : f64[2, 4, 2]
  both = aten.cat.default([sign, other], 2) : f64[2, 4, 4]
  image = aten.add.Tensor(both, 3) : f64[2, 4, 4]
  (y, m, r) = aten.native_group_norm.default(image, w, b, 2, 4, 4, 2, 0.0) as n : (f64[2, 4, 4], f64[2, 2], f64[2, 2])
  (z, _, _) = aten.native_group_norm.default(image, None, None, 2, 4, 4, 4, 0.0) as f : (f64[2, 4, 4], f64[2, 4], f64[2, 4])
  output([y, m, r, z])
)");
}

TEST_CASE("PV-3: maxima over windows and their backward are ATen's") {
  const auto check = [](std::string_view input, std::string_view result, std::string_view dims,
                        std::string_view arguments) {
    CheckAgainstTorch(fmt::format(R"(
  x = placeholder : f64{0}
  g = placeholder : f64{1}
  (y, i) = aten.max_pool{2}_with_indices.default(x, {3}) as pool : (f64{1}, i64{1})
  dx = aten.max_pool{2}_with_indices_backward.default(g, x, {3}, i) : f64{0}
  output([y, i, dx])
)",
                                  input, result, dims, arguments));
  };
  check("[2, 3, 7, 6]", "[2, 3, 3, 2]", "2d", "[3, 2], [2, 3], [0, 0], [1, 1], False");
  check("[2, 3, 7, 6]", "[2, 3, 4, 3]", "2d", "[3], [2], [1], [1], False");
  check("[2, 3, 8, 6]", "[2, 3, 4, 3]", "2d", "[2, 2], [], [0, 0], [1, 1], True");
  check("[2, 3, 8, 7]", "[2, 3, 4, 4]", "2d", "[3, 3], [2, 2], [1, 1], [2, 1], True");
  check("[3, 5, 5]", "[3, 3, 3]", "2d", "[2, 2], [2, 2], [0, 0], [1, 1], True");
  check("[2, 2, 4, 5, 4]", "[2, 2, 2, 2, 2]", "3d", "[2], [2], [0], [1], False");
}

TEST_CASE("PV-3: means over windows and their backward are ATen's") {
  const auto check = [](std::string_view input, std::string_view result, std::string_view dims,
                        std::string_view arguments) {
    CheckAgainstTorch(fmt::format(R"(
  x = placeholder : f64{0}
  g = placeholder : f64{1}
  y = aten.avg_pool{2}.default(x, {3}) : f64{1}
  dx = aten.avg_pool{2}_backward.default(g, x, {3}) : f64{0}
  output([y, dx])
)",
                                  input, result, dims, arguments));
  };
  check("[2, 3, 8, 6]", "[2, 3, 4, 3]", "2d", "[2, 2], [], [0, 0], False, True, None");
  check("[2, 3, 7, 6]", "[2, 3, 3, 4]", "2d", "[4, 2], [2, 2], [1, 1], False, True, None");
  // Windows that do not overlap: ATen rounds sums of sixths and eighths.
  check("[2, 3, 7, 6]", "[2, 3, 2, 4]", "2d", "[4, 2], [4, 2], [1, 1], False, False, None");
  check("[2, 3, 8, 8]", "[2, 3, 5, 3]", "2d", "[2, 4], [2, 4], [1, 1], True, True, None");
  check("[2, 3, 8, 8]", "[2, 3, 5, 3]", "2d", "[2, 4], [2, 4], [1, 1], True, False, None");
  check("[2, 3, 7, 6]", "[2, 3, 3, 3]", "2d", "[2], [3], [1], False, True, 3");
  check("[2, 2, 4, 6, 4]", "[2, 2, 2, 3, 2]", "3d", "[2], [2], [0], False, True, None");
}

TEST_CASE("PV-3: adaptive means and nearest elements, and their backwards, are ATen's") {
  for (const std::string_view sizes : {"[2, 2]", "[1, 1]", "[8, 5]", "[4, 6]"}) {
    const std::string result = fmt::format("[2, 3, {}", sizes.substr(1));
    CheckAgainstTorch(fmt::format(R"(
  x = placeholder : f64[2, 3, 8, 6]
  g = placeholder : f64{1}
  y = aten._adaptive_avg_pool2d.default(x, {0}) : f64{1}
  dx = aten._adaptive_avg_pool2d_backward.default(g, x) : f64[2, 3, 8, 6]
  output([y, dx])
)",
                                  sizes, result));
  }
  CheckAgainstTorch(R"(
  x = placeholder : f64[2, 3, 3, 4]
  y = aten.upsample_nearest2d.vec(x, None, [2.0, 1.5]) : f64[2, 3, 6, 6]
  z = aten.upsample_nearest2d.vec(x, [7, 5], None) : f64[2, 3, 7, 5]
  output([y, z])
)");
  for (const std::string_view sizes : {"[6, 8], 2.0, 2.0", "[6, 8]", "[7, 11]", "[2, 3]"}) {
    const std::string list(sizes.substr(0, sizes.find(']') + 1));
    const std::string scales(sizes.substr(list.size()));
    CheckAgainstTorch(fmt::format(R"(
  x = placeholder : f64[2, 3, 3, 4]
  g = placeholder : f64[2, 3, {2}
  y = aten.upsample_nearest2d.default(x, {0}{1}) : f64[2, 3, {2}
  dx = aten.upsample_nearest2d_backward.default(g, {0}, [2, 3, 3, 4]{1}) : f64[2, 3, 3, 4]
  output([y, dx])
)",
                                  list, scales, list.substr(1)));
  }
}

TEST_CASE("PV-3: adaptive maxima and their backwards are ATen's") {
  for (const std::string_view sizes : {"[2, 2]", "[1, 1]", "[8, 5]", "[4, 6]"}) {
    const std::string result = fmt::format("[2, 3, {}", sizes.substr(1));
    CheckAgainstTorch(fmt::format(R"(
  x = placeholder : f64[2, 3, 8, 6]
  g = placeholder : f64{1}
  (y, i) = aten.adaptive_max_pool2d.default(x, {0}) as pool : (f64{1}, i64{1})
  dx = aten.adaptive_max_pool2d_backward.default(g, x, i) : f64[2, 3, 8, 6]
  output([y, i, dx])
)",
                                  sizes, result));
  }
  CheckAgainstTorch(R"(
  x = placeholder : f64[2, 5, 4, 3]
  g = placeholder : f64[2, 2, 3, 2]
  (y, i) = aten.adaptive_max_pool3d.default(x, [2, 3, 2]) as pool : (f64[2, 2, 3, 2], i64[2, 2, 3, 2])
  dx = aten.adaptive_max_pool3d_backward.default(g, x, i) : f64[2, 5, 4, 3]
  output([y, i, dx])
)");
}

TEST_CASE("PV-3: elu and the log of a sum of exponentials are ATen's, where these are exact") {
  CheckAgainstTorch(R"(
  x = placeholder : f64[9]
  g = placeholder : f64[9]
  positive = aten.relu.default(x) : f64[9]
  y = aten.elu.default(positive, 2, 3, 1) : f64[9]
  c = aten.celu.default(positive, 2) : f64[9]
  dy = aten.elu_backward.default(g, 2, 3, 5, False, positive) : f64[9]
  dz = aten.elu_backward.default(g, 2, 3, 5, True, x) : f64[9]
  zero = aten.zeros.default([3, 1], dtype=torch.float64) : f64[3, 1]
  l = aten.logsumexp.default(zero, [1]) : f64[3]
  k = aten.logsumexp.default(zero, [-1], True) : f64[3, 1]
  e = aten.expm1.default(zero) : f64[3, 1]
  half = aten.div.Scalar(x, 2) : f64[9]
  whole = aten._to_copy.default(half, dtype=torch.int64) : i64[9]
  output([y, c, dy, dz, l, k, e, whole])
)");
}

}  // namespace
}  // namespace strata::prove
