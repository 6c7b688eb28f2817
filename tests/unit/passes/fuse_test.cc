#include "passes/compile/fuse.h"

#include <memory>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/fingerprint.h"
#include "ir/fused_op.h"
#include "ir/ops.h"
#include "ir/verify.h"
#include "passes/compile/dynamic_kernel.h"
#include "passes/compile/fast_products.h"
#include "passes/compile/pointwise.h"
#include "passes/core/chunk_attributes.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::BodyOf;
using testing::OrDie;
using testing::ParseBody;

constexpr Fuse::Options kFast{.numerics = Fuse::Numerics::kFast};

/// Runs the pass. The graphs must be valid, the reported change correct, and every body must
/// compile to a kernel.
std::unique_ptr<Module> Fused(std::string_view body, const Fuse::Options& options = {}) {
  auto module = ParseBody(body);
  const Graph& graph = *module->FindGraph("g");
  const Fingerprint before = FingerprintOf(graph, FingerprintScope::kEverything);
  const Changed changed = OrDie(Fuse(options).Run(*module));
  CHECK_EQ(changed == Changed::kYes, FingerprintOf(graph, FingerprintScope::kEverything) != before);
  CHECK_OK(Verify(*module));
  for (size_t i = 1; i < module->num_graphs(); ++i)
    CHECK_OK(MakeKernel(module->graph(GraphId{static_cast<int32_t>(i)})));
  return module;
}

/// Operators of the first body, in order.
std::string OpsOf(const Module& module, int32_t body = 1) {
  std::string ops;
  const Graph& graph = module.graph(GraphId{body});
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind == NodeKind::kCall) ops += std::string(graph.op(node)) + " ";
  }
  return ops;
}

TEST_CASE(
    "a chain becomes one node with its private operands inside; its body contains the operators") {
  const auto module = Fused(R"(
  x = placeholder : f32[4, 8][8, 1]cpu
  y = placeholder : f32[4, 8][8, 1]cpu
  a = aten.add.Tensor(x, y) : f32[4, 8][8, 1]cpu
  b = aten.mul.Tensor(a, 2) : f32[4, 8][8, 1]cpu
  c = aten.neg.default(b) : f32[4, 8][8, 1]cpu
  output([c, a])
)");
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  y = placeholder
  kernel_0 = attr kernel_0(graph(1))
  (a, c) = strata.fused.default(kernel_0, x, y) as fused
  output([c, a])
)");
  CHECK_EQ(OpsOf(*module), "aten.add.Tensor aten.mul.Tensor aten.neg.default ");
}

TEST_CASE("a cast with a device argument is fused; a copy to another device is not") {
  const auto graph = [](std::string_view device) {
    return Fused(fmt::format(R"(
  x = placeholder : f32[8][1]cuda:0
  a = aten.neg.default(x) : f32[8][1]cuda:0
  b = aten._to_copy.default(a, dtype=torch.bfloat16, layout=raw('torch.strided'), device=device('{0}')) : bf16[8][1]{0}
  output([b])
)",
                             device));
  };
  CHECK_EQ(BodyOf(*graph("cuda:0")), R"(
  x = placeholder
  kernel_0 = attr kernel_0(graph(1))
  (b,) = strata.fused.default(kernel_0, x) as fused
  output([b])
)");
  CHECK_EQ(graph("cpu")->num_graphs(), 1);
}

TEST_CASE("equal bodies are one; a lone operator stays") {
  const auto module = Fused(R"(
  x = placeholder : f32[8][1]cpu
  a = aten.neg.default(x) : f32[8][1]cpu
  b = aten.abs.default(a) : f32[8][1]cpu
  m = aten.cumsum.default(b, 0) : f32[8][1]cpu
  c = aten.neg.default(m) : f32[8][1]cpu
  d = aten.abs.default(c) : f32[8][1]cpu
  n = aten.cumsum.default(d, 0) : f32[8][1]cpu
  e = aten.neg.default(n) : f32[8][1]cpu
  output([e])
)");
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  kernel_0 = attr kernel_0(graph(1))
  (b,) = strata.fused.default(kernel_0, x) as fused
  m = aten.cumsum.default(b, 0)
  (d,) = strata.fused.default(kernel_0, m) as fused_1
  n = aten.cumsum.default(d, 0)
  e = aten.neg.default(n)
  output([e])
)");
}

