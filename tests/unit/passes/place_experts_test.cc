#include <string_view>

#include <doctest/doctest.h>

#include "ir/verify.h"
#include "passes/placement/lowering/lower.h"
#include "passes/placement/place.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::ParseBody;
using testing::TypeOf;

/// Tokens choose two of four experts each.
constexpr std::string_view kExperts = R"(
  w = placeholder : f32[4, 8, 8][64, 8, 1]cpu {+fqn='layers.0.moe.experts.w1' +input='parameter'}
  x = placeholder : f32[16, 8][8, 1]cpu {+fqn='x' +input='batch'}
  chosen = placeholder : i64[16, 2][2, 1]cpu {+fqn='chosen' +input='batch'}
  none = aten.zeros.default([16, 4], dtype=torch.bool) : b8[16, 4][4, 1]cpu {forward}
  marks = aten.scatter.value(none, 1, chosen, True) : b8[16, 4][4, 1]cpu {forward}
  counts = aten.sum.dim_IntList(marks, [0]) : i64[4][1]cpu {forward}
  flat = aten.reshape.default(chosen, [32]) : i64[32][1]cpu ~chosen {forward}
  (_, order) = aten.sort.stable(flat, stable=True, dim=0) as sort : (i64[32][1]cpu, i64[32][1]cpu) {forward}
  source = aten.floor_divide.Scalar(order, 2) : i64[32][1]cpu {forward}
  rows = aten.index_select.default(x, 0, source) : f32[32, 8][8, 1]cpu {forward}
  sums = aten.cumsum.default(counts, 0) : i64[4][1]cpu {forward}
  ends = aten._to_copy.default(sums, dtype=torch.int32) : i32[4][1]cpu {forward}
  y = aten._grouped_mm.default(rows, w, ends) : f32[32, 8][8, 1]cpu {forward}
  base = aten.zeros_like.default(x) : f32[16, 8][8, 1]cpu {forward}
  out = aten.index_add.default(base, 0, source, y) : f32[16, 8][8, 1]cpu {forward}
  loss = aten.sum.default(out) : f32[][]cpu {loss}
  output([loss])
)";

TEST_CASE("place: rows of a dispatch are cut as their tokens are") {
  auto module = ParseBody(kExperts);
  OrDie(Place({.mesh = "fsdp=2", .plan = ""}).Run(*module));
  OrDie(Verify(*module));
  CHECK_EQ(TypeOf(*module, "order"), "DTensor(i64[32][1]cpu, T(0))");
  CHECK_EQ(TypeOf(*module, "rows"), "DTensor(f32[32, 8][8, 1]cpu, T(0))");
  CHECK_EQ(TypeOf(*module, "ends"), "DTensor(i32[4][1]cpu, P(sum))");
  CHECK_EQ(TypeOf(*module, "y"), "DTensor(f32[32, 8][8, 1]cpu, T(0))");
  CHECK_EQ(TypeOf(*module, "out"), "DTensor(f32[16, 8][8, 1]cpu, S(0))");
}

TEST_CASE("lower: ranks that share experts exchange counts, rows and results") {
  auto module = ParseBody(kExperts);
  OrDie(Place({.mesh = "fsdp=4,ep=2", .plan = "llama3"}).Run(*module));
  CHECK_EQ(TypeOf(*module, "w"), "DTensor(f32[4, 8, 8][64, 8, 1]cpu, _S(0, 2)S(0))");
  CHECK_EQ(TypeOf(*module, "rows"), "DTensor(f32[32, 8][8, 1]cpu, T(0)T(0))");
  CHECK_EQ(TypeOf(*module, "y"), "DTensor(f32[32, 8][8, 1]cpu, T(0)E(0))");
  OrDie(LowerPlacements().Run(*module));
  OrDie(Verify(*module));
  CHECK_EQ(TypeOf(*module, "rows"), "f32[8, 8][8, 1]cpu");
  CHECK_EQ(TypeOf(*module, "y"), "f32[u0, 8][8, 1]cpu");
  const Graph& graph = *module->FindGraph("g");
  int exchanges = 0;
  for (const NodeId node : graph.nodes()) {
    if (graph.op(node) != "_c10d_functional.all_to_all_single.default") continue;
    CHECK_EQ(module->str(graph.args(node)[3].str()), "ep");
    ++exchanges;
  }
  CHECK_EQ(exchanges, 3);
}

