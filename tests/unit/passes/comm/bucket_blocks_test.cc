#include "passes/comm/bucket_blocks.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "ir/fingerprint.h"
#include "ir/verify.h"
#include "passes/comm/bucketing.h"
#include "passes/core/collectives.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::BodyOf;
using testing::MessageOf;
using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;

/// A graph after the pass. Checks that the reported change is true, and that the graph is valid.
std::unique_ptr<Module> Bucketed(std::string_view body,
                                 const BucketTransformerBlocks::Options& options = {}) {
  auto module = ParseBody(body);
  const Graph& graph = *module->FindGraph("g");
  const Fingerprint before = FingerprintOf(graph, FingerprintScope::kEverything);
  const Changed changed = OrDie(BucketTransformerBlocks(options).Run(*module));
  CHECK_EQ(changed == Changed::kYes, FingerprintOf(graph, FingerprintScope::kEverything) != before);
  CHECK_OK(Verify(*module));
  CHECK_EQ(OrDie(BucketTransformerBlocks(options).Run(*module)), Changed::kNo);
  return module;
}

/// Two layers with two parameters each, forward.
constexpr std::string_view kForward = R"(
  x = placeholder : f32[2, 4][4, 1]cpu {+input='batch'}
  p0 = placeholder : f32[2, 4][4, 1]cpu {+fqn='layers.0.a.weight' +input='parameter'}
  q0 = placeholder : f32[2, 4][4, 1]cpu {+fqn='layers.0.b.weight' +input='parameter'}
  p1 = placeholder : f32[2, 4][4, 1]cpu {+fqn='layers.1.a.weight' +input='parameter'}
  q1 = placeholder : f32[2, 4][4, 1]cpu {+fqn='layers.1.b.weight' +input='parameter'}
  a0 = _c10d_functional.all_gather_into_tensor.default(p0, 2, 'fsdp') : f32[4, 4][4, 1]cpu {forward module=layers.0.a}
  w0 = _c10d_functional.wait_tensor.default(a0) : f32[4, 4][4, 1]cpu ~a0 {forward module=layers.0.a}
  h0 = aten.mm.default(x, w0) : f32[2, 4][4, 1]cpu {forward module=layers.0.a}
  c0 = _c10d_functional.all_gather_into_tensor.default(q0, 2, 'fsdp') : f32[4, 4][4, 1]cpu {forward module=layers.0.b}
  y0 = _c10d_functional.wait_tensor.default(c0) : f32[4, 4][4, 1]cpu ~c0 {forward module=layers.0.b}
  v0 = aten.t.default(y0) : f32[4, 4][1, 4]cpu ~c0 {forward module=layers.0.b}
  h1 = aten.mm.default(h0, v0) : f32[2, 4][4, 1]cpu {forward module=layers.0.b}
  a1 = _c10d_functional.all_gather_into_tensor.default(p1, 2, 'fsdp') : f32[4, 4][4, 1]cpu {forward module=layers.1.a}
  w1 = _c10d_functional.wait_tensor.default(a1) : f32[4, 4][4, 1]cpu ~a1 {forward module=layers.1.a}
  h2 = aten.mm.default(h1, w1) : f32[2, 4][4, 1]cpu {forward module=layers.1.a}
  c1 = _c10d_functional.all_gather_into_tensor.default(q1, 2, 'fsdp') : f32[4, 4][4, 1]cpu {forward module=layers.1.b}
  y1 = _c10d_functional.wait_tensor.default(c1) : f32[4, 4][4, 1]cpu ~c1 {forward module=layers.1.b}
  h3 = aten.mm.default(h2, y1) : f32[2, 4][4, 1]cpu {forward module=layers.1.b}
  end = aten.neg.default(h3) : f32[2, 4][4, 1]cpu {backward}
  output([end])
)";

