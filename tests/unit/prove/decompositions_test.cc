// Operators of networks of convolutions, and what PyTorch's compiler spells them as.

#include <memory>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/module.h"
#include "prove/prove_pass.h"
#include "tests/support/graphs.h"

namespace strata::prove {
namespace {

using testing::ParseBody;

/// Of two bodies on the same inputs.
Verdict VerdictOf(std::string_view inputs, std::string_view before, std::string_view after) {
  const std::unique_ptr<Module> first = ParseBody(fmt::format("{}{}", inputs, before));
  const std::unique_ptr<Module> second = ParseBody(fmt::format("{}{}", inputs, after));
  const Proof proof = ProvePass(*first->FindGraph("g"), *second->FindGraph("g"), {});
  INFO(proof.reason);
  CHECK(proof.opaque.empty());
  return proof.verdict;
}

TEST_CASE("places of maxima in their windows are places in the planes") {
  constexpr std::string_view kInput = "\n  x = placeholder : f32[2, 3, 9, 7]\n";
  constexpr std::string_view kByPlane = R"(
  (y, i) = aten.max_pool2d_with_indices.default(x, [3, 2], [2, 3], [1, 1], [2, 1]) as pool : (f32[2, 3, 4, 3], i64[2, 3, 4, 3])
  output([y, i])
)";
  const auto by_window = [](std::string_view padding) {
    return fmt::format(R"(
  (y, o) = prims._low_memory_max_pool_with_offsets.default(x, [3, 2], [2, 3], [1, 1], [2, 1], False) as pool : (f32[2, 3, 4, 3], i8[2, 3, 4, 3])
  i = prims._low_memory_max_pool_offsets_to_indices.default(o, [3, 2], [9, 7], [2, 3], {}, [2, 1]) : i64[2, 3, 4, 3]
  output([y, i])
)",
                       padding);
  };
  CHECK_EQ(VerdictOf(kInput, kByPlane, by_window("[1, 1]")), Verdict::kProven);
  CHECK_EQ(VerdictOf(kInput, kByPlane, by_window("[1, 0]")), Verdict::kDiffers);
}

TEST_CASE("a batch norm is what it is decomposed into") {
  constexpr std::string_view kInputs = R"(
  x = placeholder : f32[2, 3, 4, 5]
  w = placeholder : f32[3]
  b = placeholder : f32[3]
  rm = placeholder : f32[3]
  rv = placeholder : f32[3]
)";
  constexpr std::string_view kNorm = R"(
  (y, m, r, nm, nv) = aten._native_batch_norm_legit_functional.default(x, w, b, rm, rv, True, 0.1, 1e-05) as n : (f32[2, 3, 4, 5], f32[3], f32[3], f32[3], f32[3])
  output([y, m, nm, nv])
)";
  const auto decomposed = [](int correction) {
    return fmt::format(R"(
  (v, mean) = aten.var_mean.correction(x, [0, 2, 3], correction={}, keepdim=True) as s : (f32[1, 3, 1, 1], f32[1, 3, 1, 1])
  (u, _) = aten.var_mean.correction(x, [0, 2, 3], correction=1, keepdim=True) as t : (f32[1, 3, 1, 1], f32[1, 3, 1, 1])
  shifted = aten.add.Tensor(v, 1e-05) : f32[1, 3, 1, 1]
  root = aten.rsqrt.default(shifted) : f32[1, 3, 1, 1]
  centered = aten.sub.Tensor(x, mean) : f32[2, 3, 4, 5]
  normed = aten.mul.Tensor(centered, root) : f32[2, 3, 4, 5]
  w4 = aten.view.default(w, [1, 3, 1, 1]) : f32[1, 3, 1, 1]
  b4 = aten.view.default(b, [1, 3, 1, 1]) : f32[1, 3, 1, 1]
  weighted = aten.mul.Tensor(normed, w4) : f32[2, 3, 4, 5]
  y = aten.add.Tensor(weighted, b4) : f32[2, 3, 4, 5]
  m = aten.view.default(mean, [3]) : f32[3]
  m1 = aten.mul.Tensor(m, 0.1) : f32[3]
  m9 = aten.mul.Tensor(rm, 0.9) : f32[3]
  nm = aten.add.Tensor(m1, m9) : f32[3]
  u3 = aten.view.default(u, [3]) : f32[3]
  v1 = aten.mul.Tensor(u3, 0.1) : f32[3]
  v9 = aten.mul.Tensor(rv, 0.9) : f32[3]
  nv = aten.add.Tensor(v1, v9) : f32[3]
  output([y, m, nm, nv])
)",
                       correction);
  };
  CHECK_EQ(VerdictOf(kInputs, kNorm, decomposed(0)), Verdict::kProven);
  CHECK_EQ(VerdictOf(kInputs, kNorm, decomposed(1)), Verdict::kDiffers);
}

