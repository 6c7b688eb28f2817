#include "passes/budget/budget.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/verify.h"
#include "passes/budget/live_peak.h"
#include "passes/budget/reorder_for_peak.h"
#include "passes/memory/offloadable.h"
#include "passes/memory/recompute.h"
#include "passes/memory/tag_memory.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;

constexpr std::string_view kHead = R"(
  x = placeholder : f32[64, 64][64, 1]cpu
  w = placeholder : f32[64, 64][64, 1]cpu
)";

/// A layer whose four results backward reads: two products, two elementwise operators.
std::string ForwardLayer(int layer, std::string_view in) {
  return fmt::format(R"(
  n{0} = aten.relu.default({1}) : f32[64, 64][64, 1]cpu {{forward module=layers.{0}.norm}}
  a{0} = aten.mm.default(n{0}, w) : f32[64, 64][64, 1]cpu {{forward module=layers.{0}.wq}}
  s{0} = aten.sigmoid.default(a{0}) : f32[64, 64][64, 1]cpu {{forward module=layers.{0}}}
  h{0} = aten.mm.default(s{0}, w) : f32[64, 64][64, 1]cpu {{forward module=layers.{0}.wo}}
)",
                     layer, in);
}
std::string BackwardLayer(int layer, std::string_view grad) {
  return fmt::format(R"(
  p{0} = aten.mul.Tensor({1}, h{0}) : f32[64, 64][64, 1]cpu {{backward module=layers.{0}.wo}}
  q{0} = aten.mul.Tensor(p{0}, s{0}) : f32[64, 64][64, 1]cpu {{backward module=layers.{0}}}
  r{0} = aten.mul.Tensor(q{0}, a{0}) : f32[64, 64][64, 1]cpu {{backward module=layers.{0}.wq}}
  g{0} = aten.mul.Tensor(r{0}, n{0}) : f32[64, 64][64, 1]cpu {{backward module=layers.{0}.norm}}
)",
                     layer, grad);
}

std::unique_ptr<Module> Layers(int count) {
  std::string body(kHead), in = "x";
  for (int layer = 0; layer < count; ++layer) {
    body += ForwardLayer(layer, in);
    in = fmt::format("h{}", layer);
  }
  body += fmt::format("  loss = aten.sum.default({}) : f32[][]cpu {{loss module=loss}}\n", in);
  body +=
      "  back = aten.expand.default(loss, [64, 64]) : f32[64, 64][0, 0]cpu ~ loss {backward "
      "module=loss}\n";
  std::string grad = "back";
  for (int layer = count; layer-- > 0;) {
    body += BackwardLayer(layer, grad);
    grad = fmt::format("g{}", layer);
  }
  return ParseBody(body + fmt::format("  output([loss, {}])\n", grad));
}

struct Outcome {
  int64_t peak_bytes = 0;
  double us = 0;
};

/// What the passes make of tagged nodes.
Outcome Apply(Module& module, const MemoryCosts& costs, const Graph& original) {
  OrDie(Recompute().Run(module));
  OrDie(Offload().Run(module));
  CHECK_OK(Verify(module));
  const Graph& graph = *module.FindGraph("g");
  Outcome outcome{.peak_bytes = LivePeakBytes(graph)};
  for (const NodeId node : graph.nodes()) {
    const std::string_view from = graph.attribute(node, kRecomputedFromAttribute);
    if (!from.empty()) outcome.us += costs.RecomputeUs(NodeNamed(original, from));
    if (graph.op(node) == kOffloadOp) outcome.us += 64 * 64 * 4 * costs.offload_us_per_byte;
  }
  return outcome;
}

/// The least time under a budget, over all tags of all forward nodes.
std::optional<double> BruteForce(const Module& module, const MemoryCosts& costs, int64_t bytes) {
  const Graph& graph = *module.FindGraph("g");
  std::vector<NodeId> nodes;
  for (const NodeId node : graph.nodes())
    if (graph.node(node).kind == NodeKind::kCall && !IsBackward(graph, node)) nodes.push_back(node);
  size_t states = 1;
  for (size_t i = 0; i < nodes.size(); ++i)
    states *= 3;
  std::optional<double> best;
  for (size_t state = 0; state < states; ++state) {
    const auto copy = module.Clone();
    Graph& tagged = *copy->FindGraph("g");
    const IdVector<NodeId, int64_t> offloadable = OffloadableBytes(tagged);
    size_t rest = state, next = 0;
    bool is_possible = true;
    ApplyMemoryPolicy(tagged, [&](const Graph&, NodeId node) {
      while (nodes[next] != node)  // nodes that no policy decides
        ++next, rest /= 3;
      const size_t choice = rest % 3;
      rest /= 3;
      ++next;
      if (choice == 2 && offloadable[node] == 0) is_possible = false;
      return choice == 0   ? MemoryTag::kMustSave
             : choice == 1 ? MemoryTag::kMustRecompute
                           : MemoryTag::kMustCpuOffload;
    });
    if (!is_possible) continue;
    const Outcome outcome = Apply(*copy, costs, graph);
    if (outcome.peak_bytes <= bytes && (!best || outcome.us < *best)) best = outcome.us;
  }
  return best;
}

