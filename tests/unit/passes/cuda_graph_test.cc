#include "passes/compile/cuda_graph.h"

#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::ParseBody;

/// Why node `a` cannot be captured; "" if it can.
std::string Obstacle(std::string_view body, double capability = 9.0) {
  const auto module = ParseBody(body);
  const Graph& graph = *module->FindGraph("g");
  return CudaGraphObstacle(graph, testing::NodeNamed(graph, "a"), capability).value_or("");
}

TEST_CASE("CG-1: relu can be captured, reading a value cannot") {
  CHECK_EQ(Obstacle(R"(
  x = placeholder : f32[4][1]cuda:0
  a = aten.relu.default(x) : f32[4][1]cuda:0
  output([a])
)"),
           "");
  CHECK_EQ(Obstacle(R"(
  x = placeholder : f32[][]cuda:0
  a = aten._local_scalar_dense.default(x)
  output([a])
)"),
           "reads a value on the host");
}

TEST_CASE(
    "CG-2: unpinned copies to the device, grouped products, symbols and host-only nodes cannot be "
    "captured") {
  CHECK_EQ(Obstacle(R"(
  x = placeholder : f32[4][1]cpu
  a = aten._to_copy.default(x, device=device('cuda:0')) : f32[4][1]cuda:0
  output([a])
)"),
           "copies between host and device, not pinned");
  CHECK_EQ(Obstacle(R"(
  x = placeholder : f32[4][1]cpu
  p = aten.pin_memory.default(x) : f32[4][1]cpu
  a = aten._to_copy.default(p, device=device('cuda:0')) : f32[4][1]cuda:0
  output([a])
)"),
           "");
  const auto grouped = [](const std::string& type) {
    return "x = placeholder : " + type + "[8, 16][16, 1]cuda:0\n" + "w = placeholder : " + type +
           "[2, 16, 8][128, 8, 1]cuda:0\no = placeholder : i32[2][1]cuda:0\n" +
           "a = aten._grouped_mm.default(x, w, o) : " + type + "[8, 8][8, 1]cuda:0\noutput([a])\n";
  };
  const std::string kReads = "a grouped product may read its offsets on the host";
  CHECK_EQ(Obstacle(grouped("bf16"), 9.0), kReads);
  CHECK_EQ(Obstacle(grouped("bf16"), 10.0), "");
  CHECK_EQ(Obstacle(grouped("bf16"), 10.3), "");
  CHECK_EQ(Obstacle(grouped("bf16"), 12.0), kReads);
  CHECK_EQ(Obstacle(grouped("f32"), 10.0), kReads);
  CHECK_EQ(Obstacle(R"(
  x = placeholder : f32[s0][1]cuda:0
  a = aten.relu.default(x) : f32[s0][1]cuda:0
  output([a])
)"),
           "has a symbolic size");
  CHECK_EQ(Obstacle(R"(
  x = placeholder : f32[4][1]cpu
  a = aten.relu.default(x) : f32[4][1]cpu
  output([a])
)"),
           "runs on the host");
}

TEST_CASE("CG-5: Strata's operators can be captured if their tensors are on the GPU") {
  CHECK_EQ(Obstacle(R"(
  x = placeholder : f32[4][1]cuda:0
  a = strata_moe.dispatch.default(x) : f32[4][1]cuda:0
  output([a])
)"),
           "");
}

TEST_CASE("CG-2: results of one operator share its verdict") {
  CHECK_EQ(Obstacle(R"(
  x = placeholder : f32[4][1]cpu
  (v, i) = aten.topk.default(x, 2) as a : (f32[2][1]cpu, i64[2][1]cpu)
  output([v, i])
)"),
           "runs on the host");
}

TEST_CASE("CG-6: the pass marks capturable nodes and reports the others") {
  const auto module = ParseBody(R"(
  x = placeholder : f32[4][1]cuda:0
  a = aten.relu.default(x) : f32[4][1]cuda:0
  output([a])
)");
  const Graph& graph = *module->FindGraph("g");
  CHECK(OrDie(CudaGraph().Run(*module)) == Changed::kYes);
  CHECK_EQ(graph.attribute(graph.output(), "cuda_graph"), "full");
  CHECK(OrDie(CudaGraph().Run(*module)) == Changed::kNo);

  const auto host = ParseBody(R"(
  x = placeholder : f32[4][1]cpu
  a = aten.relu.default(x) : f32[4][1]cpu
  output([a])
)");
  CHECK(OrDie(CudaGraph().Run(*host)) == Changed::kYes);
  const Graph& refused = *host->FindGraph("g");
  CHECK_EQ(refused.attribute(refused.output(), "no_cuda_graph"), "a: runs on the host");
  CHECK(OrDie(CudaGraph({.force = true}).Run(*host)) == Changed::kYes);
  CHECK_EQ(refused.attribute(refused.output(), "no_cuda_graph"), "");
  CHECK_EQ(refused.attribute(refused.output(), "cuda_graph"), "full");
}

