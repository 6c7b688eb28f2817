#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "passes/placement/auto/auto_plan.h"
#include "passes/placement/auto/call_strategies.h"
#include "passes/placement/auto/plan_text.h"
#include "passes/placement/auto/search_space.h"
#include "passes/placement/costs/collective_cost.h"
#include "passes/simulate/timeline.h"
#include "tests/support/graphs.h"
#include "tests/unit/passes/cost_models.h"

// Tests of the reference, by its ids.
namespace strata {
namespace {

using testing::H100;
using testing::kExchange;
using testing::kGather;
using testing::kReduce;
using testing::kScatter;
using testing::ModelOn;
using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;

/// The ways to hold a tensor of these sizes, in text order.
std::string HeldOn(std::string_view mesh, std::string_view sizes) {
  Module module;
  const Type type = module.types()[module.types().Parse(fmt::format("f32[{}]", sizes))];
  std::set<std::string> texts;
  for (const Placements& placements : HeldPlacements(module, type, OrDie(Mesh::Parse(mesh))))
    CHECK(texts.insert(PlacementsText(module, placements)).second);
  return fmt::format("{}", fmt::join(texts, " "));
}

TEST_CASE(
    "T1, T2, T3: a dimension is cut where each rank has a part, and any tensor may be whole") {
  CHECK_EQ(HeldOn("fsdp=256", "256"), "R S(0)");
  CHECK_EQ(HeldOn("fsdp=256", "100"), "R");
  CHECK_EQ(HeldOn("fsdp=256", ""), "R");
}

TEST_CASE("T8, T10: an input is held in each combination of its dimensions once") {
  CHECK_EQ(HeldOn("tp=8", "8, 16, 24"), "R S(0) S(1) S(2)");
  CHECK_EQ(HeldOn("fsdp=4,tp=2", "8, 6"),
           "RR RS(0) RS(1) S(0)R S(0)S(0) S(0)S(1) S(1)R S(1)S(0) _S(0, 2)S(0)");
}

TEST_CASE("T4, T5, T7, T9: parts may differ in size where each rank has one") {
  CHECK_EQ(HeldOn("fsdp=32,tp=8", "256, 10"),
           "RR RS(0) RS(1) S(0)R S(0)S(0) S(0)S(1) _S(0, 8)S(0)");
  CHECK_EQ(HeldOn("fsdp=32", "257"), "R S(0)");
  CHECK_EQ(HeldOn("fsdp=256", "100, 256, 257"), "R S(1) S(2)");
  CHECK_EQ(HeldOn("tp=8", "100, 100"), "R S(0) S(1)");
}

/// The strategies of the call `name` whose operands and results have these placements.
std::vector<std::string> StrategiesOn(std::string_view mesh_text, std::string_view body,
                                      std::string_view name, std::string_view operands) {
  auto module = ParseBody(body);
  Graph& graph = *module->FindGraph("g");
  const Mesh mesh = OrDie(Mesh::Parse(mesh_text));
  const CostModel model = OrDie(CostModel::Make(H100(), mesh));
  const NodeId node = NodeNamed(graph, name);
  std::vector<std::string> found;
  for (const CallStrategy& strategy :
       CallStrategies(graph, node, OrDie(ShardingRuleOf(graph, node)), model, {})) {
    std::string of_operands, of_results;
    for (const Placements& placements : strategy.operands)
      of_operands += " " + PlacementsText(*module, placements);
    for (const Placements& placements : strategy.results)
      of_results += " " + PlacementsText(*module, placements);
    if (operands.empty() || of_operands.substr(1) == operands)
      found.push_back(of_results.substr(1));
  }
  return found;
}

using StrategyTexts = std::vector<std::string>;

TEST_CASE("T11: numbers that depend on their place are whole") {
  CHECK_EQ(StrategiesOn("tp=8", "\n  i = aten.arange.default(64) : i64[64][1]cpu\n  output([i])\n",
                        "i", "")
               .size(),
           1);
}

TEST_CASE("T31, T32, T34: sums over cut dimensions are partial, others move down") {
  constexpr std::string_view kSum = R"(
  x = placeholder : f32[8, 8, 8][64, 8, 1]cpu
  s = aten.sum.dim_IntList(x, [0, 1]) : f32[8][1]cpu
  output([s])
)";
  CHECK_EQ(StrategiesOn("fsdp=2,tp=2", kSum, "s", "S(0)S(1)"), StrategyTexts{"P(sum)P(sum)"});
  CHECK_EQ(StrategiesOn("fsdp=2,tp=2", kSum, "s", "S(2)S(2)"), StrategyTexts{"S(0)S(0)"});
  CHECK_EQ(StrategiesOn("fsdp=2,tp=2", kSum, "s", "S(2)S(0)"), StrategyTexts{"S(0)P(sum)"});
  CHECK_EQ(StrategiesOn("fsdp=2,tp=2", kSum, "s", "S(0)S(2)"), StrategyTexts{"P(sum)S(0)"});
}

TEST_CASE("T35: a mean over cut dimensions is a partial mean") {
  constexpr std::string_view kMean = R"(
  x = placeholder : f32[8, 8][8, 1]cpu
  m = aten.mean.dim(x, [0, 1]) : f32[][]cpu
  output([m])
)";
  CHECK_EQ(StrategiesOn("fsdp=2,tp=2", kMean, "m", "S(0)S(1)"), StrategyTexts{"P(avg)P(avg)"});
}

