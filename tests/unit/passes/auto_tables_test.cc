#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/verify.h"
#include "passes/core/registry.h"
#include "passes/passes.h"
#include "passes/placement/auto/auto_plan.h"
#include "passes/placement/auto/explain.h"
#include "passes/placement/auto/plan_text.h"
#include "passes/placement/place.h"
#include "tests/support/graphs.h"
#include "tests/unit/passes/cost_models.h"

// What is chosen for layers on two axes, by the ids of the reference.
namespace strata {
namespace {

using testing::ModelOn;
using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;
using testing::ValueNamed;

/// The strategy that was found for a call, or the placement of an input.
std::string FoundOf(const Graph& graph, const AutoPlacement& found, std::string_view name) {
  const auto variable = static_cast<size_t>(found.space.variable_of.at(NodeNamed(graph, name)));
  const auto choice = static_cast<size_t>(found.solved.choices[variable]);
  const CallStrategy& strategy = found.space.variables[variable].strategies[choice];
  if (strategy.operands.empty()) return PlacementsText(graph.module(), strategy.results[0]);
  return StrategyText(graph.module(), strategy);
}

/// Two products with their gradients on `rows` tokens: x [rows, dim] · w1 [hidden, dim]ᵀ, then
/// w2 [dim, hidden]ᵀ.
std::string TwoProducts(int64_t rows, int64_t dim, int64_t hidden) {
  const auto at = [](std::string_view phase) {
    return fmt::format("{{{} module=layers.0.ffn}}", phase);
  };
  const std::string f = at("forward"), b = at("backward");
  const auto tensor = [](int64_t n, int64_t m) {
    return fmt::format("bf16[{}, {}][{}, 1]cpu", n, m, m);
  };
  const auto turned = [](int64_t n, int64_t m) {
    return fmt::format("bf16[{}, {}][1, {}]cpu", n, m, n);
  };
  std::string text = "\n";
  const auto add = [&](std::string_view name, std::string_view call, const std::string& type,
                       const std::string& of) {
    text += fmt::format("  {} = {} : {} {}\n", name, call, type, of);
  };
  add("w1", "placeholder", tensor(hidden, dim), "{+fqn='layers.0.ffn.w1' +input='parameter'}");
  add("w2", "placeholder", tensor(dim, hidden), "{+fqn='layers.0.ffn.w2' +input='parameter'}");
  add("x", "placeholder", tensor(rows, dim), "{+fqn='x' +input='batch'}");
  add("t1", "aten.t.default(w1)", turned(dim, hidden) + " ~w1", f);
  add("m1", "aten.mm.default(x, t1)", tensor(rows, hidden), f);
  add("a", "aten.relu.default(m1)", tensor(rows, hidden), f);
  add("t2", "aten.t.default(w2)", turned(hidden, dim) + " ~w2", f);
  add("m2", "aten.mm.default(a, t2)", tensor(rows, dim), f);
  add("loss", "aten.sum.default(m2)", "bf16[][]cpu", "{loss}");
  add("g", "aten.ones_like.default(m2)", tensor(rows, dim), b);
  add("gt", "aten.t.default(g)", turned(dim, rows) + " ~g", b);
  add("gw2", "aten.mm.default(gt, a)", tensor(dim, hidden), b);
  add("ga", "aten.mm.default(g, w2)", tensor(rows, hidden), b);
  add("gm", "aten.threshold_backward.default(ga, m1, 0)", tensor(rows, hidden), b);
  add("gmt", "aten.t.default(gm)", turned(hidden, rows) + " ~gm", b);
  add("gw1", "aten.mm.default(gmt, x)", tensor(hidden, dim), b);
  return text + "  output([loss, gw1, gw2])\n";
}

TEST_CASE("T82: products run by columns, then by rows; parameters are in parts on both axes") {
  const CostModel model = ModelOn("fsdp=32,tp=8");
  auto module = ParseBody(TwoProducts(32 * 2048, 8192, 28672));
  Graph& graph = *module->FindGraph("g");
  const PlacementPlan none(model.mesh());
  const AutoPlacement free = OrDie(PlaceAutomatically(graph, none, model, {}));
  AutoOptions options;
  options.memory_bytes = 0.2 * free.memory_bytes;
  const AutoPlacement found = OrDie(PlaceAutomatically(graph, none, model, options));
  CHECK_EQ(found.solved.status, SolverResult::Status::kOptimal);
  CHECK_EQ(FoundOf(graph, found, "m1"), "S(0)R, RS(1) -> S(0)S(1)");
  CHECK_EQ(FoundOf(graph, found, "m2"), "S(0)S(1), RS(0) -> S(0)P(sum)");
  CHECK_EQ(FoundOf(graph, found, "gw2"), "S(1)R, S(0)S(1) -> P(sum)S(1)");
  CHECK_EQ(FoundOf(graph, found, "gw1"), "S(1)S(0), S(0)R -> P(sum)S(0)");
  // The first is cut by both axes in one dimension, such that one collective gathers it on fsdp.
  CHECK_EQ(FoundOf(graph, found, "w1"), "_S(0, 8)S(0)");
  CHECK_EQ(FoundOf(graph, found, "w2"), "S(0)S(1)");
}

/// A product of which `tp` has the columns, with the parameter in parts on `fsdp`, too. `ends`:
/// the readers of the gradient `gw`, and the output. `more`: inputs.
std::string Columns(std::string_view more, std::string_view ends) {
  return fmt::format(R"(
  w = placeholder : bf16[1024, 1024][1024, 1]cpu {{+fqn='w' +input='parameter'}}
{}  x = placeholder : bf16[4096, 1024][1024, 1]cpu {{+fqn='x' +input='batch'}}
  t = aten.t.default(w) : bf16[1024, 1024][1, 1024]cpu ~w {{forward module=m}}
  y = aten.mm.default(x, t) : bf16[4096, 1024][1024, 1]cpu {{forward module=m}}
  loss = aten.sum.default(y) : bf16[][]cpu {{loss}}
  g = aten.ones_like.default(y) : bf16[4096, 1024][1024, 1]cpu {{backward module=m}}
  gt = aten.t.default(g) : bf16[1024, 4096][1, 1024]cpu ~g {{backward module=m}}
  gw = aten.mm.default(gt, x) : bf16[1024, 1024][1024, 1]cpu {{backward module=m}}
{})",
                     more, ends);
}

constexpr std::string_view kByColumns = R"toml(
node = [
  { module = "m", phase = "forward", op = "aten.mm.default", fsdp = "S(0)R -> S(0)", tp = "RS(1) -> S(1)" },
  { module = "m", phase = "backward", op = "aten.mm.default", fsdp = "S(1)S(0) -> P(sum)", tp = "S(0)R -> S(0)" },
]
)toml";

