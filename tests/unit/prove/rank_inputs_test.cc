#include "prove/evaluation/rank_inputs.h"

#include <array>
#include <string_view>

#include <doctest/doctest.h>

#include "ir/rewriter.h"
#include "prove/prove_pass.h"
#include "prove/values/compare.h"
#include "tests/support/graphs.h"

namespace strata::prove {
namespace {

using testing::NodeNamed;
using testing::ParseOrDie;

/// The backward reads tensors of as many rows as the forward counted.
constexpr std::string_view kStage = R"(graph forward
  counts = placeholder : i64[4][1] {+slot='input counts'}
  x = placeholder : f32[4][1] {+slot='input x'}
  total = aten.sum.default(counts) : i64[][]
  n = aten._local_scalar_dense.default(total) : Sym(u0)
  rows = aten.repeat_interleave.Tensor(counts, output_size=n) : i64[u0][1]
  values = aten.index.Tensor(x, [rows]) : f32[u0][1]
  output([rows, values]) {+slots='saved 0; saved 1'}

graph backward
  g = placeholder : f32[4][1] {+slot='gradient 0'}
  rows = placeholder : i64[u0][1] {+slot='saved 0'}
  values = placeholder : f32[u0][1] {+slot='saved 1'}
  moved = aten.index.Tensor(g, [rows]) : f32[u0][1]
  product = aten.mul.Tensor(moved, values) : f32[u0][1]
  output([product]) {+slots='gradient 1'}
)";

TEST_CASE("sizes that depend on data are those that the stage's forward computes") {
  const auto module = ParseOrDie(kStage);
  const Graph& backward = *module->FindGraph("backward");
  const Proof alone = ProvePass(backward, backward, {});
  CHECK_EQ(alone.verdict, Verdict::kUnproven);
  CHECK_EQ(alone.reason, "input rows: a size that is not known");

  const ProofOptions options = {.stable_ids = true, .makers = {module->FindGraph("forward")}};
  const Proof same = ProvePass(backward, backward, options);
  CHECK_EQ(same.reason, "");
  CHECK_EQ(same.verdict, Verdict::kProven);

  const auto changed = module->Clone();
  Graph& after = *changed->FindGraph("backward");
  Rewriter(after).SetOp(NodeNamed(after, "product"), "aten.add.Tensor");
  const Proof differs = ProvePass(backward, after, options);
  CHECK_EQ(differs.verdict, Verdict::kDiffers);
  REQUIRE_FALSE(differs.findings.empty());
  CHECK_EQ(differs.findings[0].node, "product");
}

TEST_CASE("graphs of a stage run only for what depends on them") {
  const auto module = ParseOrDie(kStage);
  const Graph& forward = *module->FindGraph("forward");
  const std::array<const Graph*, 1> none = {nullptr};  // would fail
  const auto inputs = InputsOnRanks(forward, Mesh(), 1, none);
  REQUIRE(inputs);
  CHECK_EQ(inputs->front().size(), 2);
}

TEST_CASE("ranks that hold an input alike may begin with equal copies of it") {
  const auto module = ParseOrDie(R"(graph g
  table = placeholder : f32[4][1]cpu {+global='DTensor(f32[4][1]cpu, RR)'}
  part = placeholder : f32[2][1]cpu {+global='DTensor(f32[4][1]cpu, S(0)R)'}
  whole = _c10d_functional.all_reduce.default(table, 'avg', 'tp') : f32[4][1]cpu
  mean = _c10d_functional.wait_tensor.default(whole) : f32[4][1]cpu
  output([mean, part]) {+mesh='fsdp=2,tp=2'}
)");
  const Graph& graph = *module->FindGraph("g");
  const Mesh mesh = testing::OrDie(MeshToEvaluate(graph));
  const auto inputs = testing::OrDie(InputsOnRanks(graph, mesh, 1, {}, true));
  CHECK(SameValue(inputs[0][0], inputs[3][0]));
  CHECK(SameValue(inputs[0][1], inputs[1][1]));        // ranks 0 and 1 differ on tp
  CHECK_FALSE(SameValue(inputs[0][1], inputs[2][1]));  // other parts
  const auto others = testing::OrDie(InputsOnRanks(graph, mesh, 1));
  CHECK_FALSE(SameValue(others[0][0], others[3][0]));

  // A rank's own copy is the mean of all, if all are equal.
  const auto edited = module->Clone();
  Graph& own = *edited->FindGraph("g");
  Rewriter(own).ReplaceUses(own.result(NodeNamed(own, "mean")),
                            own.result(NodeNamed(own, "table")));
  CHECK_EQ(ProvePass(graph, own, {}).verdict, Verdict::kDiffers);
  CHECK_EQ(ProvePass(graph, own, {.has_replicas = true}).verdict, Verdict::kProven);
}

}  // namespace
}  // namespace strata::prove