TEST_CASE("a plan under a budget is the best of all plans of a small graph") {
  const auto module = Layers(1);
  const Graph& graph = *module->FindGraph("g");
  CHECK_LE(graph.num_nodes(), 14);
  const MemoryCosts costs = OrDie(CostsOf(graph, ""));
  constexpr int64_t kTensor = 64 * 64 * 4;
  int fitting = 0;
  for (int64_t tensors = 1; tensors <= 8; ++tensors) {
    const int64_t bytes = tensors * kTensor + 128;
    INFO(tensors);
    const std::optional<double> best = BruteForce(*module, costs, bytes);
    BudgetSearch search = SearchOf(*module, graph.id(), costs, {});
    const Result<BudgetedPlan> plan = search.Fit(bytes);
    REQUIRE_EQ(plan.has_value(), best.has_value());
    if (!best) continue;
    ++fitting;
    CHECK_LE(plan->peak_bytes, bytes);
    CHECK_EQ(plan->us, doctest::Approx(*best));
  }
  CHECK_GT(fitting, 2);
  CHECK_LT(fitting, 8);
}

TEST_CASE("the pass holds its budget, and an error names the smallest peak") {
  const auto module = Layers(6);
  const int64_t all = LivePeakBytes(*module->FindGraph("g"));
  for (const int part : {90, 70, 50}) {
    const auto copy = module->Clone();
    Budget::Options options{.bytes = all * part / 100};
    OrDie(Budget(options).Run(*copy));
    const MemoryCosts costs = OrDie(CostsOf(*module->FindGraph("g"), ""));
    const Outcome outcome = Apply(*copy, costs, *module->FindGraph("g"));
    CHECK_LE(outcome.peak_bytes, options.bytes);
    CHECK_GT(outcome.us, 0);
  }
  const std::string message = MessageOf(Budget({.bytes = 1000}).Run(*module->Clone()));
  CHECK(
      message.starts_with("no plan holds the memory budget: graph g: 1000 bytes; the smallest "
                          "peak that was found is "));
  const int64_t smallest = std::stoll(message.substr(message.find("found is ") + 9));
  CHECK(Budget({.bytes = smallest}).Run(*module->Clone()).has_value());
  CHECK_EQ(MessageOf(Budget().Run(*module->Clone())),
           "option 'bytes' must be above 0, give the peak of a step");
}

TEST_CASE("less memory takes more time along the front, and equal inputs give equal plans") {
  const auto module = Layers(5);
  const GraphId graph = module->FindGraph("g")->id();
  const MemoryCosts costs = OrDie(CostsOf(module->graph(graph), ""));
  const auto front = OrDie(SearchOf(*module, graph, costs, {}).Front());
  REQUIRE_GT(front.size(), 3);
  for (size_t i = 1; i < front.size(); ++i) {
    CHECK_GT(front[i].peak_bytes, front[i - 1].peak_bytes);
    CHECK_LT(front[i].us, front[i - 1].us);
  }
  CHECK_EQ(front.back().us, 0);
  const auto again = OrDie(SearchOf(*module, graph, costs, {}).Front());
  REQUIRE_EQ(again.size(), front.size());
  for (size_t i = 0; i < front.size(); ++i)
    CHECK(again[i].tags == front[i].tags);
  int64_t last = 0;
  for (const BudgetedPlan& point : front) {
    BudgetSearch search = SearchOf(*module, graph, costs, {});
    const BudgetedPlan plan = OrDie(search.Fit(point.peak_bytes));
    CHECK_LE(plan.us, point.us * 1.0001);
    CHECK_GT(point.peak_bytes, last);
    last = point.peak_bytes;
  }
}