double Us(const std::string& topology, CollectiveOp collective, double bytes, AxisTopology axis) {
  return CollectiveUs(OrDie(Topology::Load(topology)).network, collective, bytes, axis);
}
constexpr double kKiB = 1 << 10, kMiB = 1 << 20, kGiB = 1 << 30;

TEST_CASE(
    "T50, T56: latency decides small collectives, and reducing to a part is the cheaper one") {
  const AxisTopology nodes{.ranks = 8, .nodes = 8, .ranks_per_node = 1};
  CHECK_LT(Us("h100", kReduce, kKiB, nodes), 40);
  CHECK_LT(Us("h100", kScatter, 4 * kMiB, nodes), Us("h100", kReduce, 4 * kMiB, nodes));
}

TEST_CASE("T51: an exchange costs more than a gather on A100, and little more on more nodes") {
  const AxisTopology node{.ranks = 8, .nodes = 1, .ranks_per_node = 8};
  CHECK_GT(Us("a100", kExchange, kMiB, node), Us("a100", kGather, kMiB, node));
  const auto latency = [](int64_t nodes) {
    return Us("h100", kExchange, 1, {.ranks = nodes, .nodes = nodes, .ranks_per_node = 1});
  };
  CHECK_LT(latency(16), 8 * latency(2));
}

TEST_CASE("T52: a switch that reduces helps within nodes that have one") {
  const AxisTopology node{.ranks = 8, .nodes = 1, .ranks_per_node = 8};
  Topology h100 = H100();
  const double with = CollectiveUs(h100.network, kReduce, kGiB, node);
  h100.network.nvswitch = false;
  CHECK_LT(with, CollectiveUs(h100.network, kReduce, kGiB, node));
}

TEST_CASE("T54: a B200 node moves large tensors twice as fast as an H100 node") {
  const AxisTopology node{.ranks = 8, .nodes = 1, .ranks_per_node = 8};
  for (const CollectiveOp collective : {kGather, kScatter, kReduce})
    CHECK_EQ(Us("h100", collective, kGiB, node) / Us("b200", collective, kGiB, node),
             doctest::Approx(2).epsilon(0.02));
}

