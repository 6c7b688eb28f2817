// Definitions of operators against ATen: PV-3 on small integers, where both are exact.

#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/unit/prove/against_torch.h"

namespace strata::prove {
namespace {

TEST_CASE("PV-3: products, sums and pointwise arithmetic are ATen's") {
  CheckCall("aten.mm.default(x, y)", "f64[3, 4]", "f64[4, 2]", "f64[3, 2]");
  CheckCall("aten.bmm.default(x, y)", "f64[2, 3, 4]", "f64[2, 4, 2]", "f64[2, 3, 2]");
  CheckCall("aten.add.Tensor(x, y, alpha=3)", "f64[3, 4]", "f64[4]", "f64[3, 4]");
  CheckCall("aten.sub.Tensor(x, y, alpha=2)", "f64[3, 1]", "f64[1, 4]", "f64[3, 4]");
  CheckCall("aten.rsub.Scalar(x, 7)", "f64[3]", "f64[1]", "f64[3]");
  CheckCall("aten.mul.Tensor(x, y)", "c128[3, 2]", "c128[2]", "c128[3, 2]");
  CheckCall("aten.lerp.Tensor(x, y, y)", "f64[5]", "f64[5]", "f64[5]");
  CheckCall("aten.addcmul.default(x, y, y, value=2)", "f64[5]", "f64[5]", "f64[5]");
  CheckCall("aten.maximum.default(x, y)", "f64[9]", "f64[9]", "f64[9]");
  CheckCall("aten.clamp.default(x, -2, 3)", "f64[9]", "f64[9]", "f64[9]");
  CheckCall("aten.threshold_backward.default(x, y, 1)", "f64[9]", "f64[9]", "f64[9]");
  CheckCall("aten.sum.dim_IntList(x, [0, -1], True)", "f64[3, 2, 4]", "f64[1]", "f64[1, 2, 1]");
  CheckCall("aten.sum.default(x)", "f64[3, 2, 4]", "f64[1]", "f64[]");
  CheckCall("aten.mean.dim(x, [1])", "f64[3, 4]", "f64[1]", "f64[3]");
  CheckCall("aten.amax.default(x, [1])", "f64[3, 4]", "f64[1]", "f64[3]");
  CheckCall("aten.amin.default(x, [0], True)", "f64[3, 4]", "f64[1]", "f64[1, 4]");
  CheckCall("aten.cumsum.default(x, 1)", "f64[3, 4]", "f64[1]", "f64[3, 4]");
  CheckCall("aten.pow.Tensor_Scalar(x, 3)", "f64[9]", "f64[9]", "f64[9]");
  CheckCall("aten.relu.default(x)", "f64[9]", "f64[9]", "f64[9]");
  CheckCall("aten.abs.default(x)", "f64[9]", "f64[9]", "f64[9]");
  CheckCall("aten.sign.default(x)", "f64[9]", "f64[9]", "f64[9]");
  CheckCall("aten.sign.default(x)", "i64[9]", "f64[9]", "i64[9]");
  for (const std::string_view is : {"isnan", "isinf", "isfinite", "isposinf", "isneginf"}) {
    CheckCall(fmt::format("aten.{}.default(x)", is), "f64[9]", "f64[9]", "b8[9]");
    CheckCall(fmt::format("aten.{}.default(x)", is), "i64[9]", "f64[9]", "b8[9]");
  }
}

TEST_CASE("PV-3: variances and extremes are ATen's") {
  CheckCall("aten.var.correction(x, [1])", "f64[3, 5]", "f64[1]", "f64[3]");
  CheckCall("aten.var.correction(x, [0, -1], correction=0, keepdim=True)", "f64[2, 3, 2]", "f64[1]",
            "f64[1, 3, 1]");
  CheckCall("aten.var.dim(x, [1], False)", "f64[3, 5]", "f64[1]", "f64[3]");
  CheckCall("aten.var.default(x)", "f64[5]", "f64[1]", "f64[]");
  CheckAgainstTorch(R"(
  x = placeholder : f64[3, 4]
  (v, w) = aten.var_mean.correction(x, [1], correction=0, keepdim=True) as s : (f64[3, 1], f64[3, 1])
  (m, i) = aten.max.dim(x, -1) as t : (f64[3], i64[3])
  (n, j) = aten.min.dim(x, 0, True) as u : (f64[1, 4], i64[1, 4])
  output([v, w, m, i, n, j])
)");
  CheckCall("aten.max.default(x)", "f64[9]", "f64[1]", "f64[]");
  CheckCall("aten.max.other(x, y)", "f64[9]", "f64[9]", "f64[9]");
  CheckCall("aten.argmax.default(x, 1)", "f64[3, 5]", "f64[1]", "i64[3]");
  CheckCall("aten.argmin.default(x)", "f64[3, 5]", "f64[1]", "i64[]");
  CheckCall("aten.clamp_max.default(x, 2)", "f64[9]", "f64[1]", "f64[9]");
}

TEST_CASE("PV-3: regions of tensors are ATen's") {
  CheckCall("aten.repeat.default(x, [2, 1, 3])", "f64[2, 3]", "f64[1]", "f64[2, 2, 9]");
  CheckCall("aten.roll.default(x, [1, -2], [0, -1])", "f64[3, 5]", "f64[1]", "f64[3, 5]");
  CheckCall("aten.roll.default(x, [4])", "f64[3, 5]", "f64[1]", "f64[3, 5]");
  CheckCall("aten.select_scatter.default(x, y, 1, -1)", "f64[3, 4]", "f64[3]", "f64[3, 4]");
  CheckCall("aten.slice_scatter.default(x, y, 1, 1, 4, 2)", "f64[3, 5]", "f64[3, 2]", "f64[3, 5]");
  CheckCall("aten.select_backward.default(x, [3, 4], 1, 2)", "f64[3]", "f64[1]", "f64[3, 4]");
  CheckAgainstTorch(R"(
  x = placeholder : f64[3, 5]
  (a, b) = aten.unsafe_split.Tensor(x, 3, 1) as s : (f64[3, 3], f64[3, 2])
  (c, d) = aten.unsafe_split_with_sizes.default(x, [1, 2]) as t : (f64[1, 5], f64[2, 5])
  output([a, b, c, d])
)");
  CheckCall("aten.new_full.default(x, [2, 2], 7)", "f64[3]", "f64[1]", "f64[2, 2]");
  CheckCall("aten.new_ones.default(x, [2])", "f64[3]", "f64[1]", "f64[2]");
}

TEST_CASE("PV-3: products of several and running products are ATen's") {
  CheckCall("aten.prod.default(x)", "f64[2, 3]", "f64[1]", "f64[]");
  CheckCall("aten.prod.dim_int(x, 1, True)", "f64[2, 3]", "f64[1]", "f64[2, 1]");
  CheckCall("aten.cumprod.default(x, -1)", "f64[2, 4]", "f64[1]", "f64[2, 4]");
  CheckCall("aten.cumprod.default(x, 0)", "i64[4, 2]", "f64[1]", "i64[4, 2]");
}

TEST_CASE("PV-3: diagonals are ATen's") {
  CheckCall("aten.diagonal.default(x, 1, 0, 2)", "f64[3, 2, 4]", "f64[1]", "f64[2, 3]");
  CheckCall("aten.diagonal.default(x, -2)", "f64[3, 4]", "f64[1]", "f64[1]");
  CheckCall("aten.diagonal_copy.default(x, 0, -1, -2)", "f64[2, 3, 4]", "f64[1]", "f64[2, 3]");
  CheckCall("aten.diagonal_backward.default(x, [3, 2, 4], 1, 0, 2)", "f64[2, 3]", "f64[1]",
            "f64[3, 2, 4]");
  CheckCall("aten.diagonal_scatter.default(x, y, -1)", "f64[3, 4]", "f64[2]", "f64[3, 4]");
  CheckCall("aten.diag_embed.default(x)", "f64[2, 3]", "f64[1]", "f64[2, 3, 3]");
  CheckCall("aten.diag_embed.default(x, -1, 0, 2)", "f64[2, 3]", "f64[1]", "f64[4, 2, 4]");
  CheckCall("aten.eye.m(2, 3)", "f64[1]", "f64[1]", "f32[2, 3]");
}

TEST_CASE("PV-3: reductions by index are ATen's") {
  for (const std::string_view reduce : {"sum", "prod", "amax", "amin"}) {
    for (const bool includes : {true, false}) {
      CheckAgainstTorch(fmt::format(R"(
  x = placeholder : f64[4, 3]
  y = placeholder : f64[5, 3]
  ones = aten.ge.Scalar(y, 0) : b8[5, 3]
  i = aten._to_copy.default(ones, dtype=torch.int64) : i64[5, 3]
  z = aten.scatter_reduce.two(x, 0, i, y, '{}', include_self={}) : f64[4, 3]
  output([z])
)",
                                    reduce, includes ? "True" : "False"));
    }
  }
}

TEST_CASE("PV-3: comparisons and integers are ATen's") {
  for (const std::string_view op : {"eq", "ne", "lt", "le", "gt", "ge"})
    CheckCall(fmt::format("aten.{}.Tensor(x, y)", op), "f64[9]", "f64[9]", "b8[9]");
  CheckCall("aten.floor_divide.default(x, y)", "i64[6]", "i64[1]", "i64[6]");
  CheckCall("aten.remainder.Scalar(x, 2)", "i64[6]", "i64[6]", "i64[6]");
  CheckCall("aten.fmod.Scalar(x, -2)", "i64[6]", "i64[6]", "i64[6]");
  CheckCall("aten.logical_and.default(x, y)", "i64[9]", "i64[9]", "b8[9]");
  CheckAgainstTorch(R"(
  x = placeholder : f64[9]
  y = placeholder : f64[9]
  mask = aten.gt.Tensor(x, y) : b8[9]
  larger = aten.where.self(mask, x, y) : f64[9]
  filled = aten.masked_fill.Scalar(x, mask, 7) : f64[9]
  other = aten.logical_not.default(mask) : b8[9]
  output([larger, filled, other])
)");
}

TEST_CASE("PV-3: quotients that are rounded, and what they leave, are ATen's") {
  for (const std::string_view mode : {"floor", "trunc"}) {
    CheckCall(fmt::format("aten.div.Scalar_mode(x, -2, rounding_mode='{}')", mode), "i64[6]",
              "i64[6]", "i64[6]");
    CheckCall(fmt::format("aten.div.Scalar_mode(x, -3, rounding_mode='{}')", mode), "f64[9]",
              "f64[9]", "f64[9]");
    CheckAgainstTorch(fmt::format(R"(
  x = placeholder : f64[9]
  y = placeholder : f64[9]
  odd = aten.add.Tensor(y, 0.5) : f64[9]
  r = aten.div.Tensor_mode(x, odd, rounding_mode='{}') : f64[9]
  output(r)
)",
                                  mode));
  }
  CheckCall("aten.floor_divide.default(x, 3)", "f64[9]", "f64[9]", "f64[9]");
  CheckCall("aten.remainder.Scalar(x, -1.5)", "f64[9]", "f64[9]", "f64[9]");
  CheckCall("aten.fmod.Scalar(x, -1.5)", "f64[9]", "f64[9]", "f64[9]");
  for (const std::string_view op : {"floor", "ceil", "trunc", "frac"}) {
    CheckAgainstTorch(fmt::format(R"(
  x = placeholder : f64[9]
  part = aten.mul.Tensor(x, 0.375) : f64[9]
  r = aten.{}.default(part) : f64[9]
  output(r)
)",
                                  op));
  }
}

