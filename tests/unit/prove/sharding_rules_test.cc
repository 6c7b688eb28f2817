#include <string_view>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "passes/placement/lowering/lower.h"
#include "prove/lowering.h"
#include "prove/static/placement_check.h"
#include "tests/support/graphs.h"
#include "tests/support/strategies.h"

namespace strata::prove {
namespace {

using testing::AllStrategies;
using testing::OrDie;
using testing::PlacedBy;
using testing::TextStrategy;

/// Calls of operators with a rule, each the node `y`. What is read has no other reader.
constexpr std::string_view kCalls[] = {
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  b = placeholder : f32[6][1]cpu
  y = aten.add.Tensor(a, b) : f32[4, 6][6, 1]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  b = placeholder : f32[4, 1][1, 1]cpu
  y = aten.mul.Tensor(a, b) : f32[4, 6][6, 1]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  b = placeholder : f32[4, 6][6, 1]cpu
  y = aten.div.Tensor(a, b) : f32[4, 6][6, 1]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  y = aten.pow.Tensor_Scalar(a, 3) : f32[4, 6][6, 1]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  y = aten.mul.Scalar(a, 0.5) : f32[4, 6][6, 1]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  y = aten.t.default(a) : f32[6, 4][1, 6]cpu ~a
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6, 6][36, 6, 1]cpu
  y = aten.tril.default(a) : f32[4, 6, 6][36, 6, 1]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  y = aten.triu.default(a, 1) : f32[4, 6][6, 1]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6, 2][12, 2, 1]cpu
  y = aten.transpose.int(a, 0, -1) : f32[2, 6, 4][1, 2, 12]cpu ~a
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6, 2][12, 2, 1]cpu
  y = aten.permute.default(a, [2, 0, 1]) : f32[2, 4, 6][1, 12, 2]cpu ~a
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6, 2][12, 2, 1]cpu
  y = aten.reshape.default(a, [24, 2]) : f32[24, 2][2, 1]cpu ~a
  output([y])
)",
    R"(
  a = placeholder : f32[8, 6][6, 1]cpu
  y = aten.reshape.default(a, [2, 4, 6]) : f32[2, 4, 6][24, 6, 1]cpu ~a
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  y = aten.reshape.default(a, [6, 4]) : f32[6, 4][4, 1]cpu ~a
  output([y])
)",
    R"(
  a = placeholder : f32[4, 1, 2][2, 2, 1]cpu
  y = aten.expand.default(a, [4, 6, 2]) : f32[4, 6, 2][2, 0, 1]cpu ~a
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  y = aten.unsqueeze.default(a, 1) : f32[4, 1, 6][6, 6, 1]cpu ~a
  output([y])
)",
    R"(
  a = placeholder : f32[4, 1, 6][6, 6, 1]cpu
  y = aten.squeeze.dim(a, 1) : f32[4, 6][6, 1]cpu ~a
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  y = aten.slice.Tensor(a, 1, 2, 5) : f32[4, 3][6, 1]cpu ~a
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  y = aten.select.int(a, 0, 1) : f32[6][1]cpu ~a
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  b = placeholder : f32[2, 6][6, 1]cpu
  y = aten.cat.default([a, b], 0) : f32[6, 6][6, 1]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  b = placeholder : f32[4, 6][6, 1]cpu
  y = aten.stack.default([a, b], 1) : f32[4, 2, 6][12, 6, 1]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  b = placeholder : f32[6, 8][8, 1]cpu
  y = aten.mm.default(a, b) : f32[4, 8][8, 1]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[2, 4, 6][24, 6, 1]cpu
  b = placeholder : f32[2, 6, 8][48, 8, 1]cpu
  y = aten.bmm.default(a, b) : f32[2, 4, 8][32, 8, 1]cpu
  output([y])
)",
    R"(
  c = placeholder : f32[8][1]cpu
  a = placeholder : f32[4, 6][6, 1]cpu
  b = placeholder : f32[6, 8][8, 1]cpu
  y = aten.addmm.default(c, a, b) : f32[4, 8][8, 1]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  y = aten.sum.dim_IntList(a, [0], True) : f32[1, 6][6, 1]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  y = aten.sum.default(a) : f32[][]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  y = aten.mean.dim(a, [-1]) : f32[4][1]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  y = aten._softmax.default(a, 1, False) : f32[4, 6][6, 1]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  y = aten._log_softmax.default(a, 1, False) : f32[4, 6][6, 1]cpu
  output([y])
)",
    R"(
  g = placeholder : f32[4, 6][6, 1]cpu
  a = placeholder : f32[4, 6][6, 1]cpu
  y = aten._log_softmax_backward_data.default(g, a, 1, torch.float32) : f32[4, 6][6, 1]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  i = placeholder : i64[4][1]cpu
  (y, w) = aten.nll_loss_forward.default(a, i, None, 2, -100) as nll : (f32[][]cpu, f32[][]cpu)
  output([y])
)",
    R"(
  g = placeholder : f32[][]cpu
  a = placeholder : f32[4, 6][6, 1]cpu
  i = placeholder : i64[4][1]cpu
  w = placeholder : f32[][]cpu
  y = aten.nll_loss_backward.default(g, a, i, None, 2, -100, w) : f32[4, 6][6, 1]cpu
  output([y])
)",
    R"(
  w = placeholder : f32[8, 4][4, 1]cpu
  i = placeholder : i64[2, 6][6, 1]cpu
  y = aten.embedding.default(w, i) : f32[2, 6, 4][24, 4, 1]cpu
  output([y])
)",
    R"(
  g = placeholder : f32[2, 6, 4][24, 4, 1]cpu
  i = placeholder : i64[2, 6][6, 1]cpu
  y = aten.embedding_dense_backward.default(g, i, 8, -1, False) : f32[8, 4][4, 1]cpu
  output([y])
)",
    R"(
  g = placeholder : f32[2, 6, 4][24, 4, 1]cpu
  i = placeholder : i64[2, 6][6, 1]cpu
  y = aten.embedding_dense_backward.default(g, i, 8, 1, False) : f32[8, 4][4, 1]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6, 2][12, 2, 1]cpu
  y = aten.logsumexp.default(a, [0]) : f32[6, 2][2, 1]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  i = placeholder : i64[4, 2][2, 1]cpu
  y = aten.gather.default(a, 1, i) : f32[4, 2][2, 1]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  i = placeholder : i64[8][1]cpu
  y = aten.index_select.default(a, 0, i) : f32[8, 6][6, 1]cpu
  output([y])
)",
    R"(
  a = placeholder : f32[2, 4, 6, 8][192, 48, 8, 1]cpu
  b = placeholder : f32[2, 2, 6, 8][96, 48, 8, 1]cpu
  c = placeholder : f32[2, 2, 6, 8][96, 48, 8, 1]cpu
  (y, l) = aten._scaled_dot_product_flash_attention_for_cpu.default(a, b, c, 0.0, True, scale=0.5) as sdpa : (f32[2, 4, 6, 8][192, 8, 32, 1]cpu, f32[2, 4, 6][24, 1, 4]cpu)
  output([y])
)",
    R"(
  a = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  b = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  c = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  (y, l, s, o) = aten._scaled_dot_product_efficient_attention.default(a, b, c, None, True, 0.0, True, scale=0.5) as sdpa : (f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, f32[2, 4, 64][256, 64, 1]cuda:0, i64[][]cuda:0, i64[][]cuda:0)
  output([y])
)",
    R"(
  a = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  b = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  c = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  (y, l, s, o) = aten._scaled_dot_product_efficient_attention.default(a, b, c, None, True, 0.0, True, scale=0.5) as sdpa : (f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, f32[2, 4, 64][256, 64, 1]cuda:0, i64[][]cuda:0, i64[][]cuda:0)
  output([l])
)",
    R"(
  a = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  b = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  c = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  m = placeholder : f32[2, 4, 64, 64][0, 0, 64, 1]cuda:0
  (y, l, s, o) = aten._scaled_dot_product_efficient_attention.default(a, b, c, m, True, 0.0, False, scale=0.5) as sdpa : (f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, f32[2, 4, 64][256, 64, 1]cuda:0, i64[][]cuda:0, i64[][]cuda:0)
  output([y])
)",
    R"(
  a = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  b = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  c = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  m = placeholder : f32[2, 1, 64, 64][4096, 4096, 64, 1]cuda:0
  (y, l, s, o) = aten._scaled_dot_product_efficient_attention.default(a, b, c, m, True, 0.0, False, scale=0.5) as sdpa : (f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, f32[2, 4, 64][256, 64, 1]cuda:0, i64[][]cuda:0, i64[][]cuda:0)
  output([y])
)",
    R"(
  g = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  a = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  b = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  c = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  o = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  l = placeholder : f32[2, 4, 64][256, 64, 1]cuda:0
  s = placeholder : i64[][]cuda:0
  (x, y, z, m) = aten._scaled_dot_product_efficient_attention_backward.default(g, a, b, c, None, o, l, s, s, 0.0, [True, True, True, False], True, scale=0.5) as sdpa : (f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, ?)
  output([x])
)",
    R"(
  g = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  a = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  b = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  c = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  o = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  l = placeholder : f32[2, 4, 64][256, 64, 1]cuda:0
  s = placeholder : i64[][]cuda:0
  (x, y, z, m) = aten._scaled_dot_product_efficient_attention_backward.default(g, a, b, c, None, o, l, s, s, 0.0, [True, True, True, False], True, scale=0.5) as sdpa : (f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, ?)
  output([y])
)",
    R"(
  g = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  a = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  b = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  c = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  o = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  l = placeholder : f32[2, 4, 64][256, 64, 1]cuda:0
  s = placeholder : i64[][]cuda:0
  (x, y, z, m) = aten._scaled_dot_product_efficient_attention_backward.default(g, a, b, c, None, o, l, s, s, 0.0, [True, True, True, False], True, scale=0.5) as sdpa : (f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, ?)
  output([z])
)",
    R"(
  a = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  b = placeholder : f32[2, 2, 64, 8][1024, 512, 8, 1]cuda:0
  c = placeholder : f32[2, 2, 64, 8][1024, 512, 8, 1]cuda:0
  (y, l, p, q, r, t, s, o, d) = aten._scaled_dot_product_flash_attention.default(a, b, c, 0.0, True, scale=0.5) as sdpa : (f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, f32[2, 4, 64][256, 64, 1]cuda:0, ?, ?, ?, ?, u64[2][1]cuda:0, u64[][]cuda:0, f32[0][1]cuda:0)
  output([y])
)",
    R"(
  g = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  a = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  b = placeholder : f32[2, 2, 64, 8][1024, 512, 8, 1]cuda:0
  c = placeholder : f32[2, 2, 64, 8][1024, 512, 8, 1]cuda:0
  o = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  l = placeholder : f32[2, 4, 64][256, 64, 1]cuda:0
  s = placeholder : u64[2][1]cuda:0
  t = placeholder : u64[][]cuda:0
  (x, y, z) = aten._scaled_dot_product_flash_attention_backward.default(g, a, b, c, o, l, None, None, 64, 64, 0.0, True, s, t, scale=0.5) as sdpa : (f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, f32[2, 2, 64, 8][1024, 512, 8, 1]cuda:0, f32[2, 2, 64, 8][1024, 512, 8, 1]cuda:0)
  output([x])
)",
    R"(
  g = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  a = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  b = placeholder : f32[2, 2, 64, 8][1024, 512, 8, 1]cuda:0
  c = placeholder : f32[2, 2, 64, 8][1024, 512, 8, 1]cuda:0
  o = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  l = placeholder : f32[2, 4, 64][256, 64, 1]cuda:0
  s = placeholder : u64[2][1]cuda:0
  t = placeholder : u64[][]cuda:0
  (x, y, z) = aten._scaled_dot_product_flash_attention_backward.default(g, a, b, c, o, l, None, None, 64, 64, 0.0, True, s, t, scale=0.5) as sdpa : (f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, f32[2, 2, 64, 8][1024, 512, 8, 1]cuda:0, f32[2, 2, 64, 8][1024, 512, 8, 1]cuda:0)
  output([y])
)",
    R"(
  g = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  a = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  b = placeholder : f32[2, 2, 64, 8][1024, 512, 8, 1]cuda:0
  c = placeholder : f32[2, 2, 64, 8][1024, 512, 8, 1]cuda:0
  o = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  l = placeholder : f32[2, 4, 64][256, 64, 1]cuda:0
  s = placeholder : u64[2][1]cuda:0
  t = placeholder : u64[][]cuda:0
  (x, y, z) = aten._scaled_dot_product_flash_attention_backward.default(g, a, b, c, o, l, None, None, 64, 64, 0.0, True, s, t, scale=0.5) as sdpa : (f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, f32[2, 2, 64, 8][1024, 512, 8, 1]cuda:0, f32[2, 2, 64, 8][1024, 512, 8, 1]cuda:0)
  output([z])
)",
    R"(
  a = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  b = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  c = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  (y, l, p, q, r, t, s, o, d) = aten._scaled_dot_product_cudnn_attention.default(a, b, c, None, True, 0.0, True, False, scale=0.5) as sdpa : (f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, f32[2, 4, 64, 1][256, 64, 1, 1]cuda:0, ?, ?, ?, ?, i64[][]cuda:0, i64[][]cuda:0, ?)
  output([y])
)",
    R"(
  g = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  a = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  b = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  c = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  o = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  l = placeholder : f32[2, 4, 64, 1][256, 64, 1, 1]cuda:0
  s = placeholder : i64[][]cuda:0
  (x, y, z) = aten._scaled_dot_product_cudnn_attention_backward.default(g, a, b, c, o, l, s, s, None, None, None, 64, 64, 0.0, True, scale=0.5) as sdpa : (f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0)
  output([x])
)",
    R"(
  g = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  a = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  b = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  c = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  o = placeholder : f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0
  l = placeholder : f32[2, 4, 64, 1][256, 64, 1, 1]cuda:0
  s = placeholder : i64[][]cuda:0
  (x, y, z) = aten._scaled_dot_product_cudnn_attention_backward.default(g, a, b, c, o, l, s, s, None, None, None, 64, 64, 0.0, True, scale=0.5) as sdpa : (f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0, f32[2, 4, 64, 8][2048, 512, 8, 1]cuda:0)
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6, 8][48, 8, 1]cuda:0
  w = placeholder : f32[8][1]cuda:0
  (y, r) = aten._fused_rms_norm.default(a, [8], w, 1e-05) as norm : (f32[4, 6, 8][48, 8, 1]cuda:0, f32[4, 6, 1][6, 1, 1]cuda:0)
  output([y])
)",
    R"(
  a = placeholder : f32[4, 6, 8][48, 8, 1]cuda:0
  w = placeholder : f32[8][1]cuda:0
  (y, r) = aten._fused_rms_norm.default(a, [8], w, 1e-05) as norm : (f32[4, 6, 8][48, 8, 1]cuda:0, f32[4, 6, 1][6, 1, 1]cuda:0)
  output([r])
)",
    R"(
  g = placeholder : f32[4, 6, 8][48, 8, 1]cuda:0
  a = placeholder : f32[4, 6, 8][48, 8, 1]cuda:0
  r = placeholder : f32[4, 6, 1][6, 1, 1]cuda:0
  w = placeholder : f32[8][1]cuda:0
  (y, z) = aten._fused_rms_norm_backward.default(g, a, [8], r, w, [True, True]) as norm : (f32[4, 6, 8][48, 8, 1]cuda:0, f32[8][1]cuda:0)
  output([y])
)",
    R"(
  g = placeholder : f32[4, 6, 8][48, 8, 1]cuda:0
  a = placeholder : f32[4, 6, 8][48, 8, 1]cuda:0
  r = placeholder : f32[4, 6, 1][6, 1, 1]cuda:0
  w = placeholder : f32[8][1]cuda:0
  (y, z) = aten._fused_rms_norm_backward.default(g, a, [8], r, w, [True, True]) as norm : (f32[4, 6, 8][48, 8, 1]cuda:0, f32[8][1]cuda:0)
  output([z])
)",
    R"(
  a = placeholder : f32[4, 6][6, 1]cpu
  y = aten.ones_like.default(a) : f32[4, 6][6, 1]cpu
  output([y])
)",
    R"(
  y = aten.full.default([4, 6], 2.0) : f32[4, 6][6, 1]cpu
  output([y])
)",
};

