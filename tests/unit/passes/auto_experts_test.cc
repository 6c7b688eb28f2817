#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "ir/verify.h"
#include "passes/placement/auto/auto_plan.h"
#include "passes/placement/auto/plan_text.h"
#include "passes/placement/costs/placed_cost.h"
#include "passes/placement/lowering/lower.h"
#include "passes/placement/place.h"
#include "tests/support/graphs.h"
#include "tests/unit/passes/cost_models.h"

namespace strata {
namespace {

using testing::ModelOn;
using testing::OrDie;
using testing::ParseBody;

/// Each of 4096 tokens goes to two of 64 experts.
constexpr std::string_view kDispatch = R"(
  w = placeholder : bf16[64, 1024, 1024][1048576, 1024, 1]cpu {+fqn='layers.0.moe.experts.w1' +input='parameter'}
  in = placeholder : bf16[4096, 1024][1024, 1]cpu {+fqn='in' +input='batch'}
  chosen = placeholder : i64[4096, 2][2, 1]cpu {+fqn='chosen' +input='batch'}
  x = aten.relu.default(in) : bf16[4096, 1024][1024, 1]cpu {forward module=layers.0.norm}
  none = aten.zeros.default([4096, 64], dtype=torch.bool) : b8[4096, 64][64, 1]cpu {forward module=layers.0.moe}
  marks = aten.scatter.value(none, 1, chosen, True) : b8[4096, 64][64, 1]cpu {forward module=layers.0.moe}
  counts = aten.sum.dim_IntList(marks, [0]) : i64[64][1]cpu {forward module=layers.0.moe}
  flat = aten.reshape.default(chosen, [8192]) : i64[8192][1]cpu ~chosen {forward module=layers.0.moe}
  (_, order) = aten.sort.stable(flat, stable=True, dim=0) as sort : (i64[8192][1]cpu, i64[8192][1]cpu) {forward module=layers.0.moe}
  source = aten.floor_divide.Scalar(order, 2) : i64[8192][1]cpu {forward module=layers.0.moe}
  rows = aten.index_select.default(x, 0, source) : bf16[8192, 1024][1024, 1]cpu {forward module=layers.0.moe}
  sums = aten.cumsum.default(counts, 0) : i64[64][1]cpu {forward module=layers.0.moe}
  ends = aten._to_copy.default(sums, dtype=torch.int32) : i32[64][1]cpu {forward module=layers.0.moe}
  y = aten._grouped_mm.default(rows, w, ends) : bf16[8192, 1024][1024, 1]cpu {forward module=layers.0.moe.experts}
  base = aten.zeros_like.default(x) : bf16[4096, 1024][1024, 1]cpu {forward module=layers.0.moe}
  out = aten.index_add.default(base, 0, source, y) : bf16[4096, 1024][1024, 1]cpu {forward module=layers.0.moe}
  loss = aten.sum.default(out) : bf16[][]cpu {loss}
  g = aten.ones_like.default(loss) : bf16[][]cpu {backward}
  output([loss])
)";

double DispatchCostBy(const PlacementPlan& plan, const CostModel& model) {
  auto module = ParseBody(kDispatch);
  Graph& graph = *module->FindGraph("g");
  OrDie(PlaceGraph(graph, plan, Reshard::kBlocks));
  const double cost = OrDie(CostOfPlaced(graph, model)).total();
  OrDie(LowerPlacements().Run(*module));
  OrDie(Verify(*module));
  return cost;
}

AutoPlacement FindDispatch(Graph& graph, const CostModel& model, std::string_view constraints) {
  const auto plan = OrDie(PlacementPlan::Parse(constraints, "c.toml", model.mesh(), {}));
  return OrDie(PlaceAutomatically(graph, plan, model, {}));
}

constexpr std::string_view kCutExperts = R"toml(
[[parameter]]
name = "layers.*.moe.experts.*"
ep = "S(0)"
)toml";

TEST_CASE(
    "auto placement: rows go to the ranks of their experts, as in the plan by hand or better") {
  for (const std::string_view mesh : {"fsdp=4,ep=2", "fsdp=4,ep=4", "fsdp=8,tp=2,ep=8"}) {
    INFO(mesh);
    const CostModel model = ModelOn(mesh);
    auto module = ParseBody(kDispatch);
    Graph& graph = *module->FindGraph("g");
    for (const std::string_view constraints : {std::string_view(""), kCutExperts}) {
      const AutoPlacement found = FindDispatch(graph, model, constraints);
      CHECK(found.solved.status == SolverResult::Status::kOptimal);
      const std::string text = PlanText(graph, found, model.mesh(), "test");
      INFO(text);
      const double placed =
          DispatchCostBy(OrDie(PlacementPlan::Parse(text, "found.toml", model.mesh(), {})), model);
      CHECK_LE(placed, found.solved.cost * (1 + 1e-9));
      CHECK_GE(placed, 0.9 * found.solved.cost);
      const auto by_hand = OrDie(PlacementPlan::Parse(kCutExperts, "hand.toml", model.mesh(), {}));
      CHECK_LE(placed, DispatchCostBy(by_hand, model) * (1 + 1e-9));
      if (mesh == "fsdp=4,ep=4" && constraints == kCutExperts)
        CHECK(text.find("fsdp = \"E(0)S(0)P(sum) -> E(0)\"") != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace strata