TEST_CASE("PV-3: the choice of experts, sorted rows and products per group are ATen's") {
  CheckAgainstTorch(R"(
  x = placeholder : i64[9, 2][2, 1]cpu
  y = placeholder : f64[4, 7][7, 1]cpu
  (v, i) = aten.sort.stable(x, stable=True, dim=0) as s : (i64[9, 2][2, 1]cpu, i64[9, 2][2, 1]cpu)
  (w, j) = aten.sort.stable(x, stable=True, dim=0, descending=True) as t : (i64[9, 2][2, 1]cpu, i64[9, 2][2, 1]cpu)
  (u, _) = aten.topk.default(y, 3, 1, True, True) as k : (f64[4, 3][3, 1]cpu, i64[4, 3][3, 1]cpu)
  (l, _) = aten.topk.default(y, 2, 0, False, True) as m : (f64[2, 7][7, 1]cpu, i64[2, 7][7, 1]cpu)
  output([v, i, w, j, u, l])
)");
  CheckAgainstTorch(R"(
  x = placeholder : f64[3, 4][4, 1]cpu
  i = placeholder : i64[5][1]cpu
  y = placeholder : f64[5, 4][4, 1]cpu
  a = aten.index_add.default(x, 0, i, y, alpha=2) : f64[3, 4][4, 1]cpu
  b = aten.slice_backward.default(x, [3, 9], 1, 2, 9, 2) : f64[3, 9][9, 1]cpu
  output([a, b])
)");
  CheckAgainstTorch(R"(
  x = placeholder : f64[6, 4][4, 1]cpu
  y = placeholder : f64[3, 4, 4][16, 4, 1]cpu
  a = aten._to_copy.default(x, dtype=torch.float32) : f32[6, 4][4, 1]cpu
  b = aten._to_copy.default(y, dtype=torch.float32) : f32[3, 4, 4][16, 4, 1]cpu
  n = aten.arange.start_step(2, 7, 2, dtype=torch.int32, device=device('cpu')) : i32[3][1]cpu
  p = aten._grouped_mm.default(a, b, n) : f32[6, 4][4, 1]cpu
  t = aten.t.default(a) : f32[4, 6][1, 4]cpu ~a
  q = aten._grouped_mm.default(t, p, n) : f32[3, 4, 4][16, 4, 1]cpu
  output([p, q])
)");
}

