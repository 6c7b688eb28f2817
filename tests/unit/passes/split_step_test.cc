#include "passes/pipeline/split_step.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "ir/rewriter.h"
#include "ir/text/native_text.h"
#include "ir/verify.h"
#include "passes/memory/recompute.h"
#include "passes/memory/tag_memory.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::ParseOrDie;

constexpr std::string_view kSplitStep = R"(graph step
  w = placeholder : f32[4, 4][4, 1]cpu {+fqn='layers.0.weight' +input='parameter'}
  x = placeholder : f32[8, 4][4, 1]cpu {+input='batch'}
  m = aten.mm.default(x, w) : f32[8, 4][4, 1]cpu {forward module=layers.0}
  r = aten._to_copy.default(m, dtype=torch.bfloat16) : bf16[8, 4][4, 1]cpu {forward module=layers.0}
  k = aten.exp.default(r) : bf16[8, 4][4, 1]cpu {forward module=layers.0}
  l = aten.sum.default(k) : bf16[][]cpu {loss module=loss}
  c = aten.mul.Tensor(k, r) : bf16[8, 4][4, 1]cpu {backward module=layers.0}
  d = aten._to_copy.default(c, dtype=torch.float32) : f32[8, 4][4, 1]cpu {backward module=layers.0}
  t = aten.t.default(x) : f32[4, 8][1, 4]cpu ~x {backward module=layers.0}
  g = aten.mm.default(t, d) : f32[4, 4][4, 1]cpu {backward module=layers.0}
  output([l, g])
)";

std::string GraphText(const Module& module, std::string_view name) {
  const Graph* graph = module.FindGraph(name);
  REQUIRE(graph != nullptr);
  const std::string text = PrintText(*graph, {.types = false, .metadata = false});
  std::string result = text.substr(text.find('\n') + 1);
  result += std::string(graph->attribute(graph->output(), "slots")) + "\n";
  return result;
}

TEST_CASE("forward leaves for backward what that reads") {
  const auto module = ParseOrDie(kSplitStep);
  CHECK_EQ(OrDie(SplitStep().Run(*module)), Changed::kYes);
  CHECK_OK(Verify(*module));
  CHECK_EQ(GraphText(*module, "step.forward"), R"(  w = placeholder
  x = placeholder
  m = aten.mm.default(x, w)
  r = aten._to_copy.default(m, dtype=torch.bfloat16)
  k = aten.exp.default(r)
  l = aten.sum.default(k)
  output([l, r, k])
extra 0; saved 0; saved 1
)");
  CHECK_EQ(GraphText(*module, "step.backward"), R"(  x = placeholder
  r = placeholder
  k = placeholder
  c = aten.mul.Tensor(k, r)
  d = aten._to_copy.default(c, dtype=torch.float32)
  t = aten.t.default(x)
  g = aten.mm.default(t, d)
  output([g])
extra 1
)");
  CHECK_EQ(OrDie(SplitStep().Run(*module)), Changed::kNo);
}

TEST_CASE("after a minimum cut forward leaves the fewest bytes, and backward has the copies") {
  const auto module = ParseOrDie(kSplitStep);
  OrDie(TagMemory({.policy = TagMemory::Policy::kMinCut}).Run(*module));
  OrDie(Recompute().Run(*module));
  OrDie(SplitStep().Run(*module));
  CHECK_OK(Verify(*module));
  CHECK_EQ(GraphText(*module, "step.forward"), R"(  w = placeholder
  x = placeholder
  m = aten.mm.default(x, w)
  r = aten._to_copy.default(m, dtype=torch.bfloat16)
  k = aten.exp.default(r)
  l = aten.sum.default(k)
  output([l, r])
extra 0; saved 0
)");
  CHECK_EQ(GraphText(*module, "step.backward"), R"(  x = placeholder
  r = placeholder
  k_recomputed = aten.exp.default(r)
  c = aten.mul.Tensor(k_recomputed, r)
  d = aten._to_copy.default(c, dtype=torch.float32)
  t = aten.t.default(x)
  g = aten.mm.default(t, d)
  output([g])
extra 1
)");
}

TEST_CASE("both parts of a rank's program are programs of the mesh") {
  const auto module = ParseOrDie(kSplitStep);
  Graph& step = *module->FindGraph("step");
  Rewriter(step).SetAttribute(step.output(), "mesh", "fsdp=2");
  OrDie(SplitStep().Run(*module));
  for (const char* name : {"step.forward", "step.backward"}) {
    const Graph& part = *module->FindGraph(name);
    CHECK_EQ(part.attribute(part.output(), "mesh"), "fsdp=2");
  }
}

TEST_CASE("other graphs, and a step without backward, are left alone") {
  CHECK_EQ(OrDie(SplitStep().Run(*testing::ParseBody("  output([])\n"))), Changed::kNo);
  const auto module = ParseOrDie(R"(graph step
  x = placeholder : f32[4][1]cpu
  y = aten.relu.default(x) : f32[4][1]cpu {forward}
  output([y])
)");
  CHECK_EQ(OrDie(SplitStep().Run(*module)), Changed::kNo);
}

}  // namespace
}  // namespace strata
