#include "prove/lowering.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/rewriter.h"
#include "ir/text/native_text.h"
#include "passes/placement/lowering/lower.h"
#include "passes/placement/place.h"
#include "tests/support/graphs.h"
#include "tests/unit/prove/lowered.h"

namespace strata::prove {
namespace {

using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;
using testing::ValueNamed;

constexpr std::string_view kCubedStep = R"(
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

Proof ProofOf(const Lowered& lowered) {
  return ProveLowering(lowered.before(), lowered.after(), {.stable_ids = true});
}

/// What reads `value` reads `other` instead.
void Replace(const Lowered& lowered, std::string_view value, std::string_view other) {
  Rewriter rewriter(lowered.after());
  rewriter.ReplaceUses(ValueNamed(lowered.after(), value), ValueNamed(lowered.after(), other));
}

TEST_CASE("lowering: ranks compute together what the placed graph computes") {
  for (const char* mesh : {"fsdp=2", "fsdp=4", "dp_replicate=2,fsdp=2", "fsdp=2,tp=2"}) {
    CAPTURE(mesh);
    const Proof proof = ProofOf(Lowered(mesh, kCubedStep));
    CHECK_EQ(proof.reason, "");
    CHECK(proof.verdict == Verdict::kProven);
    CHECK_EQ(proof.values, 12);
  }
}

TEST_CASE("lowering: of two texts the outputs are compared, by their order") {
  Lowered lowered("fsdp=2,tp=2", kCubedStep);
  const auto prove = [&] {
    const auto placed = OrDie(ParseText(PrintText(*lowered.placed)));
    const auto local = OrDie(ParseText(PrintText(*lowered.lowered)));
    return ProveLowering(*placed->FindGraph("g"), *local->FindGraph("g"), {});
  };
  const Proof proof = prove();
  CHECK_EQ(proof.reason, "");
  CHECK(proof.verdict == Verdict::kProven);
  Replace(lowered, "pow_1", "mm");
  CHECK(prove().verdict == Verdict::kDiffers);
}

TEST_CASE("lowering: a rank looks up the rows of its part of the vocabulary") {
  for (const char* mesh : {"tp=2", "tp=4", "fsdp=2,tp=2", "dp_replicate=2,tp=4"}) {
    CAPTURE(mesh);
    Lowered lowered(mesh, R"(
  w = placeholder : f32[16, 4][4, 1]cpu {+fqn='tok_embeddings.weight' +input='parameter'}
  x = placeholder : i64[4, 8][8, 1]cpu {+fqn='tokens' +input='batch'}
  e = aten.embedding.default(w, x) : f32[4, 8, 4][32, 4, 1]cpu {forward module=tok_embeddings}
  pow_1 = aten.pow.Tensor_Scalar(e, 3) : f32[4, 8, 4][32, 4, 1]cpu {forward module=layers.0}
  loss = aten.sum.default(pow_1) : f32[][]cpu {loss}
  grad = aten.embedding_dense_backward.default(pow_1, x, 16, -1, False) : f32[16, 4][4, 1]cpu {backward}
  output([loss, grad])
)",
                    "llama3");
    const Proof proof = ProofOf(lowered);
    CHECK_EQ(proof.reason, "");
    CHECK(proof.verdict == Verdict::kProven);
    const Graph& graph = lowered.after();
    const Type& type = graph.module().types()[graph.value(ValueNamed(graph, "pow_1")).type];
    CHECK_EQ(graph.module().dims().AsConst(type.sizes[1]),
             mesh[3] == '4' || mesh[0] == 'd' ? 2 : 4);
  }
}

TEST_CASE("lowering: parts of columns become parts of rows by an exchange, even or not") {
  struct Case {
    const char *mesh, *from, *to;
  };
  for (const auto& [mesh, from, to] : {Case{"fsdp=2,tp=2", "S(1)S(0)", "_S(0, 2)S(0)"},
                                       Case{"fsdp=4,tp=2", "S(1)S(0)", "_S(0, 2)S(0)"},
                                       Case{"fsdp=3,tp=2", "S(1)S(0)", "_S(0, 2)S(0)"},
                                       Case{"fsdp=3,tp=4", "S(1)S(0)", "_S(0, 4)S(0)"},
                                       Case{"fsdp=2,tp=4", "S(1)S(1)", "_S(0, 4)S(0)"},
                                       Case{"fsdp=3,tp=2", "S(1)S(1)", "_S(0, 2)S(0)"},
                                       Case{"fsdp=2,tp=4", "_S(0, 4)S(0)", "S(1)S(1)"},
                                       Case{"fsdp=4,tp=2", "_S(0, 2)S(0)", "S(1)S(0)"},
                                       Case{"dp_replicate=2,fsdp=4", "S(0)S(1)", "S(0)S(0)"}}) {
    CAPTURE(mesh);
    CAPTURE(to);
    Lowered lowered(ParseBody(fmt::format(R"(
  x = placeholder : DTensor(f32[10, 8][8, 1]cpu, {0}) {{+fqn='x' +input='parameter'}}
  y = aten.mul.Tensor(x, x) : DTensor(f32[10, 8][8, 1]cpu, {0})
  r = strata.redistribute.default(y, '{1}') : DTensor(f32[10, 8][8, 1]cpu, {1})
  z = aten.mul.Tensor(r, r) : DTensor(f32[10, 8][8, 1]cpu, {1})
  output([z]) {{+mesh='{2}'}}
)",
                                          from, to, mesh)));
    const Proof proof = ProofOf(lowered);
    CHECK_EQ(proof.reason, "");
    CHECK(proof.verdict == Verdict::kProven);
    const std::string text = PrintText(lowered.after());
    CHECK_NE(text.find("all_to_all_single"), std::string::npos);
    CHECK_EQ(text.find("all_gather"), std::string::npos);
  }
}