/// Names of the nodes that run outside of pieces.
std::string Outside(const Graph& graph) {
  std::string names;
  for (const NodeId node : graph.nodes()) {
    if (graph.attribute(node, "cuda_graph") == "outside")
      names += fmt::format("{} ", graph.name(node));
  }
  return names;
}

TEST_CASE("what no device graph can hold splits a graph into pieces") {
  const auto module = ParseBody(R"(
  w = placeholder : f32[4][1]cuda:0 {+input='parameter'}
  x = placeholder : f32[4][1]cuda:0 {+input='batch'}
  a = aten.mul.Tensor(x, w) : f32[4][1]cuda:0
  n = aten._local_scalar_dense.default(a)
  b = aten.mul.Tensor(a, n) : f32[4][1]cuda:0
  v = aten.view.default(b, [2, 2]) : f32[2, 2][2, 1]cuda:0 ~b
  m = aten._local_scalar_dense.default(v)
  c = aten.exp.default(v) : f32[2, 2][2, 1]cuda:0
  d = aten.neg.default(c) : f32[2, 2][2, 1]cuda:0
  u = aten.add_.Tensor(w, x) : f32[4][1]cuda:0 ~w
  output([d])
)");
  Graph& graph = *module->FindGraph("g");
  OrDie(CudaGraph({.pieces = true}).Run(*module));
  CHECK_EQ(graph.attribute(graph.output(), "cuda_graph"), "pieces");
  CHECK_EQ(graph.attribute(graph.output(), "no_cuda_graph"), "n: reads a value on the host");
  CHECK_EQ(Outside(graph), "n b v m ");  // b reads a number; v alone computes nothing
  CHECK(OrDie(CudaGraph({.pieces = true}).Run(*module)) == Changed::kNo);
  OrDie(CudaGraph({.pieces = true, .min_nodes = 2}).Run(*module));
  CHECK_EQ(Outside(graph), "a n b v m ");
  OrDie(CudaGraph({.pieces = true, .min_nodes = 4}).Run(*module));
  CHECK_EQ(Outside(graph), "a n b v m c d u ");
  CHECK_EQ(graph.attribute(graph.output(), "cuda_graph"), "");
  OrDie(CudaGraph().Run(*module));
  CHECK_EQ(Outside(graph), "");
}

TEST_CASE("collectives, what builds their buffers, and written memory stay outside of pieces") {
  const auto module = ParseBody(R"(
  x = placeholder : f32[4][1]cuda:0 {+input='batch'}
  y = placeholder : f32[4][1]cuda:0 {+input='batch'}
  a = aten.exp.default(x) : f32[4][1]cuda:0
  b = aten.neg.default(x) : f32[4][1]cuda:0
  buffer = aten.cat.default([a, b]) : f32[8][1]cuda:0
  sum = _c10d_functional.all_reduce.default(buffer, 'sum', 'fsdp') : f32[8][1]cuda:0
  c = aten.exp.default(a) : f32[4][1]cuda:0
  awaited = _c10d_functional.wait_tensor.default(sum) : f32[8][1]cuda:0
  d = aten.exp.default(awaited) : f32[8][1]cuda:0
  e = aten.neg.default(y) : f32[4][1]cuda:0
  f = aten.add_.Tensor(e, c) : f32[4][1]cuda:0 ~e
  g = aten.exp.default(f) : f32[4][1]cuda:0
  h = aten.exp.default(d) : f32[8][1]cuda:0
  n = aten._local_scalar_dense.default(h)
  output([g, h])
)");
  const Graph& graph = *module->FindGraph("g");
  OrDie(CudaGraph({.pieces = true}).Run(*module));
  CHECK_EQ(Outside(graph), "buffer sum awaited e f g n ");
}

}  // namespace
}  // namespace strata
