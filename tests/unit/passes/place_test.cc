#include "passes/placement/place.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ir/text/native_text.h"
#include "ir/verify.h"
#include "passes/placement/lowering/lower.h"
#include "passes/placement/placement.h"
#include "passes/placement/plan.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::BodyOf;
using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;
using testing::TypeOf;
using testing::ValueNamed;

Status PlaceOn(Module& module, std::string mesh) {
  auto changed = Place({.mesh = std::move(mesh), .plan = ""}).Run(module);
  if (!changed) return std::move(changed).error();
  OrDie(Verify(module));
  return Ok();
}

constexpr std::string_view kPlaceStep = R"(
  w = placeholder : f32[6, 4][4, 1]cpu {+fqn='w' +input='parameter'}
  x = placeholder : f32[8, 4][4, 1]cpu {+fqn='x' +input='batch'}
  t = aten.t.default(w) : f32[4, 6][1, 4]cpu ~w {forward}
  mm = aten.mm.default(x, t) : f32[8, 6][6, 1]cpu {forward}
  sum_1 = aten.sum.default(mm) : f32[][]cpu {forward}
  ones = aten.ones_like.default(mm) : f32[8, 6][6, 1]cpu {backward}
  t_1 = aten.t.default(ones) : f32[6, 8][1, 6]cpu ~ones {backward}
  grad = aten.mm.default(t_1, x) : f32[6, 4][4, 1]cpu {backward}
  output([sum_1, grad])
)";

TEST_CASE("place: a mean that is added to in place is not left partial") {
  auto module = ParseBody(R"(
  x = placeholder : f32[8, 4][4, 1]cpu {+fqn='x' +input='batch'}
  mean = aten.mean.dim(x, [0], True) : f32[1, 4][4, 1]cpu {forward}
  add_ = aten.add_.Scalar(mean, 1e-05) : f32[1, 4][4, 1]cpu ~mean {forward}
  rsqrt = aten.rsqrt.default(add_) : f32[1, 4][4, 1]cpu {forward}
  output(rsqrt)
)");
  OrDie(PlaceOn(*module, "fsdp=2"));
  CHECK_EQ(TypeOf(*module, "x"), "DTensor(f32[8, 4][4, 1]cpu, S(0))");
  CHECK_EQ(TypeOf(*module, "mean"), "DTensor(f32[1, 4][4, 1]cpu, S(1))");
}

TEST_CASE("place: a norm reads the sum of what ranks have, and norms of norms stay partial") {
  auto module = ParseBody(R"(
  x = placeholder : f32[8, 4][4, 1]cpu {+fqn='x' +input='batch'}
  t = aten.t.default(x) : f32[4, 8][1, 4]cpu ~x {forward}
  product = aten.mm.default(t, x) : f32[4, 4][4, 1]cpu {forward}
  of_summands = aten.linalg_vector_norm.default(product) : f32[][]cpu {forward}
  of_parts = aten.linalg_vector_norm.default(x) : f32[][]cpu {forward}
  norms = aten.stack.default([of_parts, of_parts]) : f32[2][1]cpu {forward}
  total = aten.linalg_vector_norm.default(norms) : f32[][]cpu {forward}
  output([of_summands, total])
)");
  OrDie(PlaceOn(*module, "fsdp=2"));
  CHECK_EQ(TypeOf(*module, "product"), "DTensor(f32[4, 4][4, 1]cpu, P(sum))");
  CHECK_NE(TypeOf(*module, "of_summands"), "DTensor(f32[][]cpu, P(sum))");
  CHECK_EQ(TypeOf(*module, "total"), "DTensor(f32[][]cpu, P(norm2))");
}