TEST_CASE("place: ranks of tp that have experts of their own sort and count their own tokens") {
  auto module = ParseBody(kExperts);
  OrDie(Place({.mesh = "fsdp=2,tp=2,ep=4", .plan = "llama3"}).Run(*module));
  OrDie(Verify(*module));
  CHECK_EQ(TypeOf(*module, "w"), "DTensor(f32[4, 8, 8][64, 8, 1]cpu, S(0)S(0))");
  CHECK_EQ(TypeOf(*module, "counts"), "DTensor(i64[4][1]cpu, P(sum)P(sum))");
  CHECK_EQ(TypeOf(*module, "order"), "DTensor(i64[32][1]cpu, T(0)T(0))");
  CHECK_EQ(TypeOf(*module, "y"), "DTensor(f32[32, 8][8, 1]cpu, E(0)E(0))");
  CHECK_EQ(TypeOf(*module, "out"), "DTensor(f32[16, 8][8, 1]cpu, S(0)S(0))");
  OrDie(LowerPlacements().Run(*module));
  OrDie(Verify(*module));
}

/// Ranks of cp have a part of each of two sequences. It would cost less to exchange the experts of
/// tokens than their marks, but then ranks would count the tokens of others.
TEST_CASE("place: tokens are counted in the cut in which they are sorted") {
  auto module = ParseBody(R"(
  w = placeholder : f32[32, 8, 8][64, 8, 1]cpu {+fqn='layers.0.moe.experts.w1' +input='parameter'}
  x = placeholder : f32[2, 8, 8][64, 8, 1]cpu {+fqn='x' +input='batch'}
  chosen = placeholder : i64[2, 8, 2][16, 2, 1]cpu {+fqn='chosen' +input='batch'}
  tokens = aten.reshape.default(x, [16, 8]) : f32[16, 8][8, 1]cpu ~x {forward}
  experts = aten.reshape.default(chosen, [16, 2]) : i64[16, 2][2, 1]cpu ~chosen {forward}
  none = aten.zeros.default([16, 32], dtype=torch.bool) : b8[16, 32][32, 1]cpu {forward}
  marks = aten.scatter.value(none, 1, experts, True) : b8[16, 32][32, 1]cpu {forward}
  counts = aten.sum.dim_IntList(marks, [0]) : i64[32][1]cpu {forward}
  flat = aten.reshape.default(experts, [32]) : i64[32][1]cpu ~chosen {forward}
  (_, order) = aten.sort.stable(flat, stable=True, dim=0) as sort : (i64[32][1]cpu, i64[32][1]cpu) {forward}
  source = aten.floor_divide.Scalar(order, 2) : i64[32][1]cpu {forward}
  rows = aten.index_select.default(tokens, 0, source) : f32[32, 8][8, 1]cpu {forward}
  sums = aten.cumsum.default(counts, 0) : i64[32][1]cpu {forward}
  ends = aten._to_copy.default(sums, dtype=torch.int32) : i32[32][1]cpu {forward}
  y = aten._grouped_mm.default(rows, w, ends) : f32[32, 8][8, 1]cpu {forward}
  loss = aten.sum.default(y) : f32[][]cpu {loss}
  output([loss])
)");
  OrDie(Place({.mesh = "cp=4,ep=4", .plan = "llama3"}).Run(*module));
  OrDie(Verify(*module));
  CHECK_EQ(TypeOf(*module, "marks"), "DTensor(b8[16, 32][32, 1]cpu, F(0, 2))");
  CHECK_EQ(TypeOf(*module, "counts"), "DTensor(i64[32][1]cpu, P(sum))");
  CHECK_EQ(TypeOf(*module, "flat"), "DTensor(i64[32][1]cpu, F(0, 2))");
  CHECK_EQ(TypeOf(*module, "rows"), "DTensor(f32[32, 8][8, 1]cpu, T(0))");
}

TEST_CASE("place: a sort that no rows follow is of all tokens") {
  auto module = ParseBody(R"(
  x = placeholder : i64[16][1]cpu {+fqn='x' +input='batch'}
  (least, order) = aten.sort.stable(x, stable=True, dim=0) as sort : (i64[16][1]cpu, i64[16][1]cpu) {forward}
  sum_1 = aten.sum.default(order) : i64[][]cpu {forward}
  output([least, sum_1])
)");
  OrDie(Place({.mesh = "fsdp=2", .plan = ""}).Run(*module));
  OrDie(Verify(*module));
  CHECK_EQ(TypeOf(*module, "order"), "DTensor(i64[16][1]cpu, R)");
}

}  // namespace
}  // namespace strata
