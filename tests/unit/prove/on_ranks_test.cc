#include "prove/on_ranks.h"

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/rewriter.h"
#include "passes/comm/bucket_blocks.h"
#include "passes/comm/reassign_groups.h"
#include "passes/core/collectives.h"
#include "passes/placement/lowering/lower.h"
#include "passes/placement/place.h"
#include "prove/evaluation/rank_evaluator.h"
#include "prove/evaluation/rank_inputs.h"
#include "prove/prove_pass.h"
#include "prove/values/compare.h"
#include "tests/support/graphs.h"

namespace strata::prove {
namespace {

using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;

/// Two layers, whose parameters have one shape.
constexpr std::string_view kSummedStep = R"(
  w = placeholder : f32[8, 8][8, 1]cpu {+fqn='layers.0.a.weight' +input='parameter'}
  v = placeholder : f32[8, 8][8, 1]cpu {+fqn='layers.0.b.weight' +input='parameter'}
  x = placeholder : f32[8, 8][8, 1]cpu {+fqn='x' +input='batch'}
  m = aten.mm.default(x, w) : f32[8, 8][8, 1]cpu {forward module=layers.0.a}
  n = aten.mm.default(m, v) : f32[8, 8][8, 1]cpu {forward module=layers.0.b}
  loss = aten.sum.default(n) : f32[][]cpu {loss module=loss}
  p = aten.pow.Tensor_Scalar(n, 2) : f32[8, 8][8, 1]cpu {backward module=layers.0.b}
  mt = aten.t.default(m) : f32[8, 8][1, 8]cpu ~m {backward module=layers.0.b}
  gv = aten.mm.default(mt, p) : f32[8, 8][8, 1]cpu {backward module=layers.0.b}
  vt = aten.t.default(v) : f32[8, 8][1, 8]cpu ~v {backward module=layers.0.b}
  q = aten.mm.default(p, vt) : f32[8, 8][8, 1]cpu {backward module=layers.0.b}
  xt = aten.t.default(x) : f32[8, 8][1, 8]cpu ~x {backward module=layers.0.a}
  gw = aten.mm.default(xt, q) : f32[8, 8][8, 1]cpu {backward module=layers.0.a}
  output([loss, gw, gv])
)";

std::unique_ptr<Module> LoweredOn(std::string mesh) {
  auto module = ParseBody(kSummedStep);
  OrDie(Place({.mesh = std::move(mesh), .plan = ""}).Run(*module));
  OrDie(LowerPlacements().Run(*module));
  return module;
}

Proof ProofOfPass(const Module& before, const Module& after) {
  return ProvePass(*before.FindGraph("g"), *after.FindGraph("g"), {.stable_ids = true});
}

TEST_CASE("on ranks: buckets compute on every rank what single collectives compute") {
  for (const char* mesh : {"fsdp=2", "fsdp=4", "dp_replicate=2", "dp_replicate=2,fsdp=2"}) {
    CAPTURE(mesh);
    const auto before = LoweredOn(mesh);
    const auto after = before->Clone();
    CHECK_EQ(OrDie(ReassignGroups().Run(*after)),
             std::string_view(mesh).ends_with("fsdp=2") || mesh[5] == '4' ? Changed::kYes
                                                                          : Changed::kNo);
    CHECK_EQ(OrDie(BucketTransformerBlocks({}).Run(*after)), Changed::kYes);
    const Proof proof = ProofOfPass(*before, *after);
    CHECK_EQ(proof.reason, "");
    CHECK_EQ(proof.findings.size(), 0);
    CHECK(proof.verdict == Verdict::kProven);
    CHECK(proof.opaque.empty());
    CHECK_GT(proof.values, 12);
  }
}

NodeId FirstWith(const Graph& graph, CollectiveKind kind) {
  for (const NodeId node : graph.nodes())
    if (IsCollective(graph, node, kind)) return node;
  return {};
}

TEST_CASE("on ranks: parameters that are packed in another order than unpacked are found") {
  const auto before = LoweredOn("fsdp=2");
  const auto after = before->Clone();
  OrDie(BucketTransformerBlocks({}).Run(*after));
  Graph& graph = *after->FindGraph("g");
  const NodeId cat = InputsOf(graph, FirstWith(graph, CollectiveKind::kAllGather))[0];
  const std::vector<Arg> pieces(graph.elements(graph.args(cat)[0]).begin(),
                                graph.elements(graph.args(cat)[0]).end());
  REQUIRE_EQ(pieces.size(), 2);
  Rewriter rewriter(graph);
  const Arg swapped[] = {rewriter.MakeSpan(ArgKind::kList, {pieces[1], pieces[0]})};
  rewriter.SetArgs(cat, swapped, {});
  const Proof proof = ProofOfPass(*before, *after);
  REQUIRE(proof.verdict == Verdict::kDiffers);
  CHECK_EQ(proof.findings[0].node, "m");
  CHECK(proof.findings[0].what.starts_with("rank 0: "));
}

TEST_CASE("on ranks: a reduction over other ranks is found") {
  const auto before = LoweredOn("dp_replicate=2,fsdp=2");
  const auto after = before->Clone();
  Graph& graph = *after->FindGraph("g");
  Rewriter rewriter(graph);
  SetGroup(rewriter, FirstWith(graph, CollectiveKind::kReduceScatter), "dp_replicate");
  CHECK(ProofOfPass(*before, *after).verdict == Verdict::kDiffers);
}

TEST_CASE("on ranks: values beyond a limit are compared by hashes, and one that differs is named") {
  const auto before = LoweredOn("fsdp=2");
  const auto after = before->Clone();
  const auto prove = [&](size_t max_kept_words) {
    return ProvePass(*before->FindGraph("g"), *after->FindGraph("g"),
                     {.stable_ids = true, .max_kept_words = max_kept_words});
  };
  OrDie(BucketTransformerBlocks({}).Run(*after));
  const Proof proof = prove(10);
  CHECK(proof.verdict == Verdict::kProven);
  CHECK_EQ(proof.not_kept, 0);
  CHECK_EQ(proof.values, prove(1000).values);

  Graph& graph = *after->FindGraph("g");
  Rewriter rewriter(graph);
  rewriter.SetSlot(NodeNamed(graph, "p"), graph.node(NodeNamed(graph, "p")).args_begin + 1,
                   Arg::Int(3));
  const Proof wrong = prove(10);
  REQUIRE(wrong.verdict == Verdict::kDiffers);
  CHECK_EQ(wrong.findings[0].node, "p");
  CHECK_EQ(wrong.findings[0].what, "other elements than expected");
  CHECK_GT(wrong.not_kept, 0);
}

/// On each of four ranks, with another x: how many calls are evaluated, and the outputs.
std::pair<int64_t, std::vector<Values>> EvaluatedOnFourRanks(std::string_view added) {
  const auto module = ParseBody(fmt::format(R"(
  w = placeholder : f32[1, 2][2, 1]cpu
  x = placeholder : f32[2, 4][4, 1]cpu
  launch = _c10d_functional.all_gather_into_tensor.default(w, 4, 'fsdp') : f32[4, 2][2, 1]cpu
  whole = _c10d_functional.wait_tensor.default(launch) : f32[4, 2][2, 1]cpu
  t = aten.t.default(whole) : f32[2, 4][1, 4]cpu ~whole
  sum = {}(t, x) : f32[2, 4][4, 1]cpu
  output([sum, whole])
)",
                                            added));
  const Graph& graph = *module->FindGraph("g");
  const Mesh mesh = OrDie(Mesh::Parse("fsdp=4"));
  RankEvaluator ranks(graph, mesh, 1);
  std::vector<Values> outputs = OrDie(ranks.Run(OrDie(InputsOnRanks(graph, mesh, 1))));
  return {ranks.evaluations(), std::move(outputs)};
}