TEST_CASE("a path that leaves the group and returns stays outside") {
  const auto module = Fused(R"(
  x = placeholder : f32[8][1]cpu
  a = aten.neg.default(x) : f32[8][1]cpu
  m = aten.cumsum.default(a, 0) : f32[8][1]cpu
  b = aten.abs.default(m) : f32[8][1]cpu
  c = aten.add.Tensor(a, b) : f32[8][1]cpu
  output([c])
)");
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  a = aten.neg.default(x)
  m = aten.cumsum.default(a, 0)
  kernel_0 = attr kernel_0(graph(1))
  (c,) = strata.fused.default(kernel_0, m, a) as fused
  output([c])
)");
}

TEST_CASE("a norm is one kernel; with fast numerics it uses its own order of summation") {
  constexpr std::string_view kNorm = R"(
  x = placeholder : f32[4, 8][8, 1]cpu
  w = placeholder : f32[8][1]cpu
  p = aten.pow.Tensor_Scalar(x, 2) : f32[4, 8][8, 1]cpu
  m = aten.mean.dim(p, [1], True) : f32[4, 1][1, 1]cpu
  a = aten.add_.Scalar(m, 1e-05) : f32[4, 1][1, 1]cpu ~m
  r = aten.rsqrt.default(a) : f32[4, 1][1, 1]cpu
  y = aten.mul.Tensor(x, r) : f32[4, 8][8, 1]cpu
  z = aten.mul.Tensor(y, w) : f32[4, 8][8, 1]cpu
  output([z, r])
)";
  CHECK_EQ(BodyOf(*Fused(kNorm)), R"(
  x = placeholder
  w = placeholder
  kernel_0 = attr kernel_0(graph(1))
  (r, z) = strata.fused.default(kernel_0, x, w) as fused
  output([z, r])
)");
  const auto fast = Fused(kNorm, kFast);
  CHECK_EQ(BodyOf(*fast), R"(
  x = placeholder
  w = placeholder
  kernel_0 = attr kernel_0(graph(1))
  (r, z) = strata.fused.default(kernel_0, x, w, fast=True) as fused
  output([z, r])
)");
  // The sum has no other user: adding in place equals adding.
  CHECK_EQ(OpsOf(*fast),
           "aten.pow.Tensor_Scalar aten.mean.dim aten.add.Scalar aten.rsqrt.default "
           "aten.mul.Tensor aten.mul.Tensor ");
}

TEST_CASE("writes to inputs stay writes, in their order with readers") {
  const auto module = Fused(R"(
  p = placeholder : f32[8][1]cpu
  g = placeholder : f32[8][1]cpu
  s = aten.sum.default(p) : f32[][]cpu
  a = aten.mul_.Scalar(p, 0.9) : f32[8][1]cpu ~p
  b = aten.add_.Tensor(a, g, alpha=-0.1) : f32[8][1]cpu ~p
  t = aten.sum.default(b) : f32[][]cpu
  output([s, t])
)");
  CHECK_EQ(BodyOf(*module), R"(
  p = placeholder
  g = placeholder
  s = aten.sum.default(p)
  kernel_0 = attr kernel_0(graph(1))
  (b,) = strata.fused.default(kernel_0, p, g) as fused
  t = aten.sum.default(b)
  output([s, t])
)");
  const Graph& graph = *module->FindGraph("g");
  CHECK_EQ(graph.value(testing::ValueNamed(graph, "p")).alias_of, ValueId{});
  CHECK_EQ(graph.value(graph.result(testing::NodeNamed(graph, "fused"))).alias_of,
           testing::ValueNamed(graph, "p"));
  CHECK_EQ(OpsOf(*module), "aten.mul_.Scalar aten.add_.Tensor ");
}

