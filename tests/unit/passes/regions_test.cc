// Regions of annotated nodes: ids as in torchtitan's catalogue of regional compilation.

#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/fingerprint.h"
#include "ir/verify.h"
#include "passes/compile/fuse.h"
#include "passes/core/registry.h"
#include "passes/passes.h"
#include "passes/regions/annotate_regions.h"
#include "passes/regions/compile_regions.h"
#include "passes/regions/compile_standalone.h"
#include "passes/regions/region_graph.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::BodyOf;
using testing::OrDie;
using testing::ParseBody;

constexpr std::string_view kMark = "+%'custom.compile_with_inductor'='{}'";

/// Runs the pass; the graphs must be valid and the reported change correct.
std::unique_ptr<Module> WithRegions(std::string_view body,
                                    const CompileRegions::Options& options = {}) {
  auto module = ParseBody(body);
  const Graph& graph = *module->FindGraph("g");
  const Fingerprint before = FingerprintOf(graph, FingerprintScope::kEverything);
  const Changed changed = OrDie(CompileRegions(options).Run(*module));
  CHECK_EQ(changed == Changed::kYes, FingerprintOf(graph, FingerprintScope::kEverything) != before);
  CHECK_OK(Verify(*module));
  return module;
}

int64_t CountMarked(const Module& module) {
  int64_t count = 0;
  const Graph& graph = *module.FindGraph("g");
  for (const NodeId node : graph.nodes())
    count += graph.attribute(node, kCompileAttribute).empty() ? 0 : 1;
  return count;
}

int64_t MarkedIn(std::string_view body, const AnnotateRegions::Options& options = {}) {
  auto module = ParseBody(body);
  OrDie(AnnotateRegions(options).Run(*module));
  return CountMarked(*module);
}

constexpr std::string_view kNormGraph = R"(
  x = placeholder : f32[4, 8][8, 1]cpu
  w = placeholder : f32[8][1]cpu
  {}
  output([x])
)";
constexpr std::string_view kNorm =
    "(y, s) = aten._fused_rms_norm.default(x, [8], w, 1e-05) as norm : (f32[4, 8][8, 1]cpu, "
    "f32[4, 1][1, 1]cpu)";
constexpr std::string_view kNormBackward =
    "(dx, dw) = aten._fused_rms_norm_backward.default(y, x, [8], s, w, [True, True]) as back : "
    "(f32[4, 8][8, 1]cpu, f32[8][1]cpu)";

TEST_CASE("RN-1: a norm is marked, and with it its elements") {
  CHECK_EQ(MarkedIn(fmt::format(fmt::runtime(kNormGraph), kNorm)), 1);
}

TEST_CASE("RN-2: without norms and chains nothing is marked") {
  CHECK_EQ(MarkedIn(R"(
  x = placeholder : f32[4, 8][8, 1]cpu
  a = aten.mul.Tensor(x, x) : f32[4, 8][8, 1]cpu
  b = aten.add.Tensor(a, x) : f32[4, 8][8, 1]cpu
  output([b])
)",
                    {.chains = false}),
           0);
}

TEST_CASE("RN-3: a norm and its backward are marked, a product between them is not") {
  const std::string both = fmt::format("{}\n  m = aten.mm.default(y, w) : f32[4, 8][8, 1]cpu\n  {}",
                                       kNorm, kNormBackward);
  CHECK_EQ(MarkedIn(fmt::format(fmt::runtime(kNormGraph), both)), 2);
}

TEST_CASE("RN-4: the configuration is an entry inductor_configs") {
  auto module = ParseBody(fmt::format(fmt::runtime(kNormGraph), kNorm));
  OrDie(AnnotateRegions({.config = "{'max_autotune': True}"}).Run(*module));
  const Graph& graph = *module->FindGraph("g");
  CHECK_EQ(graph.attribute(testing::NodeNamed(graph, "norm"), kCompileAttribute),
           "{'inductor_configs': {'max_autotune': True}}");
}