TEST_CASE("T55: the latency of a ring grows for large sums in the simple protocol alone") {
  const AxisTopology pair{.ranks = 2, .nodes = 2, .ranks_per_node = 1};
  // In µs: a base, hops between nodes, 4.7 for each node. Bandwidths of 12 channels, 87.7 GB/s.
  const double simple = 1.4 * (8.4 + 2 * 14.0 + 2 * 4.7);
  CHECK_EQ(Us("a100", kReduce, kGiB, pair), doctest::Approx(simple + kGiB / 87.7e3).epsilon(1e-6));
  CHECK_EQ(Us("a100", kGather, kGiB, pair),
           doctest::Approx(8.4 + 14.0 + 2 * 4.7 + kGiB / (2 * 87.7e3)).epsilon(1e-6));
  // LL128 reaches .92 of it, and .63 at this size.
  CHECK_EQ(
      Us("a100", kReduce, 4 * kMiB, pair),
      doctest::Approx(14.0 + 2 * 8.5 + 2 * 4.7 + 4 * kMiB / (0.92 * 0.63 * 87.7e3)).epsilon(1e-6));
}

/// A product of a batch with a parameter of `rows` rows, and its gradient.
std::string ProductText(int64_t rows) {
  return fmt::format(R"(
  w = placeholder : bf16[{0}, 1024][1024, 1]cpu {{+fqn='w' +input='parameter'}}
  x = placeholder : bf16[512, 1024][1024, 1]cpu {{+fqn='x' +input='batch'}}
  t = aten.t.default(w) : bf16[1024, {0}][1, 1024]cpu ~w {{forward}}
  y = aten.mm.default(x, t) : bf16[512, {0}][{0}, 1]cpu {{forward}}
  loss = aten.sum.default(y) : bf16[][]cpu {{loss}}
  g = aten.ones_like.default(y) : bf16[512, {0}][{0}, 1]cpu {{backward}}
  gt = aten.t.default(g) : bf16[{0}, 512][1, {0}]cpu ~g {{backward}}
  gw = aten.mm.default(gt, x) : bf16[{0}, 1024][1024, 1]cpu {{backward}}
  output([loss, gw])
)",
                     rows);
}

TEST_CASE(
    "T85, T86: a parameter that ranks do not divide is whole, and does not make it infeasible") {
  const CostModel model = ModelOn("fsdp=256");
  for (const int64_t rows : {280, 4}) {
    auto module = ParseBody(ProductText(rows));
    Graph& graph = *module->FindGraph("g");
    const AutoPlacement found =
        OrDie(PlaceAutomatically(graph, PlacementPlan(model.mesh()), model, {}));
    const std::string plan = PlanText(graph, found, model.mesh(), "");
    INFO(plan);
    CHECK_EQ(found.solved.status, SolverResult::Status::kOptimal);
    CHECK(plan.find("name = \"w\", fsdp = \"S(0)\"") == std::string::npos);
  }
}

TEST_CASE("T44: what a search remembers of a change is what the model says of it") {
  const CostModel model = ModelOn("fsdp=2,tp=4");
  auto module = ParseBody(ProductText(1024));
  Graph& graph = *module->FindGraph("g");
  const SearchSpace space = OrDie(MakeSearchSpace(graph, PlacementPlan(model.mesh()), model, {}));
  size_t compared = 0;
  for (size_t i = 0, edge = 0; i < space.operands.size(); ++i) {
    const SearchSpace::Operand& operand = space.operands[i];
    if (operand.producer == operand.reader) continue;  // a cost of its choices
    const PairwiseProblem::Edge& of = space.problem.edges[edge++];
    const auto choices = [&](int variable) {
      return std::ssize(space.variables[static_cast<size_t>(variable)].strategies);
    };
    for (int a = 0; a < choices(operand.producer); ++a) {
      for (int b = 0; b < choices(operand.reader); ++b) {
        const double cost = of.cost(a, b);
        if (!std::isfinite(cost) || cost >= kInfiniteCost) continue;
        CHECK_EQ(cost,
                 static_cast<double>(operand.count) * space.EdgeUs(*module, model, operand, a, b));
        ++compared;
      }
    }
  }
  CHECK_GT(compared, 100);
}

/// The placements that were found for the result of a node.
std::string ResultPlacement(const Graph& graph, const AutoPlacement& found, std::string_view name) {
  const auto variable = static_cast<size_t>(found.space.variable_of.at(NodeNamed(graph, name)));
  const auto choice = static_cast<size_t>(found.solved.choices[variable]);
  return PlacementsText(graph.module(),
                        found.space.variables[variable].strategies[choice].results[0]);
}

