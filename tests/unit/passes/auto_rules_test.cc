#include <set>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "passes/core/registry.h"
#include "passes/passes.h"
#include "passes/placement/auto/auto_plan.h"
#include "passes/placement/auto/call_strategies.h"
#include "passes/placement/auto/explain.h"
#include "tests/support/graphs.h"
#include "tests/unit/passes/cost_models.h"

// What ranks may hold of operands and results, by the ids of the reference.
namespace strata {
namespace {

using testing::H100;
using testing::ModelOn;
using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;
using testing::ValueNamed;
using Texts = std::set<std::string>;

/// The ways to run the call `name`: `operands -> results`.
Texts WaysOf(std::string_view mesh_text, std::string_view body, std::string_view name) {
  auto module = ParseBody(body);
  Graph& graph = *module->FindGraph("g");
  const CostModel model = ModelOn(mesh_text);
  const NodeId node = NodeNamed(graph, name);
  Texts found;
  for (const CallStrategy& strategy :
       CallStrategies(graph, node, OrDie(ShardingRuleOf(graph, node)), model, {})) {
    std::string text;
    for (const Placements& placements : strategy.operands)
      text += PlacementsText(*module, placements) + " ";
    text += "->";
    for (const Placements& placements : strategy.results)
      text += " " + PlacementsText(*module, placements);
    found.insert(text);
  }
  return found;
}

/// The plan that is found for a step on H100 nodes.
AutoPlacement PlacedOn(std::string_view mesh, Graph& graph) {
  const CostModel model = ModelOn(mesh);
  return OrDie(PlaceAutomatically(graph, PlacementPlan(model.mesh()), model, {}));
}

TEST_CASE("T6: a result that is not there is held by no rank") {
  const auto ways = [](std::string_view wanted, std::string_view types) {
    return WaysOf("tp=2",
                  fmt::format(R"(
  g = placeholder : f32[8, 4, 6][24, 6, 1]cpu
  x = placeholder : f32[8, 4, 6][24, 6, 1]cpu
  m = placeholder : f32[8, 4, 1][4, 1, 1]cpu
  r = placeholder : f32[8, 4, 1][4, 1, 1]cpu
  w = placeholder : f32[6][1]cpu
  b = placeholder : f32[6][1]cpu
  (gx, gw, gb) = aten.native_layer_norm_backward.default(g, x, [6], m, r, w, b, {}) as n : (f32[8, 4, 6][24, 6, 1]cpu, {})
  output([gx])
)",
                              wanted, types),
                  "n");
  };
  CHECK_EQ(ways("[True, True, True]", "f32[6][1]cpu, f32[6][1]cpu"),
           Texts{"R R R R R R -> R R R", "S(0) S(0) S(0) S(0) R R -> S(0) P(sum) P(sum)",
                 "S(1) S(1) S(1) S(1) R R -> S(1) P(sum) P(sum)"});
  CHECK_EQ(ways("[True, False, False]", "?, ?"),
           Texts{"R R R R R R -> R R R", "S(0) S(0) S(0) S(0) R R -> S(0) R R",
                 "S(1) S(1) S(1) S(1) R R -> S(1) R R"});
}

TEST_CASE("T12: rows are put at indices; what lies behind them may be cut") {
  constexpr std::string_view kPut = R"(
  x = placeholder : f32[8, 4, 6][24, 6, 1]cpu {+fqn='x' +input='batch'}
  i = placeholder : i64[3][1]cpu {+fqn='i' +input='batch'}
  j = placeholder : i64[3][1]cpu {+fqn='j' +input='batch'}
  v = placeholder : f32[3, 6][6, 1]cpu {+fqn='v' +input='batch'}
  s = aten.index_put.default(x, [i, j], v) : f32[8, 4, 6][24, 6, 1]cpu
  output([s])
)";
  CHECK_EQ(WaysOf("tp=2", kPut, "s"), Texts{"R R R R -> R", "S(2) R R S(1) -> S(2)"});
  auto module = ParseBody(kPut);
  CHECK_EQ(PlacedOn("tp=2", *module->FindGraph("g")).solved.status, SolverResult::Status::kOptimal);
}