TEST_CASE("writes to memory that is read later through an older alias are not fused") {
  constexpr std::string_view kOlderName = R"(
  p = placeholder : f32[8][1]cpu
  v = aten.view.default(p, [2, 4]) : f32[2, 4][4, 1]cpu ~p
  a = aten.mul_.Scalar(p, 0.9) : f32[8][1]cpu ~p
  b = aten.add_.Scalar(a, 1) : f32[8][1]cpu ~p
  t = aten.sum.default(v) : f32[][]cpu
  output([t])
)";
  auto module = ParseBody(kOlderName);
  CHECK(OrDie(Fuse().Run(*module)) == Changed::kNo);
}

TEST_CASE("writes through a view keep their place where the text states no aliases") {
  const auto module = testing::ParseOrDie(R"(graph g foreign
  x = placeholder : f32[4, 8][8, 1]cpu
  memory = aten.mul.Tensor(x, 2) : f32[4, 8][8, 1]cpu
  view = aten.view.default(memory, [32]) : f32[32][1]cpu
  before = aten.add.Tensor(memory, 1) : f32[4, 8][8, 1]cpu
  doubled = aten.mul.Tensor(before, 2) : f32[4, 8][8, 1]cpu
  written = aten.sin_.default(view) : f32[32][1]cpu
  after = aten.mul.Tensor(memory, 3) : f32[4, 8][8, 1]cpu
  both = aten.sub.Tensor(doubled, after) : f32[4, 8][8, 1]cpu
  output([both])
)");
  OrDie(Fuse().Run(*module));
  CHECK_OK(Verify(*module));
  CHECK_EQ(OpsOf(*module, 1), "aten.mul.Tensor aten.add.Tensor ");
  CHECK_EQ(OpsOf(*module, 2), "aten.mul.Tensor aten.mul.Tensor aten.sub.Tensor ");
}

TEST_CASE("members look through views; other readers keep them") {
  const auto module = Fused(R"(
  x = placeholder : f32[2, 4, 8][32, 8, 1]cpu
  y = placeholder : f32[8, 8][8, 1]cpu
  a = aten.neg.default(x) : f32[2, 4, 8][32, 8, 1]cpu
  v = aten.view.default(a, [8, 8]) : f32[8, 8][8, 1]cpu ~a
  b = aten.add.Tensor(v, y) : f32[8, 8][8, 1]cpu
  m = aten.mm.default(v, y) : f32[8, 8][8, 1]cpu
  output([b, m])
)");
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  y = placeholder
  kernel_0 = attr kernel_0(graph(1))
  (a, b) = strata.fused.default(kernel_0, x, y) as fused
  v = aten.view.default(a, [8, 8])
  m = aten.mm.default(v, y)
  output([b, m])
)");
  CHECK_EQ(OpsOf(*module), "aten.neg.default aten.view.default aten.add.Tensor ");
}

