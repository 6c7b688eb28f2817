#include "passes/memory/tag_memory.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "ir/fingerprint.h"
#include "ir/verify.h"
#include "passes/core/registry.h"
#include "passes/memory/recompute.h"
#include "passes/memory/selectors.h"
#include "passes/memory/tags.h"
#include "passes/passes.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using Policy = TagMemory::Policy;
using testing::MessageOf;
using testing::OrDie;
using testing::ParseBody;

/// `a S  b r  c R  d -`: the tags of the call nodes before backward.
std::string TagsOf(const Module& module) {
  const Graph& graph = *module.FindGraph("g");
  std::string text;
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kCall || IsBackward(graph, node)) continue;
    const std::optional<MemoryTag> tag = MemoryTagOf(graph, node);
    const char* letter = !tag                                  ? "-"
                         : *tag == MemoryTag::kMustSave        ? "S"
                         : *tag == MemoryTag::kPreferRecompute ? "r"
                                                               : "R";
    text += (text.empty() ? "" : "  ") + std::string(graph.name(node)) + " " + letter;
  }
  return text;
}

/// A backward node is added: without one there is nothing to save for.
std::string Tags(std::string_view body, Policy policy = Policy::kDefault, std::string save = "") {
  const auto module = ParseBody(std::string(body) + "  back = aten.neg.default(x) {backward}\n" +
                                "  output([back])\n");
  const Fingerprint before = FingerprintOf(*module->FindGraph("g"));
  OrDie(TagMemory({.policy = policy, .save = std::move(save)}).Run(*module));
  CHECK_OK(Verify(*module));
  CHECK(FingerprintOf(*module->FindGraph("g")) == before);  // computes the same
  return TagsOf(*module);
}

TEST_CASE("MP-1: default gives up what is cheap") {
  CHECK_EQ(Tags(R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  a = aten.add.Tensor(x, x) {forward}
  b = aten.relu.default(a) {forward}
)"),
           "a r  b r");
}

std::string TagsWith(std::string_view body, TagMemory::Options options) {
  const auto module = ParseBody(std::string(body) + "  back = aten.neg.default(x) {backward}\n" +
                                "  output([back])\n");
  OrDie(TagMemory(std::move(options)).Run(*module));
  return TagsOf(*module);
}

TEST_CASE("MP-2: overrides replace what the policy says of the nodes that they select") {
  constexpr std::string_view kBody = R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  p = aten.mm.default(x, x) {forward module=layers.0.attention}
  q = aten.mm.default(p, x) {forward module=layers.0.attention}
  r = aten.relu.default(q) {forward module=layers.0.attention}
  s = aten.mm.default(r, x) {forward module=layers.1.attention}
  n = aten.rand_like.default(s) {forward module=layers.1.attention}
)";
  CHECK_EQ(TagsWith(kBody, {}), "p S  q S  r r  s S  n S");
  CHECK_EQ(
      TagsWith(kBody, {.override_tags = " layers.*.attention::aten.mm.default#2=MUST_RECOMPUTE | "
                                        "layers.0.attention::aten.relu.default = MUST_SAVE"}),
      "p S  q R  r S  s S  n S");
  // The first that selects a node decides. What no policy gives up stays: random numbers, and what
  // the next layer reads to be computed again.
  CHECK_EQ(TagsWith(kBody,
                    {.override_tags = "layers.0.attention::aten.mm.default#1=PREFER_RECOMPUTE|"
                                      "layers.?.attention::aten.mm.default=MUST_RECOMPUTE|"
                                      "layers.1.attention::aten.rand_like.default=MUST_RECOMPUTE"}),
           "p r  q R  r S  s R  n S");
  CHECK_EQ(
      TagsWith(kBody, {.policy = Policy::kNone,
                       .override_tags = "layers.0.attention::aten.mm.default#2=MUST_RECOMPUTE"}),
      "p S  q R  r S  s S  n S");
  const auto error = [](std::string_view text) {
    const auto module = ParseBody("  output([])\n");
    return MessageOf(TagMemory({.override_tags = std::string(text)}).Run(*module));
  };
  for (const std::string text : {"a::aten.mm.default", "a::aten.mm.default=", "a::b.c.d=SAVE"}) {
    CHECK_EQ(error(text), "override '" + text +
                              "' ends with no tag, write MODULE_PATTERN::OP=TAG with MUST_SAVE, "
                              "PREFER_RECOMPUTE, MUST_RECOMPUTE or MUST_CPU_OFFLOAD");
  }
  CHECK_EQ(error("aten.mm.default=MUST_SAVE"),
           "selector 'aten.mm.default' has not one '::', write MODULE_PATTERN::OP");
  CHECK_EQ(error("=MUST_SAVE"),
           "override '=MUST_SAVE' selects nothing, write MODULE_PATTERN::OP=TAG");
}