TEST_CASE("place: random values are made of sizes, and each rank takes its part") {
  auto module = ParseBody(R"(
  x = placeholder : f32[8, 4][4, 1]cpu {+fqn='x' +input='batch'}
  y = aten.sin.default(x) : f32[8, 4][4, 1]cpu {forward}
  memory = aten.empty_like.default(y) : f32[8, 4][4, 1]cpu {forward}
  mask = aten.bernoulli_.float(memory, 0.9) : f32[8, 4][4, 1]cpu ~memory {forward}
  scale = aten.div_.Scalar(mask, 0.9) : f32[8, 4][4, 1]cpu ~memory {forward}
  noise = aten.randn_like.default(y) : f32[8, 4][4, 1]cpu {forward}
  kept = aten.mul.Tensor(y, scale) : f32[8, 4][4, 1]cpu {forward}
  noisy = aten.add.Tensor(kept, noise) : f32[8, 4][4, 1]cpu {forward}
  output(noisy)
)");
  OrDie(PlaceOn(*module, "fsdp=2"));
  const Graph& graph = *module->FindGraph("g");
  CHECK_EQ(TypeOf(*module, "y"), "DTensor(f32[8, 4][4, 1]cpu, S(0))");
  CHECK_EQ(TypeOf(*module, "mask"), "DTensor(f32[8, 4][4, 1]cpu, R)");
  CHECK_EQ(TypeOf(*module, "noisy"), "DTensor(f32[8, 4][4, 1]cpu, S(0))");
  for (const NodeId node : graph.nodes()) {
    const std::string_view op = graph.op(node);
    CHECK_NE(op, "aten.empty_like.default");
    CHECK_NE(op, "aten.randn_like.default");
    if (op == "strata.redistribute.default")
      CHECK_NE(graph.value_name(graph.args(node)[0].value()), "y");
  }
}

TEST_CASE("place: dropout is a mask, of which each rank takes its part") {
  auto module = ParseBody(R"(
  x = placeholder : f32[8, 4][4, 1]cpu {+fqn='x' +input='batch'}
  (y, mask) = aten.native_dropout.default(x, 0.2, True) as drop : (f32[8, 4][4, 1]cpu, b8[8, 4][4, 1]cpu) {forward}
  low = aten.randint_like.low_dtype(y, 2, 5) : f32[8, 4][4, 1]cpu {forward}
  z = aten.mul.Tensor(y, low) : f32[8, 4][4, 1]cpu {forward}
  output([z, mask])
)");
  OrDie(PlaceOn(*module, "fsdp=2"));
  const Graph& graph = *module->FindGraph("g");
  CHECK_EQ(TypeOf(*module, "z"), "DTensor(f32[8, 4][4, 1]cpu, S(0))");
  CHECK_EQ(TypeOf(*module, "bernoulli_"), "DTensor(b8[8, 4][4, 1]cpu, R)");
  CHECK_EQ(TypeOf(*module, "random_"), "DTensor(f32[8, 4][4, 1]cpu, R)");
  for (const NodeId node : graph.nodes())
    if (graph.op(node) == "strata.redistribute.default")
      CHECK_NE(graph.value_name(graph.args(node)[0].value()), "x");
}

/// Rows are written through views; all of them are read, and one view, after the writes.
TEST_CASE("place: a view of memory that is written later is not redistributed") {
  auto module = ParseBody(R"(
  x = placeholder : f32[8, 4][4, 1]cpu {+fqn='x' +input='batch'}
  y = aten.sum.dim_IntList(x, [0], True) : f32[1, 4][4, 1]cpu {forward}
  w = placeholder : f32[4][1]cpu {+fqn='w' +input='parameter'}
  all = aten.zeros.default([2, 4], dtype=torch.float32) : f32[2, 4][4, 1]cpu {forward}
  early = aten.t.default(all) : f32[4, 2][1, 4]cpu ~all {forward}
  first = aten.slice.Tensor(all, 0, 0, 1) : f32[1, 4][4, 1]cpu ~all {forward}
  copy_ = aten.copy_.default(first, y) : f32[1, 4][4, 1]cpu ~all {forward}
  scaled = aten.mul.Tensor(all, w) : f32[2, 4][4, 1]cpu {forward}
  turned = aten.mm.default(scaled, early) : f32[2, 2][2, 1]cpu {forward}
  output([turned])
)");
  OrDie(PlaceOn(*module, "fsdp=2"));
  const Graph& graph = *module->FindGraph("g");
  const std::string placed = TypeOf(*module, "all");
  const std::string_view placement = std::string_view(placed).substr(placed.rfind(','));
  CHECK(TypeOf(*module, "first").ends_with(placement));
  for (const std::string_view view : {"first", "early"}) {
    const NodeId node = NodeNamed(graph, view);
    CHECK_EQ(graph.value_name(graph.args(node)[0].value()), "all");
    CHECK_EQ(graph.value(graph.result(node)).alias_of, ValueNamed(graph, "all"));
  }
}

