#include "cli/render/cost_text.h"

#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "diff/diff.h"
#include "tests/support/graphs.h"

namespace strata::cli {
namespace {

using testing::OrDie;
using testing::ParseBody;

/// Two layers; each runs `op`.
std::string Layers(std::string_view op) {
  return fmt::format(R"(
  x = placeholder : f32[8]
  a0 = aten.{0}.default(x) : f32[8] {{module=layers.0.act}}
  b0 = aten.neg.default(a0) : f32[8] {{module=layers.0.out}}
  a1 = aten.{0}.default(b0) : f32[8] {{module=layers.1.act}}
  b1 = aten.neg.default(a1) : f32[8] {{module=layers.1.out}}
  output(b1)
)",
                     op);
}

SideCosts Costs(const Listing& listing, double of_op, double of_neg) {
  StatisticsTable table{.graph = "g", .fingerprint = {}, .steps = 2, .nodes = {}};
  const Graph& graph = listing.root();
  for (NodeId id : graph.nodes()) {
    if (graph.node(id).kind != NodeKind::kCall) continue;
    const double us = graph.op(id) == "aten.neg.default" ? of_neg : of_op;
    NodeStatistics node;
    node.node = graph.node(id).stable_id;
    node.time_ns = static_cast<int64_t>(us * 1e3 * 2);
    table.nodes.push_back(node);
  }
  return CostsOf(listing, table);
}

TEST_CASE("costs: by change, by module and by node") {
  const auto before = ParseBody(Layers("relu")), after = ParseBody(Layers("gelu"));
  const GraphDiff diff = OrDie(Diff(before->graph({0}), after->graph({0})));
  const CostDiff costs = DiffCosts(diff, Costs(diff.before, 10, 3), Costs(diff.after, 25, 2));
  CHECK_EQ(CostText(costs, 2), R"(time   26.0 → 54.0 us a step  (+28.0)
bytes  256 → 256 read and written in a step  (+0)
peak   96 → 96 bytes  (+0)

by change
       +30.0 us     2×  change aten.relu.default to aten.gelu.default  layers.{0..1}.act
        -2.0 us         nodes that did not change

by module
       +30.0 us     2×  layers.{0..1}.act
        -2.0 us     2×  layers.{0..1}.out

by node
       +15.0 us         a0  aten.gelu.default
       +15.0 us         a1  aten.gelu.default
  … 2 more
)");
}

TEST_CASE("costs: bytes inside of bodies do not move") {
  const auto module = [](std::string_view op) {
    return testing::ParseOrDie(fmt::format(R"(graph g
  x = placeholder : f32[8]
  kernel = attr kernel(graph(1))
  fused = higher_order.fused(kernel, x) : f32[8]
  output(fused)
graph kernel body
  y = placeholder : f32[8]
  a = aten.neg.default(y) : f32[8]
  b = {}(a) : f32[8]
  output(b)
)",
                                           op));
  };
  const auto before = module("aten.cos.default"), after = module("aten.tan.default");
  const GraphDiff diff = OrDie(Diff(before->graph({0}), after->graph({0})));
  CHECK_EQ(ShapeCosts(diff).changes.bytes_after, 64);
}

TEST_CASE("costs: deleted and inserted nodes count, and what belongs to no node") {
  const auto before = ParseBody("  x = placeholder\n  a = f(x)\n  b = g(a)\n  output(b)\n"),
             after = ParseBody("  x = placeholder\n  b = g(x)\n  output(b)\n");
  const GraphDiff diff = OrDie(Diff(before->graph({0}), after->graph({0})));
  SideCosts old = Costs(diff.before, 4, 0), now = Costs(diff.after, 4, 0);
  now.rest_us = 1.5;
  const CostDiff costs = DiffCosts(diff, old, now);
  CHECK_EQ(costs.us_before, 8);
  CHECK_EQ(costs.us_after, 5.5);
  REQUIRE_EQ(costs.nodes.size(), 1);
  CHECK_EQ(costs.nodes[0].what, "− a");
  CHECK_EQ(costs.nodes[0].us, -4);
  CHECK_EQ(costs.patterns.back().what, "kernels of no known node");
}

TEST_CASE("costs: bytes and peak follow from shapes, also by the pass that made a node") {
  const auto before = ParseBody(R"(
  x = placeholder : f32[8]
  a = aten.exp.default(x) : f32[8]
  b = aten.neg.default(a) : f32[8]
  output(b)
)");
  const auto after = ParseBody(R"(
  x = placeholder : f32[8]
  c = aten._to_copy.default(x, dtype=torch.float64) : f64[8]
  a = aten.exp.default(c) : f64[8]
  b = aten.neg.default(a) : f64[8]
  output(b)
)");
  const GraphDiff diff = OrDie(Diff(before->graph({0}), after->graph({0})));
  const SideCosts old = Costs(diff.before, 1, 1);
  SideCosts now = Costs(diff.after, 1, 1);
  now.pass.assign(diff.after.ids().size(), "");
  now.pass[diff.after.FindName("c")] = "place-casts";
  const CostDiff costs = DiffCosts(diff, old, now);
  // Alive at once: x, and what a node reads and makes.
  CHECK_EQ(costs.peak_before, 32 + 2 * 32);
  CHECK_EQ(costs.peak_after, 32 + 2 * 64);
  CHECK_EQ(costs.bytes_before, 4 * 32);
  CHECK_EQ(costs.bytes_after, (32 + 64) + 4 * 64);
  for (const auto* list : {&costs.patterns, &costs.modules, &costs.passes, &costs.nodes}) {
    double peak = 0, bytes = 0, us = 0;
    for (const CostChange& change : *list) {
      peak += change.peak;
      bytes += change.bytes;
      us += change.us;
    }
    CHECK_EQ(peak, costs.peak_after - costs.peak_before);
    CHECK_EQ(bytes, costs.bytes_after - costs.bytes_before);
    CHECK_EQ(us, 1);
  }
  REQUIRE_EQ(costs.passes.size(), 2);
  CHECK_EQ(costs.passes[0].what, "place-casts");
  CHECK_EQ(costs.passes[0].us, 1);
}

}  // namespace
}  // namespace strata::cli