TEST_CASE("MP-3: integers of the program are saved by all policies") {
  constexpr std::string_view kBody = R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  n = aten.sym_size.int(x, 0) : Sym(s0) {forward}
  b = aten.relu.default(x) {forward}
)";
  CHECK_EQ(Tags(kBody), "n S  b r");
  CHECK_EQ(Tags(kBody, Policy::kFull), "n S  b R");
}

TEST_CASE("T103, MP-4: a tuple has one tag; a wait has that of its collective") {
  CHECK_EQ(Tags(R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  (v, i) = aten.topk.default(x, 2) as t {forward}
  r = _c10d_functional.reduce_scatter_tensor.default(x, 'sum', 2, 'fsdp') {forward}
  w = _c10d_functional.wait_tensor.default(r) {forward}
  a = _c10d_functional.all_gather_into_tensor.default(x, 2, 'fsdp') {forward}
  u = _c10d_functional.wait_tensor.default(a) {forward}
)"),
           "t S  r S  w S  a r  u r");
}

TEST_CASE("MP-5: gathered parameters are saved when backward shall not gather them again") {
  // As for reshard_after_forward = never; the second parameter is cut along another dimension.
  constexpr std::string_view kBody = R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  p = placeholder : f32[2, 4][4, 1]cpu
  a = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp') : f32[4, 4][4, 1]cpu {forward module=layers.0.wq}
  w = _c10d_functional.wait_tensor.default(a) : f32[4, 4][4, 1]cpu {forward module=layers.0.wq}
  t = aten.t.default(w) : f32[4, 4][1, 4]cpu ~w {forward module=layers.0.wq}
  m = aten.mm.default(x, t) : f32[4, 4][4, 1]cpu {forward module=layers.0.wq}
  q = placeholder : f32[4, 2][2, 1]cpu
  b = _c10d_functional.all_gather_into_tensor.default(q, 2, 'fsdp') : f32[8, 2][2, 1]cpu {forward module=layers.0.wk}
  v = _c10d_functional.wait_tensor.default(b) : f32[8, 2][2, 1]cpu {forward module=layers.0.wk}
  (y, z) = aten.split.Tensor(v, 4) as u : (f32[4, 2][2, 1]cpu, f32[4, 2][2, 1]cpu) ~(v, v) {forward module=layers.0.wk}
  c = aten.cat.default([y, z], 1) : f32[4, 4][4, 1]cpu {forward module=layers.0.wk}
  k = aten.mm.default(m, c) : f32[4, 4][4, 1]cpu {forward module=layers.0.wk}
)";
  CHECK_EQ(TagsWith(kBody, {}), "a r  w r  t r  m S  b r  v r  u r  c r  k S");
  CHECK_EQ(TagsWith(kBody, {.keep_unsharded = true}),
           "a r  w S  t r  m S  b r  v r  u r  c S  k S");
  CHECK_EQ(TagsWith(kBody, {.policy = Policy::kFull, .keep_unsharded = true}),
           "a R  w S  t R  m R  b R  v R  u R  c S  k R");
}

TEST_CASE("MP-6: what the next layer reads is saved") {
  constexpr std::string_view kBody = R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  e = aten.embedding.default(x, x) {forward module=tok_embeddings}
  a = aten.add.Tensor(e, x) {forward module=layers.0}
  b = aten.relu.default(a) {forward module=layers.1.norm}
  c = aten.mul.Tensor(b, b) {forward module=norm}
)";
  CHECK_EQ(Tags(kBody), "e S  a S  b r  c r");
  CHECK_EQ(Tags(kBody, Policy::kFull), "e S  a S  b R  c R");
}

constexpr std::string_view kProducts = R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  p = aten.mm.default(x, x) {forward module=layers.0}
  q = aten.max.default(p) {forward module=layers.0}
  r = aten.mm.default(p, x) {forward module=layers.0}
  s = aten.add.Tensor(r, x) {forward module=layers.0}
  t = aten.mm.default(s, x) {forward module=layers.0}
)";

TEST_CASE("MP-7: default saves every matrix product") {
  CHECK_EQ(Tags(kProducts), "p S  q S  r S  s r  t S");
}