TEST_CASE("place: a gradient is cast, and reduced, where it is complete") {
  auto module = ParseBody(R"(
  w = placeholder : f32[6, 4][4, 1]cpu {+fqn='w' +input='parameter'}
  v = placeholder : f32[6, 4][4, 1]cpu {+fqn='v' +input='parameter'}
  x = placeholder : bf16[8, 4][4, 1]cpu {+fqn='x' +input='batch'}
  y = placeholder : bf16[8, 6][6, 1]cpu {+fqn='y' +input='batch'}
  t = aten.t.default(y) : bf16[6, 8][1, 6]cpu ~y {backward}
  of_w = aten.mm.default(t, x) : bf16[6, 4][4, 1]cpu {backward}
  of_v = aten.mm.default(t, x) : bf16[6, 4][4, 1]cpu {backward}
  cast_v = aten._to_copy.default(of_v, dtype=torch.float32) : f32[6, 4][4, 1]cpu {backward}
  cast_w = aten._to_copy.default(of_w, dtype=torch.float32) : f32[6, 4][4, 1]cpu {backward}
  output([cast_w, cast_v])
)");
  OrDie(PlaceOn(*module, "fsdp=2"));
  const Graph& graph = *module->FindGraph("g");
  std::vector<std::string> order;
  for (const NodeId node : graph.nodes())
    if (graph.node(node).kind == NodeKind::kCall) order.emplace_back(graph.name(node));
  const auto at = [&](std::string_view name) { return std::ranges::find(order, name); };
  CHECK(at("cast_w") < at("of_v"));
  CHECK(at("of_v") < at("cast_v"));
}

TEST_CASE("place: parameters are cast where they are stored, however small they are") {
  auto module = ParseBody(R"(
  w = placeholder : f32[4][1]cpu {+fqn='layers.0.norm.weight' +input='parameter'}
  x = placeholder : bf16[8, 4][4, 1]cpu {+fqn='x' +input='batch'}
  cast = aten._to_copy.default(w, dtype=torch.bfloat16) : bf16[4][1]cpu {forward}
  a = aten.mul.Tensor(x, cast) : bf16[8, 4][4, 1]cpu {forward}
  b = aten.mul.Tensor(a, cast) : bf16[8, 4][4, 1]cpu {forward}
  loss = aten.sum.default(b) : bf16[][]cpu {loss}
  c = aten.mul.Tensor(b, cast) : bf16[8, 4][4, 1]cpu {backward}
  g = aten.sum.dim_IntList(c, [0]) : bf16[4][1]cpu {backward}
  output([loss, g])
)");
  OrDie(PlaceOn(*module, "fsdp=2"));
  CHECK_EQ(TypeOf(*module, "cast"), "DTensor(bf16[4][1]cpu, S(0))");
}

TEST_CASE("place: parameters are gathered when read, gradients are sharded as their parameters") {
  auto module = ParseBody(kPlaceStep);
  OrDie(PlaceOn(*module, "fsdp=2"));
  CHECK_EQ(BodyOf(*module), R"(
  w = placeholder
  x = placeholder
  redistribute = strata.redistribute.default(w, 'R')
  t = aten.t.default(redistribute)
  mm = aten.mm.default(x, t)
  sum_1 = aten.sum.default(mm)
  redistribute_1 = strata.redistribute.default(sum_1, 'R')
  ones = aten.ones_like.default(mm)
  t_1 = aten.t.default(ones)
  grad = aten.mm.default(t_1, x)
  redistribute_2 = strata.redistribute.default(grad, 'S(0)')
  output([redistribute_1, redistribute_2])
)");
  CHECK_EQ(TypeOf(*module, "w"), "DTensor(f32[6, 4][4, 1]cpu, S(0))");
  CHECK_EQ(TypeOf(*module, "mm"), "DTensor(f32[8, 6][6, 1]cpu, S(0))");
  CHECK_EQ(TypeOf(*module, "sum_1"), "DTensor(f32[][]cpu, P(sum))");
  CHECK_EQ(TypeOf(*module, "t_1"), "DTensor(f32[6, 8][1, 6]cpu, S(1))");
  CHECK_EQ(TypeOf(*module, "grad"), "DTensor(f32[6, 4][4, 1]cpu, P(sum))");
  const Graph& graph = *module->FindGraph("g");
  CHECK_EQ(graph.attribute(graph.output(), "mesh"), "fsdp=2");
  // A view of the gathered parameter shares its storage, not that of the part.
  CHECK(graph.value(ValueNamed(graph, "t")).alias_of == ValueNamed(graph, "redistribute"));
}

