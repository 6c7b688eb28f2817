#include "prove/lowering.h"

#include <string>

#include <doctest/doctest.h>

#include "ir/rewriter.h"
#include "passes/placement/lower.h"
#include "passes/placement/place.h"
#include "tests/support/graphs.h"

namespace strata::prove {
namespace {

using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;
using testing::ValueNamed;

constexpr std::string_view kStep = R"(
  w = placeholder : f32[8, 4][4, 1]cpu {+fqn='w' +input='parameter'}
  x = placeholder : f32[8, 4][4, 1]cpu {+fqn='x' +input='batch'}
  t = aten.t.default(w) : f32[4, 8][1, 4]cpu ~w {forward}
  mm = aten.mm.default(x, t) : f32[8, 8][8, 1]cpu {forward}
  pow_1 = aten.pow.Tensor_Scalar(mm, 3) : f32[8, 8][8, 1]cpu {forward}
  loss = aten.sum.default(pow_1) : f32[][]cpu {forward}
  t_1 = aten.t.default(pow_1) : f32[8, 8][1, 8]cpu ~pow_1 {backward}
  grad = aten.mm.default(t_1, x) : f32[8, 4][4, 1]cpu {backward}
  output([loss, grad])
)";

/// A placed graph and what `lower` makes of it.
struct Lowered {
  std::unique_ptr<Module> placed, lowered;

  explicit Lowered(std::string mesh, std::string plan = "", std::string_view text = kStep) {
    placed = ParseBody(text);
    OrDie(Place({.mesh = std::move(mesh), .plan = std::move(plan)}).Run(*placed));
    lowered = placed->Clone();
    OrDie(LowerPlacements().Run(*lowered));
  }
  Graph& graph() { return *lowered->FindGraph("g"); }
  Proof Prove() { return ProveLowering(*placed->FindGraph("g"), graph(), {.stable_ids = true}); }

  /// What reads `value` reads `other` instead.
  void Replace(std::string_view value, std::string_view other) {
    Rewriter rewriter(graph());
    rewriter.ReplaceUses(ValueNamed(graph(), value), ValueNamed(graph(), other));
  }
};

TEST_CASE("lowering: ranks compute together what the placed graph computes") {
  for (const char* mesh : {"fsdp=2", "fsdp=4", "dp_replicate=2,fsdp=2", "fsdp=2,tp=2"}) {
    CAPTURE(mesh);
    const Proof proof = Lowered(mesh).Prove();
    CHECK_EQ(proof.reason, "");
    CHECK(proof.verdict == Verdict::kProven);
    CHECK_EQ(proof.values, 12);
  }
}

TEST_CASE("lowering: a rank looks up the rows of its part of the vocabulary") {
  for (const char* mesh : {"tp=2", "tp=4", "fsdp=2,tp=2", "dp_replicate=2,tp=4"}) {
    CAPTURE(mesh);
    Lowered lowered(mesh, "llama3", R"(
  w = placeholder : f32[16, 4][4, 1]cpu {+fqn='tok_embeddings.weight' +input='parameter'}
  x = placeholder : i64[4, 8][8, 1]cpu {+fqn='tokens' +input='batch'}
  e = aten.embedding.default(w, x) : f32[4, 8, 4][32, 4, 1]cpu {forward module=tok_embeddings}
  pow_1 = aten.pow.Tensor_Scalar(e, 3) : f32[4, 8, 4][32, 4, 1]cpu {forward module=layers.0}
  loss = aten.sum.default(pow_1) : f32[][]cpu {loss}
  grad = aten.embedding_dense_backward.default(pow_1, x, 16, -1, False) : f32[16, 4][4, 1]cpu {backward}
  output([loss, grad])
)");
    const Proof proof = lowered.Prove();
    CHECK_EQ(proof.reason, "");
    CHECK(proof.verdict == Verdict::kProven);
    const Graph& graph = lowered.graph();
    const Type& type = graph.module().types()[graph.value(ValueNamed(graph, "pow_1")).type];
    CHECK_EQ(graph.module().dims().AsConst(type.sizes[1]),
             mesh[3] == '4' || mesh[0] == 'd' ? 2 : 4);
  }
}

TEST_CASE("lowering: a loss that is not summed over the ranks is found") {
  Lowered lowered("fsdp=2");
  lowered.Replace("wait_tensor_1", "loss");
  const Proof proof = lowered.Prove();
  REQUIRE(proof.verdict == Verdict::kDiffers);
  REQUIRE_EQ(proof.findings.size(), 1);
  CHECK_EQ(proof.findings[0].node, "loss");
  CHECK(proof.findings[0].what.starts_with("not R on fsdp: output 0: rank 0: "));
}

TEST_CASE("lowering: a gradient of the own rows alone is found") {
  Lowered lowered("fsdp=2");
  Graph& graph = lowered.graph();
  Rewriter(graph).SetOp(NodeNamed(graph, "reduce_scatter_tensor"), "strata.axis_shard.default");
  Rewriter rewriter(graph);
  Module& module = graph.module();
  const Arg args[] = {Arg(ValueNamed(graph, "grad")), Arg::Int(0),
                      Arg::String(module.Intern("fsdp")), Arg::Int(2)};
  rewriter.SetArgs(NodeNamed(graph, "reduce_scatter_tensor"), args, {});
  const Proof proof = lowered.Prove();
  REQUIRE(proof.verdict == Verdict::kDiffers);
  REQUIRE_EQ(proof.findings.size(), 1);
  CHECK_EQ(proof.findings[0].node, "wait_tensor_2");
  CHECK(proof.findings[0].what.starts_with("not S(0) on fsdp: output 1: "));
}

TEST_CASE("lowering: a collective of the wrong axis is found where its value is first read") {
  Lowered lowered("dp_replicate=2,fsdp=2");
  Graph& graph = lowered.graph();
  const NodeId gather = NodeNamed(graph, "all_gather_into_tensor");
  Rewriter(graph).SetSlot(gather, graph.node(gather).args_begin + 2,
                          Arg::String(graph.module().Intern("dp_replicate")));
  const Proof proof = lowered.Prove();
  REQUIRE(proof.verdict == Verdict::kDiffers);
  REQUIRE_EQ(proof.findings.size(), 1);
  CHECK_EQ(proof.findings[0].node, "t");
  CHECK_EQ(proof.findings[0].from, std::vector<std::string>{"wait_tensor"});
}

TEST_CASE("lowering: a group that the mesh does not have is a finding, with the reason") {
  Lowered lowered("fsdp=2");
  Graph& graph = lowered.graph();
  const NodeId gather = NodeNamed(graph, "all_gather_into_tensor");
  Rewriter(graph).SetSlot(gather, graph.node(gather).args_begin + 2,
                          Arg::String(graph.module().Intern("tp")));
  const Proof proof = lowered.Prove();
  REQUIRE(proof.verdict == Verdict::kDiffers);
  CHECK_EQ(proof.findings[0].node, "all_gather_into_tensor");
  CHECK(proof.findings[0].diagnosis.kind == BugKind::kInvalid);
  CHECK(proof.findings[0].what.find("tp") != std::string::npos);
}

}  // namespace
}  // namespace strata::prove