TEST_CASE("MP-8: full gives up everything but random numbers") {
  CHECK_EQ(Tags(R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  a = aten.mm.default(x, x) {forward module=layers.0}
  b = aten.linear.default(a, x) {forward module=layers.0}
  c = aten.max.default(b) {forward module=layers.0}
  (d, m) = aten.native_dropout.default(c, 0.5, True) as n {forward module=layers.0}
  f = higher_order.flex_attention(a, a, a) {forward module=layers.0}
)",
                Policy::kFull),
           "a R  b R  c R  n S  f R");
}

TEST_CASE("MP-9: full saves what selectors name") {
  constexpr std::string_view kBody = R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  g = aten.mm.default(x, x) {forward module=layers.7.moe.router.gate}
  c = aten._to_copy.default(g) {forward module=layers.7.moe.router.gate}
  w = aten.mm.default(c, x) {forward module=layers.7.attention.wkv_a}
  f = higher_order.flex_attention(w, w, w) {forward module=layers.7.attention}
  h = aten.mm.default(f, x) {forward module=layers.7.moe.router.gate}
)";
  CHECK_EQ(Tags(kBody, Policy::kFull, "layers.*.moe.router.gate::aten.mm.default"),
           "g S  c R  w R  f R  h S");
  CHECK_EQ(Tags(kBody, Policy::kFull,
                " layers.8.attention.wkv_a::aten.mm.default | "
                "layers.7.attention::torch.ops.higher_order.flex_attention "),
           "g R  c R  w R  f S  h R");
  CHECK_EQ(Tags(kBody, Policy::kFull, "layers.*.moe.router.gate::aten.mm.default#2"),
           "g R  c R  w R  f R  h S");
}

TEST_CASE("MP-10: selectors that are none are errors, and so is save without full") {
  const auto error = [](std::string_view text) { return MessageOf(ParseSelectors(text)); };
  CHECK_EQ(error("layers.0"), "selector 'layers.0' has not one '::', write MODULE_PATTERN::OP");
  CHECK_EQ(error("a::b::c"), "selector 'a::b::c' has not one '::', write MODULE_PATTERN::OP");
  CHECK_EQ(error(" ::aten.mm.default"),
           "a side of selector '::aten.mm.default' is empty, write MODULE_PATTERN::OP");
  CHECK_EQ(error("layers.*:: "),
           "a side of selector 'layers.*::' is empty, write MODULE_PATTERN::OP");
  CHECK_EQ(error("layers.*::aten.mm"),
           "operator 'aten.mm' of a selector must name an overload or a higher-order operator, "
           "write aten.mm.default");
  for (const std::string number : {"", "0", "-1", "2x"}) {
    CHECK_EQ(error("a::aten.mm.default#" + number),
             "'#" + number + "' of selector 'a::aten.mm.default#" + number +
                 "' is not a whole number from 1, write OP#2");
  }
  CHECK_EQ(error(""), "");
  const auto module = ParseBody("  output([])\n");
  CHECK_EQ(MessageOf(TagMemory({.save = "a::aten.mm.default"}).Run(*module)),
           "option 'save' requires policy=full, take one of them out");
}

TEST_CASE("T102, MP-11: eager recomputes every second matrix product of a layer") {
  CHECK_EQ(Tags(R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  a = aten.mm.default(x, x) {forward module=layers.0.attention.wq}
  b = aten.mm.default(x, x) {forward module=layers.0.attention.wk}
  c = aten.linear.default(x, x) {forward module=layers.0.attention.wv}
  n = aten.mm.default(x, x) {forward module=norm}
  d = aten.mm.default(x, x) {forward module=layers.0.attention.wo}
  e = aten.mm.default(x, x) {forward module=layers.1.attention.wq}
  f = aten.bmm.default(x, x) {forward module=layers.1.attention}
  h = aten.mm.default(x, x) {forward module=layers.1.attention.wk}
)",
                Policy::kEager),
           "a S  b r  c S  n r  d S  e S  f S  h r");
}

TEST_CASE("MP-12: an unknown policy is an error that names all") {
  CHECK_EQ(
      MessageOf(ParsePipeline("tag-memory{policy=half}", AllPasses())),
      "pipeline:1:19: option 'policy' of pass 'tag-memory': expected one of default, eager, full, "
      "min_cut, none, not 'half'\n"
      "  tag-memory{policy=half}\n"
      "                    ^");
}

TEST_CASE("MP-13: output layer, loss and backward have no tags") {
  CHECK_EQ(Tags(R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  a = aten.mm.default(x, x) {forward module=norm}
  b = aten.mm.default(a, x) {forward module=lm_head}
  c = aten.sum.default(b) {loss module=loss}
  w = _c10d_functional.wait_tensor.default(c) {forward module=layers.0}
)",
                Policy::kFull),
           "a R  b -  c -  w -");
}

