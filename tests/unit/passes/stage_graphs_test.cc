// Graphs of pipeline stages, by the ids of GraphPP's test plan.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "ir/rewriter.h"
#include "ir/text/native_text.h"
#include "ir/verify.h"
#include "passes/pipeline/multiplex_overlaps.h"
#include "passes/pipeline/slots.h"
#include "passes/pipeline/split_backward.h"
#include "passes/pipeline/split_optimizer.h"
#include "passes/pipeline/split_stages.h"
#include "passes/pipeline/split_weight_gradients.h"
#include "prove/stages.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/unit/passes/stage_texts.h"

namespace strata {
namespace {

using prove::StagePart;
using prove::Verdict;
using testing::MessageOf;
using testing::NodeNamed;
using testing::OrDie;
using testing::ParseOrDie;
using testing::SlotsText;

/// Three linear layers, the last one with a loss that reads a number of the run; the one in the
/// middle counts what it sees in a buffer.
constexpr std::string_view kThreeLayers = R"(graph step
  u = placeholder : f32[2, 2][2, 1]cpu {module=layers.0 +fqn='layers.0.weight' +input='parameter'}
  v = placeholder : f32[2, 2][2, 1]cpu {module=layers.1 +fqn='layers.1.weight' +input='parameter'}
  w = placeholder : f32[2, 2][2, 1]cpu {module=layers.2 +fqn='layers.2.weight' +input='parameter'}
  c = placeholder : f32[2][1]cpu {module=layers.1 +fqn='layers.1.count' +input='buffer'}
  x = placeholder : f32[3, 2][2, 1]cpu {+input='batch'}
  k = placeholder : f32[][]cpu {+input='batch'}
  a = aten.mm.default(x, u) : f32[3, 2][2, 1]cpu {forward module=layers.0 seq=0}
  n = aten.sum.dim_IntList(a, [0]) : f32[2][1]cpu {forward module=layers.1}
  i = aten.add_.Tensor(c, n) : f32[2][1]cpu ~c {forward module=layers.1}
  b = aten.mm.default(a, v) : f32[3, 2][2, 1]cpu {forward module=layers.1 seq=1}
  m = aten.mm.default(b, w) : f32[3, 2][2, 1]cpu {forward module=layers.2 seq=2}
  p = aten.mul.Tensor(m, m) : f32[3, 2][2, 1]cpu {forward module=layers.2 seq=3}
  s = aten.sum.default(p) : f32[][]cpu {loss module=loss seq=4}
  loss = aten.mul.Tensor(s, k) : f32[][]cpu {loss module=loss seq=5}
  largest = aten.amax.default(m) : f32[][]cpu {loss module=loss}
  m2 = aten.mul.Tensor(m, 2) : f32[3, 2][2, 1]cpu {backward module=layers.2 seq=3}
  gm = aten.mul.Tensor(m2, k) : f32[3, 2][2, 1]cpu {backward module=layers.2 seq=3}
  bt = aten.t.default(b) : f32[2, 3][1, 2]cpu ~b {backward module=layers.2 seq=2}
  gw = aten.mm.default(bt, gm) : f32[2, 2][2, 1]cpu {backward module=layers.2 seq=2}
  wt = aten.t.default(w) : f32[2, 2][1, 2]cpu ~w {backward module=layers.2 seq=2}
  gb = aten.mm.default(gm, wt) : f32[3, 2][2, 1]cpu {backward module=layers.2 seq=2}
  at = aten.t.default(a) : f32[2, 3][1, 2]cpu ~a {backward module=layers.1 seq=1}
  gv = aten.mm.default(at, gb) : f32[2, 2][2, 1]cpu {backward module=layers.1 seq=1}
  vt = aten.t.default(v) : f32[2, 2][1, 2]cpu ~v {backward module=layers.1 seq=1}
  ga = aten.mm.default(gb, vt) : f32[3, 2][2, 1]cpu {backward module=layers.1 seq=1}
  xt = aten.t.default(x) : f32[2, 3][1, 2]cpu ~x {backward module=layers.0 seq=0}
  gu = aten.mm.default(xt, ga) : f32[2, 2][2, 1]cpu {backward module=layers.0 seq=0}
  output([loss, gu, gv, gw, largest])
)";

std::unique_ptr<Module> SplitLayers(const std::string& text = std::string(kThreeLayers)) {
  auto module = ParseOrDie(text);
  SplitStages::Options options;
  options.modules = "layers.0;layers.1;layers.2";
  OrDie(SplitStages(options).Run(*module));
  OrDie(SplitBackward().Run(*module));
  OrDie(SplitWeightGradients().Run(*module));
  CHECK_OK(Verify(*module));
  return module;
}

StagePart Part(const Module& module, int64_t stage, std::string_view suffix) {
  return {stage, module.FindGraph("stage" + std::to_string(stage) + std::string(suffix))};
}

TEST_CASE("GR-02: the last stage returns a scalar loss; further results are no part of it") {
  const auto module = SplitLayers();
  CHECK_EQ(SlotsText(*module, "stage2.forward"),
           "input layers.2.weight; input k; activation 0 -> loss; extra 0; saved 0");
  const Graph& forward = *module->FindGraph("stage2.forward");
  const std::string text = PrintText(forward, {.types = true, .metadata = false});
  CHECK(text.find("loss = aten.mul.Tensor(s, k) : f32[][]cpu") != std::string::npos);
}

TEST_CASE("GR-03: a stage between others reads no input of the batch") {
  const auto module = SplitLayers();
  CHECK_EQ(SlotsText(*module, "stage1.forward"),
           "input layers.1.weight; input layers.1.count; activation 0 -> activation 0");
  CHECK_EQ(SlotsText(*module, "stage1.backward"),
           "input layers.1.weight; activation 0; gradient 0 -> grad layers.1.weight; gradient 0");
}

TEST_CASE("GR-04: a parameter without a gradient is an input, and nothing is added up for it") {
  std::string frozen(kThreeLayers);
  const std::string gradient =
      "  gu = aten.mm.default(xt, ga) : f32[2, 2][2, 1]cpu {backward module=layers.0 seq=0}\n";
  frozen.erase(frozen.find(gradient), gradient.size());
  frozen.replace(frozen.find("[loss, gu,"), 10, "[loss, None,");
  const auto module = SplitLayers(frozen);
  CHECK(SlotsText(*module, "stage0.forward").starts_with("input layers.0.weight; "));
  const Graph& backward = *module->FindGraph("stage0.backward");
  const std::string text = PrintText(backward, {.types = false, .metadata = false});
  CHECK(text.ends_with("output([None])\n"));
}

TEST_CASE("GR-09: the loss is sent to no stage") {
  const auto module = SplitLayers();
  for (const char* graph : {"stage0.forward", "stage1.forward"})
    CHECK(SlotsText(*module, graph).find("loss") == std::string::npos);
  CHECK(SlotsText(*module, "stage2.forward").find("-> loss") != std::string::npos);
  const StageSlots slots = OrDie(StageSlotsOf(*module->FindGraph("stage2.forward")));
  for (const StageSlot& slot : slots.outputs)
    CHECK(slot.kind != StageSlot::Kind::kActivation);
}

TEST_CASE("GR-16: an overlap keeps sizes that only the run knows, and how they relate") {
  const auto module = ParseOrDie(R"(symbol u0 unbacked
symbol u1 unbacked
graph %'stage0.forward'
  x = placeholder : f32[u0, 4][4, 1]cpu {+slot='activation 0'}
  y = aten.relu.default(x) : f32[u0, 4][4, 1]cpu
  output([y])
graph %'stage1.backward'
  n = placeholder : Sym(u0) {+slot='saved 0'}
  x = placeholder : f32[u0 + 2*u1, 4][4, 1]cpu {+slot='gradient 0'}
  y = aten.neg.default(x) : f32[u0 + 2*u1, 4][4, 1]cpu
  output([y])
)");
  for (const char* name : {"stage0.forward", "stage1.backward"}) {
    Rewriter rewriter(*module->FindGraph(name));
    SetOutputSlots(rewriter, {{StageSlot::Kind::kExtra, "0"}});
  }
  OrDie(MultiplexOverlaps({.pairs = "0-1"}).Run(*module));
  CHECK_OK(Verify(*module));
  const std::string text =
      PrintText(*module->FindGraph("overlap.F0.B1"), {.types = true, .metadata = false});
  CHECK_EQ(text.substr(text.find('\n')), R"(
  bw_n = placeholder : Sym(u0)
  bw_x = placeholder : f32[u0 + 2*u1, 4][4, 1]cpu
  x = placeholder : f32[u0, 4][4, 1]cpu
  bw_y = aten.neg.default(bw_x) : f32[u0 + 2*u1, 4][4, 1]cpu
  y = aten.relu.default(x) : f32[u0, 4][4, 1]cpu
  output([bw_y, y])
)");
}

TEST_CASE("GR-17: a comparison of sizes is an input of no graph of a stage") {
  const auto module = ParseOrDie(R"(symbol u0 unbacked
graph %'stage0.forward'
  x = placeholder : f32[u0, 4][4, 1]cpu {+slot='activation 0'}
  output([x])
graph %'stage1.backward'
  b = placeholder : opaque('bool') {+slot='saved 0'}
  output([])
)");
  for (const char* name : {"stage0.forward", "stage1.backward"}) {
    Rewriter rewriter(*module->FindGraph(name));
    SetOutputSlots(rewriter, {});
  }
  CHECK_EQ(
      MessageOf(MultiplexOverlaps({.pairs = "0-1"}).Run(*module)),
      "unsupported symbolic metadata: graph stage1.backward: b is bool, and ranks hold tensors "
      "and integers between two graphs: pass what it is computed from");
}

prove::Proof ProofOf(const Graph& whole, int64_t stage, const std::vector<StagePart>& parts) {
  return prove::ProveStages({.whole = &whole,
                             .stage = stage,
                             .parts = parts,
                             .originals = prove::OriginalsOf(whole.module().provenance())},
                            {});
}

TEST_CASE("GR-19: forward, backward and both halves of it compute what a middle stage does") {
  const auto module = SplitLayers();
  const Graph& stage = *module->FindGraph("stage1");
  const StagePart forward = Part(*module, 1, ".forward"), backward = Part(*module, 1, ".backward"),
                  input = Part(*module, 1, ".backward_input"),
                  weight = Part(*module, 1, ".backward_weight");
  CHECK_EQ(ProofOf(stage, 1, std::vector{forward, backward}).verdict, Verdict::kProven);
  CHECK_EQ(ProofOf(stage, 1, std::vector{forward, input, weight}).verdict, Verdict::kProven);
  // Without W the gradient of the weight is missing.
  CHECK_EQ(ProofOf(stage, 1, std::vector{forward, input}).verdict, Verdict::kDiffers);
}

TEST_CASE("GR-20: a graph that returns more than its slots name is an error") {
  const auto module = SplitLayers();
  Graph& forward = *module->FindGraph("stage1.forward");
  Rewriter(forward).SetAttribute(forward.output(), "slots", "activation 0; activation 1");
  CHECK_EQ(MessageOf(StageSlotsOf(forward)),
           "graph stage1.forward returns 1 values: 2 slots name them: give each one");
}

TEST_CASE("GR-21: the forward of a stage counts in its buffer, its backward does not") {
  const auto module = SplitLayers();
  const auto text_of = [&](std::string_view graph) {
    return PrintText(*module->FindGraph(graph), {.types = false, .metadata = false});
  };
  CHECK(text_of("stage1.forward").find("i = aten.add_.Tensor(c, n)") != std::string::npos);
  CHECK(text_of("stage1.backward").find("add_") == std::string::npos);
  CHECK(text_of("stage1.backward_input").find("add_") == std::string::npos);
  // Proofs compare written inputs, too.
  Graph& forward = *module->FindGraph("stage1.forward");
  Rewriter(forward).SetOp(NodeNamed(forward, "i"), "aten.mul_.Tensor");
  CHECK_EQ(ProofOf(*module->FindGraph("stage1"), 1,
                   std::vector{Part(*module, 1, ".forward"), Part(*module, 1, ".backward")})
               .verdict,
           Verdict::kDiffers);
}

TEST_CASE("GR-23: the last stage reads no gradients of another, and numbers of its loss twice") {
  const auto module = SplitLayers();
  CHECK_EQ(
      SlotsText(*module, "stage2.backward"),
      "input layers.2.weight; input k; activation 0; saved 0 -> grad layers.2.weight; gradient "
      "0");
  CHECK_EQ(ProofOf(*module->FindGraph("stage2"), 2,
                   std::vector{Part(*module, 2, ".forward"), Part(*module, 2, ".backward")})
               .verdict,
           Verdict::kProven);
}

}  // namespace
}  // namespace strata