TEST_CASE("lower: sizes are local and redistributions are collectives of an axis") {
  auto module = ParseBody(kPlaceStep);
  OrDie(PlaceOn(*module, "fsdp=2"));
  CHECK(OrDie(LowerPlacements().Run(*module)) == Changed::kYes);
  OrDie(Verify(*module));
  CHECK_EQ(BodyOf(*module), R"(
  w = placeholder
  x = placeholder
  all_gather_into_tensor = _c10d_functional.all_gather_into_tensor.default(w, 2, 'fsdp')
  wait_tensor = _c10d_functional.wait_tensor.default(all_gather_into_tensor)
  t = aten.t.default(wait_tensor)
  mm = aten.mm.default(x, t)
  sum_1 = aten.sum.default(mm)
  all_reduce = _c10d_functional.all_reduce.default(sum_1, 'sum', 'fsdp')
  wait_tensor_1 = _c10d_functional.wait_tensor.default(all_reduce)
  ones = aten.ones_like.default(mm)
  t_1 = aten.t.default(ones)
  grad = aten.mm.default(t_1, x)
  reduce_scatter_tensor = _c10d_functional.reduce_scatter_tensor.default(grad, 'sum', 2, 'fsdp')
  wait_tensor_2 = _c10d_functional.wait_tensor.default(reduce_scatter_tensor)
  output([wait_tensor_1, wait_tensor_2])
)");
  CHECK_EQ(TypeOf(*module, "w"), "f32[3, 4][4, 1]cpu");
  CHECK_EQ(TypeOf(*module, "t_1"), "f32[6, 4][1, 6]cpu");
  const Graph& graph = *module->FindGraph("g");
  CHECK_EQ(graph.attribute(NodeNamed(graph, "w"), "global"), "DTensor(f32[6, 4][4, 1]cpu, S(0))");
  CHECK_EQ(graph.attribute(graph.output(), "global"),
           "DTensor(f32[][]cpu, R); DTensor(f32[6, 4][4, 1]cpu, S(0))");
  CHECK(OrDie(LowerPlacements().Run(*module)) == Changed::kNo);
}