TEST_CASE("T13: rows that are normalised between two turns keep their strides") {
  auto module = ParseBody(R"(
  x = placeholder : f32[8, 6, 4][24, 4, 1]cpu {+fqn='x' +input='batch'}
  p = aten.permute.default(x, [0, 2, 1]) : f32[8, 4, 6][24, 1, 4]cpu ~x
  (y, m, r) = aten.native_layer_norm.default(p, [6], None, None, 1e-05) as n : (f32[8, 4, 6][24, 6, 1]cpu, f32[8, 4, 1][4, 1, 1]cpu, f32[8, 4, 1][4, 1, 1]cpu)
  q = aten.permute.default(y, [0, 2, 1]) : f32[8, 6, 4][24, 1, 6]cpu ~y
  output([q])
)");
  OrDie(OrDie(ParsePipeline("place{mesh=\"fsdp=2\"},lower", AllPasses()))[0]->Run(*module));
  const Graph& graph = *module->FindGraph("g");
  CHECK_EQ(module->types().ToString(graph.value(ValueNamed(graph, "q")).type),
           "DTensor(f32[8, 6, 4][24, 1, 6]cpu, S(0))");
}

TEST_CASE("T14: a dimension of size 1 that is repeated stays whole") {
  CHECK_EQ(WaysOf("tp=2", R"(
  x = placeholder : f32[8, 6][6, 1]cpu
  c = placeholder : f32[1, 6][6, 1]cpu
  s = aten.add.Tensor(x, c) : f32[8, 6][6, 1]cpu
  output([s])
)",
                  "s"),
           Texts{"R R -> R", "S(0) R -> S(0)", "S(1) S(1) -> S(1)"});
}

TEST_CASE("T16: dimensions are counted from the end, too") {
  CHECK_EQ(WaysOf("tp=2", R"(
  x = placeholder : f32[8, 6][6, 1]cpu
  s = aten.slice.Tensor(x, -1, 0, 4) : f32[8, 4][6, 1]cpu ~x
  output([s])
)",
                  "s"),
           Texts{"R -> R", "S(0) -> S(0)"});
  CHECK_EQ(WaysOf("tp=2", R"(
  x = placeholder : f32[8, 6][6, 1]cpu
  s = aten.select.int(x, -2, 1) : f32[6][1]cpu ~x
  output([s])
)",
                  "s"),
           Texts{"R -> R", "S(1) -> S(0)"});
}

/// Attention of 8 heads; the mask has these sizes.
Texts MaskedWays(std::string_view mesh, std::string_view mask) {
  return WaysOf(mesh,
                fmt::format(R"(
  q = placeholder : f32[4, 8, 16, 8][1024, 128, 8, 1]cpu
  k = placeholder : f32[4, 8, 16, 8][1024, 128, 8, 1]cpu
  v = placeholder : f32[4, 8, 16, 8][1024, 128, 8, 1]cpu
  m = placeholder : f32{}cpu
  (o, l) = aten._scaled_dot_product_flash_attention_for_cpu.default(q, k, v, 0.0, False, attn_mask=m) as a : (f32[4, 8, 16, 8][1024, 128, 8, 1]cpu, f32[4, 8, 16][128, 16, 1]cpu)
  output([o])
)",
                            mask),
                "a");
}

TEST_CASE("T20, T21, T22: attention is cut by batch, heads and queries, with its mask") {
  CHECK_EQ(MaskedWays("tp=2", "[1, 1, 16, 16][256, 256, 16, 1]"),
           Texts{"R R R R -> R R", "S(0) S(0) S(0) R -> S(0) S(0)", "S(1) S(1) S(1) R -> S(1) S(1)",
                 "S(2) R R S(2) -> S(2) S(2)"});
  CHECK_EQ(MaskedWays("tp=2", "[4, 8, 16, 16][2048, 256, 16, 1]"),
           Texts{"R R R R -> R R", "S(0) S(0) S(0) S(0) -> S(0) S(0)",
                 "S(1) S(1) S(1) S(1) -> S(1) S(1)", "S(2) R R S(2) -> S(2) S(2)"});
  CHECK(MaskedWays("fsdp=2,tp=2", "[1, 1, 16, 16][256, 256, 16, 1]")
            .contains("S(0)S(1) S(0)S(1) S(0)S(1) RR -> S(0)S(1) S(0)S(1)"));
}

TEST_CASE("T33: means over several dimensions are partial means in any order") {
  Texts ways[2];
  for (const bool turned : {false, true})
    ways[turned ? 1 : 0] = WaysOf("fsdp=2,tp=2",
                                  fmt::format(R"(
  x = placeholder : f32[8, 8][8, 1]cpu
  m = aten.mean.dim(x, {}) : f32[][]cpu
  output([m])
)",
                                              turned ? "[1, 0]" : "[0, 1]"),
                                  "m");
  CHECK_EQ(ways[0], ways[1]);
  CHECK(ways[0].contains("S(0)S(1) -> P(avg)P(avg)"));
  CHECK(ways[0].contains("S(1)S(0) -> P(avg)P(avg)"));
}