TEST_CASE("PV-3: views and copies are ATen's") {
  CheckCall("aten.permute.default(x, [2, 0, 1])", "f64[2, 3, 4]", "f64[1]", "f64[4, 2, 3]");
  CheckCall("aten.transpose.int(x, -1, 0)", "f64[2, 3, 4]", "f64[1]", "f64[4, 3, 2]");
  CheckCall("aten.slice.Tensor(x, 1, 1, -1, 2)", "f64[2, 7]", "f64[1]", "f64[2, 3]");
  CheckCall("aten.select.int(x, 1, -2)", "f64[2, 7]", "f64[1]", "f64[2]");
  CheckCall("aten.expand.default(x, [4, -1, 3])", "f64[2, 1]", "f64[1]", "f64[4, 2, 3]");
  CheckCall("aten.unsqueeze.default(x, -1)", "f64[2, 3]", "f64[1]", "f64[2, 3, 1]");
  CheckCall("aten.squeeze.dim(x, 1)", "f64[2, 1, 3]", "f64[1]", "f64[2, 3]");
  CheckCall("aten.cat.default([x, y], 1)", "f64[2, 3]", "f64[2, 1]", "f64[2, 4]");
  CheckCall("aten.stack.default([x, y], -1)", "f64[2, 3]", "f64[2, 3]", "f64[2, 3, 2]");
  CheckCall("aten.constant_pad_nd.default(x, [1, 2, -1, 0], 3)", "f64[3, 2]", "f64[1]",
            "f64[2, 5]");
  CheckCall("aten.tril.default(x, 1)", "f64[3, 4]", "f64[1]", "f64[3, 4]");
  CheckCall("aten.triu.default(x, -1)", "f64[2, 3, 4]", "f64[1]", "f64[2, 3, 4]");
  CheckCall("aten.flip.default(x, [0, -1])", "f64[2, 3, 4]", "f64[1]", "f64[2, 3, 4]");
  CheckCall("aten._to_copy.default(x, dtype=torch.float64)", "i64[4]", "f64[1]", "f64[4]");
  CheckAgainstTorch(R"(
  x = placeholder : f64[4, 6]
  t = aten.t.default(x) : f64[6, 4]
  view = aten.view.default(x, [2, 2, 3, 2]) : f64[2, 2, 3, 2]
  pairs = aten.view_as_complex.default(view) : c128[2, 2, 3]
  conj = aten._conj.default(pairs) : c128[2, 2, 3]
  square = aten.mul.Tensor(conj, pairs) : c128[2, 2, 3]
  turned = aten.mul.Tensor(square, raw('(1-2j)')) : c128[2, 2, 3]
  full = aten.full.default([3], raw('2j'), dtype=torch.complex128) : c128[3]
  sum = aten.add.Tensor(turned, full) : c128[2, 2, 3]
  real = aten.view_as_real.default(sum) : f64[2, 2, 3, 2]
  back = aten.reshape.default(t, [3, 8]) : f64[3, 8]
  output([real, back])
)");
}