TEST_CASE("on ranks: what reads what ranks gathered is computed once, if nothing writes to it") {
  const auto [calls, outputs] = EvaluatedOnFourRanks("aten.add.Tensor");
  CHECK_EQ(calls, 2 * 4 + 1 + 4);  // both inputs, t, and the sums
  const auto [calls_in_place, written] = EvaluatedOnFourRanks("aten.add_.Tensor");
  CHECK_EQ(calls_in_place, 2 * 4 + 4 + 4);
  for (size_t rank = 0; rank < 4; ++rank) {
    CHECK(SameValue(outputs[rank][0], written[rank][0]));
    CHECK(SameValue(outputs[rank][1], outputs[0][1]));
    CHECK_EQ(SameValue(written[rank][1], written[0][1]), rank == 0);
  }
}

TEST_CASE("on ranks: more ranks than are evaluated are not proven without a smaller mesh") {
  const auto before = LoweredOn("fsdp=2");
  const auto after = before->Clone();
  Graph& graph = *after->FindGraph("g");
  Rewriter rewriter(graph);
  rewriter.SetAttribute(graph.output(), "mesh", "dp_replicate=64,fsdp=2");
  const Proof proof = ProveOnRanks(*before->FindGraph("g"), graph, {.stable_ids = true});
  CHECK(proof.verdict == Verdict::kUnproven);
  CHECK_EQ(proof.reason, "128 ranks are more than a proof evaluates, which is 64");
}