TEST_CASE("a chain is marked with the views inside, its single neighbours are not") {
  CHECK_EQ(MarkedIn(R"(
  x = placeholder : f32[4, 8][8, 1]cpu
  w = placeholder : f32[8, 4][4, 1]cpu
  a = aten.neg.default(x) : f32[4, 8][8, 1]cpu
  v = aten.reshape.default(a, [32]) : f32[32][1]cpu ~a
  b = aten.mul.Tensor(v, v) : f32[32][1]cpu
  m = aten.mm.default(x, w) : f32[4, 4][4, 1]cpu
  c = aten.neg.default(m) : f32[4, 4][4, 1]cpu
  output([b, c])
)"),
           3);
}

TEST_CASE("modules are marked with what is inside, operators by name") {
  constexpr std::string_view kGraph = R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  a = aten.mm.default(x, x) : f32[4, 4][4, 1]cpu {forward module=layers.0.feed_forward.w1}
  b = aten.mm.default(a, x) : f32[4, 4][4, 1]cpu {forward module=layers.0.attention.wq}
  c = aten.silu.default(b) : f32[4, 4][4, 1]cpu {forward module=layers.0.attention}
  output([c])
)";
  CHECK_EQ(MarkedIn(kGraph, {.chains = false, .modules = "layers.*.feed_forward"}), 1);
  CHECK_EQ(MarkedIn(kGraph, {.chains = false, .ops = "aten.mm.default|aten.silu.default"}), 3);
}

TEST_CASE("RI-1: a graph without annotations stays as it is") {
  WithRegions(R"(
  x = placeholder : f32[4][1]cpu
  a = aten.neg.default(x) : f32[4][1]cpu
  output([a])
)");
}

TEST_CASE("RI-2: two chains that are not connected are two regions, and a node is not in both") {
  const auto module = WithRegions(fmt::format(R"(
  x = placeholder : f32[4][1]cpu
  y = placeholder : f32[4][1]cpu
  a = aten.neg.default(x) : f32[4][1]cpu {{{0}}}
  c = aten.neg.default(y) : f32[4][1]cpu {{{0}}}
  b = aten.abs.default(a) : f32[4][1]cpu {{{0}}}
  d = aten.abs.default(c) : f32[4][1]cpu {{{0}}}
  output([b, d])
)",
                                              kMark));
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  y = placeholder
  region_0 = attr region_0(graph(1))
  (b,) = strata.fused.default(region_0, x, region=True) as fused
  region_1 = attr region_1(graph(2))
  (d,) = strata.fused.default(region_1, y, region=True) as fused_1
  output([b, d])
)");
}

TEST_CASE("RI-3: nodes between which a path leaves the region are of two regions") {
  const auto module = WithRegions(fmt::format(R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  a = aten.neg.default(x) : f32[4, 4][4, 1]cpu {{{0}}}
  b = aten.mm.default(a, x) : f32[4, 4][4, 1]cpu
  c = aten.add.Tensor(a, b) : f32[4, 4][4, 1]cpu {{{0}}}
  output([c])
)",
                                              kMark));
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  region_0 = attr region_0(graph(1))
  (a,) = strata.fused.default(region_0, x, region=True) as fused
  b = aten.mm.default(a, x)
  region_1 = attr region_1(graph(2))
  (c,) = strata.fused.default(region_1, a, b, region=True) as fused_1
  output([c])
)");
}

TEST_CASE("two regions are not each before the other") {
  const auto module = WithRegions(fmt::format(R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  a = aten.neg.default(x) : f32[4, 4][4, 1]cpu {{forward {0}}}
  p = aten.abs.default(x) : f32[4, 4][4, 1]cpu {{backward {0}}}
  b = aten.add.Tensor(a, p) : f32[4, 4][4, 1]cpu {{forward {0}}}
  q = aten.add.Tensor(p, a) : f32[4, 4][4, 1]cpu {{backward {0}}}
  output([b, q])
)",
                                              kMark));
  CHECK_EQ(module->num_graphs(), 4);
}