TEST_CASE("PV-3: reads and writes by index are ATen's") {
  CheckCall("aten.embedding.default(x, y)", "f64[3, 4]", "i64[2, 5]", "f64[2, 5, 4]");
  CheckCall("aten.embedding_dense_backward.default(x, y, 3, -1, False)", "f64[5, 4]", "i64[5]",
            "f64[3, 4]");
  CheckCall("aten.gather.default(x, 1, y)", "f64[2, 3]", "i64[2, 5]", "f64[2, 5]");
  CheckCall("aten.index_select.default(x, 1, y)", "f64[2, 3]", "i64[4]", "f64[2, 4]");
  CheckCall("aten.index.Tensor(x, [y])", "f64[3, 2]", "i64[2, 2]", "f64[2, 2, 2]");
  CheckCall("aten.index.Tensor(x, [None, y])", "f64[2, 3]", "i64[4]", "f64[2, 4]");
  CheckCall("aten.scatter_add.default(x, 1, y, x)", "f64[2, 3]", "i64[2, 3]", "f64[2, 3]");
  CheckAgainstTorch(R"(
  x = placeholder : f64[3, 2]
  i = placeholder : i64[4]
  v = placeholder : f64[4, 2]
  put = aten.index_put.default(x, [i], v, True) : f64[3, 2]
  output(put)
)");
  CheckAgainstTorch(R"(
  x = placeholder : f64[3, 2]
  y = placeholder : f64[3]
  zero = aten.scalar_tensor.default(0, dtype=torch.float64) : f64[]
  mask = aten.gt.Scalar(x, 1) : b8[3, 2]
  rows = aten.le.Scalar(y, 0) : b8[3]
  put = aten.index_put.default(x, [mask], zero) : f64[3, 2]
  row_put = aten.index_put.default(x, [rows], zero) : f64[3, 2]
  output([put, row_put])
)");
}