TEST_CASE("place: lists of tensors that ranks hold in different ways have a call for each") {
  auto module = ParseBody(R"(
  w = placeholder : f32[6, 4][4, 1]cuda:0 {+fqn='w' +input='parameter'}
  b = placeholder : f32[][]cuda:0 {+fqn='b' +input='parameter'}
  gw = placeholder : f32[6, 4][4, 1]cuda:0 {+fqn='w.grad' +input='gradient'}
  gb = placeholder : f32[][]cuda:0 {+fqn='b.grad' +input='gradient'}
  mw = placeholder : f32[6, 4][4, 1]cuda:0 {+fqn='w.exp_avg' +input='state'}
  mb = placeholder : f32[][]cuda:0 {+fqn='b.exp_avg' +input='state'}
  vw = placeholder : f32[6, 4][4, 1]cuda:0 {+fqn='w.exp_avg_sq' +input='state'}
  vb = placeholder : f32[][]cuda:0 {+fqn='b.exp_avg_sq' +input='state'}
  step = placeholder : f32[][]cuda:0 {+fqn='step' +input='state'}
  lr = placeholder : f32[][]cuda:0
  (nw, nb) = aten._foreach_norm.Scalar([gw, gb], 2.0) as norms : (f32[][]cuda:0, f32[][]cuda:0) {optimizer}
  sum = aten.add.Tensor(nw, nb) : f32[][]cuda:0 {optimizer}
  update = aten._fused_adamw_.tensor_lr([w, b], [gw, gb], [mw, mb], [vw, vb], [], [step, step], lr=lr, beta1=0.9, beta2=0.95, weight_decay=0.1, eps=1e-08, amsgrad=False, maximize=False) {optimizer}
  output(sum)
)");
  OrDie(PlaceOn(*module, "fsdp=2"));
  CHECK_EQ(TypeOf(*module, "linalg_vector_norm"), "DTensor(f32[][]cuda:0, P(norm2))");
  CHECK_EQ(TypeOf(*module, "linalg_vector_norm_1"), "DTensor(f32[][]cuda:0, R)");
  const std::string body = BodyOf(*module);
  CHECK(body.find("tensor_lr([w], [gw], [mw], [vw], [], [step],") != std::string::npos);
  CHECK(body.find("tensor_lr([b], [gb], [mb], [vb], [], [step],") != std::string::npos);
  CHECK(body.find("_foreach_norm") == std::string::npos);
}

TEST_CASE("place: sums of batches stay where they are, counts of rows whole") {
  auto module = ParseBody(R"(
  a = placeholder : f32[6, 4][4, 1]cpu {+fqn='a.grad' +input='gradient'}
  n = placeholder : i64[8][1]cpu {+fqn='tokens_per_expert' +input='batch'}
  b = placeholder : f32[6, 4][4, 1]cpu {+fqn='a.batch_grad' +input='gradient'}
  m = placeholder : i64[8][1]cpu {+fqn='batch_tokens_per_expert' +input='batch'}
  sum_a = aten.add_.Tensor(a, b) : f32[6, 4][4, 1]cpu ~a {optimizer}
  sum_n = aten.add_.Tensor(n, m) : i64[8][1]cpu ~n {optimizer}
  output([sum_a, sum_n])
)");
  OrDie(PlaceOn(*module, "fsdp=2"));
  const Graph& graph = *module->FindGraph("g");
  CHECK_EQ(TypeOf(*module, "sum_a"), "DTensor(f32[6, 4][4, 1]cpu, S(0))");
  CHECK_EQ(graph.operands(graph.output())[1], ValueNamed(graph, "sum_n"));
  CHECK_EQ(TypeOf(*module, "sum_n"), "DTensor(i64[8][1]cpu, R)");
}

TEST_CASE("place: an optimizer updates the parts that are stored, also with counts of the batch") {
  auto module = ParseBody(R"(
  w = placeholder : f32[6, 4][4, 1]cpu {+fqn='w' +input='parameter'}
  g = placeholder : f32[6, 4][4, 1]cpu {+fqn='w.grad' +input='gradient'}
  n = placeholder : i64[8][1]cpu {+fqn='tokens_per_expert' +input='batch'}
  add_ = aten.add_.Tensor(w, g) : f32[6, 4][4, 1]cpu ~w {optimizer}
  norm = aten.linalg_vector_norm.default(g) : f32[][]cpu {optimizer}
  exp = aten.exp.default(norm) : f32[][]cpu {optimizer}
  output([exp])
)");
  OrDie(PlaceOn(*module, "fsdp=2"));
  CHECK_EQ(TypeOf(*module, "n"), "DTensor(i64[8][1]cpu, R)");
  CHECK_EQ(TypeOf(*module, "add_"), "DTensor(f32[6, 4][4, 1]cpu, S(0))");
  CHECK_EQ(TypeOf(*module, "norm"), "DTensor(f32[][]cpu, P(norm2))");
  CHECK_EQ(TypeOf(*module, "redistribute"), "DTensor(f32[][]cpu, R)");
}

