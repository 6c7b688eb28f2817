#include "runtime/plan/plan.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "passes/compile/fast_products.h"
#include "tests/support/graphs.h"
#include "tests/support/random_graph.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;
using testing::ParseBody;
using testing::RandomGraph;

Plan LowerBody(std::string_view body, const PlanOptions& options = {}) {
  return OrDie(Lower(*ParseBody(body)->FindGraph("g"), options));
}

std::string LowerError(std::string_view body) {
  return MessageOf(Lower(*ParseBody(body)->FindGraph("g")));
}

/// Names of the slots that each step kills, by the name of the step's operator.
std::vector<std::string> Kills(const Plan& plan) {
  std::vector<std::string> lines;
  for (const PlanStep& step : plan.steps) {
    std::string line = step.op + ":";
    for (const SlotId slot : step.kills)
      line += " " + plan.slots[slot].name;
    lines.push_back(line);
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST_CASE("marked products of known, large sizes may take another library, and the plan says so") {
  const auto module = ParseBody(R"(
  x = placeholder : f32[128, 128][128, 1]cpu
  y = placeholder : f32[4, 128][128, 1]cpu
  a = aten.mm.default(x, x) : f32[128, 128][128, 1]cpu
  b = aten.mm.default(y, a) : f32[4, 128][128, 1]cpu
  output([b])
)");
  Graph& graph = *module->FindGraph("g");
  const Plan exact = OrDie(Lower(graph));
  REQUIRE(MarkFastProducts(graph));
  const Plan fast = OrDie(Lower(graph));
  CHECK_EQ(Kills(exact), Lines{"aten.mm.default:", "aten.mm.default: a"});
  CHECK_EQ(Kills(fast), Lines{"strata.fast_mm.default:", "aten.mm.default: a"});
  CHECK(exact.fingerprint() != fast.fingerprint());
}

TEST_CASE("a value dies at its last reader; inputs and outputs do not") {
  const Plan plan = LowerBody(R"(
  x = placeholder : f32[2]
  y = placeholder : f32[2]
  a = aten.add.Tensor(x, y)
  b = aten.mul.Tensor(a, x)
  c = aten.mul.Tensor(a, b)
  d = aten.mul.Tensor(c, c)
  output([d, x])
)");
  CHECK_EQ(Kills(plan), Lines{"aten.add.Tensor:", "aten.mul.Tensor:", "aten.mul.Tensor: a b",
                              "aten.mul.Tensor: c"});
  REQUIRE_EQ(plan.outputs.size(), 2);
  CHECK_EQ(plan.slots[plan.outputs[0]].name, "d");
  CHECK_EQ(plan.outputs[1], plan.inputs[0].slot);
}

TEST_CASE("results that nobody reads get no slot") {
  const Plan plan = LowerBody(R"(
  x = placeholder : f32[4]
  add_ = aten.add_.Tensor(x, 1)
  (first, _, third) = aten.split.Tensor(x, 2) as split
  output([first, third])
)");
  CHECK_EQ(plan.steps[StepId{0}].results, std::vector<SlotId>{SlotId()});
  CHECK_FALSE(plan.steps[StepId{1}].results[1].valid());
  CHECK(plan.steps[StepId{1}].results[2].valid());
  CHECK(plan.steps[StepId{1}].returns_tuple);
}

TEST_CASE("a list argument keeps its values alive until the step, and None stays in its place") {
  const Plan plan = LowerBody(R"(
  x = placeholder : f32[4]
  a = aten.neg.default(x)
  b = aten.neg.default(x)
  c = aten.cat.default([a, b, a])
  d = aten.index.Tensor(c, [None, a])
  output([d])
)");
  CHECK_EQ(Kills(plan), Lines{"aten.neg.default:", "aten.neg.default:", "aten.cat.default: b",
                              "aten.index.Tensor: a c"});
  const PlanArg& indices = plan.steps[StepId{3}].args[1];
  REQUIRE_EQ(indices.elements.size(), 2);
  CHECK_EQ(indices.elements[0].kind, ArgKind::kNone);
}

TEST_CASE("constants are bound once and never killed") {
  const Plan plan = LowerBody(R"(
  x = placeholder : f32[4]
  _tensor_constant0 = attr _tensor_constant0
  a = aten.mul.Tensor(x, _tensor_constant0)
  output([a])
)");
  REQUIRE_EQ(plan.constants.size(), 1);
  CHECK_EQ(plan.constants[0].path, "_tensor_constant0");
  CHECK(plan.steps[StepId{0}].kills.empty());
}

TEST_CASE("keep_values kills nothing, keeps unread results, and is another plan") {
  constexpr std::string_view kBody = R"(
  x = placeholder : f32[4]
  a = aten.neg.default(x)
  b = aten.neg.default(a)
  c = aten.neg.default(a)
  output([c])
)";
  const Plan plan = LowerBody(kBody);
  const Plan keeping = LowerBody(kBody, {.keep_values = true});
  CHECK_EQ(Kills(keeping), Lines(3, "aten.neg.default:"));
  CHECK(keeping.steps[StepId{1}].results[0].valid());
  CHECK_EQ(keeping.graph_fingerprint, plan.graph_fingerprint);
  CHECK_NE(keeping.fingerprint(), plan.fingerprint());
  CHECK_EQ(LowerBody(kBody).fingerprint(), plan.fingerprint());
}

TEST_CASE("the fingerprint is the graph's") {
  const auto module =
      ParseBody("  x = placeholder : f32[4]\n  a = aten.neg.default(x)\n  output([a])\n");
  const Graph& graph = *module->FindGraph("g");
  CHECK_EQ(OrDie(Lower(graph)).graph_fingerprint, FingerprintOf(graph));
}

/// FX's `delete_unused_values`: walks backwards, the first reader met is the last; a node without
/// readers goes at once. Written over names, after torch/fx/graph.py.
std::map<std::string, std::set<std::string>> LastUsesAsFx(const Graph& graph) {
  std::map<std::string, std::set<std::string>> kills;
  std::set<std::string> seen;
  const std::vector<NodeId> order = graph.nodes().Snapshot();
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    graph.ForEachOperand(*node, [&](ValueId operand) {
      const std::string name(graph.value_name(operand));
      if (seen.insert(name).second) kills[std::string(graph.name(*node))].insert(name);
    });
  }
  return kills;
}

