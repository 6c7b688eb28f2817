#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/text/native_text.h"
#include "ir/verify.h"
#include "passes/core/collectives.h"
#include "passes/memory/recompute.h"
#include "passes/placement/auto/auto_plan.h"
#include "passes/placement/auto/cost_attributes.h"
#include "passes/placement/auto/explain.h"
#include "passes/placement/auto/meshes.h"
#include "passes/placement/auto/placement_json.h"
#include "passes/placement/auto/plan_text.h"
#include "passes/placement/costs/pipeline_cost.h"
#include "passes/placement/costs/placed_cost.h"
#include "passes/placement/lowering/lower.h"
#include "passes/placement/place.h"
#include "passes/placement/rules/redistribute_op.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;
using testing::ValueNamed;

constexpr int64_t kBatch = 8, kSeq = 4096, kDim = 1024, kHidden = 4096;

/// The step of `layers` feed-forward blocks around a residual stream.
std::string StepText(int layers) {
  std::string inputs, forward, backward, outputs;
  const auto tensor = [](auto... sizes) {
    const int64_t all[] = {sizes...};
    std::string shape, strides;
    int64_t stride = 1;
    for (size_t i = std::size(all); i-- > 0; stride *= all[i]) {
      shape = fmt::format("{}{}{}", all[i], shape.empty() ? "" : ", ", shape);
      strides = fmt::format("{}{}{}", stride, strides.empty() ? "" : ", ", strides);
    }
    return fmt::format("bf16[{}][{}]cpu", shape, strides);
  };
  const auto turned = [](int64_t rows, int64_t columns) {
    return fmt::format("bf16[{}, {}][1, {}]cpu", rows, columns, rows);
  };
  constexpr int64_t kRows = kBatch * kSeq;
  const std::string hidden = tensor(kBatch, kSeq, kDim), rows = tensor(kRows, kDim),
                    wide = tensor(kRows, kHidden);
  for (int i = 0; i < layers; ++i) {
    const std::string of = fmt::format("{{forward module=layers.{}.ffn}}", i);
    const auto add = [&](const std::string& name, const std::string& call, const std::string& type,
                         const std::string& alias = "") {
      forward += fmt::format("  {}_{} = {} : {}{} {}\n", name, i, call, type, alias, of);
    };
    for (const auto& [w, type] :
         {std::pair("w1", tensor(kHidden, kDim)), std::pair("w2", tensor(kDim, kHidden))})
      inputs += fmt::format(
          "  {0}_{1} = placeholder : {2} {{+fqn='layers.{1}.ffn.{0}' +input='parameter'}}\n", w, i,
          type);
    add("v", fmt::format("aten.reshape.default(x_{}, [{}, {}])", i, kRows, kDim), rows,
        fmt::format(" ~x_{}", i));
    add("t1", fmt::format("aten.t.default(w1_{})", i), turned(kDim, kHidden),
        fmt::format(" ~w1_{}", i));
    add("m1", fmt::format("aten.mm.default(v_{0}, t1_{0})", i), wide);
    add("a", fmt::format("aten.relu.default(m1_{})", i), wide);
    add("t2", fmt::format("aten.t.default(w2_{})", i), turned(kHidden, kDim),
        fmt::format(" ~w2_{}", i));
    add("m2", fmt::format("aten.mm.default(a_{0}, t2_{0})", i), rows);
    add("u", fmt::format("aten.reshape.default(m2_{}, [{}, {}, {}])", i, kBatch, kSeq, kDim),
        hidden, fmt::format(" ~m2_{}", i));
    forward +=
        fmt::format("  x_{} = aten.add.Tensor(x_{}, u_{}) : {} {}\n", i + 1, i, i, hidden, of);
    outputs += fmt::format(", gw1_{0}, gw2_{0}", i);
  }
  for (int i = layers; i-- > 0;) {
    const std::string of = fmt::format("{{backward module=layers.{}.ffn}}", i);
    const auto add = [&](const std::string& name, const std::string& call, const std::string& type,
                         const std::string& alias = "") {
      backward += fmt::format("  {}_{} = {} : {}{} {}\n", name, i, call, type, alias, of);
    };
    add("gv", fmt::format("aten.reshape.default(g_{}, [{}, {}])", i + 1, kRows, kDim), rows,
        fmt::format(" ~g_{}", i + 1));
    add("gt", fmt::format("aten.t.default(gv_{})", i), turned(kDim, kRows),
        fmt::format(" ~g_{}", i + 1));
    add("gw2", fmt::format("aten.mm.default(gt_{0}, a_{0})", i), tensor(kDim, kHidden));
    add("ga", fmt::format("aten.mm.default(gv_{0}, w2_{0})", i), wide);
    add("gm", fmt::format("aten.threshold_backward.default(ga_{0}, m1_{0}, 0)", i), wide);
    add("gmt", fmt::format("aten.t.default(gm_{})", i), turned(kHidden, kRows),
        fmt::format(" ~gm_{}", i));
    add("gw1", fmt::format("aten.mm.default(gmt_{0}, v_{0})", i), tensor(kHidden, kDim));
    add("gx", fmt::format("aten.mm.default(gm_{0}, w1_{0})", i), rows);
    add("gu", fmt::format("aten.reshape.default(gx_{}, [{}, {}, {}])", i, kBatch, kSeq, kDim),
        hidden, fmt::format(" ~gx_{}", i));
    backward +=
        fmt::format("  g_{} = aten.add.Tensor(g_{}, gu_{}) : {} {}\n", i, i + 1, i, hidden, of);
  }
  return fmt::format(
      "\n{}  x_0 = placeholder : {} {{+fqn='x' +input='batch'}}\n{}  loss = aten.sum.default(x_{}) "
      ": "
      "bf16[][]cpu {{loss}}\n  g_{} = aten.ones_like.default(x_{}) : {} {{backward}}\n{}"
      "  output([loss{}])\n",
      inputs, hidden, forward, layers, layers, layers, hidden, backward, outputs);
}

