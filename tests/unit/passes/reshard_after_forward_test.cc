#include "passes/memory/reshard_after_forward.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "ir/fingerprint.h"
#include "ir/verify.h"
#include "passes/memory/recompute.h"
#include "passes/memory/tags.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::BodyOf;
using testing::MessageOf;
using testing::OrDie;
using testing::ParseBody;

/// Two gathered parameters, one cast before and one joined from parts, and a gathered activation.
constexpr std::string_view kGatheredBody = R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  p = placeholder : f32[2, 4][4, 1]cpu
  q = placeholder : f32[4, 2][2, 1]cpu
  h = aten._to_copy.default(p) : bf16[2, 4][4, 1]cpu {forward module=layers.0.wq}
  a = _c10d_functional.all_gather_into_tensor.default(h, 2, 'fsdp') : bf16[4, 4][4, 1]cpu {forward module=layers.0.wq}
  w = _c10d_functional.wait_tensor.default(a) : bf16[4, 4][4, 1]cpu {forward module=layers.0.wq}
  t = aten.t.default(w) : bf16[4, 4][1, 4]cpu ~w {forward module=layers.0.wq}
  m = aten.mm.default(x, t) : f32[4, 4][4, 1]cpu {forward module=layers.0.wq}
  b = _c10d_functional.all_gather_into_tensor.default(q, 2, 'fsdp') : f32[8, 2][2, 1]cpu {forward module=norm}
  v = _c10d_functional.wait_tensor.default(b) : f32[8, 2][2, 1]cpu {forward module=norm}
  (y, z) = aten.split.Tensor(v, 4) as u : (f32[4, 2][2, 1]cpu, f32[4, 2][2, 1]cpu) ~(v, v) {forward module=norm}
  c = aten.cat.default([y, z], 1) : f32[4, 4][4, 1]cpu {forward module=norm}
  k = aten.mm.default(m, c) : f32[4, 4][4, 1]cpu {forward module=norm}
  j = aten.add.Tensor(m, x) : f32[4, 4][4, 1]cpu {forward module=norm}
  d = _c10d_functional.all_gather_into_tensor.default(j, 2, 'tp') : f32[8, 4][4, 1]cpu {forward module=norm}
  e = _c10d_functional.wait_tensor.default(d) : f32[8, 4][4, 1]cpu {forward module=norm}
  g = aten.mm.default(k, w) : f32[4, 4][4, 1]cpu {backward module=norm}
  r = aten.mm.default(g, c) : f32[4, 4][4, 1]cpu {backward module=layers.0.wq}
  s = aten.mm.default(e, r) : f32[8, 4][4, 1]cpu {backward module=layers.0.wq}
  output([s])
)";

/// Names of the tagged nodes.
std::string Tagged(const Module& module) {
  const Graph& graph = *module.FindGraph("g");
  std::string names;
  for (const NodeId node : graph.nodes()) {
    if (!MemoryTagOf(graph, node)) continue;
    CHECK_EQ(MemoryTagOf(graph, node), MemoryTag::kPreferRecompute);
    names += (names.empty() ? "" : " ") + std::string(graph.name(node));
  }
  return names;
}

std::string TaggedBy(ReshardParameters::Options options) {
  const auto module = ParseBody(kGatheredBody);
  const Fingerprint before = FingerprintOf(*module->FindGraph("g"));
  CHECK_EQ(OrDie(ReshardParameters(options).Run(*module)), Changed::kYes);
  CHECK_OK(Verify(*module));
  CHECK(FingerprintOf(*module->FindGraph("g")) == before);
  CHECK_EQ(OrDie(ReshardParameters(options).Run(*module)), Changed::kNo);
  return Tagged(*module);
}

TEST_CASE(
    "T101: gathers of parameters are tagged, with waits and views of them; activations are not") {
  CHECK_EQ(TaggedBy({}), "a w t b v u");
  CHECK_EQ(TaggedBy({.consumers = "aten.cat.default#0"}), "a w t b v u c");
  CHECK_EQ(TaggedBy({.consumers = "aten.cat.default#1"}), "a w t b v u");
  CHECK_EQ(TaggedBy({.skip = "norm|lm_head", .consumers = "aten.cat.default#0"}), "a w t");
  CHECK_EQ(TaggedBy({.skip = "layers.*.wq"}), "b v u");
}

TEST_CASE("backward gathers again what is tagged, and keeps activations") {
  const auto module = ParseBody(kGatheredBody);
  OrDie(ReshardParameters({.consumers = "aten.cat.default#0"}).Run(*module));
  OrDie(Recompute().Run(*module));
  CHECK_OK(Verify(*module));
  const std::string body = BodyOf(*module);
  CHECK_EQ(body.substr(body.find("  e = ")), R"(  e = _c10d_functional.wait_tensor.default(d)
  a_recomputed = _c10d_functional.all_gather_into_tensor.default(h, 2, 'fsdp')
  w_recomputed = _c10d_functional.wait_tensor.default(a_recomputed)
  g = aten.mm.default(k, w_recomputed)
  b_recomputed = _c10d_functional.all_gather_into_tensor.default(q, 2, 'fsdp')
  v_recomputed = _c10d_functional.wait_tensor.default(b_recomputed)
  (y_recomputed, z_recomputed) = aten.split.Tensor(v_recomputed, 4) as u_recomputed
  c_recomputed = aten.cat.default([y_recomputed, z_recomputed], 1)
  r = aten.mm.default(g, c_recomputed)
  s = aten.mm.default(e, r)
  output([s])
)");
}

TEST_CASE("T102: a tag that is there stays") {
  const auto module = ParseBody(R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  p = placeholder : f32[2, 4][4, 1]cpu
  a = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp') : f32[4, 4][4, 1]cpu {forward}
  w = _c10d_functional.wait_tensor.default(a) : f32[4, 4][4, 1]cpu {forward +recompute='MUST_SAVE'}
  t = aten.t.default(w) : f32[4, 4][1, 4]cpu ~w {forward}
  g = aten.mm.default(x, t) : f32[4, 4][4, 1]cpu {backward}
  output([g])
)");
  OrDie(ReshardParameters().Run(*module));
  const Graph& graph = *module->FindGraph("g");
  CHECK_EQ(MemoryTagOf(graph, testing::NodeNamed(graph, "a")), MemoryTag::kPreferRecompute);
  CHECK_EQ(MemoryTagOf(graph, testing::NodeNamed(graph, "w")), MemoryTag::kMustSave);
  CHECK_EQ(MemoryTagOf(graph, testing::NodeNamed(graph, "t")), std::nullopt);
}

TEST_CASE("consumers name an operator and an argument; without backward nothing is tagged") {
  for (const std::string text : {"aten.cat.default", "aten.cat.default#", "#0", "a#x"}) {
    CHECK_EQ(MessageOf(ReshardParameters({.consumers = text}).Run(*ParseBody("  output([])\n"))),
             "consumer '" + text + "' names no argument, write OP#ARGUMENT: aten.cat.default#0");
  }
  const auto module = ParseBody(R"(
  p = placeholder : f32[2, 4][4, 1]cpu
  a = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp') : f32[4, 4][4, 1]cpu {forward}
  output([a])
)");
  CHECK_EQ(OrDie(ReshardParameters().Run(*module)), Changed::kNo);
}

}  // namespace
}  // namespace strata