/// A block of tensor parallelism: what is between its products is cut along the sequence.
constexpr std::string_view kBlock = R"(
  w1 = placeholder : f32[16, 8][8, 1]cpu {+fqn='layers.0.feed_forward.w1.weight' +input='parameter'}
  w2 = placeholder : f32[8, 16][16, 1]cpu {+fqn='layers.0.feed_forward.w2.weight' +input='parameter'}
  e = placeholder : f32[32, 8][8, 1]cpu {+fqn='tok_embeddings.weight' +input='parameter'}
  x = placeholder : i64[4, 64][64, 1]cpu {+fqn='tokens' +input='batch'}
  h = aten.embedding.default(e, x) : f32[4, 64, 8][512, 8, 1]cpu {forward module=tok_embeddings}
  n = aten.relu.default(h) : f32[4, 64, 8][512, 8, 1]cpu {forward module=layers.0.ffn_norm}
  t1 = aten.t.default(w1) : f32[8, 16][1, 8]cpu ~w1 {forward module=layers.0.feed_forward.w1}
  v1 = aten.reshape.default(n, [256, 8]) : f32[256, 8][8, 1]cpu ~n {forward module=layers.0.feed_forward.w1}
  m1 = aten.mm.default(v1, t1) : f32[256, 16][16, 1]cpu {forward module=layers.0.feed_forward.w1}
  a = aten.silu.default(m1) : f32[256, 16][16, 1]cpu {forward module=layers.0.feed_forward}
  t2 = aten.t.default(w2) : f32[16, 8][1, 16]cpu ~w2 {forward module=layers.0.feed_forward.w2}
  m2 = aten.mm.default(a, t2) : f32[256, 8][8, 1]cpu {forward module=layers.0.feed_forward.w2}
  v2 = aten.reshape.default(m2, [4, 64, 8]) : f32[4, 64, 8][512, 8, 1]cpu ~m2 {forward module=layers.0.feed_forward.w2}
  y = aten.add.Tensor(h, v2) : f32[4, 64, 8][512, 8, 1]cpu {forward module=layers.0}
  loss = aten.sum.default(y) : f32[][]cpu {loss}
  output([loss])
)";

TEST_CASE("place: tensor parallelism gathers the sequence once and scatters the sum once") {
  auto module = ParseBody(kBlock);
  OrDie(Place({.mesh = "fsdp=2,tp=2", .plan = "llama3"}).Run(*module));
  CHECK_EQ(TypeOf(*module, "n"), "DTensor(f32[4, 64, 8][512, 8, 1]cpu, S(0)S(1))");
  CHECK_EQ(TypeOf(*module, "v1"), "DTensor(f32[256, 8][8, 1]cpu, S(0)R)");
  CHECK_EQ(TypeOf(*module, "m1"), "DTensor(f32[256, 16][16, 1]cpu, S(0)S(1))");
  CHECK_EQ(TypeOf(*module, "v2"), "DTensor(f32[4, 64, 8][512, 8, 1]cpu, S(0)P(sum))");
  CHECK_EQ(TypeOf(*module, "y"), "DTensor(f32[4, 64, 8][512, 8, 1]cpu, S(0)S(1))");
  int moves = 0;  // three parameters, the embedding, the sequence, the sum, the loss
  for (const NodeId node : module->FindGraph("g")->nodes())
    moves += module->FindGraph("g")->op(node) == kRedistributeOp ? 1 : 0;
  CHECK_EQ(moves, 7);
}

TEST_CASE("lower: parts of the sequence of one row lie one after the other, without a copy") {
  const auto copies_on = [](const char* mesh) {
    auto module = ParseBody(kBlock);
    OrDie(Place({.mesh = mesh, .plan = "llama3"}).Run(*module));
    OrDie(LowerPlacements().Run(*module));
    OrDie(Verify(*module));
    int copies = 0;
    const Graph& graph = *module->FindGraph("g");
    for (const NodeId node : graph.nodes())
      copies += graph.op(node) == "aten.cat.default" ? 1 : 0;
    return copies;
  };
  CHECK_EQ(copies_on("fsdp=4,tp=2"), 0);
  CHECK_LT(0, copies_on("fsdp=2,tp=2"));  // two rows
}