CostModel ModelOf(std::string_view mesh, const std::string& topology = "h100") {
  return OrDie(CostModel::Make(OrDie(Topology::Load(topology)), OrDie(Mesh::Parse(mesh))));
}

PlacementPlan NoPlan(const CostModel& model) {
  return PlacementPlan(model.mesh());
}

AutoPlacement Find(Graph& graph, const CostModel& model, const AutoOptions& options = {}) {
  return OrDie(PlaceAutomatically(graph, NoPlan(model), model, options));
}

/// The cost of the graph that `place` makes by `plan`.
double CostBy(std::string_view text, const CostModel& model, const PlacementPlan& plan) {
  auto module = ParseBody(text);
  Graph& graph = *module->FindGraph("g");
  OrDie(PlaceGraph(graph, plan, Reshard::kBlocks));
  OrDie(Verify(*module));
  return OrDie(CostOfPlaced(graph, model)).total();
}

PlacementPlan PlanOf(const Graph& graph, const AutoPlacement& placement, const CostModel& model) {
  return OrDie(PlacementPlan::Parse(PlanText(graph, placement, model.mesh(), "test"), "found.toml",
                                    model.mesh(), {}));
}

TEST_CASE(
    "T114: the plan that is written costs what was found when it is read, and less than greed") {
  for (const std::string_view mesh :
       {"fsdp=4", "tp=8", "fsdp=2,tp=4", "dp_replicate=2,fsdp=2,tp=2"}) {
    INFO(mesh);
    const CostModel model = ModelOf(mesh);
    const std::string text = StepText(2);
    auto module = ParseBody(text);
    Graph& graph = *module->FindGraph("g");
    const AutoPlacement placement = Find(graph, model);
    CHECK(placement.solved.status == SolverResult::Status::kOptimal);
    const double placed = CostBy(text, model, PlanOf(graph, placement, model));
    CHECK_LE(placed, placement.solved.cost * (1 + 1e-9));
    CHECK_GE(placed, 0.9 * placement.solved.cost);
    CHECK_LE(placed, CostBy(text, model, NoPlan(model)) * (1 + 1e-9));
  }
}