/// The placements for as little memory as there can be.
AutoPlacement InLeastMemory(Graph& graph, const CostModel& model) {
  const PlacementPlan by_columns =
      OrDie(PlacementPlan::Parse(kByColumns, "c.toml", model.mesh(), {}));
  AutoPlacement found = OrDie(PlaceAutomatically(graph, by_columns, model, {}));
  for (double part = 0.9; part > 0.01; part -= 0.05) {
    AutoOptions options;
    options.memory_bytes = part * found.memory_bytes;
    auto less = PlaceAutomatically(graph, by_columns, model, options);
    if (!less) break;
    if (less->memory_bytes < found.memory_bytes) found = *std::move(less);
  }
  return found;
}

TEST_CASE("T71, T72: a parameter is stored such that one collective gathers it, as its gradient") {
  for (const bool is_turned : {false, true}) {
    INFO(is_turned);
    const CostModel model = ModelOn("fsdp=2,tp=4");
    auto module = ParseBody(Columns(
        "", is_turned ? "  s = aten.t.default(gw) : bf16[1024, 1024][1, 1024]cpu ~gw {backward}\n"
                        "  u = aten.t.default(s) : bf16[1024, 1024][1024, 1]cpu ~gw {backward}\n"
                        "  output([loss, u])\n"
                      : "  output([loss, gw])\n"));
    Graph& graph = *module->FindGraph("g");
    const AutoPlacement found = InLeastMemory(graph, model);
    CHECK_EQ(FoundOf(graph, found, "w"), "_S(0, 4)S(0)");
    const std::string plan = PlanText(graph, found, model.mesh(), "");
    OrDie(PlaceGraph(graph, OrDie(PlacementPlan::Parse(plan, "found", model.mesh(), {})),
                     Reshard::kBlocks));
    OrDie(OrDie(ParsePipeline("lower", AllPasses()))[0]->Run(*module));
    std::string collectives;
    for (const NodeId node : graph.nodes())
      if (graph.op(node).starts_with("_c10d") && !graph.op(node).ends_with("wait_tensor.default"))
        collectives += std::string(graph.op(node)) + " ";
    // The last two sum up the loss.
    CHECK_EQ(collectives,
             "_c10d_functional.all_gather_into_tensor.default "
             "_c10d_functional.all_reduce.default _c10d_functional.all_reduce.default "
             "_c10d_functional.reduce_scatter_tensor.default ");
  }
}