TEST_CASE("on ranks: what is known of a value is known of what ranks gather of it") {
  const auto parse = [](std::string_view gathered, std::string_view result) {
    const auto module = ParseBody(fmt::format(R"(
  x = placeholder : f32[2, 2][2, 1]cpu
  root = aten.sqrt.default(x) : f32[2, 2][2, 1]cpu
  launch = _c10d_functional.all_gather_into_tensor.default({}, 2, 'fsdp') : f32[4, 2][2, 1]cpu
  whole = _c10d_functional.wait_tensor.default(launch) : f32[4, 2][2, 1]cpu
  y = {} : f32[4, 2][2, 1]cpu
  output([y])
)",
                                              gathered, result));
    Graph& graph = *module->FindGraph("g");
    Rewriter(graph).SetAttribute(graph.output(), "mesh", "fsdp=2");
    return module->Clone();
  };
  const auto before = parse("root", "aten.mul.Tensor(whole, whole)");
  const auto after = parse("x", "aten.mul.Tensor(whole, 1)");
  const Proof proof = ProveOnRanks(*before->FindGraph("g"), *after->FindGraph("g"), {});
  CHECK_EQ(proof.findings.size(), 0);
  CHECK(proof.verdict == Verdict::kProven);
}

constexpr std::string_view kExchange = R"(
  x = placeholder : i64[4, 2][2, 1]cpu
  sent = placeholder : i64[2][1]cpu
  received = placeholder : i64[2][1]cpu
  s0 = aten.select.int(sent, 0, 0) : i64[][]cpu ~sent
  s1 = aten.select.int(sent, 0, 1) : i64[][]cpu ~sent
  r0 = aten.select.int(received, 0, 0) : i64[][]cpu ~received
  r1 = aten.select.int(received, 0, 1) : i64[][]cpu ~received
  m0 = aten._local_scalar_dense.default(s0)
  m1 = aten._local_scalar_dense.default(s1)
  n0 = aten._local_scalar_dense.default(r0)
  n1 = aten._local_scalar_dense.default(r1)
  launch = _c10d_functional.all_to_all_single.default(x, [n0, n1], [m0, m1], 'fsdp')
  y = _c10d_functional.wait_tensor.default(launch)
  output(y)
)";

Tensor Integers(Sizes sizes, const std::vector<uint64_t>& words) {
  Tensor tensor(Domain::kInteger, std::move(sizes));
  tensor.Write(words);
  return tensor;
}

TEST_CASE("on ranks: an exchange sends as many rows as data say") {
  const auto module = ParseBody(kExchange);
  const Mesh mesh = OrDie(Mesh::Parse("fsdp=2"));
  const auto run = [&](const std::vector<uint64_t>& received_by_first) {
    const std::vector<std::vector<Value>> inputs = {
        {Integers({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), Integers({2}, {1, 3}),
         Integers({2}, received_by_first)},
        {Integers({4, 2}, {11, 12, 13, 14, 15, 16, 17, 18}), Integers({2}, {2, 2}),
         Integers({2}, {3, 2})}};
    return RankEvaluator(*module->FindGraph("g"), mesh, 1).Run(inputs);
  };
  const auto outputs = OrDie(run({1, 2}));
  CHECK(SameElements(std::get<Tensor>(outputs[0][0]), Integers({3, 2}, {1, 2, 11, 12, 13, 14})));
  CHECK(SameElements(std::get<Tensor>(outputs[1][0]),
                     Integers({5, 2}, {3, 4, 5, 6, 7, 8, 15, 16, 17, 18})));
  const auto wrong = run({1, 1});
  REQUIRE_FALSE(wrong);
  CHECK_EQ(wrong.error().message(), "launch: rank 0 expects 1 rows of rank 1, which sends 2");
}

}  // namespace
}  // namespace strata::prove