/// Placements of two axes, the outer one of two ranks, the inner one of three.
TEST_CASE("lowering: any parts become any others") {
  const char* placements[] = {"RR",       "RS(0)",        "RS(1)",       "S(0)R",
                              "S(1)R",    "S(0)S(0)",     "S(0)S(1)",    "S(1)S(0)",
                              "S(1)S(1)", "_S(0, 3)S(0)", "_S(1, 3)S(1)"};
  for (const char* sizes : {"[12, 6][6, 1]", "[7, 5][5, 1]"}) {
    for (const std::string_view from : placements) {
      for (const std::string_view to : placements) {
        CAPTURE(sizes);
        CAPTURE(from);
        CAPTURE(to);
        Lowered lowered(ParseBody(fmt::format(R"(
  x = placeholder : DTensor(f32{2}cpu, {0}) {{+fqn='x' +input='parameter'}}
  r = strata.redistribute.default(x, '{1}') : DTensor(f32{2}cpu, {1})
  z = aten.mul.Tensor(r, r) : DTensor(f32{2}cpu, {1})
  output([z]) {{+mesh='fsdp=2,tp=3'}}
)",
                                              from, to, sizes)));
        const Proof proof = ProofOf(lowered);
        CHECK_EQ(proof.reason, "");
        CHECK(proof.verdict == Verdict::kProven);
      }
    }
  }
}

TEST_CASE("B91: ranks that drop elements of their parts by one generator draw one mask") {
  constexpr std::string_view kPlaced = R"(
  x = placeholder : DTensor(f32[4, 6][6, 1]cpu, {0}) {{+fqn='x' +input='batch'}}
  r = aten.rand.default([4, 6]) : DTensor(f32[4, 6][6, 1]cpu, {0})
  keep = aten.gt.Scalar(r, 0.5) : DTensor(b8[4, 6][6, 1]cpu, {0})
  y = aten.mul.Tensor(x, keep) : DTensor(f32[4, 6][6, 1]cpu, {0})
  output([y]) {{+mesh='tp=2'}}
)";
  constexpr std::string_view kLocal = R"(
  x = placeholder : f32[{0}, 6][6, 1]cpu {{+fqn='x' +input='batch' +global='f32[4, 6]'}}
  r = aten.rand.default([{0}, 6]) : f32[{0}, 6][6, 1]cpu
  keep = aten.gt.Scalar(r, 0.5) : b8[{0}, 6][6, 1]cpu
  y = aten.mul.Tensor(x, keep) : f32[{0}, 6][6, 1]cpu
  output([y]) {{+mesh='tp=2'}}
)";
  const auto prove = [&](std::string_view placement, int rows) {
    const auto placed = ParseBody(fmt::format(kPlaced, placement));
    const auto local = ParseBody(fmt::format(kLocal, rows));
    return ProveLowering(*placed->FindGraph("g"), *local->FindGraph("g"), {.stable_ids = true});
  };
  CHECK(prove("R", 4).verdict == Verdict::kProven);
  const Proof parts = prove("S(0)", 2);
  CHECK_EQ(parts.reason, "");
  REQUIRE(parts.verdict == Verdict::kDiffers);
  CHECK_EQ(parts.findings[0].node, "r");
}

