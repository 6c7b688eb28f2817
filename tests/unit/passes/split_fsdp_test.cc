#include "passes/pipeline/split_fsdp.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "ir/text/native_text.h"
#include "ir/verify.h"
#include "passes/comm/dedup_unshards.h"
#include "passes/core/collectives.h"
#include "passes/pipeline/slots.h"
#include "passes/pipeline/split_backward.h"
#include "passes/pipeline/split_optimizer.h"
#include "passes/pipeline/split_stages.h"
#include "passes/pipeline/split_weight_gradients.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;
using testing::ParseOrDie;

/// Two layers on two ranks: sharded weights p and q, a replicated bias b. Backward gathers q again.
constexpr std::string_view kShardedStep = R"(graph step
  p = placeholder : f32[1, 2][2, 1]cpu {module=layers.0 +fqn='layers.0.weight' +input='parameter'}
  b = placeholder : f32[2][1]cpu {module=layers.0 +fqn='layers.0.bias' +input='parameter'}
  q = placeholder : f32[1, 2][2, 1]cpu {module=layers.1 +fqn='layers.1.weight' +input='parameter'}
  x = placeholder : f32[3, 2][2, 1]cpu {+input='batch'}
  g0 = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp') : f32[2, 2][2, 1]cpu {forward module=layers.0}
  w0 = _c10d_functional.wait_tensor.default(g0) : f32[2, 2][2, 1]cpu ~g0 {forward module=layers.0}
  m = aten.mm.default(x, w0) : f32[3, 2][2, 1]cpu {forward module=layers.0}
  h = aten.add.Tensor(m, b) : f32[3, 2][2, 1]cpu {forward module=layers.0}
  g1 = _c10d_functional.all_gather_into_tensor.default(q, 2, 'fsdp') : f32[2, 2][2, 1]cpu {forward module=layers.1}
  w1 = _c10d_functional.wait_tensor.default(g1) : f32[2, 2][2, 1]cpu ~g1 {forward module=layers.1}
  v1 = aten.t.default(w1) : f32[2, 2][1, 2]cpu ~g1 {forward module=layers.1}
  y = aten.mm.default(h, v1) : f32[3, 2][2, 1]cpu {forward module=layers.1}
  loss = aten.sum.default(y) : f32[][]cpu {loss module=loss}
  one = aten.ones_like.default(loss) : f32[][]cpu {backward module=loss}
  gy = aten.expand.default(one, [3, 2]) : f32[3, 2][0, 0]cpu ~one {backward module=loss}
  th = aten.t.default(h) : f32[2, 3][1, 2]cpu ~h {backward module=layers.1}
  d1 = aten.mm.default(th, gy) : f32[2, 2][2, 1]cpu {backward module=layers.1}
  e1 = aten.t.default(d1) : f32[2, 2][1, 2]cpu ~d1 {backward module=layers.1}
  r1 = _c10d_functional.reduce_scatter_tensor.default(e1, 'sum', 2, 'fsdp') : f32[1, 2][2, 1]cpu {backward module=layers.1}
  gq = _c10d_functional.wait_tensor.default(r1) : f32[1, 2][2, 1]cpu ~r1 {backward module=layers.1}
  g2 = _c10d_functional.all_gather_into_tensor.default(q, 2, 'fsdp') : f32[2, 2][2, 1]cpu {backward module=layers.1}
  w2 = _c10d_functional.wait_tensor.default(g2) : f32[2, 2][2, 1]cpu ~g2 {backward module=layers.1}
  gh = aten.mm.default(gy, w2) : f32[3, 2][2, 1]cpu {backward module=layers.1}
  sb = aten.sum.dim_IntList(gh, [0]) : f32[2][1]cpu {backward module=layers.0}
  ab = _c10d_functional.all_reduce.default(sb, 'sum', 'fsdp') : f32[2][1]cpu {backward module=layers.0}
  gb = _c10d_functional.wait_tensor.default(ab) : f32[2][1]cpu ~ab {backward module=layers.0}
  tx = aten.t.default(x) : f32[2, 3][1, 2]cpu ~x {backward module=layers.0}
  d0 = aten.mm.default(tx, gh) : f32[2, 2][2, 1]cpu {backward module=layers.0}
  c0 = aten._to_copy.default(d0, dtype=torch.float64) : f64[2, 2][2, 1]cpu {backward module=layers.0}
  r0 = _c10d_functional.reduce_scatter_tensor.default(c0, 'sum', 2, 'fsdp') : f64[1, 2][2, 1]cpu {backward module=layers.0}
  a0 = _c10d_functional.wait_tensor.default(r0) : f64[1, 2][2, 1]cpu ~r0 {backward module=layers.0}
  gp = aten._to_copy.default(a0, dtype=torch.float32) : f32[1, 2][2, 1]cpu {backward module=layers.0}
  output([loss, gp, gb, gq])