TEST_CASE("auto placement: nodes say what they cost and what would cost the least more") {
  const CostModel model = ModelOf("fsdp=2,tp=4");
  auto module = ParseBody(StepText(2));
  Graph& graph = *module->FindGraph("g");
  const AutoPlacement placement = Find(graph, model);
  const PlacementPlan plan = PlanOf(graph, placement, model);
  REQUIRE(PlaceGraph(graph, plan, Reshard::kBlocks));
  REQUIRE(WriteCostAttributes(graph, placement, model));

  const PlacedCost cost = OrDie(CostOfPlaced(graph, model));
  double compute = 0, communication = 0;
  for (const NodeId node : graph.nodes()) {
    const auto number = [&](std::string_view key) {
      const std::string text(graph.attribute(node, key));
      return text.empty() ? 0.0 : std::stod(text);
    };
    compute += number(kComputeAttribute);
    communication += number(kCommunicationAttribute);
    if (graph.op(node) == kRedistributeOp) CHECK(graph.attribute(node, kInsteadAttribute).empty());
  }
  const double rounding = 0.0005 * static_cast<double>(cost.items.size());
  CHECK_LE(std::abs(compute - cost.compute_us), rounding);
  CHECK_LE(std::abs(communication - cost.communication_us), rounding);

  // Forced, with all else decided anew, it costs at most as much more.
  const NodeId product = NodeNamed(graph, "m1_0");
  const std::string instead(graph.attribute(product, kInsteadAttribute));
  const size_t colon = instead.find(": +");
  REQUIRE(colon != std::string::npos);
  const double more = std::stod(instead.substr(colon + 3));
  CHECK_GE(more, -0.001);
  const int variable = placement.space.variable_of.at(product);
  bool is_found = false;
  for (const Alternative& alternative : AlternativesOf(placement, variable, 100, {})) {
    const SearchSpace::Variable& of = placement.space.variables[static_cast<size_t>(variable)];
    const CallStrategy& strategy = of.strategies[static_cast<size_t>(alternative.choice)];
    if (alternative.is_chosen || StrategyText(graph.module(), strategy) != instead.substr(0, colon))
      continue;
    is_found = true;
    REQUIRE(alternative.forced_us.has_value());
    CHECK_LE(*alternative.forced_us, more * static_cast<double>(of.count) + 0.01);
  }
  CHECK(is_found);
}

TEST_CASE("T96: layers that are alike, decided together, cost what they cost one by one") {
  for (const std::string_view mesh : {"fsdp=8", "fsdp=2,tp=4"}) {
    INFO(mesh);
    const CostModel model = ModelOf(mesh);
    auto module = ParseBody(StepText(4));
    Graph& graph = *module->FindGraph("g");
    const AutoPlacement together = Find(graph, model);
    AutoOptions options;
    options.space.has_twins = false;
    const AutoPlacement alone = Find(graph, model, options);
    CHECK_EQ(together.solved.cost, doctest::Approx(alone.solved.cost).epsilon(1e-9));
    CHECK_LT(2 * together.space.variables.size(), alone.space.variables.size());
  }
}

TEST_CASE("T95: nodes of layers that are alike are found in forward and in backward") {
  auto module = ParseBody(StepText(4));
  const Graph& graph = *module->FindGraph("g");
  const Twins twins = FindTwins(graph);
  CHECK(twins.Root(NodeNamed(graph, "m1_3")) == NodeNamed(graph, "m1_0"));
  CHECK(twins.Root(NodeNamed(graph, "w2_2")) == NodeNamed(graph, "w2_0"));
  CHECK(twins.Root(NodeNamed(graph, "gw1_1")) == NodeNamed(graph, "gw1_3"));
  CHECK(twins.Root(NodeNamed(graph, "loss")) == NodeNamed(graph, "loss"));
  for (const auto& [node, root] : twins.root_of)
    CHECK(graph.node(node).phase == graph.node(root).phase);
}