TEST_CASE("lowering: a loss that is not summed over the ranks is found") {
  Lowered lowered("fsdp=2", kCubedStep);
  Replace(lowered, "wait_tensor_1", "loss");
  const Proof proof = ProofOf(lowered);
  REQUIRE(proof.verdict == Verdict::kDiffers);
  REQUIRE_EQ(proof.findings.size(), 1);
  CHECK_EQ(proof.findings[0].node, "loss");
  CHECK(proof.findings[0].what.starts_with("not R on fsdp: output 0: rank 0: "));
}

TEST_CASE("lowering: a gradient of the own rows alone is found") {
  Lowered lowered("fsdp=2", kCubedStep);
  Graph& graph = lowered.after();
  Rewriter(graph).SetOp(NodeNamed(graph, "reduce_scatter_tensor"), "strata.axis_shard.default");
  Rewriter rewriter(graph);
  Module& module = graph.module();
  const Arg args[] = {Arg(ValueNamed(graph, "grad")), Arg::Int(0),
                      Arg::String(module.Intern("fsdp")), Arg::Int(2)};
  rewriter.SetArgs(NodeNamed(graph, "reduce_scatter_tensor"), args, {});
  const Proof proof = ProofOf(lowered);
  REQUIRE(proof.verdict == Verdict::kDiffers);
  REQUIRE_EQ(proof.findings.size(), 1);
  CHECK_EQ(proof.findings[0].node, "wait_tensor_2");
  CHECK(proof.findings[0].what.starts_with("not S(0) on fsdp: output 1: "));
}

TEST_CASE("lowering: a collective of the wrong axis is found where its value is first read") {
  Lowered lowered("dp_replicate=2,fsdp=2", kCubedStep);
  Graph& graph = lowered.after();
  const NodeId gather = NodeNamed(graph, "all_gather_into_tensor");
  Rewriter(graph).SetSlot(gather, graph.node(gather).args_begin + 2,
                          Arg::String(graph.module().Intern("dp_replicate")));
  const Proof proof = ProofOf(lowered);
  REQUIRE(proof.verdict == Verdict::kDiffers);
  REQUIRE_EQ(proof.findings.size(), 1);
  CHECK_EQ(proof.findings[0].node, "t");
  CHECK_EQ(proof.findings[0].from, std::vector<std::string>{"wait_tensor"});
}

TEST_CASE("lowering: a group that the mesh does not have is a finding, with the reason") {
  Lowered lowered("fsdp=2", kCubedStep);
  Graph& graph = lowered.after();
  const NodeId gather = NodeNamed(graph, "all_gather_into_tensor");
  Rewriter(graph).SetSlot(gather, graph.node(gather).args_begin + 2,
                          Arg::String(graph.module().Intern("tp")));
  const Proof proof = ProofOf(lowered);
  REQUIRE(proof.verdict == Verdict::kDiffers);
  CHECK_EQ(proof.findings[0].node, "all_gather_into_tensor");
  CHECK(proof.findings[0].diagnosis.kind == BugKind::kInvalid);
  CHECK(proof.findings[0].what.find("tp") != std::string::npos);
}

}  // namespace
}  // namespace strata::prove
