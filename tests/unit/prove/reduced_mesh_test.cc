// Meshes that are too large to be evaluated, proven on smaller ones.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ir/rewriter.h"
#include "passes/comm/bucket_blocks.h"
#include "passes/core/collectives.h"
#include "passes/placement/lowering/lower.h"
#include "passes/placement/place.h"
#include "prove/mutations/mutations.h"
#include "prove/prove_pass.h"
#include "tests/support/graphs.h"

namespace strata::prove {
namespace {

using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;

/// Two layers; 128 heads of 128 numbers each.
constexpr std::string_view kLargeStep = R"(
  w = placeholder : f32[16384, 16384] {+fqn='layers.0.a.weight' +input='parameter'}
  v = placeholder : f32[16384, 16384] {+fqn='layers.0.b.weight' +input='parameter'}
  x = placeholder : f32[512, 64, 16384] {+fqn='x' +input='batch'}
  flat = aten.reshape.default(x, [32768, 16384]) : f32[32768, 16384] {forward module=layers.0.a}
  m = aten.mm.default(flat, w) : f32[32768, 16384] {forward module=layers.0.a}
  heads = aten.reshape.default(m, [512, 64, 128, 128]) : f32[512, 64, 128, 128] {forward module=layers.0.a}
  by_head = aten.transpose.int(heads, 1, 2) : f32[512, 128, 64, 128] {forward module=layers.0.a}
  soft = aten._softmax.default(by_head, 3, False) : f32[512, 128, 64, 128] {forward module=layers.0.a}
  back = aten.transpose.int(soft, 1, 2) : f32[512, 64, 128, 128] {forward module=layers.0.a}
  rows = aten.reshape.default(back, [32768, 16384]) : f32[32768, 16384] {forward module=layers.0.a}
  n = aten.mm.default(rows, v) : f32[32768, 16384] {forward module=layers.0.b}
  loss = aten.sum.default(n) : f32[] {loss module=loss}
  p = aten.pow.Tensor_Scalar(n, 2) : f32[32768, 16384] {backward module=layers.0.b}
  rt = aten.t.default(rows) : f32[16384, 32768] {backward module=layers.0.b}
  gv = aten.mm.default(rt, p) : f32[16384, 16384] {backward module=layers.0.b}
  vt = aten.t.default(v) : f32[16384, 16384] {backward module=layers.0.b}
  q = aten.mm.default(p, vt) : f32[32768, 16384] {backward module=layers.0.b}
  xt = aten.t.default(flat) : f32[16384, 32768] {backward module=layers.0.a}
  gw = aten.mm.default(xt, q) : f32[16384, 16384] {backward module=layers.0.a}
  output([loss, gw, gv])
)";

/// The step, placed on 512 ranks, lowered, and with buckets.
struct Passes {
  std::unique_ptr<Module> step = ParseBody(kLargeStep), placed = step->Clone(), lowered, bucketed;

  Passes() {
    OrDie(Place({.mesh = "dp_replicate=8,fsdp=64", .plan = ""}).Run(*placed));
    lowered = placed->Clone();
    OrDie(LowerPlacements().Run(*lowered));
    bucketed = lowered->Clone();
    OrDie(BucketTransformerBlocks({}).Run(*bucketed));
  }
};

Proof ProofOnRanks(const Module& before, const Module& after) {
  return ProvePass(*before.FindGraph("g"), *after.FindGraph("g"), {.stable_ids = true});
}

TEST_CASE("passes of a program for 512 ranks are proven on fewer ranks") {
  const Passes passes;
  for (const auto& [before, after] :
       {std::pair(&passes.step, &passes.placed), std::pair(&passes.placed, &passes.lowered),
        std::pair(&passes.lowered, &passes.bucketed)}) {
    const Proof proof = ProofOnRanks(**before, **after);
    CHECK_EQ(proof.reason, "");
    CHECK_EQ(proof.findings.size(), 0);
    CHECK(proof.verdict == Verdict::kProven);
    CHECK_FALSE(proof.reduced_sizes.empty());
  }
}

TEST_CASE("a reduction that is wrong on 512 ranks differs on fewer") {
  const Passes passes;
  const auto wrong = passes.lowered->Clone();
  Graph& graph = *wrong->FindGraph("g");
  const auto scatter = [&] {
    for (const NodeId node : graph.nodes())
      if (IsCollective(graph, node, CollectiveKind::kReduceScatter)) return node;
    return NodeId{};
  }();
  REQUIRE(scatter.valid());
  Rewriter rewriter(graph);
  rewriter.SetSlot(scatter, graph.node(scatter).args_begin + 1, Arg::String(wrong->Intern("max")));
  const Proof proof = ProofOnRanks(*passes.placed, *wrong);
  CHECK(proof.verdict == Verdict::kDiffers);
}

TEST_CASE("parameters of 512 ranks that are packed in another order than unpacked are found") {
  const Passes passes;
  Graph& graph = *passes.bucketed->FindGraph("g");
  const auto gather = [&] {
    for (const NodeId node : graph.nodes())
      if (IsCollective(graph, node, CollectiveKind::kAllGather)) return node;
    return NodeId{};
  }();
  REQUIRE(gather.valid());
  const NodeId cat = graph.value(graph.args(gather)[0].value()).def;
  const std::vector<Arg> pieces(graph.elements(graph.args(cat)[0]).begin(),
                                graph.elements(graph.args(cat)[0]).end());
  REQUIRE_EQ(pieces.size(), 2);
  Rewriter rewriter(graph);
  const Arg swapped[] = {rewriter.MakeSpan(ArgKind::kList, {pieces[1], pieces[0]})};
  rewriter.SetArgs(cat, swapped, {});
  CHECK(ProofOnRanks(*passes.lowered, *passes.bucketed).verdict == Verdict::kDiffers);
}

/// `max_products`: of one set of sizes.
void CheckThatNoBugEscapes(double max_products) {
  const Passes passes;
  const ProofOptions options = {.stable_ids = true, .max_products = max_products};
  std::map<MutantOutcome, int> outcomes;
  for (const auto& [before, after] :
       {std::pair(&passes.placed, &passes.lowered), std::pair(&passes.lowered, &passes.bucketed)}) {
    const Graph &from = *(*before)->FindGraph("g"), &to = *(*after)->FindGraph("g");
    for (const Mutation& mutation : Mutations()) {
      for (const NodeId node : to.nodes()) {
        const auto result = TryMutant(from, to, mutation, node, options);
        if (!result) continue;
        CAPTURE(mutation.name);
        CAPTURE(to.name(node));
        CHECK(result->outcome != MutantOutcome::kEscaped);
        ++outcomes[result->outcome];
        break;  // one site of each kind
      }
    }
  }
  CHECK_GT(outcomes[MutantOutcome::kCaught], 30);
}

TEST_CASE("no bug of the list escapes where 512 ranks become fewer") {
  CheckThatNoBugEscapes(1e9);
}

TEST_CASE("no bug of the list escapes where some sizes are equal in one of two proofs") {
  const Passes passes;
  const Graph &before = *passes.placed->FindGraph("g"), &after = *passes.lowered->FindGraph("g");
  const Proof once = ProvePass(before, after, {.stable_ids = true});
  const Proof twice = ProvePass(before, after, {.stable_ids = true, .max_products = 0});
  REQUIRE(twice.verdict == Verdict::kProven);
  REQUIRE_EQ(twice.values, 2 * once.values);
  CheckThatNoBugEscapes(0);
}

}  // namespace
}  // namespace strata::prove