TEST_CASE(
    "bitwise numerics fuse no library functions, and sums only in the order of ATen's CPU "
    "kernels") {
  const auto fuses = [](std::string_view op, std::string_view from, std::string_view to,
                        const Fuse::Options& options = {}) {
    const auto module = ParseBody(fmt::format(R"(
  x = placeholder : {1}
  a = aten.neg.default(x) : {1}
  b = {0} : {2}
  c = aten.neg.default(b) : {2}
  output([c])
)",
                                              op, from, to));
    OrDie(Fuse(options).Run(*module));
    return module->num_graphs() == 2 &&
           OpsOf(*module).find(op.substr(0, op.find('('))) != std::string::npos;
  };
  constexpr const char* kSum = "aten.sum.dim_IntList(a, [1], True)";
  constexpr const char* kRoot = "aten.sqrt.default(a)";
  CHECK(fuses(kSum, "f32[4, 8][8, 1]cpu", "f32[4, 1][1, 1]cpu"));
  // 1 / sqrt(x), both by the processor.
  CHECK(fuses("aten.rsqrt.default(a)", "f32[8][1]cpu", "f32[8][1]cpu"));
  const auto only_fast = [&](std::string_view op, std::string_view from, std::string_view to) {
    return !fuses(op, from, to) && fuses(op, from, to, kFast);
  };
  // Another device, another dtype, another layout, one row, a function.
  CHECK(only_fast(kSum, "f32[4, 8][8, 1]cuda:0", "f32[4, 1][1, 1]cuda:0"));
  CHECK(only_fast(kSum, "f64[4, 8][8, 1]cpu", "f64[4, 1][1, 1]cpu"));
  CHECK(only_fast(kSum, "f32[4, 8][1, 4]cpu", "f32[4, 1][1, 1]cpu"));
  CHECK(only_fast(kSum, "f32[1, 8][8, 1]cpu", "f32[1, 1][1, 1]cpu"));
  CHECK(only_fast(kRoot, "f32[8][1]cpu", "f32[8][1]cpu"));
  CHECK(only_fast("aten.pow.Tensor_Scalar(a, 0.5)", "f32[8][1]cpu", "f32[8][1]cpu"));
  CHECK(only_fast("aten.exp.default(a)", "f32[8][1]cpu", "f32[8][1]cpu"));
}

TEST_CASE("a value with a single other kernel as user is computed there") {
  // As in AdamW: otherwise the first kernel would write `u` and the second would read it.
  const auto module = Fused(R"(
  m = placeholder : f32[8][1]cpu
  v = placeholder : f32[8][1]cpu
  g = placeholder : f32[8][1]cpu
  a = aten.lerp_.Scalar(m, g, 0.1) : f32[8][1]cpu ~m
  b = aten.addcmul_.default(v, g, g, value=0.1) : f32[8][1]cpu ~v
  u = aten.mul.Tensor(a, 0.5) : f32[8][1]cpu
  s = aten.exp.default(b) : f32[8][1]cpu
  d = aten.add.Scalar(s, 1e-8) : f32[8][1]cpu
  q = aten.div.Tensor(u, d) : f32[8][1]cpu
  output([q])
)");
  const Graph& graph = *module->FindGraph("g");
  const NodeId last = graph.value(graph.elements(graph.args(graph.output())[0])[0].value()).def;
  REQUIRE_EQ(graph.op(last), "strata.fused.default");
  const GraphId body = graph.args(graph.value(graph.args(last)[0].value()).def)[0].graph();
  CHECK_EQ(OpsOf(*module, body.index), "aten.mul.Tensor aten.add.Scalar aten.div.Tensor ");
}

TEST_CASE("phases and sizes are not mixed, broadcasts are read with their strides") {
  auto phases = ParseBody(R"(
  x = placeholder : f32[8][1]cpu
  a = aten.neg.default(x) : f32[8][1]cpu {forward}
  b = aten.abs.default(a) : f32[8][1]cpu {backward}
  output([b])
)");
  CHECK(OrDie(Fuse().Run(*phases)) == Changed::kNo);

  const auto module = Fused(R"(
  x = placeholder : f32[4, 8][1, 4]cpu
  w = placeholder : f32[8][1]cpu
  a = aten.mul.Tensor(x, w) : f32[4, 8][1, 4]cpu
  b = aten.neg.default(a) : f32[4, 8][8, 1]cpu
  output([b])
)");
  const Kernel kernel = OrDie(MakeKernel(module->graph(GraphId{1})));
  CHECK_EQ(kernel.sizes, std::vector<int64_t>{4, 8});
  REQUIRE_EQ(kernel.accesses.size(), 3);
  CHECK_EQ(kernel.accesses[0].strides, std::vector<int64_t>{1, 4});
  CHECK_EQ(kernel.accesses[1].strides, std::vector<int64_t>{0, 1});
  CHECK_EQ(kernel.accesses[2].strides, std::vector<int64_t>{8, 1});
}