TEST_CASE("T80, T81: with room for it parameters are whole, and with little they are sharded") {
  const CostModel model = ModelOf("fsdp=8");
  auto module = ParseBody(StepText(1));
  Graph& graph = *module->FindGraph("g");
  const auto placements = [&](const AutoPlacement& found, std::string_view name) {
    const int variable = found.space.variable_of.at(NodeNamed(graph, name));
    const auto choice = static_cast<size_t>(found.solved.choices[static_cast<size_t>(variable)]);
    const auto& strategy = found.space.variables[static_cast<size_t>(variable)].strategies[choice];
    return PlacementsText(*module, strategy.results[0]);
  };
  const AutoPlacement wide = Find(graph, model);
  CHECK(!wide.is_memory_tight);
  AutoOptions options;
  options.memory_bytes = 0.5 * wide.memory_bytes;
  const AutoPlacement narrow = Find(graph, model, options);
  CHECK(narrow.is_memory_tight);
  CHECK_LE(narrow.memory_bytes, options.memory_bytes);
  CHECK_GE(narrow.solved.cost, wide.solved.cost);
  CHECK_EQ(placements(wide, "m1_0"), "S(0)");
  CHECK_EQ(placements(narrow, "w1_0").substr(0, 1), "S");
  options.memory_bytes = 1e6;
  const auto impossible = PlaceAutomatically(graph, NoPlan(model), model, options);
  REQUIRE(!impossible);
  CHECK(impossible.error().message().starts_with("no placements fit 0.0 GiB on a rank: "));
}

TEST_CASE(
    "auto placement: memory that decides is priced, and as many layers are cut as it asks for") {
  const CostModel model = ModelOf("fsdp=8");
  const std::string text = StepText(5);
  auto module = ParseBody(text);
  Graph& graph = *module->FindGraph("g");
  const AutoPlacement wide = Find(graph, model);
  AutoOptions alone;
  alone.space.has_twins = false;
  for (const double part : {0.95, 0.9, 0.85, 0.8}) {
    INFO(part);
    AutoOptions options;
    options.memory_bytes = part * wide.memory_bytes;
    const AutoPlacement found = Find(graph, model, options);
    CHECK(found.is_memory_tight);
    CHECK_GT(found.solved.price, 0);
    CHECK_LE(found.memory_bytes, options.memory_bytes * (1 + 1e-9));
    CHECK_LE(found.solved.bound, found.solved.cost * (1 + 1e-9));
    CHECK_GE(found.solved.bound, wide.solved.cost * (1 - 1e-9));
    alone.memory_bytes = options.memory_bytes;
    const AutoPlacement one_by_one = Find(graph, model, alone);
    CHECK_LE(one_by_one.solved.bound, found.solved.cost * (1 + 1e-9));
    CHECK_LE(found.solved.cost, 1.02 * one_by_one.solved.cost);  // whole layers
    const double placed = CostBy(text, model, PlanOf(graph, found, model));
    CHECK_LE(placed, found.solved.cost * (1 + 1e-9));
    CHECK_GE(placed, 0.9 * found.solved.cost);
  }
}

TEST_CASE("auto placement: what backward computes again costs what the recomputed graph costs") {
  const CostModel model = ModelOf("fsdp=1");
  for (const auto policy : {TagMemory::Policy::kDefault, TagMemory::Policy::kFull}) {
    auto module = ParseBody(StepText(3));
    Graph& graph = *module->FindGraph("g");
    AutoOptions options;
    options.memory_policy = policy;
    const AutoPlacement found = Find(graph, model, options);
    CHECK_LT(found.memory_bytes, Find(graph, model).memory_bytes);
    OrDie(TagMemory({.policy = policy}).Run(*module));
    CHECK(OrDie(Recompute().Run(*module)) == Changed::kYes);
    OrDie(PlaceGraph(graph, NoPlan(model), Reshard::kBlocks));
    CHECK_EQ(found.solved.cost, doctest::Approx(OrDie(CostOfPlaced(graph, model)).total()));
  }
}

TEST_CASE("auto placement: the cheapest memory policy that fits is taken") {
  const CostModel model = ModelOf("fsdp=2");
  auto module = ParseBody(StepText(8));
  Graph& graph = *module->FindGraph("g");
  const auto with = [&](TagMemory::Policy policy, double bytes) {
    AutoOptions options;
    options.memory_policy = policy;
    options.memory_bytes = bytes;
    return PlaceAutomatically(graph, NoPlan(model), model, options);
  };
  using Policy = TagMemory::Policy;
  const AutoPlacement wide = Find(graph, model);
  for (const double part : {1.0, 0.8, 0.6, 0.4, 0.2}) {
    INFO(part);
    AutoOptions options;
    options.memory_bytes = part * wide.memory_bytes;
    const auto best = PlaceWithMemoryPolicies(graph, NoPlan(model), model, options);
    double least = std::numeric_limits<double>::infinity();
    for (const Policy policy : {Policy::kNone, Policy::kDefault, Policy::kFull})
      if (const auto one = with(policy, options.memory_bytes))
        least = std::min(least, one->solved.cost);
    REQUIRE_EQ(best.has_value(), std::isfinite(least));
    if (!best) continue;
    CHECK_EQ(best->solved.cost, doctest::Approx(least));
    CHECK_LE(best->memory_bytes, options.memory_bytes * (1 + 1e-9));
    if (part == 1.0) CHECK(best->memory_policy == Policy::kNone);
  }
}