TEST_CASE("bucket-transformer-blocks: gathers of a layer are one, launched one layer ahead") {
  const auto module = Bucketed(kForward);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  p0 = placeholder
  q0 = placeholder
  p1 = placeholder
  q1 = placeholder
  reshape = aten.reshape.default(p0, [8])
  reshape_1 = aten.reshape.default(q0, [8])
  cat = aten.cat.default([reshape, reshape_1])
  all_gather_into_tensor = _c10d_functional.all_gather_into_tensor.default(cat, 2, 'fsdp')
  reshape_5 = aten.reshape.default(p1, [8])
  reshape_6 = aten.reshape.default(q1, [8])
  cat_1 = aten.cat.default([reshape_5, reshape_6])
  all_gather_into_tensor_1 = _c10d_functional.all_gather_into_tensor.default(cat_1, 2, 'fsdp')
  wait_tensor = _c10d_functional.wait_tensor.default(all_gather_into_tensor)
  reshape_2 = aten.reshape.default(wait_tensor, [2, 16])
  (_, _) = aten.split_with_sizes_copy.default(reshape_2, [8, 8], 1) as split_with_sizes_copy
  reshape_3 = aten.reshape.default(split_with_sizes_copy$0, [4, 4])
  reshape_4 = aten.reshape.default(split_with_sizes_copy$1, [4, 4])
  h0 = aten.mm.default(x, reshape_3)
  v0 = aten.t.default(reshape_4)
  h1 = aten.mm.default(h0, v0)
  wait_tensor_1 = _c10d_functional.wait_tensor.default(all_gather_into_tensor_1)
  reshape_7 = aten.reshape.default(wait_tensor_1, [2, 16])
  (_, _) = aten.split_with_sizes_copy.default(reshape_7, [8, 8], 1) as split_with_sizes_copy_1
  reshape_8 = aten.reshape.default(split_with_sizes_copy_1$0, [4, 4])
  reshape_9 = aten.reshape.default(split_with_sizes_copy_1$1, [4, 4])
  h2 = aten.mm.default(h1, reshape_8)
  h3 = aten.mm.default(h2, reshape_9)
  end = aten.neg.default(h3)
  output([end])
)");
  const Graph& graph = *module->FindGraph("g");
  const NodeId launch = NodeNamed(graph, "all_gather_into_tensor_1");
  CHECK_EQ(graph.attribute(launch, kBucketAttribute), "layers.1");
  CHECK_EQ(module->str(graph.node(launch).module), "layers.1");
  // The view reads a copy of its own.
  CHECK_EQ(graph.value(graph.result(NodeNamed(graph, "v0"))).alias_of,
           graph.result(NodeNamed(graph, "split_with_sizes_copy"), 1));
}

/// Gradients of two layers, the last layer first.
constexpr std::string_view kBackward = R"(
  g1 = placeholder : f32[4, 4][4, 1]cpu {+input='batch'}
  g2 = placeholder : f32[4, 2][2, 1]cpu {+input='batch'}
  b1 = aten.neg.default(g1) : f32[4, 4][4, 1]cpu {backward module=layers.1.b}
  r1 = _c10d_functional.reduce_scatter_tensor.default(b1, 'sum', 2, 'fsdp') : f32[2, 4][4, 1]cpu {backward module=layers.1.b}
  w1 = _c10d_functional.wait_tensor.default(r1) : f32[2, 4][4, 1]cpu ~r1 {backward module=layers.1.b}
  d1 = aten.mul.Tensor(w1, 0.5) : f32[2, 4][4, 1]cpu {backward module=layers.1.b}
  c1 = aten.neg.default(g2) : f32[4, 2][2, 1]cpu {backward module=layers.1.a}
  s1 = _c10d_functional.reduce_scatter_tensor.default(c1, 'sum', 2, 'fsdp') : f32[2, 2][2, 1]cpu {backward module=layers.1.a}
  y1 = _c10d_functional.wait_tensor.default(s1) : f32[2, 2][2, 1]cpu ~s1 {backward module=layers.1.a}
  b0 = aten.relu.default(g1) : f32[4, 4][4, 1]cpu {backward module=layers.0.b}
  r0 = _c10d_functional.reduce_scatter_tensor.default(b0, 'sum', 2, 'fsdp') : f32[2, 4][4, 1]cpu {backward module=layers.0.b}
  w0 = _c10d_functional.wait_tensor.default(r0) : f32[2, 4][4, 1]cpu ~r0 {backward module=layers.0.b}
  output([d1, y1, w0])
)";