TEST_CASE("T68: sizes in arguments become local ones") {
  auto module = ParseBody(R"(
  x = placeholder : f32[8, 3, 4][12, 4, 1]cpu {+fqn='x' +input='batch'}
  v = aten.reshape.default(x, [24, 4]) : f32[24, 4][4, 1]cpu ~x {forward}
  u = aten.reshape.default(v, [8, -1, 2]) : f32[8, 6, 2][12, 2, 1]cpu ~x {forward}
  output([u])
)");
  OrDie(PlaceOn(*module, "fsdp=4"));
  OrDie(LowerPlacements().Run(*module));
  const std::string body = BodyOf(*module);
  CHECK(body.find("aten.reshape.default(x, [6, 4])") != std::string::npos);
  CHECK(body.find("aten.reshape.default(v, [2, -1, 2])") != std::string::npos);
}

TEST_CASE("lower: a repeated dimension that ranks cut leaves the other strides") {
  Module module;
  const Mesh mesh = OrDie(Mesh::Parse("tp=2"));
  const auto local = [&](std::string_view type) {
    return module.types().ToString(OrDie(LocalType(module, module.types().Parse(type), mesh)));
  };
  CHECK_EQ(local("DTensor(f32[2, 48, 64][48, 1, 0]cpu, S(2))"), "f32[2, 48, 32][48, 1, 0]cpu");
  CHECK_EQ(local("DTensor(f32[2, 48, 64][48, 1, 0]cpu, S(1))"), "f32[2, 24, 64][24, 1, 0]cpu");
  CHECK_EQ(local("DTensor(f32[2, 48, 64][3072, 64, 1]cpu, S(2))"),
           "f32[2, 48, 32][1536, 32, 1]cpu");
}

TEST_CASE("T15: an operator without a rule is an error that names node, module and operator") {
  auto module = ParseBody(R"(
  x = placeholder : f32[8, 4][4, 1]cpu {+fqn='x' +input='batch'}
  f = aten.fancy.default(x) : f32[8, 4][4, 1]cpu {forward module=layers.0}
  output([f])
)");
  const Status placed = PlaceOn(*module, "fsdp=2");
  REQUIRE(!placed);
  CHECK_EQ(placed.error().message(),
           "no sharding rule for aten.fancy.default: f in graph g, module layers.0");
}

TEST_CASE("T107: a collective of the program is an error that names its node") {
  auto module = ParseBody(R"(
  x = placeholder : f32[8, 4][4, 1]cpu {+fqn='x' +input='batch'}
  a = _c10d_functional.all_reduce.default(x, 'sum', 'tp') : f32[8, 4][4, 1]cpu {forward module=layers.0}
  w = _c10d_functional.wait_tensor.default(a) : f32[8, 4][4, 1]cpu ~a {forward module=layers.0}
  output([w])
)");
  const Status placed = PlaceOn(*module, "fsdp=2");
  REQUIRE(!placed);
  CHECK_EQ(placed.error().message(),
           "no sharding rule for _c10d_functional.all_reduce.default: a in graph g, module "
           "layers.0");
}

Status PlaceBy(Module& module, std::string_view text, std::string_view mesh = "fsdp=2") {
  const auto plan = OrDie(PlacementPlan::Parse(text, "p.toml", OrDie(Mesh::Parse(mesh)), {}));
  return PlaceGraph(*module.FindGraph("g"), plan, Reshard::kBlocks);
}

/// Ranks of cp have a part of each of two sequences; a view counts these blocks.
TEST_CASE("place: what cuts blocks in chunks does not become part of a view of them") {
  auto module = ParseBody(R"(
  x = placeholder : i64[2, 8][8, 1]cpu {+fqn='x' +input='batch'}
  flat = aten.reshape.default(x, [16]) : i64[16][1]cpu ~x {backward}
  y = aten.neg.default(flat) : i64[16][1]cpu {backward module=m}
  out = aten.reshape.default(y, [2, 8]) : i64[2, 8][8, 1]cpu ~y {backward}
  squares = aten.mul.Tensor(out, x) : i64[2, 8][8, 1]cpu {backward}
  loss = aten.sum.default(squares) : i64[][]cpu {loss}
  output([loss])
)");
  OrDie(PlaceBy(*module, R"toml(
[[node]]
module = "m"
phase = "backward"
op = "aten.neg.default"
tp = "S(0) -> S(0)"
)toml",
                "cp=2,tp=2"));
  OrDie(Verify(*module));
  CHECK_EQ(TypeOf(*module, "y"), "DTensor(i64[16][1]cpu, F(0, 2)S(0))");
  CHECK_EQ(TypeOf(*module, "out"), "DTensor(i64[2, 8][8, 1]cpu, S(1)R)");
}