TEST_CASE("sharding rules: two ranks compute with every strategy what one computes") {
  int strategies = 0;
  for (const std::string_view body : kCalls) {
    for (const TextStrategy& strategy : AllStrategies(body)) {
      const auto placed = PlacedBy(body, strategy);
      const auto lowered = placed->Clone();
      CAPTURE(body);
      CAPTURE(strategy.Text());
      OrDie(LowerPlacements().Run(*lowered));
      const Proof proof =
          ProveLowering(*placed->FindGraph("g"), *lowered->FindGraph("g"), {.stable_ids = true});
      CHECK_EQ(proof.reason, "");
      CHECK(proof.opaque.empty());
      CHECK(proof.verdict == Verdict::kProven);
      ++strategies;
    }
  }
  CHECK_GE(strategies, 100);
}

TEST_CASE("lower: a whole value that is added to averages, maxima or minima is that of each rank") {
  for (const std::string_view reduce : {"sum", "avg", "max", "min"}) {
    const auto placed = testing::ParseBody(fmt::format(R"(
  c = placeholder : DTensor(f32[6][1]cpu, R) {{+fqn='c' +input='buffer'}}
  d = strata.redistribute.default(c, 'P({0})') : DTensor(f32[6][1]cpu, P({0}))
  e = strata.redistribute.default(d, 'R') : DTensor(f32[6][1]cpu, R)
  output([e]) {{+mesh='fsdp=2'}}
)",
                                                       reduce));
    const auto lowered = placed->Clone();
    OrDie(LowerPlacements().Run(*lowered));
    CAPTURE(reduce);
    CHECK(ProveLowering(*placed->FindGraph("g"), *lowered->FindGraph("g"), {.stable_ids = true})
              .verdict == Verdict::kProven);
  }
  const auto placed = testing::ParseBody(R"(
  x = placeholder : DTensor(f32[8, 6][6, 1]cpu, S(0)) {+fqn='x' +input='batch'}
  c = placeholder : DTensor(f32[6][1]cpu, R) {+fqn='c' +input='buffer'}
  m = aten.mean.dim(x, [0]) : DTensor(f32[6][1]cpu, P(avg))
  d = strata.redistribute.default(c, 'P(avg)') : DTensor(f32[6][1]cpu, P(avg))
  y = aten.add.Tensor(m, d) : DTensor(f32[6][1]cpu, P(avg))
  r = strata.redistribute.default(y, 'R') : DTensor(f32[6][1]cpu, R)
  output([r]) {+mesh='fsdp=2'}
)");
  const auto lowered = placed->Clone();
  OrDie(LowerPlacements().Run(*lowered));
  CHECK(ProveLowering(*placed->FindGraph("g"), *lowered->FindGraph("g"), {.stable_ids = true})
            .verdict == Verdict::kProven);
  CHECK(CheckPlacements(*placed->FindGraph("g"), *lowered->FindGraph("g")).findings.empty());
}