TEST_CASE("auto placement: a pipeline costs its slowest stage, and one stage costs the step") {
  const CostModel model = ModelOf("fsdp=1");
  auto module = ParseBody(StepText(4));
  Graph& graph = *module->FindGraph("g");
  AutoOptions options;
  options.memory_policy = TagMemory::Policy::kFull;
  const AutoPlacement found = Find(graph, model, options);
  const Recomputation recomputation = OrDie(RecomputationOf(graph, TagMemory::Policy::kFull));
  OrDie(PlaceGraph(graph, NoPlan(model), Reshard::kBlocks));
  const auto pipeline = [&](int64_t stages, int64_t microbatches) {
    return CostOfPipeline(graph, model, recomputation, stages, microbatches);
  };
  const PipelineCost one = OrDie(pipeline(1, 1));
  CHECK_EQ(one.us, doctest::Approx(found.solved.cost));
  CHECK_EQ(one.memory_bytes, doctest::Approx(found.memory_bytes));
  options.space.rounds = 3;
  auto again = ParseBody(StepText(4));
  const AutoPlacement three = Find(*again->FindGraph("g"), model, options);
  CHECK_EQ(OrDie(pipeline(1, 3)).us, doctest::Approx(three.solved.cost));

  const PipelineCost two = OrDie(pipeline(2, 2));
  CHECK_EQ(two.first_layers, std::vector<int64_t>{0, 2});
  CHECK_GT(two.us, three.solved.cost / 2);
  CHECK_LT(two.us, three.solved.cost);
  const std::string json = PlacementJson(*again->FindGraph("g"), three, model, &two);
  CHECK(json.ends_with(
      fmt::format("\n\"pipeline\": {{\"total_us\": {}, \"memory_bytes\": {}, \"stages\": 2, "
                  "\"microbatches\": 2, \"first_layers\": [0, 2]}}}}\n",
                  two.us, two.memory_bytes)));
  CHECK_EQ(OrDie(pipeline(4, 8)).first_layers, std::vector<int64_t>{0, 1, 2, 3});
  CHECK_EQ(pipeline(5, 8).error().message(), "4 layers do not make 5 stages: graph g");
}

TEST_CASE("auto placement: meshes of some ranks are all products of their axes") {
  const auto meshes = [](int64_t ranks, std::vector<std::string> axes) {
    return fmt::format("{}", fmt::join(MeshesOf(ranks, axes), " "));
  };
  CHECK_EQ(meshes(4, {"tp", "fsdp"}), "fsdp=4 fsdp=2,tp=2 tp=4");
  CHECK_EQ(meshes(4, {"fsdp", "cp", "tp"}), "fsdp=4 fsdp=2,cp=2 fsdp=2,tp=2 cp=4 cp=2,tp=2 tp=4");
  CHECK_EQ(meshes(2, {"fsdp", "ep"}), "fsdp=2 fsdp=2,ep=2");
}

TEST_CASE("auto placement: what a plan decides of calls is kept") {
  const CostModel model = ModelOf("tp=8");
  auto module = ParseBody(StepText(1));
  Graph& graph = *module->FindGraph("g");
  const double best = Find(graph, model).solved.cost;
  const auto constraints = OrDie(PlacementPlan::Parse(R"(
[[node]]
module = "layers.*.ffn"
phase = "forward"
op = "aten.mm.default"
tp = "RR -> R"
)",
                                                      "c.toml", model.mesh(), {}));
  const AutoPlacement found = OrDie(PlaceAutomatically(graph, constraints, model, {}));
  CHECK_GT(found.solved.cost, best);
  INFO(PlanText(graph, found, model.mesh(), ""));
  CHECK(PlanText(graph, found, model.mesh(), "").find("op = \"aten.mm.default\", tp = \"RR -> R") !=
        std::string::npos);
}