/// Places `kPlaceStep` on two ranks by the plan `text`.
TEST_CASE("place: a plan decides how single calls run, and what follows from that") {
  auto module = ParseBody(kPlaceStep);
  OrDie(PlaceBy(*module, R"toml(
[[node]]
module = ""
phase = "forward"
op = "aten.mm.default"
fsdp = "RS(1) -> S(1)"
)toml"));
  OrDie(Verify(*module));
  // Columns of the product are cut, so rows of the parameter stay where they are.
  CHECK_EQ(TypeOf(*module, "mm"), "DTensor(f32[8, 6][6, 1]cpu, S(1))");
  const std::string body = BodyOf(*module);
  CHECK(body.find("strata.redistribute.default(x, 'R')") != std::string::npos);
}

TEST_CASE("place: the index of an entry counts the calls of its operator, module and phase") {
  constexpr std::string_view kTwice = R"(
  x = placeholder : f32[8, 4][4, 1]cpu {+fqn='x' +input='batch'}
  a = aten.relu.default(x) : f32[8, 4][4, 1]cpu {forward module=layers.0.ffn}
  b = aten.relu.default(a) : f32[8, 4][4, 1]cpu {forward module=layers.0.ffn}
  c = aten.relu.default(b) : f32[8, 4][4, 1]cpu {backward module=layers.0.ffn}
  output([c])
)";
  auto module = ParseBody(kTwice);
  OrDie(PlaceBy(*module, R"(
node = [{ module = "layers.*.ffn", phase = "forward", op = "aten.relu.default", index = 1, fsdp = "R -> R" }]
)"));
  CHECK_EQ(TypeOf(*module, "a"), "DTensor(f32[8, 4][4, 1]cpu, S(0))");
  CHECK_EQ(TypeOf(*module, "b"), "DTensor(f32[8, 4][4, 1]cpu, R)");
}

TEST_CASE("place: a strategy that the rule does not allow is an error that names the entry") {
  auto module = ParseBody(kPlaceStep);
  const Status placed = PlaceBy(*module, R"toml(
[[node]]
module = ""
phase = "forward"
op = "aten.mm.default"
fsdp = "S(0)S(0) -> S(0)"
)toml");
  REQUIRE(!placed);
  CHECK_EQ(placed.error().message(),
           "no such strategy: p.toml:2 on axis fsdp: the sharding rule of mm does not allow it for "
           "2 operands: correct the entry, or remove it");
  const auto parsed = PlacementPlan::Parse("[[node]]\nmodule = \"\"\nop = \"a\"\nfsdp = \"S(0)\"\n",
                                           "p.toml", OrDie(Mesh::Parse("fsdp=2")), {});
  REQUIRE(!parsed);
  CHECK(parsed.error().message().find("expected placements of operands and results") !=
        std::string::npos);
}

TEST_CASE("place: what a plan says of a parameter on fsdp is how it is stored") {
  auto module = ParseBody(kPlaceStep);
  OrDie(PlaceBy(*module, "parameter = [{ name = \"w\", fsdp = \"S(1)\" }]"));
  CHECK_EQ(TypeOf(*module, "w"), "DTensor(f32[6, 4][4, 1]cpu, S(1))");
  CHECK_EQ(TypeOf(*module, "redistribute"), "DTensor(f32[6, 4][4, 1]cpu, R)");
}

TEST_CASE("place: a mesh of one rank changes nothing") {
  auto module = ParseBody(kPlaceStep);
  OrDie(PlaceOn(*module, "fsdp=1"));
  CHECK_EQ(BodyOf(*module), BodyOf(*ParseBody(kPlaceStep)));
}

}  // namespace
}  // namespace strata