TEST_CASE("a kernel in a chunk delays no exchange, and is of the chunk") {
  const auto graph = [](std::string_view chunk) {
    const auto node = [&](std::string_view name, std::string_view call) {
      return fmt::format("  {} = {} : f32[8][1]cpu {{forward{}}}\n", name, call, chunk);
    };
    return Fused(
        "\n  x = placeholder : f32[8][1]cpu\n" + node("a", "aten.neg.default(x)") +
        node("b", "aten.mul.Tensor(a, x)") +
        node("sent", "_c10d_functional.all_to_all_single.default(b, [], [], 'ep')") +
        node("shared", "aten.add.Tensor(b, x)") + node("more", "aten.neg.default(shared)") +
        node("back", "_c10d_functional.wait_tensor.default(sent)") + "  output([more, back])\n");
  };
  CHECK_EQ(OpsOf(*graph("")), "aten.neg.default aten.mul.Tensor aten.add.Tensor aten.neg.default ");
  const auto module =
      graph(" +chunk_id='0' +chunked_region_fqn='layers.0' +chunked_region_role='body'");
  CHECK_EQ(OpsOf(*module), "aten.neg.default aten.mul.Tensor ");
  CHECK_EQ(OpsOf(*module, 2), "aten.add.Tensor aten.neg.default ");
  const Graph& step = *module->FindGraph("g");
  for (const NodeId node : step.nodes())
    if (step.op(node) == kFusedOp) CHECK_EQ(step.attribute(node, kChunkIdAttribute), "0");
}

TEST_CASE("a kernel has nodes of one chunk") {
  const auto node = [](std::string_view name, std::string_view call, int chunk) {
    return fmt::format(
        "  {} = {} : f32[8][1]cpu {{forward +chunk_id='{}' +chunked_region_fqn='layers.0' "
        "+chunked_region_role='body'}}\n",
        name, call, chunk);
  };
  const auto module =
      Fused("\n  x = placeholder : f32[8][1]cpu\n" + node("a", "aten.neg.default(x)", 0) +
            node("b", "aten.add.Tensor(a, x)", 1) + "  output([b])\n");
  CHECK_EQ(module->num_graphs(), 1);
}

TEST_CASE("fast numerics leave the library of float products on a CPU open, bitwise ones do not") {
  constexpr std::string_view kProducts = R"(
  x = placeholder : f32[4, 8][8, 1]cpu
  h = placeholder : bf16[4, 8][8, 1]cpu
  t = aten.t.default(x) : f32[8, 4][1, 8]cpu ~x
  u = aten.t.default(h) : bf16[8, 4][1, 8]cpu ~h
  a = aten.mm.default(x, t) : f32[4, 4][4, 1]cpu
  b = aten.mm.default(h, u) : bf16[4, 4][4, 1]cpu
  output([a, b])
)";
  const auto exact = Fused(kProducts);
  const auto fast = Fused(kProducts, kFast);
  const auto numerics = [](const Module& module, std::string_view name) {
    const Graph& graph = *module.FindGraph("g");
    std::string found;
    for (const NodeId node : graph.nodes()) {
      if (graph.name(node) == name) found = graph.attribute(node, kNumericsAttribute);
    }
    return found;
  };
  CHECK_EQ(numerics(*exact, "a"), "");
  CHECK_EQ(numerics(*fast, "a"), "fast");
  CHECK_EQ(numerics(*fast, "b"), "");
  CHECK_EQ(OrDie(Fuse(kFast).Run(*fast)), Changed::kNo);
}

}  // namespace
}  // namespace strata
