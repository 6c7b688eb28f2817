#include "passes/simulate/lower_bound.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/rewriter.h"
#include "passes/simulate/timeline.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/topologies.h"
#include "tests/unit/passes/simulate/microseconds.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::ParseBody;
using testing::Us;

NodeCost CostOf(const Graph& graph) {
  return OrDie(
      NodeCost::Make(OrDie(Topology::Parse(testing::kSlowTopology, "t.toml", "t")), graph));
}

StepBound BoundOf(std::string_view body) {
  const auto module = ParseBody(body);
  const Graph& graph = *module->FindGraph("g");
  return OrDie(StepBoundOf(graph, CostOf(graph)));
}

constexpr std::string_view kChain = R"(
  x = placeholder : f32[8][1]cpu
  a = aten.relu.default(x) : f32[8][1]cpu
  g = _c10d_functional.all_reduce.default(a, 'sum', 'ep') : f32[8][1]cpu
  w = _c10d_functional.wait_tensor.default(g) : f32[8][1]cpu ~g
  b = aten.relu.default(w) : f32[8][1]cpu
  output([b])
)";

TEST_CASE("bound: nothing overlaps in a chain") {
  const StepBound bound = BoundOf(kChain);
  CHECK_EQ(bound.least_us, Us(50));
  CHECK_EQ(bound.serial_us, Us(50));
  CHECK_EQ(bound.Overlapped(50), 1);
}

TEST_CASE("bound: a perfect order computes while a collective runs") {
  // The chain, and four kernels beside it.
  const StepBound bound = BoundOf(R"(
  x = placeholder : f32[8][1]cpu
  a = aten.relu.default(x) : f32[8][1]cpu
  g = _c10d_functional.all_reduce.default(a, 'sum', 'ep') : f32[8][1]cpu
  w = _c10d_functional.wait_tensor.default(g) : f32[8][1]cpu ~g
  b = aten.relu.default(w) : f32[8][1]cpu
  c = aten.relu.default(x) : f32[8][1]cpu
  d = aten.relu.default(c) : f32[8][1]cpu
  e = aten.relu.default(d) : f32[8][1]cpu
  f = aten.relu.default(e) : f32[8][1]cpu
  output([b, f])
)");
  CHECK_EQ(bound.serial_us, Us(90));
  CHECK_EQ(bound.least_us, Us(60));  // six kernels, one after the other
  CHECK_EQ(bound.Overlapped(90), Us(0));
  CHECK_EQ(bound.Overlapped(75), doctest::Approx(0.5));
  CHECK_EQ(bound.Overlapped(60), Us(1));
}

TEST_CASE("bound: collectives share links, whatever their groups") {
  const StepBound bound = BoundOf(R"(
  x = placeholder : f32[8][1]cpu
  g = _c10d_functional.all_reduce.default(x, 'sum', 'a') : f32[8][1]cpu
  h = _c10d_functional.all_reduce.default(x, 'sum', 'b') : f32[8][1]cpu
  w = _c10d_functional.wait_tensor.default(g) : f32[8][1]cpu ~g
  v = _c10d_functional.wait_tensor.default(h) : f32[8][1]cpu ~h
  y = aten.add.Tensor(w, v) : f32[8][1]cpu
  output([y])
)");
  CHECK_EQ(bound.least_us, Us(70));
}

TEST_CASE("bound: only the collectives of one kind count when asked for") {
  const auto module = ParseBody(kChain);
  const Graph& graph = *module->FindGraph("g");
  NodeCost cost = CostOf(graph);
  cost.CountOnly(CollectiveKind::kAllToAll);
  CHECK_EQ(OrDie(StepBoundOf(graph, cost)).serial_us, Us(20));
  CHECK_EQ(OrDie(Simulate(graph, cost)).step_us, Us(20));
  cost.CountOnly(CollectiveKind::kAllReduce);
  CHECK_EQ(OrDie(StepBoundOf(graph, cost)).serial_us, Us(50));
}