TEST_CASE("logsumexp, elu and celu are what they are decomposed into") {
  constexpr std::string_view kInput = "\n  x = placeholder : f32[3, 5]\n";
  CHECK_EQ(VerdictOf(kInput, R"(
  l = aten.logsumexp.default(x, [1]) : f32[3]
  y = aten.elu.default(x, 2) : f32[3, 5]
  z = aten.celu.default(x, 2) : f32[3, 5]
  output([l, y, z])
)",
                     R"(
  top = aten.amax.default(x, [1], True) : f32[3, 1]
  d = aten.sub.Tensor(x, top) : f32[3, 5]
  e = aten.exp.default(d) : f32[3, 5]
  s = aten.sum.dim_IntList(e, [1], True) : f32[3, 1]
  log = aten.log.default(s) : f32[3, 1]
  back = aten.add.Tensor(log, top) : f32[3, 1]
  l = aten.squeeze.dim(back, 1) : f32[3]
  positive = aten.gt.Scalar(x, 0) : b8[3, 5]
  less = aten.expm1.default(x) : f32[3, 5]
  scaled = aten.mul.Tensor(less, 2) : f32[3, 5]
  y = aten.where.self(positive, x, scaled) : f32[3, 5]
  half = aten.div.Scalar(x, 2) : f32[3, 5]
  less_half = aten.expm1.default(half) : f32[3, 5]
  twice = aten.mul.Tensor(less_half, 2) : f32[3, 5]
  z = aten.where.self(positive, x, twice) : f32[3, 5]
  output([l, y, z])
)"),
           Verdict::kProven);
}

TEST_CASE("a quotient that is rounded is the integer part of the quotient") {
  constexpr std::string_view kInputs = R"(
  x = placeholder : f32[3, 5]
  y = placeholder : f32[3, 5]
)";
  const auto rounded = [](std::string_view mode) {
    return fmt::format(R"(
  q = aten.div.Tensor_mode(x, y, rounding_mode='{}') : f32[3, 5]
  output([q])
)",
                       mode);
  };
  const auto function = [](std::string_view name) {
    return fmt::format(R"(
  d = aten.div.Tensor(x, y) : f32[3, 5]
  q = aten.{}.default(d) : f32[3, 5]
  output([q])
)",
                       name);
  };
  CHECK_EQ(VerdictOf(kInputs, rounded("floor"), function("floor")), Verdict::kProven);
  CHECK_EQ(VerdictOf(kInputs, rounded("trunc"), function("trunc")), Verdict::kProven);
  CHECK_EQ(VerdictOf(kInputs, rounded("trunc"), function("floor")), Verdict::kDiffers);
  CHECK_EQ(VerdictOf(kInputs, rounded("floor"), R"(
  d = aten.div.Tensor(x, y) : f32[3, 5]
  n = aten.neg.default(d) : f32[3, 5]
  c = aten.ceil.default(n) : f32[3, 5]
  q = aten.neg.default(c) : f32[3, 5]
  output([q])
)"),
           Verdict::kProven);
  CHECK_EQ(VerdictOf(kInputs, "  r = aten.remainder.Tensor(x, y) : f32[3, 5]\n  output([r])\n", R"(
  f = aten.floor_divide.default(x, y) : f32[3, 5]
  p = aten.mul.Tensor(f, y) : f32[3, 5]
  r = aten.sub.Tensor(x, p) : f32[3, 5]
  output([r])
)"),
           Verdict::kProven);
}

TEST_CASE("the nearest element is read by an index that is rounded towards 0") {
  constexpr std::string_view kInput = "\n  x = placeholder : f32[2, 3, 4]\n";
  const auto by_index = [](std::string_view factor) {
    return fmt::format(R"(
  at = prims.iota.default(8, start=0, step=1, dtype=torch.int64) : i64[8]
  number = prims.convert_element_type.default(at, torch.float32) : f32[8]
  scaled = aten.mul.Tensor(number, {}) : f32[8]
  index = prims.convert_element_type.default(scaled, torch.int64) : i64[8]
  y = aten._unsafe_index.Tensor(x, [None, None, index]) : f32[2, 3, 8]
  output(y)
)",
                       factor);
  };
  constexpr std::string_view kNearest =
      "  y = aten.upsample_nearest1d.default(x, [8], 2.0) : f32[2, 3, 8]\n  output(y)\n";
  CHECK_EQ(VerdictOf(kInput, kNearest, by_index("0.5")), Verdict::kProven);
  CHECK_EQ(VerdictOf(kInput, kNearest, by_index("0.375")), Verdict::kDiffers);
}

}  // namespace
}  // namespace strata::prove