TEST_CASE("RI-4: two calling conventions contradict each other") {
  auto module = ParseBody("  x = placeholder : f32[4][1]cpu\n  output([x])\n");
  const auto ran = CompileRegions({.serializable = true, .boxed = true}).Run(*module);
  CHECK_EQ(ran.error().message(),
           "options contradict each other: serializable, boxed: take one of them out");
}

TEST_CASE("RI-5: the first node's configuration counts; an unknown entry is an error") {
  const auto run = [](std::string_view first, std::string_view second) {
    auto module = ParseBody(fmt::format(R"(
  x = placeholder : f32[4][1]cpu
  a = aten.neg.default(x) : f32[4][1]cpu {{+%'custom.compile_with_inductor'="{}"}}
  b = aten.abs.default(a) : f32[4][1]cpu {{+%'custom.compile_with_inductor'="{}"}}
  output([b])
)",
                                        first, second));
    return CompileRegions().Run(*module);
  };
  constexpr std::string_view kGood = "{'inductor_configs': {'max_autotune': True}}";
  constexpr std::string_view kBad = "{'inductor_configs': {'tune': True}}";
  CHECK(run(kGood, kBad).has_value());
  CHECK_EQ(run(kBad, kGood).error().message(),
           "unknown entry 'tune' of inductor_configs: node a: it has reorder_for_peak_memory, "
           "max_autotune, wrap_inductor_compiled_regions");
}

constexpr std::string_view kWhole = R"(
  x = placeholder : f32[4, 8][8, 1]cpu
  y = placeholder : f32[4, 8][8, 1]cpu
  unused = placeholder : f32[2][1]cpu
  k = attr _tensor_constant0 : f32[8][1]cpu
  big = aten.add.Tensor(x, y) : f32[4, 8][8, 1]cpu {forward module=layers.0}
  other = aten.mul.Tensor(x, k) : f32[4, 8][8, 1]cpu
  small = aten.sum.default(big) : f32[][]cpu
  (v, i) = aten.max.dim(other, 1) as max_1 : (f32[4][1]cpu, i64[4][1]cpu)
  t = aten.t.default(other) : f32[8, 4][1, 8]cpu ~other
  output([small, v, t, other])
)";

/// The names of the nodes of the body that the pass makes.
std::string StandaloneBody(const Module& module) {
  const Graph& body = module.graph(GraphId{1});
  CHECK_EQ(body.name_text(), "standalone_0");
  std::string text;
  for (const NodeId node : body.nodes()) {
    text += text.empty() ? "" : " ";
    text += body.name(node);
  }
  return text;
}

TEST_CASE("SC-1: the unit has the inputs that are read, with their types; the graph keeps all") {
  auto module = ParseBody(kWhole);
  CHECK_EQ(OrDie(CompileStandalone().Run(*module)), Changed::kYes);
  CHECK_OK(Verify(*module));
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  y = placeholder
  unused = placeholder
  k = attr _tensor_constant0
  standalone_0 = attr standalone_0(graph(1))
  (other, small, v) = strata.fused.default(standalone_0, x, y, k, region=True) as fused
  t = aten.t.default(other)
  output([small, v, t, other])
)");
  CHECK_EQ(StandaloneBody(*module), "x y k big other small max_1 t output");
  const Graph& body = module->graph(GraphId{1});
  CHECK_EQ(module->types().ToString(body.value(testing::ValueNamed(body, "k")).type),
           "f32[8][1]cpu");
  CHECK_EQ(module->str(body.node(testing::NodeNamed(body, "big")).module), "layers.0");
}