TEST_CASE("bound: measured times replace those of the model") {
  const auto module = ParseBody(kChain);
  const Graph& graph = *module->FindGraph("g");
  NodeCost cost = CostOf(graph);
  std::map<NodeId, double> us;
  for (const NodeId node : graph.nodes())
    us[node] = graph.name(node) == "b" ? 100 : 3;  // waits and launches were measured, too
  cost.UseMeasured(std::move(us));
  CHECK_EQ(OrDie(StepBoundOf(graph, cost)).serial_us, Us(3 + 30 + 100));
}

TEST_CASE("bound: what comes before a node and what comes after it take their times both") {
  // Two collectives at once share a link; then five kernels, with a collective beside the last
  // ones.
  const StepBound bound = BoundOf(R"(
  x = placeholder : f32[8][1]cpu
  g = _c10d_functional.all_reduce.default(x, 'sum', 'a') : f32[8][1]cpu
  h = _c10d_functional.all_reduce.default(x, 'sum', 'b') : f32[8][1]cpu
  w = _c10d_functional.wait_tensor.default(g) : f32[8][1]cpu ~g
  v = _c10d_functional.wait_tensor.default(h) : f32[8][1]cpu ~h
  y = aten.add.Tensor(w, v) : f32[8][1]cpu
  a = aten.relu.default(y) : f32[8][1]cpu
  b = aten.neg.default(y) : f32[8][1]cpu
  c = aten.abs.default(y) : f32[8][1]cpu
  d = aten.sin.default(y) : f32[8][1]cpu
  output([a, b, c, d])
)");
  CHECK_EQ(bound.serial_us, Us(110));
  CHECK_EQ(bound.least_us, Us(110));  // links alone: 60 and 20 after them; kernels alone: 30 and 50
}

TEST_CASE("bound: what nothing waits for takes its time after what it reads") {
  // Two collectives at once share a link, then six kernels. Nothing waits for `s`, which can run
  // beside all of it, nor for four of the kernels.
  const StepBound bound = BoundOf(R"(
  x = placeholder : f32[8][1]cpu
  a = aten.relu.default(x) : f32[8][1]cpu
  s = aten.neg.default(a) : f32[8][1]cpu
  g = _c10d_functional.all_reduce.default(a, 'sum', 'a') : f32[8][1]cpu
  h = _c10d_functional.all_reduce.default(a, 'sum', 'b') : f32[8][1]cpu
  w = _c10d_functional.wait_tensor.default(g) : f32[8][1]cpu ~g
  v = _c10d_functional.wait_tensor.default(h) : f32[8][1]cpu ~h
  y = aten.add.Tensor(w, v) : f32[8][1]cpu
  i = _c10d_functional.all_reduce.default(y, 'sum', 'a') : f32[8][1]cpu
  b = aten.neg.default(y) : f32[8][1]cpu
  c = aten.abs.default(y) : f32[8][1]cpu
  d = aten.sin.default(y) : f32[8][1]cpu
  e = aten.cos.default(y) : f32[8][1]cpu
  u = _c10d_functional.wait_tensor.default(i) : f32[8][1]cpu ~i
  z = aten.relu.default(u) : f32[8][1]cpu
  output([s, b, c, d, e, z])
)");
  CHECK_EQ(bound.least_us, Us(10 + 60 + 10 + 50));
}

TEST_CASE("bound: nothing is recomputed before the gradient of the loss can be computed") {
  const auto least = [](std::string_view attribute) {
    return BoundOf(fmt::format(R"(
  x = placeholder : f32[8][1]cpu
  a = aten.relu.default(x) : f32[8][1]cpu {{forward}}
  g = _c10d_functional.all_reduce.default(a, 'sum', 'ep') : f32[8][1]cpu {{forward}}
  w = _c10d_functional.wait_tensor.default(g) : f32[8][1]cpu ~g {{forward}}
  loss = aten.relu.default(w) : f32[8][1]cpu {{forward}}
  d = aten.neg.default(loss) : f32[8][1]cpu {{backward}}
  b = aten.relu.default(x) : f32[8][1]cpu {{backward{0}}}
  h = _c10d_functional.all_reduce.default(b, 'sum', 'ep') : f32[8][1]cpu {{backward{0}}}
  v = _c10d_functional.wait_tensor.default(h) : f32[8][1]cpu ~h {{backward{0}}}
  e = aten.add.Tensor(d, v) : f32[8][1]cpu {{backward}}
  output([e])
)",
                               attribute))
        .least_us;
  };
  CHECK_EQ(least(""), Us(80));  // both collectives at once
  CHECK_EQ(least(" +recomputed_from='a'"), Us(50 + 10 + 30 + 10));
}