graph accumulate
  p = placeholder : f32[1, 2][2, 1]cpu {module=layers.0 +fqn='layers.0.weight.grad'}
  b = placeholder : f32[2][1]cpu {module=layers.0 +fqn='layers.0.bias.grad'}
  q = placeholder : f32[1, 2][2, 1]cpu {module=layers.1 +fqn='layers.1.weight.grad'}
  p1 = placeholder : f32[1, 2][2, 1]cpu {module=layers.0 +fqn='layers.0.weight.batch_grad'}
  b1 = placeholder : f32[2][1]cpu {module=layers.0 +fqn='layers.0.bias.batch_grad'}
  q1 = placeholder : f32[1, 2][2, 1]cpu {module=layers.1 +fqn='layers.1.weight.batch_grad'}
  s = aten.add_.Tensor(p, p1) : f32[1, 2][2, 1]cpu ~p {optimizer module=layers.0}
  t = aten.add_.Tensor(b, b1) : f32[2][1]cpu ~b {optimizer module=layers.0}
  u = aten.add_.Tensor(q, q1) : f32[1, 2][2, 1]cpu ~q {optimizer module=layers.1}
  output([s, t, u])
)";

std::string Replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string replaced(text);
  const size_t at = replaced.find(from);
  REQUIRE(at != std::string::npos);
  return replaced.replace(at, from.size(), to);
}

std::unique_ptr<Module> InStages(std::string_view text, bool dedup = true) {
  auto module = ParseOrDie(text);
  if (dedup) OrDie(DedupUnshards({.across_phases = true}).Run(*module));
  SplitStages::Options options;
  options.modules = "layers.0;layers.1";
  OrDie(SplitStages(options).Run(*module));
  return module;
}

std::string PartText(const Module& module, std::string_view graph) {
  const Graph* found = module.FindGraph(graph);
  REQUIRE(found != nullptr);
  const std::string text = PrintText(*found, {.types = false, .metadata = false});
  return text.substr(text.find('\n'));
}

std::string PartSlots(const Module& module, std::string_view graph) {
  const StageSlots slots = OrDie(StageSlotsOf(*module.FindGraph(graph)));
  std::string text;
  for (const StageSlot& slot : slots.inputs)
    text += ToString(slot) + "; ";
  text += "->";
  for (const StageSlot& slot : slots.outputs)
    text += " " + ToString(slot) + ";";
  return text;
}

int64_t CountCollectives(const Graph& graph) {
  int64_t count = 0;
  for (const NodeId node : graph.nodes())
    count += CollectiveOf(graph, node) ? 1 : 0;
  return count;
}

TEST_CASE("GP-09: a parameter is gathered once, where forward and backward gathered it") {
  const auto twice = InStages(kShardedStep, false);
  OrDie(SplitFsdp().Run(*twice));
  CHECK_EQ(PartSlots(*twice, "stage1.unshard"), "input layers.1.weight; -> whole 0; whole 1;");
  const auto once = InStages(kShardedStep);
  OrDie(SplitFsdp().Run(*once));
  CHECK_EQ(PartText(*once, "stage1.unshard"), R"(
  q = placeholder
  g1 = _c10d_functional.all_gather_into_tensor.default(q, 2, 'fsdp')
  w1 = _c10d_functional.wait_tensor.default(g1)
  output([w1])
)");
}

TEST_CASE("GP-10: what runs for a microbatch reads whole parameters and gathers none") {
  const auto module = InStages(kShardedStep);
  CHECK_EQ(OrDie(SplitFsdp().Run(*module)), Changed::kYes);
  CHECK_EQ(OrDie(SplitFsdp().Run(*module)), Changed::kNo);
  CHECK_OK(Verify(*module));
  OrDie(SplitBackward().Run(*module));
  OrDie(SplitWeightGradients().Run(*module));
  CHECK_OK(Verify(*module));
  // The view of a whole parameter is made where it is read, and the parameter is not saved.
  CHECK_EQ(PartText(*module, "stage1.forward"), R"(
  h = placeholder
  w1 = placeholder
  v1 = aten.t.default(w1)
  y = aten.mm.default(h, v1)
  loss = aten.sum.default(y)
  output([loss, loss])
)");
  CHECK_EQ(PartSlots(*module, "stage1.forward"), "activation 0; whole 0; -> loss; saved 0;");
  CHECK_EQ(PartSlots(*module, "stage0.forward"),
           "input layers.0.bias; input x; whole 0; -> activation 0;");
  for (const char* graph : {"stage0.forward", "stage0.backward", "stage1.forward",
                            "stage1.backward", "stage1.backward_input", "stage1.backward_weight"}) {
    CAPTURE(graph);
    CHECK_EQ(CountCollectives(*module->FindGraph(graph)), 0);
  }
}