TEST_CASE("bucket-transformer-blocks: reductions of a layer are one, awaited one layer later") {
  const auto module = Bucketed(kBackward);
  CHECK_EQ(BodyOf(*module), R"(
  g1 = placeholder
  g2 = placeholder
  b1 = aten.neg.default(g1)
  c1 = aten.neg.default(g2)
  reshape = aten.reshape.default(b1, [2, 8])
  reshape_1 = aten.reshape.default(c1, [2, 4])
  cat = aten.cat.default([reshape, reshape_1], 1)
  reshape_2 = aten.reshape.default(cat, [24])
  reduce_scatter_tensor = _c10d_functional.reduce_scatter_tensor.default(reshape_2, 'sum', 2, 'fsdp')
  b0 = aten.relu.default(g1)
  r0 = _c10d_functional.reduce_scatter_tensor.default(b0, 'sum', 2, 'fsdp')
  wait_tensor = _c10d_functional.wait_tensor.default(reduce_scatter_tensor)
  (_, _) = aten.split_with_sizes.default(wait_tensor, [8, 4]) as split_with_sizes
  reshape_3 = aten.reshape.default(split_with_sizes$0, [2, 4])
  d1 = aten.mul.Tensor(reshape_3, 0.5)
  reshape_4 = aten.reshape.default(split_with_sizes$1, [2, 2])
  w0 = _c10d_functional.wait_tensor.default(r0)
  output([d1, reshape_4, w0])
)");
  const Graph& graph = *module->FindGraph("g");
  CHECK_EQ(graph.attribute(NodeNamed(graph, "r0"), kBucketAttribute), "layers.0");
  CHECK_EQ(graph.node(NodeNamed(graph, "reduce_scatter_tensor")).phase, Phase::kBackward);
  CHECK_EQ(graph.value_name(graph.value(graph.result(NodeNamed(graph, "reshape_4"))).alias_of),
           "reduce_scatter_tensor");
}

TEST_CASE("JB-3: members are packed in order of the modules of the parameters") {
  const auto module = Bucketed(R"(
  p = placeholder : f32[2][1]cpu {+fqn='layers.0.a.weight' +input='parameter'}
  q = placeholder : f32[3][1]cpu {+fqn='layers.0.b.weight' +input='parameter'}
  c = _c10d_functional.all_gather_into_tensor.default(q, 2, 'fsdp') : f32[6][1]cpu {forward module=layers.0.b}
  y = _c10d_functional.wait_tensor.default(c) : f32[6][1]cpu ~c {forward module=layers.0.b}
  a = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp') : f32[4][1]cpu {forward module=layers.0.a}
  w = _c10d_functional.wait_tensor.default(a) : f32[4][1]cpu ~a {forward module=layers.0.a}
  end = aten.neg.default(w) : f32[4][1]cpu {backward module=layers.0.a}
  output([end, y])
)");
  CHECK_EQ(BodyOf(*module), R"(
  p = placeholder
  q = placeholder
  cat = aten.cat.default([p, q])
  all_gather_into_tensor = _c10d_functional.all_gather_into_tensor.default(cat, 2, 'fsdp')
  wait_tensor = _c10d_functional.wait_tensor.default(all_gather_into_tensor)
  reshape = aten.reshape.default(wait_tensor, [2, 5])
  (_, _) = aten.split_with_sizes_copy.default(reshape, [2, 3], 1) as split_with_sizes_copy
  reshape_1 = aten.reshape.default(split_with_sizes_copy$0, [4])
  reshape_2 = aten.reshape.default(split_with_sizes_copy$1, [6])
  end = aten.neg.default(reshape_1)
  output([end, reshape_2])
)");
}

/// A gather that reads the result of another one.
constexpr std::string_view kDependent = R"(
  p = placeholder : f32[2][1]cpu {+fqn='layers.0.a.weight' +input='parameter'}
  q = placeholder : f32[2][1]cpu {+fqn='layers.0.b.weight' +input='parameter'}
  a = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp') : f32[4][1]cpu {forward module=layers.0.a}
  w = _c10d_functional.wait_tensor.default(a) : f32[4][1]cpu ~a {forward module=layers.0.a}
  n = aten.neg.default(w) : f32[4][1]cpu {forward module=layers.0.a}
  b = _c10d_functional.all_gather_into_tensor.default(n, 2, 'fsdp') : f32[8][1]cpu {forward module=layers.0.a}
  y = _c10d_functional.wait_tensor.default(b) : f32[8][1]cpu ~b {forward module=layers.0.a}
  c = _c10d_functional.all_gather_into_tensor.default(q, 2, 'fsdp') : f32[4][1]cpu {forward module=layers.0.b}
  z = _c10d_functional.wait_tensor.default(c) : f32[4][1]cpu ~c {forward module=layers.0.b}
  end = aten.neg.default(z) : f32[4][1]cpu {backward module=layers.0.a}
  output([end, y])
)";

