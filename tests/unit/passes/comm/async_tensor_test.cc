// Products in parts beside collectives: ids as in torchtitan's catalogue of async tensor
// parallelism.

#include "passes/comm/async_tensor.h"

#include <algorithm>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "ir/verify.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::BodyOf;
using testing::OrDie;
using testing::ParseBody;

std::unique_ptr<Module> InParts(std::string_view body) {
  auto module = ParseBody(body);
  OrDie(AsyncTensorParallel().Run(*module));
  CHECK_OK(Verify(*module));
  return module;
}

constexpr std::string_view kGather = R"(
  x = placeholder : f32[2, 4, 8][32, 8, 1]cpu
  w = placeholder : f32[8, 6][6, 1]cpu
  g = _c10d_functional.all_gather_into_tensor.default(x, 2, 'tp') : f32[4, 4, 8][32, 8, 1]cpu
  a = _c10d_functional.wait_tensor.default(g) : f32[4, 4, 8][32, 8, 1]cpu ~g
  (p, q) = aten.split.Tensor(a, 2, 0) as split : (f32[2, 4, 8][32, 8, 1]cpu, f32[2, 4, 8][32, 8, 1]cpu) ~(g, g)
  c = aten.cat.default([p, q], 1) : f32[2, 8, 8][64, 8, 1]cpu
  v = aten.reshape.default(c, [16, 8]) : f32[16, 8][8, 1]cpu ~c
)";

TEST_CASE("AT-1: parts are gathered first, and each is multiplied when it has come") {
  const auto module = InParts(std::string(kGather) + R"(
  m = aten.mm.default(v, w) : f32[16, 6][6, 1]cpu
  output([m])
)");
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  w = placeholder
  slice_1 = aten.slice.Tensor(x, 0, 0, 1)
  all_gather_into_tensor = _c10d_functional.all_gather_into_tensor.default(slice_1, 2, 'tp')
  slice_2 = aten.slice.Tensor(x, 0, 1, 2)
  all_gather_into_tensor_1 = _c10d_functional.all_gather_into_tensor.default(slice_2, 2, 'tp')
  wait_tensor = _c10d_functional.wait_tensor.default(all_gather_into_tensor)
  (_, _) = aten.split.Tensor(wait_tensor, 1, 0) as split_1
  cat = aten.cat.default([split_1$0, split_1$1], 1)
  reshape = aten.reshape.default(cat, [8, 8])
  mm = aten.mm.default(reshape, w)
  wait_tensor_1 = _c10d_functional.wait_tensor.default(all_gather_into_tensor_1)
  (_, _) = aten.split.Tensor(wait_tensor_1, 1, 0) as split_2
  cat_1 = aten.cat.default([split_2$0, split_2$1], 1)
  reshape_1 = aten.reshape.default(cat_1, [8, 8])
  mm_1 = aten.mm.default(reshape_1, w)
  cat_2 = aten.cat.default([mm, mm_1])
  output([cat_2])
)");
}

constexpr std::string_view kScatterEnd = R"(
  v = aten.reshape.default(m, [2, 8, 6]) : f32[2, 8, 6][48, 6, 1]cpu ~m
  (p, q) = aten.split.Tensor(v, 4, 1) as split : (f32[2, 4, 6][48, 6, 1]cpu, f32[2, 4, 6][48, 6, 1]cpu) ~(m, m)
  c = aten.cat.default([p, q], 0) : f32[4, 4, 6][24, 6, 1]cpu
  s = _c10d_functional.reduce_scatter_tensor.default(c, 'sum', 2, 'tp') : f32[2, 4, 6][24, 6, 1]cpu
  r = _c10d_functional.wait_tensor.default(s) : f32[2, 4, 6][24, 6, 1]cpu ~s
)";
constexpr std::string_view kScatterBegin = R"(
  x = placeholder : f32[16, 8][8, 1]cpu
  w = placeholder : f32[8, 6][6, 1]cpu
  m = aten.mm.default(x, w) : f32[16, 6][6, 1]cpu)";

TEST_CASE("AT-2: a product is reduced in parts, each while the next is computed") {
  const auto module =
      InParts(std::string(kScatterBegin) + std::string(kScatterEnd) + "  output([r])\n");
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  w = placeholder
  slice_1 = aten.slice.Tensor(x, 0, 0, 8)
  mm = aten.mm.default(slice_1, w)
  reshape = aten.reshape.default(mm, [1, 8, 6])
  (_, _) = aten.split.Tensor(reshape, 4, 1) as split_1
  cat = aten.cat.default([split_1$0, split_1$1], 0)
  reduce_scatter_tensor = _c10d_functional.reduce_scatter_tensor.default(cat, 'sum', 2, 'tp')
  slice_2 = aten.slice.Tensor(x, 0, 8, 16)
  mm_1 = aten.mm.default(slice_2, w)
  reshape_1 = aten.reshape.default(mm_1, [1, 8, 6])
  (_, _) = aten.split.Tensor(reshape_1, 4, 1) as split_2
  cat_1 = aten.cat.default([split_2$0, split_2$1], 0)
  reduce_scatter_tensor_1 = _c10d_functional.reduce_scatter_tensor.default(cat_1, 'sum', 2, 'tp')
  wait_tensor = _c10d_functional.wait_tensor.default(reduce_scatter_tensor)
  wait_tensor_1 = _c10d_functional.wait_tensor.default(reduce_scatter_tensor_1)
  cat_2 = aten.cat.default([wait_tensor, wait_tensor_1])
  output([cat_2])
)");
}

TEST_CASE("AT-3: an operand that needs the gather, and a product that others read, are not taken") {
  const auto unchanged = [](const std::string& body) {
    CHECK_EQ(BodyOf(*InParts(body)), BodyOf(*ParseBody(body)));
  };
  unchanged(std::string(kGather) + R"(
  t = aten.t.default(v) : f32[8, 16][1, 8]cpu ~c
  n = aten.neg.default(t) : f32[8, 16][1, 8]cpu
  m = aten.mm.default(v, n) : f32[16, 16][16, 1]cpu
  output([m])
)");
  unchanged(std::string(kScatterBegin) + std::string(kScatterEnd) + "  output([r, m])\n");
}

TEST_CASE("AT-4: a graph without such products stays as it is") {
  const std::string body = std::string(kGather) + "  output([v])\n";
  auto module = ParseBody(body);
  CHECK_EQ(OrDie(AsyncTensorParallel().Run(*module)), Changed::kNo);
  CHECK_EQ(BodyOf(*module), BodyOf(*ParseBody(body)));
}

TEST_CASE("the whole of a gather is put together where others read it") {
  const auto module = InParts(std::string(kGather) + R"(
  m = aten.mm.default(v, w) : f32[16, 6][6, 1]cpu
  n = aten.neg.default(c) : f32[2, 8, 8][64, 8, 1]cpu
  output([m, n])
)");
  const std::string text = BodyOf(*module);
  CHECK_NE(text.find("neg.default(cat_"), std::string::npos);
}

}  // namespace
}  // namespace strata
