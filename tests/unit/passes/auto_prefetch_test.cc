#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "passes/placement/auto/auto_plan.h"
#include "passes/placement/auto/plan_text.h"
#include "passes/placement/costs/placed_cost.h"
#include "passes/placement/costs/prefetch.h"
#include "passes/placement/place.h"
#include "tests/support/graphs.h"
#include "tests/unit/passes/cost_models.h"

// Communication that can run beside computation, by the ids of the reference.
namespace strata {
namespace {

using testing::ModelOn;
using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;

/// Two products, of which the second reads the sum of two parameters; `d` mixes data and a
/// parameter.
constexpr std::string_view kPrefetchStep = R"(
  w = placeholder : bf16[1024, 1024][1024, 1]cpu {+fqn='w' +input='parameter'}
  v = placeholder : bf16[1024, 1024][1024, 1]cpu {+fqn='v' +input='parameter'}
  x = placeholder : bf16[512, 1024][1024, 1]cpu {+fqn='x' +input='batch'}
  a = aten.t.default(w) : bf16[1024, 1024][1, 1024]cpu ~w {forward}
  b = aten.add.Tensor(w, v) : bf16[1024, 1024][1024, 1]cpu {forward}
  c = aten.t.default(b) : bf16[1024, 1024][1, 1024]cpu ~b {forward}
  d = aten.mm.default(x, a) : bf16[512, 1024][1024, 1]cpu {forward}
  e = aten.mm.default(d, c) : bf16[512, 1024][1024, 1]cpu {forward}
  loss = aten.sum.default(e) : bf16[][]cpu {loss}
  g = aten.ones_like.default(e) : bf16[512, 1024][1024, 1]cpu {backward}
  gt = aten.t.default(g) : bf16[1024, 512][1, 1024]cpu ~g {backward}
  gb = aten.mm.default(gt, d) : bf16[1024, 1024][1024, 1]cpu {backward}
  gd = aten.mm.default(g, b) : bf16[512, 1024][1024, 1]cpu {backward}
  gdt = aten.t.default(gd) : bf16[1024, 512][1, 1024]cpu ~gd {backward}
  ga = aten.mm.default(gdt, x) : bf16[1024, 1024][1024, 1]cpu {backward}
  gw = aten.add.Tensor(ga, gb) : bf16[1024, 1024][1024, 1]cpu {backward}
  gv = aten.clone.default(gb) : bf16[1024, 1024][1024, 1]cpu {backward}
  output([loss, gw, gv])
)";

std::string Names(const Graph& graph, const std::set<NodeId>& nodes) {
  std::string names;
  for (const NodeId node : graph.nodes())
    if (nodes.contains(node)) names += std::string(graph.name(node)) + " ";
  return names;
}

TEST_CASE("T98: what parameters alone make can be gathered early, however many they are") {
  auto module = ParseBody(kPrefetchStep);
  const Graph& graph = *module->FindGraph("g");
  CHECK_EQ(Names(graph, PrefetchableOf(graph).from_parameters), "w v a b c ");
  auto none = ParseBody(R"(
  x = placeholder : f32[4][1]cpu {+fqn='x' +input='batch'}
  y = aten.relu.default(x) : f32[4][1]cpu
  z = aten.arange.default(4) : i64[4][1]cpu
  output([y])
)");
  const Graph& without = *none->FindGraph("g");
  CHECK_EQ(Names(without, PrefetchableOf(without).from_parameters), "");
}

TEST_CASE("T99: views and casts before gradients can wait for a reduction; products cannot") {
  auto module = ParseBody(kPrefetchStep);
  const Graph& graph = *module->FindGraph("g");
  CHECK_EQ(Names(graph, PrefetchableOf(graph).to_gradients), "gv ");

  auto chain = ParseBody(R"(
  w = placeholder : f32[4, 4][4, 1]cpu {+fqn='w' +input='parameter'}
  v = placeholder : f32[4, 4][4, 1]cpu {+fqn='v' +input='parameter'}
  x = placeholder : f32[4, 4][4, 1]cpu {+fqn='x' +input='batch'}
  loss = aten.sum.default(x) : f32[][]cpu {loss}
  g = aten.mm.default(x, x) : f32[4, 4][4, 1]cpu {backward}
  h = aten.t.default(g) : f32[4, 4][1, 4]cpu ~g {backward}
  i = aten.clone.default(h) : f32[4, 4][4, 1]cpu {backward}
  j = aten.clone.default(g) : f32[4, 4][4, 1]cpu {backward}
  k = aten.clone.default(x) : f32[4, 4][4, 1]cpu {backward}
  output([loss, i, j, k])
)");
  // k is returned beyond the gradients.
  const Graph& of_chain = *chain->FindGraph("g");
  CHECK_EQ(Names(of_chain, PrefetchableOf(of_chain).to_gradients), "h i j ");
}

TEST_CASE("T100: what can run beside computation costs its part, and nothing but its steps at 0") {
  const auto found = [](double exposed) {
    CostModel model = ModelOn("fsdp=8");
    model.set_exposed(exposed);
    auto module = ParseBody(kPrefetchStep);
    Graph& graph = *module->FindGraph("g");
    // Batches are cut and parameters are stored in parts, so both are communicated.
    const PlacementPlan kept = OrDie(PlacementPlan::Parse(
        "parameter = [{ name = \"*\", fsdp = \"S(0)\" }]\n", "kept", model.mesh(), {}));
    const AutoPlacement placement = OrDie(PlaceAutomatically(graph, kept, model, {}));
    const std::string plan = PlanText(graph, placement, model.mesh(), "");
    OrDie(PlaceGraph(graph, OrDie(PlacementPlan::Parse(plan, "found", model.mesh(), {})),
                     Reshard::kBlocks));
    // The graph that the plan makes costs what the search said.
    CHECK_EQ(OrDie(CostOfPlaced(graph, model)).total(), doctest::Approx(placement.solved.cost));
    return placement;
  };
  const AutoPlacement all = found(1), half = found(0.5), none = found(0);
  CHECK_LT(half.solved.cost, all.solved.cost);
  CHECK_LT(none.communication_us, half.communication_us);
  int64_t prefetched = 0;
  for (const SearchSpace::Operand& operand : none.space.operands)
    prefetched += operand.is_prefetched ? operand.count : 0;
  CHECK_GT(prefetched, 0);
  // Gathers of both parameters, reductions of both gradients: a step for each. The loss is awaited.
  Module module;
  const CostModel model = ModelOn("fsdp=8");
  const Type loss = module.types()[module.types().Parse("bf16[][]cpu")];
  CHECK_LE(
      none.communication_us,
      static_cast<double>(prefetched) * CostModel::kTransitionUs +
          model.RedistributionUs(module, loss, {Partial(module.Intern("sum"))}, {Replicate()}));
}

}  // namespace
}  // namespace strata
