#include "passes/placement/costs/compute_scales.h"

#include <string_view>

#include <doctest/doctest.h>

#include "passes/placement/auto/auto_plan.h"
#include "passes/placement/costs/placed_cost.h"
#include "passes/placement/costs/placement_cost.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;
using testing::ParseBody;

constexpr std::string_view kProductsBody = R"(
  x = placeholder : f32[512, 512][512, 1]cpu
  a = aten.mm.default(x, x) : f32[512, 512][512, 1]cpu {forward}
  t = aten.t.default(a) : f32[512, 512][1, 512]cpu ~a {forward}
  b = aten.mm.default(t, x) : f32[512, 512][512, 1]cpu {forward}
  c = aten.relu.default(b) : f32[512, 512][512, 1]cpu {forward}
  output(c)
)";

double ComputeUsOf(Graph& graph, const CostModel& model, std::string_view name) {
  for (const PlacedCost::Item& item : OrDie(CostOfPlaced(graph, model)).items)
    if (graph.name(item.node) == name) return item.compute_us;
  return -1;
}

TEST_CASE("recorded times scale what nodes cost, and the rest by their ratio") {
  const auto module = ParseBody(kProductsBody);
  Graph& graph = module->graph({0});
  const Topology topology = OrDie(Topology::Load("cpu"));
  CostModel model = OrDie(CostModel::Make(topology, Mesh()));
  const double a = ComputeUsOf(graph, model, "a"), b = ComputeUsOf(graph, model, "b"),
               c = ComputeUsOf(graph, model, "c");
  REQUIRE_GT(a, 0);
  // A view has a time in a profile, and costs nothing.
  const NodeTimes times = {{"a", 4 * a}, {"b", b}, {"t", 1}, {"elsewhere", 1}};
  model.set_scales(OrDie(ScalesOf(graph, times, topology)));
  CHECK_EQ(ComputeUsOf(graph, model, "a"), doctest::Approx(4 * a));
  CHECK_EQ(ComputeUsOf(graph, model, "b"), doctest::Approx(b));
  CHECK_EQ(ComputeUsOf(graph, model, "t"), 0);
  CHECK_EQ(ComputeUsOf(graph, model, "c"), doctest::Approx(c * (4 * a + b) / (a + b)));
}

TEST_CASE("a profile of another step is an error") {
  const auto module = ParseBody(kProductsBody);
  CHECK_EQ(MessageOf(ScalesOf(module->graph({0}), {{"fused_1", 3}}, OrDie(Topology::Load("cpu")))),
           "no node of the step has a time in the profile: record one rank without fuse, by strata "
           "train CONFIG --passes dce,canonicalize --profile 3 --trace T, and write the file with "
           "strata profile 'T#graph=step' --json");
}

}  // namespace
}  // namespace strata