TEST_CASE("kill lists are FX's last uses, without inputs and outputs") {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    const auto module = RandomGraph(seed);
    const Graph& graph = *module->FindGraph("g");
    const Plan plan = OrDie(Lower(graph));

    std::set<std::string> inputs;
    for (const NodeId placeholder : graph.placeholders())
      inputs.insert(std::string(graph.name(placeholder)));
    std::map<std::string, std::set<std::string>> expected = LastUsesAsFx(graph);
    for (const PlanStep& step : plan.steps) {
      std::set<std::string> killed;
      for (const SlotId slot : step.kills)
        killed.insert(plan.slots[slot].name);
      std::set<std::string> wanted = expected[std::string(graph.name(step.node))];
      std::erase_if(wanted, [&](const std::string& name) { return inputs.contains(name); });
      CHECK_EQ(killed, wanted);
    }
  }
}

TEST_CASE("an input may have a size that another graph read from data, and any strides then") {
  const auto module = testing::ParseOrDie(R"(symbol u0 unbacked
graph g
  x = placeholder : f32[u0, 4][4, 1]cpu
  y = placeholder : f32[4][1]cpu
  sum = aten.add.Tensor(x, y) : f32[u0, 4][4, 1]cpu
  output([sum])
)");
  const Graph& graph = *module->FindGraph("g");
  const Plan plan = OrDie(Lower(graph, PlanOptions::Fastest()));
  CHECK_EQ(plan.inputs[0].sizes, std::vector<int64_t>{kAnySize, 4});
  CHECK_FALSE(plan.inputs[0].strides);
  CHECK_EQ(plan.inputs[1].sizes, std::vector<int64_t>{4});
  CHECK(plan.inputs[1].strides);
  CHECK_FALSE(plan.slots[plan.outputs[0]].layout);
  const Plan known = OrDie(Lower(graph, PlanOptions::Fastest(), {{"u0", 7}}));
  CHECK_EQ(known.inputs[0].sizes, std::vector<int64_t>{7, 4});
  CHECK(known.inputs[0].strides);
}

TEST_CASE("what cannot be executed is refused with the node's name") {
  CHECK_EQ(LowerError(R"(
  x = placeholder
  output([x])
)"),
           "graph g cannot be executed: x: an input must be a tensor of known type");
  CHECK_EQ(LowerError(R"(
  x = placeholder : f32[s0]
  output([x])
)"),
           "graph g cannot be executed: x: sizes must be numbers, and nothing tells what s0 is");
  CHECK_EQ(LowerError(R"(
  x = placeholder : f32[4]
  output([1])
)"),
           "graph g cannot be executed: output: an output must be a tensor or None");
}

TEST_CASE("a step is described with its operands' types") {
  const Plan plan = LowerBody(R"(
  x = placeholder : f32[2, 3][3, 1]cpu
  sum_1 = aten.sum.dim_IntList(x, [0, 1], True, dtype=torch.float64)
  output([sum_1])
)");
  CHECK_EQ(Describe(plan, plan.steps[StepId{0}]),
           "sum_1 = aten.sum.dim_IntList(x: f32[2, 3][3, 1]cpu, [0, 1], True, "
           "dtype=torch.float64)");
}

}  // namespace
}  // namespace strata