TEST_CASE("T70, T73, T109: parameters without gradients, or that nothing reads, are placed") {
  const CostModel model = ModelOn("fsdp=2,tp=4");
  const PlacementPlan none(model.mesh());
  // `u` is not read, `f` is frozen: they are the last parameters.
  auto module = ParseBody(
      Columns("  f = placeholder : bf16[1024, 1024][1024, 1]cpu {+fqn='f' +input='parameter'}\n"
              "  u = placeholder : bf16[1024, 1024][1024, 1]cpu {+fqn='u' +input='parameter'}\n",
              "  z = aten.mm.default(y, f) : bf16[4096, 1024][1024, 1]cpu {backward}\n"
              "  output([loss, gw])\n"));
  Graph& graph = *module->FindGraph("g");
  const AutoPlacement found = OrDie(PlaceAutomatically(graph, none, model, {}));
  CHECK_EQ(found.solved.status, SolverResult::Status::kOptimal);
  // What nothing gathers is in parts: its update is the cheaper.
  CHECK(FoundOf(graph, found, "u").find('R') == std::string::npos);

  auto frozen = ParseBody(R"(
  f = placeholder : bf16[1024, 1024][1024, 1]cpu {+fqn='f' +input='parameter'}
  x = placeholder : bf16[4096, 1024][1024, 1]cpu {+fqn='x' +input='batch'}
  y = aten.mm.default(x, f) : bf16[4096, 1024][1024, 1]cpu {forward}
  loss = aten.sum.default(y) : bf16[][]cpu {loss}
  output([loss])
)");
  Graph& forward = *frozen->FindGraph("g");
  CHECK_EQ(OrDie(PlaceAutomatically(forward, none, model, {})).solved.status,
           SolverResult::Status::kOptimal);
}

TEST_CASE("T9: a part of a parameter of another size than the others is cast where it is stored") {
  const CostModel model = ModelOn("fsdp=8");
  auto module = ParseBody(R"(
  w = placeholder : f32[1021, 1024][1024, 1]cpu {+fqn='w' +input='parameter'}
  x = placeholder : bf16[262144, 1024][1024, 1]cpu {+fqn='x' +input='batch'}
  c = aten._to_copy.default(w, dtype=torch.bfloat16) : bf16[1021, 1024][1024, 1]cpu {forward module=m}
  t = aten.t.default(c) : bf16[1024, 1021][1, 1024]cpu ~c {forward module=m}
  y = aten.mm.default(x, t) : bf16[262144, 1021][1021, 1]cpu {forward module=m}
  loss = aten.sum.default(y) : bf16[][]cpu {loss}
  g = aten.ones_like.default(y) : bf16[262144, 1021][1021, 1]cpu {backward module=m}
  gt = aten.t.default(g) : bf16[1021, 262144][1, 1021]cpu ~g {backward module=m}
  gw = aten.mm.default(gt, x) : bf16[1021, 1024][1024, 1]cpu {backward module=m}
  gc = aten._to_copy.default(gw, dtype=torch.float32) : f32[1021, 1024][1024, 1]cpu {backward module=m}
  output([loss, gc])
)");
  Graph& graph = *module->FindGraph("g");
  const PlacementPlan kept = OrDie(PlacementPlan::Parse(
      "parameter = [{ name = \"w\", fsdp = \"S(0)\", uneven = true }]\n", "c", model.mesh(), {}));
  const AutoPlacement found = OrDie(PlaceAutomatically(graph, kept, model, {}));
  CHECK_EQ(FoundOf(graph, found, "c"), "S(0) -> S(0)");
  CHECK_EQ(FoundOf(graph, found, "gc"), "P(sum) -> P(sum)");
  const std::string plan = PlanText(graph, found, model.mesh(), "");
  CHECK(plan.find("{ name = \"w\", fsdp = \"S(0)\", uneven = true }") != std::string::npos);
  OrDie(PlaceGraph(graph, OrDie(PlacementPlan::Parse(plan, "found", model.mesh(), {})),
                   Reshard::kBlocks));
  OrDie(OrDie(ParsePipeline("lower", AllPasses()))[0]->Run(*module));
  OrDie(Verify(*module));
  // 128 rows on each rank, of which the last has three rows of zeros.
  CHECK_EQ(module->types().ToString(graph.value(ValueNamed(graph, "c")).type),
           "bf16[128, 1024][1024, 1]cpu");
}