/// The placements of `value`, or of the copy that all its readers read.
std::string PlacementsGiven(const Graph& graph, ValueId value) {
  const NodeId user = OnlyUserOf(graph, graph.value(value).def);
  if (user.valid() && graph.op(user) == kRedistributeOp) value = graph.result(user);
  const Module& module = graph.module();
  return PlacementsText(module, module.types()[graph.value(value).type].placements);
}

TEST_CASE("auto placement: what leaves a module is placed as the constraints say") {
  const CostModel model = ModelOf("tp=8");
  const std::string text = StepText(3);
  auto module = ParseBody(text);
  Graph& graph = *module->FindGraph("g");
  double last_cost = Find(graph, model).solved.cost;
  // Layer 1 alone, then all layers: an entry for one of several that are alike holds for it only.
  for (const std::string_view layer : {"1", "*"}) {
    INFO(layer);
    const auto constraints = OrDie(PlacementPlan::Parse(
        fmt::format("[[output]]\nmodule = \"layers.{}.ffn\"\ntp = \"S(2)\"\n", layer), "c.toml",
        model.mesh(), {}));
    const AutoPlacement found = OrDie(PlaceAutomatically(graph, constraints, model, {}));
    CHECK_GT(found.solved.cost, last_cost);
    last_cost = found.solved.cost;
    const PlacementPlan plan = PlanOf(graph, found, model);
    CHECK_LE(CostBy(text, model, plan), found.solved.cost * (1 + 1e-9));
    auto placed = ParseBody(text);
    Graph& step = *placed->FindGraph("g");
    OrDie(PlaceGraph(step, plan, Reshard::kBlocks));
    CHECK_EQ(PlacementsGiven(step, ValueNamed(step, "x_2")), "S(2)");
    CHECK_EQ(PlacementsGiven(step, ValueNamed(step, "x_1")) == "S(2)", layer == "*");
  }
}

TEST_CASE(
    "auto placement: a constraint on one of several layers that are alike holds for it only") {
  const CostModel model = ModelOf("tp=8");
  auto module = ParseBody(StepText(3));
  Graph& graph = *module->FindGraph("g");
  const auto constraints = OrDie(PlacementPlan::Parse(
      "[[parameter]]\nname = \"layers.1.ffn.w1\"\ntp = \"S(1)\"\n", "c.toml", model.mesh(), {}));
  const AutoPlacement found = OrDie(PlaceAutomatically(graph, constraints, model, {}));
  const std::string text = PlanText(graph, found, model.mesh(), "");
  INFO(text);
  CHECK(text.find("{ name = \"layers.1.ffn.w1\", tp = \"S(1)\" }") != std::string::npos);
  CHECK(text.find("{ name = \"layers.*.ffn.w1\", tp = \"S(1)\" }") == std::string::npos);
}

TEST_CASE("T113: why says what the alternatives of a node would cost") {
  const CostModel model = ModelOf("fsdp=2,tp=2");
  auto module = ParseBody(StepText(2));
  Graph& graph = *module->FindGraph("g");
  const AutoPlacement found = Find(graph, model);
  const int variable = found.space.variable_of.at(NodeNamed(graph, "m1_0"));
  const auto alternatives = AlternativesOf(found, variable, 4, {});
  REQUIRE_GT(alternatives.size(), 3);
  CHECK(alternatives[0].is_chosen);
  CHECK_EQ(alternatives[0].forced_us.value_or(-1), doctest::Approx(0));
  const std::string why = OrDie(WhyText(graph, found, model, "m1_0", {}));
  CHECK(why.starts_with("m1_0: aten.mm.default, forward in layers.0.ffn, with 1 nodes that are "));
  CHECK(why.find("chosen") != std::string::npos);
  const auto unknown = WhyText(graph, found, model, "m9_0", {});
  REQUIRE(!unknown);
  CHECK(unknown.error().message().starts_with("no node 'm9_0': graph g"));
}

}  // namespace
}  // namespace strata
