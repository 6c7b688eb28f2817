// Products in parts beside collectives: ids as in torchtitan's catalogue of async tensor
// parallelism.

#include "passes/comm/async_tensor.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/verify.h"
#include "passes/simulate/timeline.h"
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

/// A gather of the last dimension from parts of that many columns, then products.
std::string LastDimension(int64_t columns, std::string_view rest) {
  const auto sizes = [](std::initializer_list<int64_t> of) {
    std::vector<int64_t> strides(of.size(), 1);
    for (size_t i = of.size() - 1; i > 0; --i)
      strides[i - 1] = strides[i] * std::data(of)[i];
    return fmt::format("f32[{}][{}]cpu", fmt::join(of, ", "), fmt::join(strides, ", "));
  };
  return fmt::format(R"(
  x = placeholder : {0}
  w = placeholder : {1}
  g = _c10d_functional.all_gather_into_tensor.default(x, 2, 'tp') : {2}
  a = _c10d_functional.wait_tensor.default(g) : {2}
  (p, q) = aten.split.Tensor(a, 2, 0) as split : ({0}, {0}) ~(g, g)
  c = aten.cat.default([p, q], 2) : {3}
  v = aten.reshape.default(c, [8, {4}]) : {5} ~c
  m = aten.mm.default(v, w) : f32[8, 6][6, 1]cpu
{6})",
                     sizes({2, 4, columns}), sizes({2 * columns, 6}), sizes({4, 4, columns}),
                     sizes({2, 4, 2 * columns}), 2 * columns, sizes({8, 2 * columns}), rest);
}

TEST_CASE(
    "AT-3: a gather of the last dimension is taken from 1024 columns on, if all is products") {
  const auto unchanged = [](const std::string& body) {
    CHECK_EQ(BodyOf(*InParts(body)), BodyOf(*ParseBody(body)));
  };
  unchanged(LastDimension(1023, "  output([m])\n"));
  unchanged(LastDimension(1024, "  output([m, c])\n"));
  unchanged(LastDimension(1024, "  output([m, v])\n"));
  const auto module = InParts(LastDimension(1024, "  output([m])\n"));
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  w = placeholder
  slice_1 = aten.slice.Tensor(x, 0, 0, 1)
  all_gather_into_tensor = _c10d_functional.all_gather_into_tensor.default(slice_1, 2, 'tp')
  slice_2 = aten.slice.Tensor(x, 0, 1, 2)
  all_gather_into_tensor_1 = _c10d_functional.all_gather_into_tensor.default(slice_2, 2, 'tp')
  wait_tensor = _c10d_functional.wait_tensor.default(all_gather_into_tensor)
  (_, _) = aten.split.Tensor(wait_tensor, 1, 0) as split_1
  cat = aten.cat.default([split_1$0, split_1$1], 2)
  reshape = aten.reshape.default(cat, [4, 2048])
  mm = aten.mm.default(reshape, w)
  wait_tensor_1 = _c10d_functional.wait_tensor.default(all_gather_into_tensor_1)
  (_, _) = aten.split.Tensor(wait_tensor_1, 1, 0) as split_2
  cat_1 = aten.cat.default([split_2$0, split_2$1], 2)
  reshape_1 = aten.reshape.default(cat_1, [4, 2048])
  mm_1 = aten.mm.default(reshape_1, w)
  cat_2 = aten.cat.default([mm, mm_1])
  output([cat_2])
)");
}

TEST_CASE("AT-4: a graph without such products stays as it is") {
  const std::string body = std::string(kGather) + "  output([v])\n";
  auto module = ParseBody(body);
  CHECK_EQ(OrDie(AsyncTensorParallel().Run(*module)), Changed::kNo);
  CHECK_EQ(BodyOf(*module), BodyOf(*ParseBody(body)));
}

constexpr std::string_view kLargeGather = R"(
  x = placeholder : f32[4, 64, 128][8192, 128, 1]cpu
  w = placeholder : f32[128, 512][512, 1]cpu
  g = _c10d_functional.all_gather_into_tensor.default(x, 2, 'tp') : f32[8, 64, 128][8192, 128, 1]cpu
  a = _c10d_functional.wait_tensor.default(g) : f32[8, 64, 128][8192, 128, 1]cpu ~g
  (p, q) = aten.split.Tensor(a, 4, 0) as split : (f32[4, 64, 128][8192, 128, 1]cpu, f32[4, 64, 128][8192, 128, 1]cpu) ~(g, g)
  c = aten.cat.default([p, q], 1) : f32[4, 128, 128][16384, 128, 1]cpu
  v = aten.reshape.default(c, [512, 128]) : f32[512, 128][128, 1]cpu ~c
  m = aten.mm.default(v, w) : f32[512, 512][512, 1]cpu
  output([m])
)";
constexpr std::string_view kLargeScatter = R"(
  x = placeholder : f32[512, 512][512, 1]cpu
  w = placeholder : f32[512, 128][128, 1]cpu
  m = aten.mm.default(x, w) : f32[512, 128][128, 1]cpu
  v = aten.reshape.default(m, [4, 128, 128]) : f32[4, 128, 128][16384, 128, 1]cpu ~m
  (p, q) = aten.split.Tensor(v, 64, 1) as split : (f32[4, 64, 128][16384, 128, 1]cpu, f32[4, 64, 128][16384, 128, 1]cpu) ~(m, m)
  c = aten.cat.default([p, q], 0) : f32[8, 64, 128][8192, 128, 1]cpu
  s = _c10d_functional.reduce_scatter_tensor.default(c, 'sum', 2, 'tp') : f32[4, 64, 128][8192, 128, 1]cpu
  r = _c10d_functional.wait_tensor.default(s) : f32[4, 64, 128][8192, 128, 1]cpu ~s
  output([r])
)";

TEST_CASE("the timeline of parts: a product runs while another part is gathered or reduced") {
  // A product and a collective take about 67 µs each, copies next to nothing.
  constexpr std::string_view kTopology = R"(
[device]
memory_gib = 1
memory_tib_per_s = 1000
efficiency = 1.0
launch_us = 0.1
tflops = { f32 = 1.0 }
[network]
model = "simple"
ranks_per_node = 2
base_us = 1.0
hop_us = 0.0
intra_gb_per_s = 2.0
inter_gb_per_s = 2.0
)";
  const Topology topology = OrDie(Topology::Parse(kTopology, "t.toml", "t"));
  const auto timeline = [&](const Module& module) {
    const Graph& graph = *module.FindGraph("g");
    return OrDie(Simulate(graph, OrDie(NodeCost::Make(topology, graph))));
  };
  for (const std::string_view body : {kLargeGather, kLargeScatter}) {
    const Timeline whole = timeline(*ParseBody(body)), parts = timeline(*InParts(body));
    CHECK_EQ(whole.exposed_us(), doctest::Approx(whole.busy_us()));
    CHECK_LT(parts.exposed_us(), 0.65 * whole.exposed_us());
    CHECK_LT(parts.step_us, whole.step_us);
    // A collective that is in flight while a product is computed.
    const auto overlaps = [&](const TimelineEvent& a) {
      return a.stream != 0 && std::ranges::any_of(parts.events, [&](const TimelineEvent& b) {
               return b.stream == 0 && !b.is_idle && b.end_us - b.start_us > 10 &&
                      std::min(a.end_us, b.end_us) - std::max(a.start_us, b.start_us) > 10;
             });
    };
    CHECK(std::ranges::any_of(parts.events, overlaps));
  }
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