TEST_CASE("PV-3: losses are ATen's") {
  CheckAgainstTorch(R"(
  x = placeholder : f64[4, 3]
  labels = placeholder : i64[4]
  (loss, total) = aten.nll_loss_forward.default(x, labels, None, 2, 1) as nll : (f64[], f64[])
  g = aten.ones_like.default(loss) : f64[]
  back = aten.nll_loss_backward.default(g, x, labels, None, 2, 1, total) : f64[4, 3]
  output([loss, total, back])
)");
  CheckAgainstTorch(R"(
  x = placeholder : f64[4, 2]
  y = placeholder : f64[4, 2]
  mean = aten.mse_loss.default(x, y) : f64[]
  sum = aten.mse_loss.default(x, y, 2) : f64[]
  of_mean = aten.mse_loss_backward.default(sum, x, y, 1) : f64[4, 2]
  of_sum = aten.mse_loss_backward.default(mean, x, y, 2) : f64[4, 2]
  output([mean, sum, of_mean, of_sum])
)");
}

TEST_CASE("PV-3: the backward of a layer norm is ATen's") {
  CheckAgainstTorch(R"(
  g = placeholder : f64[3, 4]
  x = placeholder : f64[3, 4]
  m = placeholder : f64[3, 1]
  r = placeholder : f64[3, 1]
  w = placeholder : f64[4]
  b = placeholder : f64[4]
  (dx, dw, db) = aten.native_layer_norm_backward.default(g, x, [4], m, r, w, b, [True, True, True]) as back : (f64[3, 4], f64[4], f64[4])
  output([dx, dw, db])
)");
}

}  // namespace
}  // namespace strata::prove