TEST_CASE("T104, JB-4: dependent members are in two buckets") {
  const auto module = Bucketed(kDependent);
  CHECK_EQ(BodyOf(*module), R"(
  p = placeholder
  q = placeholder
  cat = aten.cat.default([p, q])
  all_gather_into_tensor = _c10d_functional.all_gather_into_tensor.default(cat, 2, 'fsdp')
  wait_tensor = _c10d_functional.wait_tensor.default(all_gather_into_tensor)
  reshape = aten.reshape.default(wait_tensor, [2, 4])
  (_, _) = aten.split_with_sizes_copy.default(reshape, [2, 2], 1) as split_with_sizes_copy
  reshape_1 = aten.reshape.default(split_with_sizes_copy$0, [4])
  reshape_2 = aten.reshape.default(split_with_sizes_copy$1, [4])
  n = aten.neg.default(reshape_1)
  b = _c10d_functional.all_gather_into_tensor.default(n, 2, 'fsdp')
  y = _c10d_functional.wait_tensor.default(b)
  end = aten.neg.default(reshape_2)
  output([end, y])
)");
}

TEST_CASE("JB-4: buckets of two groups whose members alternate close no cycle") {
  const auto module = Bucketed(R"(
  p = placeholder : f32[2][1]cpu {+fqn='layers.0.a.weight' +input='parameter'}
  q = placeholder : f32[2][1]cpu {+fqn='layers.0.b.weight' +input='parameter'}
  a = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp') : f32[4][1]cpu {forward module=layers.0.a}
  w = _c10d_functional.wait_tensor.default(a) : f32[4][1]cpu ~a {forward module=layers.0.a}
  b = _c10d_functional.all_gather_into_tensor.default(w, 2, 'dp') : f32[8][1]cpu {forward module=layers.0.a}
  x = _c10d_functional.wait_tensor.default(b) : f32[8][1]cpu ~b {forward module=layers.0.a}
  c = _c10d_functional.all_gather_into_tensor.default(q, 2, 'dp') : f32[4][1]cpu {forward module=layers.0.b}
  y = _c10d_functional.wait_tensor.default(c) : f32[4][1]cpu ~c {forward module=layers.0.b}
  d = _c10d_functional.all_gather_into_tensor.default(y, 2, 'fsdp') : f32[8][1]cpu {forward module=layers.0.b}
  z = _c10d_functional.wait_tensor.default(d) : f32[8][1]cpu ~d {forward module=layers.0.b}
  end = aten.neg.default(x) : f32[8][1]cpu {backward module=layers.0.a}
  output([end, z])
)");
  int gathers = 0;
  const Graph& graph = *module->FindGraph("g");
  for (const NodeId node : graph.nodes())
    gathers += IsCollective(graph, node, CollectiveKind::kAllGather) ? 1 : 0;
  CHECK_EQ(gathers, 3);  // one pair is merged, the other pair is not
}

TEST_CASE("JB-6: a wait of forward does not follow a launch of backward") {
  const auto module = Bucketed(R"(
  x = placeholder : f32[4, 4][4, 1]cpu {+input='batch'}
  p = placeholder : f32[2, 4][4, 1]cpu {+fqn='layers.0.a.weight' +input='parameter'}
  a = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp') : f32[4, 4][4, 1]cpu {forward module=layers.0.a}
  w = _c10d_functional.wait_tensor.default(a) : f32[4, 4][4, 1]cpu ~a {forward module=layers.0.a}
  h = aten.mm.default(x, w) : f32[4, 4][4, 1]cpu {forward module=layers.0.a}
  b = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp') : f32[4, 4][4, 1]cpu {backward module=layers.0.a}
  y = _c10d_functional.wait_tensor.default(b) : f32[4, 4][4, 1]cpu ~b {backward module=layers.0.a}
  g = aten.mm.default(h, y) : f32[4, 4][4, 1]cpu {backward module=layers.0.a}
  output([g])
)");
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  p = placeholder
  a = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp')
  w = _c10d_functional.wait_tensor.default(a)
  h = aten.mm.default(x, w)
  b = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp')
  y = _c10d_functional.wait_tensor.default(b)
  g = aten.mm.default(h, y)
  output([g])
)");
}

TEST_CASE("JB-7: a graph without collectives of parameters stays as it is") {
  constexpr std::string_view kLocal = R"(
  x = placeholder : f32[4][1]cpu
  y = placeholder : f32[4][1]cpu
  s = aten.add.Tensor(x, y) : f32[4][1]cpu {forward module=layers.0}
  a = _c10d_functional.all_gather_into_tensor.default(s, 2, 'tp') : f32[8][1]cpu {forward module=layers.0}
  w = _c10d_functional.wait_tensor.default(a) : f32[8][1]cpu ~a {forward module=layers.0}
  g = aten.neg.default(w) : f32[8][1]cpu {backward module=layers.0}
  output([g])
)";
  CHECK_EQ(BodyOf(*Bucketed(kLocal)), BodyOf(*ParseBody(kLocal)));
}