TEST_CASE("lower: summands, averages and norms become each other") {
  constexpr std::pair<std::string_view, std::string_view> kChanges[] = {
      {"aten.mean.dim(x, [0]) : DTensor(f32[6][1]cpu, P(avg))", "sum"},
      {"aten.sum.dim_IntList(x, [0]) : DTensor(f32[6][1]cpu, P(sum))", "avg"},
      {"aten.linalg_vector_norm.default(x, 2, [0]) : DTensor(f32[6][1]cpu, P(norm2))", "sum"},
      {"aten.linalg_vector_norm.default(x, 2, [0]) : DTensor(f32[6][1]cpu, P(norm2))", "avg"},
  };
  for (const auto& [made, reduce] : kChanges) {
    const auto placed = testing::ParseBody(fmt::format(R"(
  x = placeholder : DTensor(f32[8, 6][6, 1]cpu, S(0)) {{+fqn='x' +input='batch'}}
  m = {0}
  d = strata.redistribute.default(m, 'P({1})') : DTensor(f32[6][1]cpu, P({1}))
  e = strata.redistribute.default(d, 'R') : DTensor(f32[6][1]cpu, R)
  output([e]) {{+mesh='fsdp=2'}}
)",
                                                       made, reduce));
    const auto lowered = placed->Clone();
    OrDie(LowerPlacements().Run(*lowered));
    CAPTURE(made);
    CAPTURE(reduce);
    CHECK(ProveLowering(*placed->FindGraph("g"), *lowered->FindGraph("g"), {.stable_ids = true})
              .verdict == Verdict::kProven);
  }
}

TEST_CASE("sharding rules: a wrong strategy is refuted") {
  // The product of the rows that a rank has with all columns is not a summand of the whole.
  const auto placed = PlacedBy(kCalls[18], {{"S(0)", "R"}, {"P(sum)"}});
  const auto lowered = placed->Clone();
  (void)LowerPlacements().Run(*lowered);
  CHECK(ProveLowering(*placed->FindGraph("g"), *lowered->FindGraph("g"), {.stable_ids = true})
            .verdict != Verdict::kProven);
}

}  // namespace
}  // namespace strata::prove