TEST_CASE("equal layers are few choices: a budget of many layers takes few looks at the peak") {
  const auto module = Layers(32);
  const GraphId graph = module->FindGraph("g")->id();
  const MemoryCosts costs = OrDie(CostsOf(module->graph(graph), ""));
  int looks = 0;
  BudgetSearch search = SearchOf(*module, graph, costs, {}, [&](Module& changed, GraphId id) {
    ++looks;
    return Result<int64_t>(LivePeakBytes(changed.graph(id)));
  });
  const int64_t all = LivePeakBytes(module->graph(graph));
  CHECK_LE(OrDie(search.Fit(all * 6 / 10)).peak_bytes, all * 6 / 10);
  CHECK_LT(looks, 100);
}

/// The body after the pass, which must keep the graph valid and the peak as low as it says.
std::string Reordered(std::string_view body) {
  const auto module = ParseBody(body);
  const Graph& graph = *module->FindGraph("g");
  const int64_t before = LivePeakBytes(graph);
  const Changed changed = OrDie(ReorderForPeak().Run(*module));
  CHECK_OK(Verify(*module));
  CHECK_EQ(changed == Changed::kYes, LivePeakBytes(graph) < before);
  CHECK_EQ(OrDie(ReorderForPeak().Run(*module)), Changed::kNo);
  return testing::BodyOf(*module);
}

TEST_CASE("independent nodes are reordered so that fewer results live at once") {
  CHECK_EQ(Reordered(R"(
  x = placeholder : f32[64, 64][64, 1]cpu
  a = aten.exp.default(x) : f32[64, 64][64, 1]cpu
  b = aten.sin.default(x) : f32[64, 64][64, 1]cpu
  s = aten.sum.default(a) : f32[][]cpu
  t = aten.sum.default(b) : f32[][]cpu
  output([s, t])
)"),
           R"(
  x = placeholder
  a = aten.exp.default(x)
  s = aten.sum.default(a)
  b = aten.sin.default(x)
  t = aten.sum.default(b)
  output([s, t])
)");
}

TEST_CASE(
    "methods and Python's operators that write through views keep their place among readers") {
  const auto module = testing::ParseOrDie(R"(graph g foreign
  x = placeholder : f32[4, 6][6, 1]cpu
  a = method sin(x) : f32[4, 6][6, 1]cpu
  v = method view(a, 24) : f32[24][1]cpu
  b = _operator.mul(a, 2) : f32[4, 6][6, 1]cpu
  w = method add_(v, 5) : f32[24][1]cpu
  c = _operator.mul(a, 3) : f32[4, 6][6, 1]cpu
  i = _operator.iadd(w, 1) : f32[24][1]cpu
  d = _operator.mul(a, 4) : f32[4, 6][6, 1]cpu
  e = _operator.sub(b, c) : f32[4, 6][6, 1]cpu
  f = _operator.sub(e, d) : f32[4, 6][6, 1]cpu
  output([f])
)");
  const Graph& graph = *module->FindGraph("g");
  OrDie(ReorderForPeak().Run(*module));
  std::string order;
  for (const NodeId node : graph.nodes())
    if (std::string_view("bwcid").find(graph.name(node)) != std::string_view::npos)
      order += graph.name(node);
  CHECK_EQ(order, "bwcid");
}

TEST_CASE("writes, random numbers and phases keep their order") {
  constexpr std::string_view kWrites = R"(
  x = placeholder : f32[64, 64][64, 1]cpu
  a = aten.exp.default(x) : f32[64, 64][64, 1]cpu
  b = aten.sin.default(x) : f32[64, 64][64, 1]cpu
  r = aten.add_.Tensor(a, b) : f32[64, 64][64, 1]cpu ~ a
  s = aten.sum.default(a) : f32[][]cpu
  c = aten.sin.default(x) : f32[64, 64][64, 1]cpu
  t = aten.sum.default(c) : f32[][]cpu
  output([s, t])
)";
  CHECK_EQ(Reordered(kWrites), testing::BodyOf(*ParseBody(kWrites)));
  constexpr std::string_view kPhases = R"(
  x = placeholder : f32[64, 64][64, 1]cpu
  a = aten.exp.default(x) : f32[64, 64][64, 1]cpu {forward}
  b = aten.rand_like.default(x) : f32[64, 64][64, 1]cpu {forward}
  c = aten.rand_like.default(x) : f32[64, 64][64, 1]cpu {forward}
  s = aten.sum.default(a) : f32[][]cpu {backward}
  t = aten.sum.default(b) : f32[][]cpu {backward}
  u = aten.sum.default(c) : f32[][]cpu {backward}
  output([s, t, u])
)";
  CHECK_EQ(Reordered(kPhases), testing::BodyOf(*ParseBody(kPhases)));
}

}  // namespace
}  // namespace strata