TEST_CASE("JB-9: all-reduces of replicated gradients are one") {
  std::string body = "\n  x = placeholder : f32[2][1]cpu {+input='batch'}\n";
  std::string outputs;
  for (int i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i);
    body += "  g" + n + " = aten.mul.Tensor(x, " + n +
            ") : f32[2][1]cpu {backward module=layers.0.m" + n + "}\n";
    body += "  r" + n + " = _c10d_functional.all_reduce.default(g" + n +
            ", 'sum', 'dp') : f32[2][1]cpu {backward module=layers.0.m" + n + "}\n";
    body += "  w" + n + " = _c10d_functional.wait_tensor.default(r" + n + ") : f32[2][1]cpu ~r" +
            n + " {backward module=layers.0.m" + n + "}\n";
    outputs += (i == 0 ? "w" : ", w") + n;
  }
  const auto module = Bucketed(body + "  output([" + outputs + "])\n");
  int reductions = 0;
  const Graph& graph = *module->FindGraph("g");
  for (const NodeId node : graph.nodes())
    reductions += IsCollective(graph, node, CollectiveKind::kAllReduce) ? 1 : 0;
  CHECK_EQ(reductions, 1);
  CHECK_EQ(graph.num_nodes(), 1 + 6 + 4 + 1);  // x, gradients, cat, reduce, wait, split, output
}

TEST_CASE("bucket-transformer-blocks: gradients that are reduced twice are packed twice") {
  const auto module = Bucketed(R"(
  x = placeholder : f32[4][1]cpu {+input='batch'}
  g0 = aten.mul.Tensor(x, 1) : f32[4][1]cpu {backward module=layers.0.a}
  r0 = _c10d_functional.reduce_scatter_tensor.default(g0, 'sum', 2, 'fsdp') : f32[2][1]cpu {backward module=layers.0.a}
  v0 = _c10d_functional.wait_tensor.default(r0) : f32[2][1]cpu ~r0 {backward module=layers.0.a}
  a0 = _c10d_functional.all_reduce.default(v0, 'sum', 'dp') : f32[2][1]cpu {backward module=layers.0.a}
  w0 = _c10d_functional.wait_tensor.default(a0) : f32[2][1]cpu ~a0 {backward module=layers.0.a}
  g1 = aten.mul.Tensor(x, 2) : f32[4][1]cpu {backward module=layers.0.b}
  r1 = _c10d_functional.reduce_scatter_tensor.default(g1, 'sum', 2, 'fsdp') : f32[2][1]cpu {backward module=layers.0.b}
  v1 = _c10d_functional.wait_tensor.default(r1) : f32[2][1]cpu ~r1 {backward module=layers.0.b}
  a1 = _c10d_functional.all_reduce.default(v1, 'sum', 'dp') : f32[2][1]cpu {backward module=layers.0.b}
  w1 = _c10d_functional.wait_tensor.default(a1) : f32[2][1]cpu ~a1 {backward module=layers.0.b}
  output([w0, w1])
)");
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  g0 = aten.mul.Tensor(x, 1)
  g1 = aten.mul.Tensor(x, 2)
  reshape = aten.reshape.default(g0, [2, 2])
  reshape_1 = aten.reshape.default(g1, [2, 2])
  cat = aten.cat.default([reshape, reshape_1], 1)
  reshape_2 = aten.reshape.default(cat, [8])
  reduce_scatter_tensor = _c10d_functional.reduce_scatter_tensor.default(reshape_2, 'sum', 2, 'fsdp')
  wait_tensor = _c10d_functional.wait_tensor.default(reduce_scatter_tensor)
  (_, _) = aten.split_with_sizes.default(wait_tensor, [2, 2]) as split_with_sizes
  cat_1 = aten.cat.default([split_with_sizes$0, split_with_sizes$1])
  all_reduce = _c10d_functional.all_reduce.default(cat_1, 'sum', 'dp')
  wait_tensor_1 = _c10d_functional.wait_tensor.default(all_reduce)
  (_, _) = aten.split_with_sizes.default(wait_tensor_1, [2, 2]) as split_with_sizes_1
  output([split_with_sizes_1$0, split_with_sizes_1$1])
)");
}

TEST_CASE("bucket-transformer-blocks: a plan that names a module twice is an error") {
  CHECK_EQ(
      MessageOf(BucketTransformerBlocks({.plan = "layers.0|layers.0.a"}).Run(*ParseBody(kForward))),
      "buckets overlap: 'layers.0' contains 'layers.0.a': name each module once");
}

}  // namespace
}  // namespace strata