TEST_CASE("T84: what a plan says of a module holds in forward and in backward") {
  const CostModel model = ModelOn("fsdp=2,tp=4");
  auto module = ParseBody(Columns("", "  output([loss, gw])\n"));
  Graph& graph = *module->FindGraph("g");
  const PlacementPlan region = OrDie(PlacementPlan::Parse(kByColumns, "c", model.mesh(), {}));
  const AutoPlacement found = OrDie(PlaceAutomatically(graph, region, model, {}));
  CHECK_EQ(FoundOf(graph, found, "y"), "S(0)R, RS(1) -> S(0)S(1)");
  CHECK_EQ(FoundOf(graph, found, "gw"), "S(1)S(0), S(0)R -> P(sum)S(0)");
  // Its gradient is what the ranks' products add up to, whatever the parameter is held as.
  OrDie(PlaceGraph(
      graph,
      OrDie(PlacementPlan::Parse(PlanText(graph, found, model.mesh(), ""), "f", model.mesh(), {})),
      Reshard::kBlocks));
  CHECK_EQ(module->types().ToString(graph.value(ValueNamed(graph, "gw")).type),
           "DTensor(bf16[1024, 1024][1024, 1]cpu, P(sum)S(0))");
  CHECK_EQ(module->types()[graph.value(graph.operands(graph.output())[1]).type].placements,
           module->types()[graph.value(ValueNamed(graph, "w")).type].placements);
}

TEST_CASE("T97: what nodes say of themselves survives placing and lowering") {
  auto module = ParseBody(R"(
  w = placeholder : f32[8, 8][8, 1]cpu {+fqn='w' +input='parameter'}
  x = placeholder : f32[8, 8][8, 1]cpu {+fqn='x' +input='batch'}
  y = aten.mm.default(x, w) : f32[8, 8][8, 1]cpu {forward module=layers.0.ffn seq=3 +recompute='must save'}
  (a, b) = aten.split.Tensor(y, 4, 1) as s : (f32[8, 4][8, 1]cpu, f32[8, 4][8, 1]cpu) {forward module=layers.0.ffn seq=4 +recompute='must recompute'}
  c = aten.add.Tensor(a, b) : f32[8, 4][4, 1]cpu {forward module=layers.1 seq=5}
  loss = aten.sum.default(c) : f32[][]cpu {loss}
  g = aten.mm.default(x, w) : f32[8, 8][8, 1]cpu {backward module=layers.0.ffn seq=3}
  output([loss, g])
)");
  const auto before = module->Clone();
  for (const auto& pass :
       OrDie(ParsePipeline("place{mesh=\"fsdp=2,tp=2\",plan=auto},lower", AllPasses())))
    OrDie(pass->Run(*module));
  const Graph &was = *before->FindGraph("g"), &is = *module->FindGraph("g");
  for (const NodeId node : was.nodes()) {
    if (was.node(node).kind != NodeKind::kCall) continue;
    const NodeId now = NodeNamed(is, was.name(node));
    INFO(was.name(node));
    CHECK(is.node(now).phase == was.node(node).phase);
    CHECK_EQ(is.node(now).seq_nr, was.node(node).seq_nr);
    CHECK_EQ(is.node(now).module.valid(), was.node(node).module.valid());
    if (was.node(node).module.valid())
      CHECK_EQ(module->str(is.node(now).module), before->str(was.node(node).module));
    CHECK_EQ(is.attribute(now, "recompute"), was.attribute(node, "recompute"));
  }
}

TEST_CASE("T115: a product between two views is cut along its sequences") {
  const CostModel model = ModelOn("tp=8");
  auto module = ParseBody(R"(
  w = placeholder : bf16[1024, 1024][1024, 1]cpu {+fqn='w' +input='parameter'}
  x = placeholder : bf16[1, 65536, 1024][67108864, 1024, 1]cpu {+fqn='x' +input='batch'}
  v = aten.reshape.default(x, [65536, 1024]) : bf16[65536, 1024][1024, 1]cpu ~x {forward}
  t = aten.t.default(w) : bf16[1024, 1024][1, 1024]cpu ~w {forward}
  m = aten.mm.default(v, t) : bf16[65536, 1024][1024, 1]cpu {forward}
  u = aten.reshape.default(m, [1, 65536, 1024]) : bf16[1, 65536, 1024][67108864, 1024, 1]cpu ~m {forward}
  a = aten.relu.default(u) : bf16[1, 65536, 1024][67108864, 1024, 1]cpu {forward}
  loss = aten.sum.default(a) : bf16[][]cpu {loss}
  output([loss])
)");
  Graph& graph = *module->FindGraph("g");
  const AutoPlacement found =
      OrDie(PlaceAutomatically(graph, PlacementPlan(model.mesh()), model, {}));
  CHECK_EQ(FoundOf(graph, found, "v"), "S(1) -> S(0)");
  CHECK_EQ(FoundOf(graph, found, "m"), "S(0), R -> S(0)");
  CHECK_EQ(FoundOf(graph, found, "u"), "S(0) -> S(1)");
  CHECK_EQ(FoundOf(graph, found, "a"), "S(1) -> S(1)");
}

}  // namespace
}  // namespace strata