TEST_CASE("T83: what a graph makes itself is placed, too") {
  auto module = ParseBody(R"(
  x = placeholder : bf16[4096, 1024][1024, 1]cpu {+fqn='x' +input='batch'}
  z = aten.full.default([4096, 1024], 1.5) : bf16[4096, 1024][1024, 1]cpu {forward}
  y = aten.mul.Tensor(x, z) : bf16[4096, 1024][1024, 1]cpu {forward}
  output([y])
)");
  Graph& graph = *module->FindGraph("g");
  CHECK_EQ(PlacedOn("fsdp=8", graph).solved.status, SolverResult::Status::kOptimal);
  OrDie(OrDie(ParsePipeline("place{mesh=\"fsdp=8\"}", AllPasses()))[0]->Run(*module));
  CHECK_EQ(module->types().ToString(graph.value(ValueNamed(graph, "z")).type),
           "DTensor(bf16[4096, 1024][1024, 1]cpu, S(0))");
}

/// A product with a parameter that is stored in `stored` and computes in `computes`.
std::string CastText(std::string_view stored, std::string_view computes) {
  const auto cast = [&](std::string_view from, std::string_view to, std::string_view value,
                        std::string_view name, std::string_view phase) {
    if (from == to)
      return fmt::format("  {} = aten.alias.default({}) : {}[1024, 1024][1024, 1]cpu ~{} {{{}}}\n",
                         name, value, to, value, phase);
    return fmt::format(
        "  {} = aten._to_copy.default({}, dtype={}) : {}[1024, 1024][1024, 1]cpu {{{}}}\n", name,
        value, to == "f32" ? "torch.float32" : "torch.bfloat16", to, phase);
  };
  return fmt::format(R"(
  w = placeholder : {0}[1024, 1024][1024, 1]cpu {{+fqn='w' +input='parameter'}}
  x = placeholder : {1}[262144, 1024][1024, 1]cpu {{+fqn='x' +input='batch'}}
{2}  t = aten.t.default(c) : {1}[1024, 1024][1, 1024]cpu ~c {{forward}}
  y = aten.mm.default(x, t) : {1}[262144, 1024][1024, 1]cpu {{forward}}
  loss = aten.sum.default(y) : {1}[][]cpu {{loss}}
  g = aten.ones_like.default(y) : {1}[262144, 1024][1024, 1]cpu {{backward}}
  gt = aten.t.default(g) : {1}[1024, 262144][1, 1024]cpu ~g {{backward}}
  gw = aten.mm.default(gt, x) : {1}[1024, 1024][1024, 1]cpu {{backward}}
{3}  output([loss, gc])
)",
                     stored, computes, cast(stored, computes, "w", "c", "forward"),
                     cast(computes, stored, "gw", "gc", "backward"));
}

/// The type of a value once the step is placed with its parameter in parts.
std::string PlacedType(std::string_view stored, std::string_view computes, std::string_view name) {
  auto module = ParseBody(CastText(stored, computes));
  OrDie(OrDie(ParsePipeline("place{mesh=\"fsdp=8\"}", AllPasses()))[0]->Run(*module));
  const Graph& graph = *module->FindGraph("g");
  return module->types().ToString(graph.value(ValueNamed(graph, name)).type);
}

/// The search's placements of a step whose parameters are held in parts.
AutoPlacement InParts(Graph& graph) {
  const CostModel model = ModelOn("fsdp=8");
  const PlacementPlan kept = OrDie(PlacementPlan::Parse(
      "parameter = [{ name = \"*\", fsdp = \"S(0)\" }]\n", "kept", model.mesh(), {}));
  return OrDie(PlaceAutomatically(graph, kept, model, {}));
}

std::string StrategyOf(const Graph& graph, const AutoPlacement& found, std::string_view name) {
  const auto variable = static_cast<size_t>(found.space.variable_of.at(NodeNamed(graph, name)));
  const auto choice = static_cast<size_t>(found.solved.choices[variable]);
  return StrategyText(graph.module(), found.space.variables[variable].strategies[choice]);
}

