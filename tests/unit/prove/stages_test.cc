#include "prove/stages.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "ir/rewriter.h"
#include "passes/pipeline/multiplex_overlaps.h"
#include "passes/pipeline/split_backward.h"
#include "passes/pipeline/split_stages.h"
#include "passes/pipeline/split_weight_gradients.h"
#include "tests/support/graphs.h"

namespace strata::prove {
namespace {

using testing::NodeNamed;
using testing::OrDie;
using testing::ParseOrDie;

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

std::unique_ptr<Module> InTwoStages() {
  auto module = ParseOrDie(kTwoLayers);
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

Proof ProofOfStep(const Module& module) {
  std::vector<StagePart> parts;
  for (const auto& [stage, name] : {std::pair(0, "stage0.forward"),
                                    {1, "stage1.forward"},
                                    {1, "stage1.backward"},
                                    {0, "stage0.backward"}})
    parts.push_back({.stage = stage, .graph = module.FindGraph(name)});
  return ProveStages(*module.FindGraph("step"), 0, parts, {});
}

TEST_CASE("stages compute what the step does that they were cut out of") {
  const auto module = InTwoStages();
  const Proof proof = ProofOfStep(*module);
  CHECK_EQ(proof.reason, "");
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK_EQ(proof.values, 3 + 3);  // outputs, inputs
}

TEST_CASE("a stage that computes another gradient is found, with what depends on it") {
  const auto module = InTwoStages();
  Graph& backward = *module->FindGraph("stage1.backward");
  Rewriter(backward).SetOp(NodeNamed(backward, "ge"), "aten.add.Tensor");
  const Proof proof = ProofOfStep(*module);
  CHECK_EQ(proof.verdict, Verdict::kUnproven);  // [3, 2] + [2, 2]
  const auto other = InTwoStages();
  Graph& forward = *other->FindGraph("stage1.forward");
  Rewriter(forward).SetOp(NodeNamed(forward, "p"), "aten.add.Tensor");
  const Proof found = ProofOfStep(*other);
  CHECK_EQ(found.verdict, Verdict::kDiffers);
  REQUIRE_EQ(found.findings.size(), 1);
  CHECK_EQ(found.findings[0].node, "stage1.forward/loss");
  CHECK_EQ(found.findings[0].reference, "step/loss");
}

TEST_CASE("a part that is missing is found") {
  const auto module = InTwoStages();
  const std::vector<StagePart> parts = {{0, module->FindGraph("stage0.forward")},
                                        {1, module->FindGraph("stage1.forward")},
                                        {1, module->FindGraph("stage1.backward")}};
  const Proof proof = ProveStages(*module->FindGraph("step"), 0, parts, {});
  CHECK_EQ(proof.verdict, Verdict::kDiffers);
  REQUIRE_EQ(proof.findings.size(), 1);
  CHECK_EQ(proof.findings[0].what, "grad layers.0.weight: no graph computes it");
}

TEST_CASE("halves of a backward compute what it does; an order that cannot run is not proven") {
  const auto module = InTwoStages();
  const Graph& backward = *module->FindGraph("stage1.backward");
  const StagePart input = {1, module->FindGraph("stage1.backward_input")};
  const StagePart weight = {1, module->FindGraph("stage1.backward_weight")};
  CHECK_EQ(ProveStages(backward, 1, std::vector{input, weight}, {}).verdict, Verdict::kProven);
  const Proof reversed = ProveStages(backward, 1, std::vector{weight, input}, {});
  CHECK_EQ(reversed.verdict, Verdict::kUnproven);
  CHECK_EQ(reversed.reason, "graph stage1.backward_weight: no graph before it has 'kept 0'");
  Graph& broken = *module->FindGraph("stage1.backward_weight");
  Rewriter(broken).SetOp(NodeNamed(broken, "gw"), "aten.unknown.default");
  CHECK_EQ(ProveStages(backward, 1, std::vector{input, weight}, {}).verdict, Verdict::kDiffers);
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
