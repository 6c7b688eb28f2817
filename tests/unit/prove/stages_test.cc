#include "prove/stages.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/rewriter.h"
#include "passes/pipeline/multiplex_overlaps.h"
#include "passes/pipeline/slots.h"
#include "passes/pipeline/split_backward.h"
#include "passes/pipeline/split_optimizer.h"
#include "passes/pipeline/split_stages.h"
#include "passes/pipeline/split_weight_gradients.h"
#include "prove/mutations/mutations.h"
#include "tests/support/graphs.h"

namespace strata::prove {
namespace {

using testing::NodeNamed;
using testing::OrDie;
using testing::ParseOrDie;
using testing::ValueNamed;

/// Two layers; the second one's gradient of its input has two uses.
constexpr std::string_view kTwoLayers = R"(graph step
  v = placeholder : f32[2, 2][2, 1]cpu {module=layers.0 +fqn='layers.0.weight' +input='parameter'}
  w = placeholder : f32[2, 2][2, 1]cpu {module=layers.1 +fqn='layers.1.weight' +input='parameter'}
  x = placeholder : f32[3, 2][2, 1]cpu {+input='batch'}
  e = aten.mm.default(x, v) : f32[3, 2][2, 1]cpu {forward module=layers.0 seq=0}
  m = aten.mm.default(e, w) : f32[3, 2][2, 1]cpu {forward module=layers.1 seq=1}
  p = aten.mul.Tensor(m, m) : f32[3, 2][2, 1]cpu {forward module=layers.1 seq=2}
  loss = aten.sum.default(p) : f32[][]cpu {loss module=loss seq=3}
  gm = aten.mul.Tensor(m, 2) : f32[3, 2][2, 1]cpu {backward module=layers.1 seq=2}
  et = aten.t.default(e) : f32[2, 3][1, 2]cpu ~e {backward module=layers.1 seq=1}
  gw = aten.mm.default(et, gm) : f32[2, 2][2, 1]cpu {backward module=layers.1 seq=1}
  wt = aten.t.default(w) : f32[2, 2][1, 2]cpu ~w {backward module=layers.1 seq=1}
  ge = aten.mm.default(gm, wt) : f32[3, 2][2, 1]cpu {backward module=layers.1 seq=1}
  xt = aten.t.default(x) : f32[2, 3][1, 2]cpu ~x {backward module=layers.0 seq=0}
  gv = aten.mm.default(xt, ge) : f32[2, 2][2, 1]cpu {backward module=layers.0 seq=0}
  output([loss, gv, gw])
)";

std::unique_ptr<Module> InTwoStages(std::string_view text = kTwoLayers) {
  auto module = ParseOrDie(text);
  SplitStages::Options stages;
  stages.modules = "layers.0;layers.1";
  OrDie(SplitStages(stages).Run(*module));
  OrDie(SplitBackward().Run(*module));
  OrDie(SplitWeightGradients().Run(*module));
  MultiplexOverlaps::Options overlaps;
  overlaps.pairs = "0-1";
  OrDie(MultiplexOverlaps(overlaps).Run(*module));
  return module;
}

Proof ProofOf(const Graph& whole, int64_t stage, const std::vector<StagePart>& parts) {
  return ProveStages({.whole = &whole,
                      .stage = stage,
                      .parts = parts,
                      .originals = OriginalsOf(whole.module().provenance())},
                     {});
}

Proof ProofOfStep(const Module& module) {
  std::vector<StagePart> parts;
  for (const auto& [stage, name] : {std::pair(0, "stage0.forward"),
                                    {1, "stage1.forward"},
                                    {1, "stage1.backward"},
                                    {0, "stage0.backward"}})
    parts.push_back({.stage = stage, .graph = module.FindGraph(name)});
  return ProofOf(*module.FindGraph("step"), 0, parts);
}

TEST_CASE("stages compute what the step does that they were cut out of") {
  const auto module = InTwoStages();
  const Proof proof = ProofOfStep(*module);
  CHECK_EQ(proof.reason, "");
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK_EQ(proof.values, 14 + 3 + 3);  // nodes, outputs, inputs
}

TEST_CASE("a stage that computes another gradient is found where it does") {
  const auto module = InTwoStages();
  Graph& backward = *module->FindGraph("stage1.backward");
  Rewriter(backward).SetOp(NodeNamed(backward, "ge"), "aten.add.Tensor");
  const Proof proof = ProofOfStep(*module);
  CHECK_EQ(proof.verdict, Verdict::kDiffers);
  REQUIRE_EQ(proof.findings.size(), 1);
  CHECK_EQ(proof.findings[0].node, "stage1.backward/ge");
  // It fails: [3, 2] + [2, 2].
  CHECK_EQ(proof.findings[0].diagnosis.kind, BugKind::kWrongOperation);
  const auto other = InTwoStages();
  Graph& forward = *other->FindGraph("stage1.forward");
  Rewriter(forward).SetOp(NodeNamed(forward, "p"), "aten.add.Tensor");
  const Proof found = ProofOfStep(*other);
  CHECK_EQ(found.verdict, Verdict::kDiffers);
  REQUIRE_EQ(found.findings.size(), 1);
  CHECK_EQ(found.findings[0].node, "stage1.forward/p");
  CHECK_EQ(found.findings[0].reference, "step/p");
  CHECK_EQ(found.findings[0].diagnosis.kind, BugKind::kWrongOperation);
}

TEST_CASE("a part that is missing is found") {
  const auto module = InTwoStages();
  const std::vector<StagePart> parts = {{0, module->FindGraph("stage0.forward")},
                                        {1, module->FindGraph("stage1.forward")},
                                        {1, module->FindGraph("stage1.backward")}};
  const Proof proof = ProofOf(*module->FindGraph("step"), 0, parts);
  CHECK_EQ(proof.verdict, Verdict::kDiffers);
  REQUIRE_EQ(proof.findings.size(), 1);
  CHECK_EQ(proof.findings[0].what, "grad layers.0.weight: no graph computes it");
}

TEST_CASE("halves of a backward compute what it does; an order that cannot run is not proven") {
  const auto module = InTwoStages();
  const Graph& backward = *module->FindGraph("stage1.backward");
  const StagePart input = {1, module->FindGraph("stage1.backward_input")};
  const StagePart weight = {1, module->FindGraph("stage1.backward_weight")};
  CHECK_EQ(ProofOf(backward, 1, std::vector{input, weight}).verdict, Verdict::kProven);
  const Proof reversed = ProofOf(backward, 1, std::vector{weight, input});
  CHECK_EQ(reversed.verdict, Verdict::kUnproven);
  CHECK_EQ(reversed.reason, "graph stage1.backward_weight: no graph before it has 'kept 0'");
  Graph& broken = *module->FindGraph("stage1.backward_weight");
  Rewriter(broken).SetOp(NodeNamed(broken, "gw"), "aten.unknown.default");
  const Proof unknown = ProofOf(backward, 1, std::vector{input, weight});
  CHECK_EQ(unknown.verdict, Verdict::kUnproven);  // it may compute the same
}

TEST_CASE("a value that is saved as another one is found where it is read") {
  const auto module = InTwoStages();
  Graph& backward = *module->FindGraph("stage1.backward");
  std::map<std::string, NodeId> inputs;  // by slot
  for (const NodeId node : backward.placeholders())
    inputs.emplace(backward.attribute(node, kSlotAttribute), node);
  REQUIRE(inputs.contains("activation 0"));
  REQUIRE(inputs.contains("saved 0"));
  Rewriter rewriter(backward);
  rewriter.SetAttribute(inputs["activation 0"], kSlotAttribute, "saved 0");
  rewriter.SetAttribute(inputs["saved 0"], kSlotAttribute, "activation 0");
  const Proof proof = ProofOfStep(*module);
  CHECK_EQ(proof.verdict, Verdict::kDiffers);
  REQUIRE_FALSE(proof.findings.empty());
  CHECK_EQ(proof.findings[0].node, "stage1.backward/gm");
  CHECK_EQ(proof.findings[0].diagnosis.kind, BugKind::kMissingOperation);
  CHECK_EQ(proof.findings[0].diagnosis.reason, "m (aten.mm.default) is left out");
}

TEST_CASE("no edit of a graph of a stage is proven, and findings are at their sites") {
  const auto module = InTwoStages();
  const std::vector<StagePart> parts = {{0, module->FindGraph("stage0.forward")},
                                        {1, module->FindGraph("stage1.forward")},
                                        {1, module->FindGraph("stage1.backward")},
                                        {0, module->FindGraph("stage0.backward")}};
  const StageCut cut{.whole = module->FindGraph("step"),
                     .parts = parts,
                     .originals = OriginalsOf(module->provenance())};
  const CutMutants mutants = OrDie(CutMutants::Make(cut));
  int caught = 0, named = 0;
  std::string misnamed;
  std::map<std::string_view, int> sites;
  for (const Mutation& mutation : Mutations()) {
    for (size_t part = 0; part < parts.size(); ++part) {
      const Graph& graph = *parts[part].graph;
      for (const NodeId node : graph.nodes()) {
        const auto result = mutants.Try(part, mutation, node, {.stable_ids = true});
        if (!result) continue;
        ++sites[mutation.name];
        CAPTURE(mutation.name);
        CAPTURE(graph.name_text());
        CAPTURE(graph.name(node));
        CAPTURE(result->node);
        CHECK(result->outcome != MutantOutcome::kEscaped);
        if (result->outcome != MutantOutcome::kCaught) continue;
        CHECK(result->is_near);
        ++caught;
        named += result->is_class_right ? 1 : 0;
        if (result->is_class_right) continue;
        misnamed += fmt::format("\n{} at {}: {}: {}", mutation.name, graph.name(node),
                                ToString(result->diagnosis.kind), result->diagnosis.reason);
      }
    }
  }
  CAPTURE(misnamed);
  CHECK_GE(10 * named, 9 * caught);
  for (const char* name : {"exchange-received", "other-value", "double-literal"}) {
    CAPTURE(name);
    CHECK_GT(sites[name], 0);
  }
}

TEST_CASE("ranks that exchange other numbers than each other are found") {
  const auto module = ParseOrDie(R"(graph g
  x = placeholder : f32[2][1]cpu {+fqn='x'}
  y = placeholder : f32[2][1]cpu {+fqn='y'}
  s = aten.add.Tensor(x, y) : f32[2][1]cpu
  output([s])
graph %'g.rank0'
  x = placeholder : f32[2][1]cpu {+slot='input x'}
  r = _c10d_functional.all_reduce.default(x, 'sum', 'pp') : f32[2][1]cpu
  w = _c10d_functional.wait_tensor.default(r) : f32[2][1]cpu ~r
  output([w])
graph %'g.rank1'
  y = placeholder : f32[2][1]cpu {+slot='input y'}
  r = _c10d_functional.all_reduce.default(y, 'sum', 'pp') : f32[2][1]cpu
  w = _c10d_functional.wait_tensor.default(r) : f32[2][1]cpu ~r
  output([w])
)");
  Graph& second = *module->FindGraph("g.rank1");
  const std::vector<StagePart> parts = {{0, module->FindGraph("g.rank0")}, {1, &second}};
  for (const StagePart& part : parts) {
    Graph& graph = *module->FindGraph(part.graph->name_text());
    Rewriter rewriter(graph);
    SetOutputSlots(rewriter, {{StageSlot::Kind::kExtra, "0"}});
  }
  const auto proof_of = [&] {
    return ProveStages({.whole = module->FindGraph("g"),
                        .parts = parts,
                        .returned = Returned::kNumbered,
                        .on_own_ranks = true},
                       {});
  };
  CHECK_EQ(proof_of().reason, "");
  CHECK_EQ(proof_of().verdict, Verdict::kProven);
  SUBCASE("a result is read before the wait") {
    Rewriter(second).ReplaceUses(ValueNamed(second, "w"), ValueNamed(second, "r"));
    CHECK_EQ(proof_of().verdict, Verdict::kDiffers);
  }
  SUBCASE("what is sent is overwritten before the wait") {
    Rewriter rewriter(second);
    rewriter.SetCursorBefore(NodeNamed(second, "w"));
    rewriter.Create("aten.mul_.Scalar", {Arg(ValueNamed(second, "y")), Arg::Int(2)},
                    {NodeNamed(second, "y")});
    CHECK_EQ(proof_of().verdict, Verdict::kDiffers);
  }
  SUBCASE("a mean and a sum") {
    const NodeId launch = NodeNamed(second, "r");
    Rewriter(second).SetSlot(launch, second.node(launch).args_begin + 1,
                             Arg::String(module->Intern("avg")));
    const Proof proof = proof_of();
    CHECK_EQ(proof.verdict, Verdict::kDiffers);
    REQUIRE_EQ(proof.findings.size(), 1);
    CHECK_EQ(proof.findings[0].node, "g.rank0/r");
    CHECK_EQ(proof.findings[0].what,
             "all_reduce(sum) over pp of f32[2][1]cpu, where another rank calls g.rank1/r");
    CHECK_EQ(proof.findings[0].diagnosis.kind, BugKind::kCollectiveOrder);
  }
  SUBCASE("one of them does not") {
    Rewriter rewriter(second);
    rewriter.ReplaceUses(ValueNamed(second, "w"), ValueNamed(second, "y"));
    rewriter.Erase(NodeNamed(second, "w"));
    rewriter.Erase(NodeNamed(second, "r"));
    const Proof proof = proof_of();
    CHECK_EQ(proof.verdict, Verdict::kDiffers);
    REQUIRE_EQ(proof.findings.size(), 1);
    CHECK_EQ(proof.findings[0].node, "g.rank0/r");
    CHECK_EQ(proof.findings[0].what,
             "all_reduce(sum) over pp of f32[2][1]cpu has no counterpart on another rank");
  }
}

TEST_CASE("outputs that are None are no outputs of stages") {
  std::string frozen(kTwoLayers);
  frozen.replace(frozen.find("[loss, gv,"), 10, "[loss, None,");
  const auto module = InTwoStages(frozen);
  const Proof proof = ProofOfStep(*module);
  CHECK_EQ(proof.reason, "");
  CHECK_EQ(proof.verdict, Verdict::kProven);
}

TEST_CASE("an update on ranks computes what the update of all parameters does") {
  const auto module = ParseOrDie(R"(graph step
  v = placeholder : f32[2, 2][2, 1]cpu {module=layers.0 +fqn='layers.0.weight' +input='parameter'}
  w = placeholder : f32[2, 2][2, 1]cpu {module=layers.1 +fqn='layers.1.weight' +input='parameter'}
  x = placeholder : f32[3, 2][2, 1]cpu {+input='batch'}
  e = aten.mm.default(x, v) : f32[3, 2][2, 1]cpu {forward module=layers.0}
  m = aten.mm.default(e, w) : f32[3, 2][2, 1]cpu {forward module=layers.1}
  loss = aten.sum.default(m) : f32[][]cpu {loss module=loss}
  gv = aten.mul.Tensor(v, 2) : f32[2, 2][2, 1]cpu {backward module=layers.0}
  gw = aten.mul.Tensor(w, 2) : f32[2, 2][2, 1]cpu {backward module=layers.1}
  output([loss, gv, gw])
graph optimizer
  v = placeholder : f32[2, 2][2, 1]cpu {module=layers.0 +fqn='layers.0.weight' +input='parameter'}
  w = placeholder : f32[2, 2][2, 1]cpu {module=layers.1 +fqn='layers.1.weight' +input='parameter'}
  t = placeholder : f32[][]cpu {+fqn='step' +input='state'}
  one = aten.add_.Scalar(t, 1) : f32[][]cpu ~t {optimizer module=adamw}
  nv = aten.linalg_vector_norm.default(v) : f32[][]cpu {optimizer module=layers.0}
  nw = aten.linalg_vector_norm.default(w) : f32[][]cpu {optimizer module=layers.1}
  s = aten.stack.default([nv, nw]) : f32[2][1]cpu {optimizer module=clip}
  n = aten.linalg_vector_norm.default(s) : f32[][]cpu {optimizer module=clip}
  nt = aten.mul.Tensor(n, one) : f32[][]cpu {optimizer module=clip}
  v2 = aten.div.Tensor(v, nt) : f32[2, 2][2, 1]cpu {optimizer module=layers.0}
  w2 = aten.div.Tensor(w, nt) : f32[2, 2][2, 1]cpu {optimizer module=layers.1}
  output([v2, w2, n])
)");
  SplitStages::Options stages;
  stages.modules = "layers.0;layers.1";
  OrDie(SplitStages(stages).Run(*module));
  OrDie(SplitOptimizer({.ranks = 2}).Run(*module));
  Graph& second = *module->FindGraph("optimizer.rank1");
  const std::vector<StagePart> parts = {{0, module->FindGraph("optimizer.rank0")}, {1, &second}};
  const auto proof_of = [&] {
    const Graph& whole = *module->FindGraph("optimizer");
    return ProveStages({.whole = &whole,
                        .parts = parts,
                        .originals = OriginalsOf(module->provenance()),
                        .returned = Returned::kNumbered,
                        .on_own_ranks = true},
                       {});
  };
  const Proof proof = proof_of();
  CHECK_EQ(proof.reason, "");
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK(proof.opaque.empty());
  // A rank that takes the norm of its own layers alone.
  const NodeId norm = NodeNamed(second, "n");
  Rewriter(second).SetSlot(norm, second.node(norm).args_begin, ValueNamed(second, "stack_pp"));
  const Proof found = proof_of();
  CHECK_EQ(found.verdict, Verdict::kDiffers);
}

TEST_CASE("an overlap computes what its two graphs do") {
  const auto module = InTwoStages();
  Graph& overlap = *module->FindGraph("overlap.F0.B1");
  const Graph& backward = *module->FindGraph("stage1.backward");
  const Graph& forward = *module->FindGraph("stage0.forward");
  CHECK_EQ(ProveJoined(overlap, backward, forward, {}).verdict, Verdict::kProven);
  Rewriter rewriter(overlap);
  rewriter.SetOp(NodeNamed(overlap, "bw_gm"), "aten.add.Tensor");
  CHECK_EQ(ProveJoined(overlap, backward, forward, {}).verdict, Verdict::kDiffers);
}

}  // namespace
}  // namespace strata::prove