/// How the search runs the call `name` of CastText.
std::string Searched(std::string_view stored, std::string_view computes, std::string_view name) {
  auto module = ParseBody(CastText(stored, computes));
  Graph& graph = *module->FindGraph("g");
  return StrategyOf(graph, InParts(graph), name);
}

TEST_CASE("T90, T93: parameters are cast before they are gathered, gradients before the sum") {
  CHECK_EQ(PlacedType("f32", "bf16", "c"), "DTensor(bf16[1024, 1024][1024, 1]cpu, S(0))");
  CHECK_EQ(PlacedType("f32", "bf16", "gw"), "DTensor(bf16[1024, 1024][1024, 1]cpu, P(sum))");
  CHECK_EQ(PlacedType("f32", "bf16", "gc"), "DTensor(f32[1024, 1024][1024, 1]cpu, P(sum))");
  CHECK_EQ(Searched("f32", "bf16", "c"), "S(0) -> S(0)");
  CHECK_EQ(Searched("f32", "bf16", "gc"), "P(sum) -> P(sum)");
}

TEST_CASE("T91: the same holds for layers that are decided together") {
  constexpr int kLayers = 4;
  std::string inputs, forward, backward, outputs;
  for (int i = 0; i < kLayers; ++i) {
    const std::string of = fmt::format("{{forward module=layers.{}}}", i);
    inputs += fmt::format(
        "  w_{0} = placeholder : f32[1024, 1024][1024, 1]cpu {{+fqn='layers.{0}.w' "
        "+input='parameter'}}\n",
        i);
    forward += fmt::format(
        "  c_{0} = aten._to_copy.default(w_{0}, dtype=torch.bfloat16) : bf16[1024, 1024][1024, "
        "1]cpu {2}\n"
        "  t_{0} = aten.t.default(c_{0}) : bf16[1024, 1024][1, 1024]cpu ~c_{0} {2}\n"
        "  y_{1} = aten.mm.default(y_{0}, t_{0}) : bf16[262144, 1024][1024, 1]cpu {2}\n",
        i, i + 1, of);
    outputs += fmt::format(", gc_{}", i);
  }
  for (int i = kLayers; i-- > 0;) {
    const std::string of = fmt::format("{{backward module=layers.{}}}", i);
    backward += fmt::format(
        "  s_{0} = aten.t.default(g_{1}) : bf16[1024, 262144][1, 1024]cpu ~g_{1} {2}\n"
        "  gw_{0} = aten.mm.default(s_{0}, y_{0}) : bf16[1024, 1024][1024, 1]cpu {2}\n"
        "  gc_{0} = aten._to_copy.default(gw_{0}, dtype=torch.float32) : f32[1024, 1024][1024, "
        "1]cpu {2}\n"
        "  g_{0} = aten.relu.default(g_{1}) : bf16[262144, 1024][1024, 1]cpu {2}\n",
        i, i + 1, of);
  }
  auto module = ParseBody(fmt::format(
      "\n{}  y_0 = placeholder : bf16[262144, 1024][1024, 1]cpu {{+fqn='x' +input='batch'}}\n{}"
      "  loss = aten.sum.default(y_{}) : bf16[][]cpu {{loss}}\n"
      "  g_{} = aten.ones_like.default(y_{}) : bf16[262144, 1024][1024, 1]cpu {{backward}}\n{}"
      "  output([loss{}])\n",
      inputs, forward, kLayers, kLayers, kLayers, backward, outputs));
  Graph& graph = *module->FindGraph("g");
  const AutoPlacement found = InParts(graph);
  CHECK_EQ(found.space.variable_of.at(NodeNamed(graph, "gc_1")),
           found.space.variable_of.at(NodeNamed(graph, "gc_2")));
  for (int i = 0; i < kLayers; ++i) {
    CHECK_EQ(StrategyOf(graph, found, fmt::format("c_{}", i)), "S(0) -> S(0)");
    CHECK_EQ(StrategyOf(graph, found, fmt::format("gc_{}", i)), "P(sum) -> P(sum)");
  }
}

TEST_CASE("T92, T94: where the cast is the other way, fewer bytes decide") {
  // A parameter of fewer bytes is gathered before its cast, a gradient is reduced after it.
  CHECK_EQ(Searched("bf16", "f32", "c"), "R -> R");
  CHECK_EQ(Searched("bf16", "f32", "gc"), "P(sum) -> P(sum)");
  CHECK_EQ(Searched("bf16", "bf16", "gw"), "S(1), S(0) -> P(sum)");
}

}  // namespace
}  // namespace strata
