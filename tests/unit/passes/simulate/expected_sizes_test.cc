#include "passes/simulate/expected_sizes.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "passes/simulate/collective_uses.h"
#include "passes/simulate/node_cost.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;

/// 12 rows go to the experts of two ranks, through a product, and back.
constexpr std::string_view kExchange = R"(
  x = placeholder : f32[12, 4][4, 1]cpu
  w = placeholder : f32[3, 4, 5][20, 5, 1]cpu
  o = placeholder : i32[3][1]cpu
  a = placeholder : Sym(u0)
  b = placeholder : Sym(u1)
  d = _c10d_functional.all_to_all_single.default(x, [a, b], [6, 6], 'ep') : f32[u2, 4][4, 1]cpu
  dw = _c10d_functional.wait_tensor.default(d) : f32[u2, 4][4, 1]cpu ~d
  m = aten._grouped_mm.default(dw, w, o) : f32[u2, 5][5, 1]cpu
  c = _c10d_functional.all_to_all_single.default(m, [6, 6], [a, b], 'ep') : f32[12, 5][5, 1]cpu
  cw = _c10d_functional.wait_tensor.default(c) : f32[12, 5][5, 1]cpu ~c
  output([cw])
)";

TEST_CASE("expected sizes: an exchange brings as many rows as it takes") {
  const auto module = ParseBody(kExchange);
  const Graph& graph = *module->FindGraph("g");
  const ExpectedSizes expected(graph);
  CHECK_EQ(expected.BytesOf(graph.result(NodeNamed(graph, "dw"))), 12 * 4 * 4);
  CHECK_EQ(expected.BytesOf(graph.result(NodeNamed(graph, "m"))), 12 * 5 * 4);
  CHECK_EQ(expected.CollectiveBytes(NodeNamed(graph, "c")), 12 * 5 * 4);
  CHECK_EQ(expected.Of(module->dims().Sym("u0")), std::nullopt);
  CHECK_EQ(expected.Of(module->dims().Mul(module->dims().Sym("u2"), module->dims().Const(2))), 24);
}

TEST_CASE("expected sizes: the parts that make up what an exchange brings are equally large") {
  std::string text(kExchange);
  for (size_t at = 0; (at = text.find("f32[u2,", at)) != std::string::npos; ++at)
    text.replace(at, 7, "f32[u0 + u1 + 2,");
  const auto module = ParseBody(text);
  const Graph& graph = *module->FindGraph("g");
  const ExpectedSizes expected(graph);
  CHECK_EQ(expected.Of(module->dims().Sym("u0")), 5);
  CHECK_EQ(expected.BytesOf(graph.result(NodeNamed(graph, "dw"))), 12 * 4 * 4);
}

TEST_CASE("expected sizes: products of experts and exchanges cost what their rows cost") {
  const auto module = ParseBody(kExchange);
  const Graph& graph = *module->FindGraph("g");
  Topology topology = OrDie(Topology::Load("cpu"));
  topology.device.launch_us = 0;
  topology.device.bytes_per_us = 1e9;
  const NodeCost cost = OrDie(NodeCost::Make(topology, graph));
  const double rate = topology.device.flops_per_us.at(DType::kF32) * topology.device.efficiency;
  CHECK_EQ(cost.ComputeUs(graph, NodeNamed(graph, "m")), doctest::Approx(2 * 12 * 4 * 5 / rate));
  int64_t bytes = 0;
  for (const CollectiveUse& use : CollectiveUses(graph))
    bytes += use.bytes;
  CHECK_EQ(bytes, 12 * 4 * 4 + 12 * 5 * 4);
}

TEST_CASE("expected sizes: parts of a split are equally large") {
  const auto module = ParseBody(R"(
  x = placeholder : f32[12, 4][4, 1]cpu
  a = placeholder : Sym(u0)
  b = placeholder : Sym(u1)
  (p, q, r) = aten.split_with_sizes.default(x, [a, 4, b]) as s : (f32[u0, 4][4, 1]cpu, f32[4, 4][4, 1]cpu, f32[u1, 4][4, 1]cpu)
  output([p, q, r])
)");
  const ExpectedSizes expected(*module->FindGraph("g"));
  CHECK_EQ(expected.Of(module->dims().Sym("u0")), 4);
  CHECK_EQ(expected.Of(module->dims().Sym("u1")), 4);
}

TEST_CASE(
    "expected sizes: a hint counts before an expectation, and what nothing tells is unknown") {
  const auto module = ParseBody(R"(
  x = placeholder : f32[12, 4][4, 1]cpu
  y = placeholder : f32[u7, 4][4, 1]cpu
  a = placeholder : Sym(u0)
  d = _c10d_functional.all_to_all_single.default(x, [a, a], [6, 6], 'ep') : f32[u2, 4][4, 1]cpu
  output([d, y])
)");
  Symbol rows = *module->dims().FindSymbol(module->strings().Find("u2"));
  rows.hint = 30;
  module->dims().SetSymbol(rows);
  const Graph& graph = *module->FindGraph("g");
  const ExpectedSizes expected(graph);
  CHECK_EQ(expected.Of(module->dims().Sym("u2")), 30);
  CHECK_EQ(expected.BytesOf(graph.result(NodeNamed(graph, "y"))), 0);
}

}  // namespace
}  // namespace strata