/// Kernels and collectives that read what random nodes before them give.
std::string RandomBody(std::mt19937& random, int nodes) {
  std::string body = "  n0 = placeholder : f32[8][1]cpu\n", results = "n0";
  for (int i = 1; i <= nodes; ++i) {
    const auto earlier = [&] { return random() % static_cast<unsigned>(i); };
    if (random() % 3 == 0) {
      body += fmt::format(
          "  l{0} = _c10d_functional.all_reduce.default(n{1}, 'sum', '{2}') : f32[8][1]cpu\n"
          "  n{0} = _c10d_functional.wait_tensor.default(l{0}) : f32[8][1]cpu ~l{0}\n",
          i, earlier(), random() % 2 == 0 ? "a" : "b");
    } else {
      body += fmt::format("  n{} = aten.add.Tensor(n{}, n{}) : f32[8][1]cpu\n", i, earlier(),
                          earlier());
    }
    results += fmt::format(", n{}", i);
  }
  return body + fmt::format("  output([{}])\n", results);
}

/// The least step of all orders that respect data, by trying each.
class AllOrders {
 public:
  explicit AllOrders(Graph& graph) : graph_(graph), cost_(CostOf(graph)), rewriter_(graph) {
    for (const NodeId node : graph.nodes())
      if (graph.node(node).kind == NodeKind::kCall) calls_.push_back(node);
    is_placed_.resize(calls_.size());
  }
  double Least() {
    Place(0);
    return least_;
  }

 private:
  void Place(size_t placed) {
    if (placed == calls_.size()) {
      least_ = std::min(least_, OrDie(Simulate(graph_, cost_)).step_us);
      return;
    }
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (is_placed_[i] || !IsReady(calls_[i])) continue;
      is_placed_[i] = true;
      rewriter_.MoveBefore(calls_[i], graph_.output());
      Place(placed + 1);
      is_placed_[i] = false;
    }
  }
  bool IsReady(NodeId node) const {
    return std::ranges::all_of(InputsOf(graph_, node), [&](NodeId input) {
      const auto found = std::ranges::find(calls_, input);
      return found == calls_.end() || is_placed_[static_cast<size_t>(found - calls_.begin())];
    });
  }

  Graph& graph_;
  const NodeCost cost_;
  Rewriter rewriter_;
  std::vector<NodeId> calls_;
  std::vector<bool> is_placed_;
  double least_ = 1e9;
};

TEST_CASE("bound: no order of random graphs is faster, and often one is as fast") {
  std::mt19937 random(5);
  int tight = 0;
  constexpr int kGraphs = 60;
  for (int i = 0; i < kGraphs; ++i) {
    const std::string body = RandomBody(random, 5);
    CAPTURE(body);
    const auto module = ParseBody(body);
    Graph& graph = *module->FindGraph("g");
    const StepBound bound = OrDie(StepBoundOf(graph, CostOf(graph)));
    CHECK_LE(OrDie(Simulate(graph, CostOf(graph))).step_us, bound.serial_us * (1 + 1e-9));
    const double least = AllOrders(graph).Least();
    CHECK_GE(least, bound.least_us * (1 - 1e-9));
    tight += least <= bound.least_us * (1 + 1e-9) ? 1 : 0;
  }
  CHECK_GE(tight, kGraphs / 2);
}

}  // namespace
}  // namespace strata