TEST_CASE("SC-1: the unit has an order with a lower peak where the pipeline asks for it") {
  const auto order_after = [](std::string_view pipeline) {
    auto module = ParseBody(R"(
  x = placeholder : f32[64][1]cpu
  a = aten.neg.default(x) : f32[64][1]cpu
  b = aten.abs.default(x) : f32[64][1]cpu
  s = aten.sum.default(a) : f32[][]cpu
  t = aten.sum.default(b) : f32[][]cpu
  output([s, t])
)");
    for (const auto& pass : OrDie(ParsePipeline(pipeline, AllPasses())))
      OrDie(pass->Run(*module));
    CHECK_OK(Verify(*module));
    return StandaloneBody(*module);
  };
  CHECK_EQ(order_after("compile-standalone"), "x a b s t output");
  CHECK_EQ(order_after("reorder-for-peak,compile-standalone"), "x a s b t output");
}

TEST_CASE("a graph with writes, collectives or symbolic sizes is not compiled as one node") {
  const auto unchanged = [](std::string_view body) {
    auto module = ParseBody(body);
    CHECK_EQ(OrDie(CompileStandalone().Run(*module)), Changed::kNo);
  };
  unchanged(R"(
  x = placeholder : f32[4][1]cpu
  a = aten.neg.default(x) : f32[4][1]cpu
  w = aten.add_.Tensor(x, a) : f32[4][1]cpu ~x
  output([a])
)");
  unchanged(R"(
  x = placeholder : f32[4][1]cpu
  g = _c10d_functional.all_reduce.default(x, 'sum', 'dp') : f32[4][1]cpu
  w = _c10d_functional.wait_tensor.default(g) : f32[4][1]cpu ~g
  output([w])
)");
  unchanged(R"(
  x = placeholder : f32[s0][1]cpu
  a = aten.neg.default(x) : f32[s0][1]cpu
  output([a])
)");
}

TEST_CASE("what has effects, or touches memory that is written, is no member and keeps its order") {
  const auto module = WithRegions(fmt::format(R"(
  x = placeholder : f32[4][1]cpu
  a = aten.neg.default(x) : f32[4][1]cpu {{{0}}}
  w = aten.add_.Tensor(x, a) : f32[4][1]cpu ~x {{{0}}}
  b = aten.abs.default(w) : f32[4][1]cpu {{{0}}}
  output([b])
)",
                                              kMark));
  CHECK_EQ(module->num_graphs(), 1);
}

TEST_CASE("views that others read stay beside the region") {
  const auto module = WithRegions(fmt::format(R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  a = aten.neg.default(x) : f32[4, 4][4, 1]cpu {{{0}}}
  v = aten.reshape.default(a, [16]) : f32[16][1]cpu ~a {{{0}}}
  t = aten.reshape.default(v, [2, 8]) : f32[2, 8][8, 1]cpu ~a
  output([t])
)",
                                              kMark));
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  region_0 = attr region_0(graph(1))
  (a,) = strata.fused.default(region_0, x, region=True) as fused
  v = aten.reshape.default(a, [16])
  t = aten.reshape.default(v, [2, 8])
  output([t])
)");
  const Graph& graph = *module->FindGraph("g");
  CHECK_EQ(graph.value_name(graph.value(testing::ValueNamed(graph, "t")).alias_of), "a");
}

TEST_CASE("kernels are made inside of regions, not across their borders") {
  auto module = WithRegions(fmt::format(R"(
  x = placeholder : f32[4][1]cpu
  a = aten.neg.default(x) : f32[4][1]cpu {{{0}}}
  b = aten.abs.default(a) : f32[4][1]cpu {{{0}}}
  c = aten.neg.default(b) : f32[4][1]cpu
  d = aten.abs.default(c) : f32[4][1]cpu
  output([d])
)",
                                        kMark));
  OrDie(Fuse().Run(*module));
  CHECK_OK(Verify(*module));
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  region_0 = attr region_0(graph(1))
  (b,) = strata.fused.default(region_0, x, region=True) as fused
  kernel_0 = attr kernel_0(graph(2))
  (d,) = strata.fused.default(kernel_0, b) as fused_1
  output([d])
)");
  CHECK_EQ(module->graph(GraphId{1}).num_nodes(), 4);  // input, body, fused node, output
}

}  // namespace
}  // namespace strata
