#include "passes/memory/min_cut.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "passes/memory/max_flow.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;
using testing::ParseBody;

TEST_CASE("the flow is the least capacity over all cuts, and the sides are such a cut") {
  std::mt19937 random(7);
  const auto draw = [&](uint32_t bound) { return static_cast<int32_t>(random() % bound); };
  for (int round = 0; round < 300; ++round) {
    const int32_t vertices = 2 + draw(8);
    std::vector<std::tuple<int32_t, int32_t, int64_t>> edges;
    for (int32_t count = draw(24); count > 0; --count)
      edges.emplace_back(draw(static_cast<uint32_t>(vertices)),
                         draw(static_cast<uint32_t>(vertices)), draw(9));
    FlowNetwork network(vertices);
    for (const auto& [from, to, capacity] : edges)
      network.AddEdge(from, to, capacity);
    const int64_t flow = network.Run(0, 1);
    const auto capacity_of = [&](auto is_source_side) {
      int64_t sum = 0;
      for (const auto& [from, to, capacity] : edges)
        sum += is_source_side(from) && !is_source_side(to) ? capacity : 0;
      return sum;
    };
    int64_t least = FlowNetwork::kInfinite;
    for (uint32_t side = 0; side < 1u << vertices; ++side) {
      if ((side & 1) == 0 || (side & 2) != 0) continue;
      least = std::min(least, capacity_of([&](int32_t v) { return (side >> v & 1) != 0; }));
    }
    CHECK_EQ(flow, least);
    CHECK(network.source_side()[0]);
    CHECK_FALSE(network.source_side()[1]);
    CHECK_EQ(capacity_of([&](int32_t v) { return network.source_side()[static_cast<size_t>(v)]; }),
             least);
  }
}

std::string Saved(std::string_view body, std::string_view banned = "") {
  const auto module = ParseBody(body);
  const Graph& graph = *module->FindGraph("g");
  const IdVector<NodeId, bool> saved = OrDie(NodesToSave(
      graph, [&](NodeId node) { return !banned.empty() && graph.op(node).starts_with(banned); }));
  std::string names;
  for (const NodeId node : graph.nodes()) {
    if (saved[node]) names += (names.empty() ? "" : " ") + std::string(graph.name(node));
  }
  return names;
}

TEST_CASE("what inputs give again is not saved, but for nodes that are not recomputed") {
  constexpr std::string_view kBody = R"(
  x = placeholder : f32[8, 8][8, 1]cpu
  a = aten.exp.default(x) : f32[8, 8][8, 1]cpu {forward}
  b = aten.mm.default(a, x) : f32[8, 8][8, 1]cpu {forward}
  c = aten.sin.default(b) : f32[8, 8][8, 1]cpu {forward}
  d = aten.cos.default(b) : f32[8, 8][8, 1]cpu {forward}
  g = aten.mul.Tensor(c, d) : f32[8, 8][8, 1]cpu {backward}
  h = aten.mul.Tensor(g, a) : f32[8, 8][8, 1]cpu {backward}
  output([h])
)";
  CHECK_EQ(Saved(kBody), "");
  CHECK_EQ(Saved(kBody, "aten.mm"), "b");
}

TEST_CASE("one small result is saved instead of two large ones, a narrow cast instead of a wide") {
  CHECK_EQ(Saved(R"(
  x = placeholder : f32[8, 8][8, 1]cpu
  b = aten.mm.default(x, x) : f32[8, 8][8, 1]cpu {forward}
  n = aten._to_copy.default(b) : bf16[8, 8][8, 1]cpu {forward}
  v = aten.t.default(n) : bf16[8, 8][1, 8]cpu ~n {forward}
  c = aten.sin.default(v) : f32[8, 8][8, 1]cpu {forward}
  g = aten.mul.Tensor(c, v) : f32[8, 8][8, 1]cpu {backward}
  output([g])
)",
                 "aten.mm"),
           "n");
}

TEST_CASE("backward of the loss reads what is still there") {
  CHECK_EQ(Saved(R"(
  x = placeholder : f32[8, 8][8, 1]cpu
  b = aten.mm.default(x, x) : f32[8, 8][8, 1]cpu {forward}
  g = aten.mul.Tensor(b, x) : f32[8, 8][8, 1]cpu {backward module=loss}
  output([g])
)",
                 "aten.mm"),
           "");
}

TEST_CASE("a view that must be saved is what it views") {
  CHECK_EQ(Saved(R"(
  x = placeholder : f32[8, 8][8, 1]cpu
  b = aten.sin.default(x) : f32[8, 8][8, 1]cpu {forward}
  c = aten.mm.default(b, x) : f32[8, 8][8, 1]cpu {forward}
  v = aten.select.int(c, 0, 1) : f32[8][1]cpu ~c {forward}
  g = aten.mul.Tensor(v, x) : f32[8, 8][8, 1]cpu {backward}
  output([g])
)",
                 "aten."),
           "c");
}

TEST_CASE("a tensor of data-dependent size counts as the largest of known size") {
  CHECK_EQ(Saved(R"(
  x = placeholder : f32[8, 8][8, 1]cpu
  b = aten.nonzero.default(x) : i64[u0, 2][2, 1]cpu {forward}
  n = aten.sum.default(b) : i64[][]cpu {forward}
  c = aten.sin.default(n) : f32[8, 8][8, 1]cpu {forward}
  g = aten.mul.Tensor(c, x) : f32[8, 8][8, 1]cpu {backward}
  output([g])
)",
                 "aten.nonzero"),
           "n");
}

TEST_CASE("results of unknown type that backward needs are an error") {
  const auto module = ParseBody(R"(
  x = placeholder : f32[8, 8][8, 1]cpu
  b = aten.nonzero.default(x) {forward}
  g = aten.mul.Tensor(b, x) : f32[8, 8][8, 1]cpu {backward}
  output([g])
)");
  CHECK_EQ(MessageOf(NodesToSave(*module->FindGraph("g"), [](NodeId) { return true; })),
           "no set of results can be saved: graph g: backward needs results of unknown type, take "
           "another policy");
}

}  // namespace
}  // namespace strata