TEST_CASE("GP-11: a stage without collectives of parameters is left as it is") {
  auto module = ParseOrDie(R"(graph step
  p = placeholder : f32[2, 2][2, 1]cpu {module=layers.0 +fqn='layers.0.weight' +input='parameter'}
  x = placeholder : f32[3, 2][2, 1]cpu {+input='batch'}
  y = aten.mm.default(x, p) : f32[3, 2][2, 1]cpu {forward module=layers.0}
  loss = aten.sum.default(y) : f32[][]cpu {loss module=loss}
  gy = aten.ones_like.default(y) : f32[3, 2][2, 1]cpu {backward module=loss}
  tx = aten.t.default(x) : f32[2, 3][1, 2]cpu ~x {backward module=layers.0}
  gp = aten.mm.default(tx, gy) : f32[2, 2][2, 1]cpu {backward module=layers.0}
  output([loss, gp])
)");
  SplitStages::Options options;
  options.modules = "layers.0";
  OrDie(SplitStages(options).Run(*module));
  CHECK_EQ(OrDie(SplitFsdp().Run(*module)), Changed::kNo);
  CHECK_EQ(module->FindGraph("stage0.compute"), nullptr);
  OrDie(SplitBackward().Run(*module));
  CHECK_EQ(PartSlots(*module, "stage0.forward"),
           "input layers.0.weight; input x; -> loss; saved 0;");
}

TEST_CASE("GP-12: an all-gather that its wait alone does not read is an error") {
  const std::string text = Replaced(kShardedStep, "w0 = _c10d_functional.wait_tensor.default(g0)",
                                    "w0 = aten.relu.default(g0)");
  const auto module = InStages(Replaced(text, "cpu ~g0 {", "cpu {"), false);
  CHECK_EQ(MessageOf(SplitFsdp().Run(*module)),
           "an all-gather must be read by its wait: graph stage0: g0 is read by w0 "
           "(aten.relu.default)");
}

TEST_CASE("GP-13: gradients are summed in the type that is reduced, and reduced once") {
  const auto module = InStages(kShardedStep);
  OrDie(SplitFsdp().Run(*module));
  // The cast before the reduction is of a microbatch, the one behind it is not.
  CHECK_EQ(PartText(*module, "stage0.reduce"), R"(
  c0 = placeholder
  sb = placeholder
  ab = _c10d_functional.all_reduce.default(sb, 'sum', 'fsdp')
  gb = _c10d_functional.wait_tensor.default(ab)
  r0 = _c10d_functional.reduce_scatter_tensor.default(c0, 'sum', 2, 'fsdp')
  a0 = _c10d_functional.wait_tensor.default(r0)
  gp = aten._to_copy.default(a0, dtype=torch.float32)
  output([gp, gb])
)");
  CHECK_EQ(
      PartSlots(*module, "stage0.reduce"),
      "grad layers.0.weight; grad layers.0.bias; -> grad layers.0.weight; grad layers.0.bias;");
  OrDie(SplitBackward().Run(*module));
  CHECK_EQ(PartSlots(*module, "stage1.backward"),
           "activation 0; whole 0; saved 0; -> grad layers.1.weight; gradient 0;");
  OrDie(SplitOptimizer({.ranks = 2}).Run(*module));
  CHECK_OK(Verify(*module));
  // Sums are contiguous, as what is added to them becomes.
  const std::string sums = PrintText(*module->FindGraph("stage1.accumulate"), {.metadata = false});
  CHECK_EQ(sums.substr(sums.find('\n')), R"(
  q = placeholder : f32[2, 2][2, 1]cpu
  q1 = placeholder : f32[2, 2][2, 1]cpu
  u = aten.add_.Tensor(q, q1) : f32[2, 2][2, 1]cpu
  output([u])
)");
  const std::string wide = PrintText(*module->FindGraph("stage0.accumulate"), {.metadata = false});
  CHECK_NE(wide.find("s = aten.add_.Tensor(p, p1) : f64[2, 2][2, 1]cpu"), std::string::npos);
}

TEST_CASE("GP-14: a reduction in a narrow type, or of a value that others read, stays") {
  std::string narrow(kShardedStep);
  for (size_t at; (at = narrow.find("f64")) != std::string::npos;)
    narrow.replace(at, 3, "bf16");
  const auto kept = InStages(Replaced(narrow, "torch.float64", "torch.bfloat16"));
  OrDie(SplitFsdp().Run(*kept));
  CHECK_EQ(PartSlots(*kept, "stage0.reduce"), "grad layers.0.bias; -> grad layers.0.bias;");
  CHECK_EQ(CountCollectives(*kept->FindGraph("stage0.compute")), 1);
  // What is not linear cannot follow a sum.
  const auto clamped = InStages(
      Replaced(kShardedStep, "gb = _c10d_functional.wait_tensor.default(ab) : f32[2][1]cpu ~ab",
               "gb = aten.relu.default(ab) : f32[2][1]cpu"));
  OrDie(SplitFsdp().Run(*clamped));
  CHECK_EQ(PartSlots(*clamped, "stage0.reduce"), "grad layers.0.weight; -> grad layers.0.weight;");
}

}  // namespace
}  // namespace strata