TEST_CASE("policy none saves everything; graphs without backward have no tags") {
  CHECK_EQ(Tags(kProducts, Policy::kNone), "p S  q S  r S  s S  t S");
  const auto module = ParseBody(std::string(kProducts) + "  output([t])\n");
  CHECK_EQ(OrDie(TagMemory().Run(*module)), Changed::kNo);
  CHECK_EQ(TagsOf(*module), "p -  q -  r -  s -  t -");
}

TEST_CASE("memory that copies cannot write again is saved") {
  constexpr std::string_view kBody = R"(
  x = placeholder : f32[4][1]cpu
  y = placeholder : f32[4][1]cpu
  m = aten.mean.default(x) : f32[4][1]cpu {forward}
  n = aten.add_.Scalar(m, 1.0) : f32[4][1]cpu ~m {forward}
  p = aten.mm.default(x, x) : f32[4][1]cpu {forward}
  e = aten.exp.default(p) : f32[4][1]cpu {forward}
  q = aten.add_.Scalar(p, 1.0) : f32[4][1]cpu ~p {forward}
  f = aten.exp.default(q) : f32[4][1]cpu {forward}
  z = aten.add_.Tensor(y, m) : f32[4][1]cpu ~y {forward}
)";
  CHECK_EQ(Tags(kBody), "m r  n r  p S  e S  q S  f r  z S");
  CHECK_EQ(Tags(kBody, Policy::kFull), "m R  n R  p R  e R  q R  f R  z S");
}

TEST_CASE("joint graphs of PyTorch: what backward alone reads, after it has begun, is backward") {
  const auto module = testing::ParseOrDie(R"(graph g foreign
  x = placeholder : f32[4, 4][4, 1]cpu
  w = placeholder : f32[4, 4][4, 1]cpu
  tangents_1 = placeholder : f32[4, 4][4, 1]cpu
  a = aten.sin.default(x) : f32[4, 4][4, 1]cpu {forward}
  b = aten.mm.default(a, w) : f32[4, 4][4, 1]cpu {forward}
  c = aten.exp.default(b) : f32[4, 4][4, 1]cpu {forward}
  d = aten.mul.Tensor(tangents_1, c) : f32[4, 4][4, 1]cpu {backward}
  e = aten.t.default(a) : f32[4, 4][1, 4]cpu {forward}
  f = aten.mm.default(e, d) : f32[4, 4][4, 1]cpu {backward}
  g = aten.t.default(w) : f32[4, 4][1, 4]cpu {forward}
  h = aten.detach.default(g) : f32[4, 4][1, 4]cpu {forward}
  k = aten.mm.default(d, h) : f32[4, 4][4, 1]cpu {backward}
  output([b, f, k])
)");
  OrDie(TagMemory({.policy = Policy::kFull}).Run(*module));
  CHECK_EQ(TagsOf(*module), "a R  b R  c R");
  OrDie(Recompute().Run(*module));
  CHECK_OK(Verify(*module));
  CHECK_EQ(testing::BodyOf(*module), R"(
  x = placeholder
  w = placeholder
  tangents_1 = placeholder
  a = aten.sin.default(x)
  b = aten.mm.default(a, w)
  a_recomputed = aten.sin.default(x)
  b_recomputed = aten.mm.default(a_recomputed, w)
  c_recomputed = aten.exp.default(b_recomputed)
  d = aten.mul.Tensor(tangents_1, c_recomputed)
  e = aten.t.default(a_recomputed)
  f = aten.mm.default(e, d)
  g = aten.t.default(w)
  h = aten.detach.default(g)
  k = aten.mm.default(d, h)
  output([b, f, k])
)");
}

TEST_CASE("layers and module patterns") {
  CHECK_EQ(LayerNumber("layers.12.attention"), 12);
  CHECK_EQ(LayerNumber("layers.0"), 0);
  CHECK_EQ(LayerNumber("layers"), kNotInLayers);
  CHECK_EQ(LayerNumber("layers.x"), kNotInLayers);
  CHECK_EQ(LayerNumber("encoder.layers.1"), kNotInLayers);
  CHECK(MatchesModule("layers.*", "layers.0"));
  CHECK_FALSE(MatchesModule("layers.*", "layers.0.moe"));
  CHECK(MatchesModule("layers.?.w*_a", "layers.3.wkv_a"));
  CHECK_FALSE(MatchesModule("layers.?.w*_a", "layers.13.wkv_a"));
  CHECK(MatchesModule("a*b*c", "axxbyybzc"));
  CHECK_FALSE(MatchesModule("Layers.0", "layers.0"));
}

}  // namespace
}  // namespace strata