TEST_CASE("T87, T88: a constraint and a limit hold together, and neither stays behind") {
  const CostModel model = ModelOn("fsdp=8");
  auto module = ParseBody(ProductText(1024));
  Graph& graph = *module->FindGraph("g");
  const PlacementPlan none(model.mesh());
  const PlacementPlan along_rows = OrDie(PlacementPlan::Parse(
      "parameter = [{ name = \"w\", fsdp = \"S(1)\" }]\n", "c", model.mesh(), {}));
  const auto find = [&](const PlacementPlan& constraints, double bytes) {
    AutoOptions options;
    options.memory_bytes = bytes;
    return OrDie(PlaceAutomatically(graph, constraints, model, options));
  };
  const AutoPlacement free = find(none, 0);
  CHECK_EQ(ResultPlacement(graph, free, "w"), "R");
  const AutoPlacement kept = find(along_rows, 0);
  CHECK_EQ(ResultPlacement(graph, kept, "w"), "S(1)");
  const double limit = 0.5 * (free.memory_bytes + kept.memory_bytes);
  const AutoPlacement both = find(along_rows, limit);
  CHECK_EQ(ResultPlacement(graph, both, "w"), "S(1)");
  CHECK_LE(both.memory_bytes, limit);
  // Without the constraint the parameter still has to fit; without both it is whole again.
  const AutoPlacement limited = find(none, limit);
  CHECK_NE(ResultPlacement(graph, limited, "w"), "R");
  CHECK_LE(limited.solved.cost, both.solved.cost);
  CHECK_EQ(ResultPlacement(graph, find(none, 0), "w"), "R");
  CHECK_EQ(find(none, 0).solved.cost, free.solved.cost);
}

TEST_CASE("T89: a gradient is held as its parameter") {
  const CostModel model = ModelOn("fsdp=8");
  auto module = ParseBody(ProductText(1024));
  Graph& graph = *module->FindGraph("g");
  const SearchSpace space = OrDie(MakeSearchSpace(graph, PlacementPlan(model.mesh()), model, {}));
  const int parameter = space.variable_of.at(NodeNamed(graph, "w"));
  const int gradient = space.variable_of.at(NodeNamed(graph, "gw"));
  CHECK_EQ(std::ranges::count_if(space.operands,
                                 [&](const SearchSpace::Operand& operand) {
                                   return operand.producer == gradient &&
                                          operand.reader == parameter;
                                 }),
           1);
}

TEST_CASE(
    "T105: a step of computation alone is its sum, and exposes no more than it communicates") {
  auto module = ParseBody(R"(
  x = placeholder : bf16[4096, 4096][4096, 1]cuda:0
  a = aten.mm.default(x, x) : bf16[4096, 4096][4096, 1]cuda:0
  b = aten.mm.default(a, x) : bf16[4096, 4096][4096, 1]cuda:0
  g = _c10d_functional.all_gather_into_tensor.default(x, 8, 'tp') : bf16[32768, 4096][4096, 1]cuda:0
  c = aten.mm.default(b, x) : bf16[4096, 4096][4096, 1]cuda:0
  w = _c10d_functional.wait_tensor.default(g) : bf16[32768, 4096][4096, 1]cuda:0 ~g
  output([b, c, w])
)");
  const Graph& graph = *module->FindGraph("g");
  const Topology topology = H100();
  const NodeCost cost = NodeCost::OnMesh(topology, graph, OrDie(Mesh::Parse("tp=8")));
  const Timeline timeline = OrDie(Simulate(graph, cost));
  const double product = cost.ComputeUs(graph, NodeNamed(graph, "a"));
  CHECK_EQ(timeline.compute_us, doctest::Approx(3 * product));
  CHECK_LE(timeline.exposed_us(), timeline.busy_us());
  CHECK_EQ(timeline.step_us, doctest::Approx(timeline.compute_us + timeline.exposed_us()));
  CHECK_EQ(OrDie(Simulate(graph, cost)).step_us, timeline.step_us);
}

}  // namespace
}  // namespace strata
