#include "passes/memory/recompute.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/fingerprint.h"
#include "ir/rewriter.h"
#include "ir/verify.h"
#include "passes/memory/tags.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::BodyOf;
using testing::MessageOf;
using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;

/// A graph after the pass. Checks that the reported change is true, and that the graph is valid.
std::unique_ptr<Module> Recomputed(std::string_view body) {
  auto module = ParseBody(body);
  const Graph& graph = *module->FindGraph("g");
  const Fingerprint before = FingerprintOf(graph, FingerprintScope::kEverything);
  const Changed changed = OrDie(Recompute().Run(*module));
  CHECK_EQ(changed == Changed::kYes, FingerprintOf(graph, FingerprintScope::kEverything) != before);
  CHECK_OK(Verify(*module));
  CHECK_EQ(OrDie(Recompute().Run(*module)), Changed::kNo);
  return module;
}

std::string RecomputedBody(std::string_view body) {
  return BodyOf(*Recomputed(body));
}

std::string RecomputeError(std::string_view body) {
  return MessageOf(Recompute().Run(*ParseBody(body)));
}

TEST_CASE("RM-1: a diamond is copied in forward order before its reader; unread nodes go") {
  CHECK_EQ(RecomputedBody(R"(
  i = placeholder : f32[4][1]cpu
  j = placeholder : f32[4][1]cpu
  t = placeholder : f32[4][1]cpu
  a = aten.clone.default(i) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  b = aten.clone.default(j) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  d = aten.clone.default(t) : f32[4][1]cpu {forward +recompute='PREFER_RECOMPUTE'}
  c = aten.add.Tensor(a, b) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  e = aten.add.Tensor(c, d) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  s = aten.sum.default(e) : f32[][]cpu {loss module=loss}
  g = aten.mul.Tensor(t, e) : f32[4][1]cpu {backward}
  h = aten.mul.Tensor(g, e) : f32[4][1]cpu {backward}
  output([s, h])
)"),
           R"(
  i = placeholder
  j = placeholder
  t = placeholder
  a = aten.clone.default(i)
  b = aten.clone.default(j)
  d = aten.clone.default(t)
  c = aten.add.Tensor(a, b)
  e = aten.add.Tensor(c, d)
  s = aten.sum.default(e)
  a_recomputed = aten.clone.default(i)
  b_recomputed = aten.clone.default(j)
  d_recomputed = aten.clone.default(t)
  c_recomputed = aten.add.Tensor(a_recomputed, b_recomputed)
  e_recomputed = aten.add.Tensor(c_recomputed, d_recomputed)
  g = aten.mul.Tensor(t, e_recomputed)
  h = aten.mul.Tensor(g, e_recomputed)
  output([s, h])
)");
  CHECK_EQ(RecomputedBody(R"(
  i = placeholder : f32[4][1]cpu
  t = placeholder : f32[4][1]cpu
  a = aten.clone.default(i) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  e = aten.relu.default(a) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  g = aten.mul.Tensor(t, e) : f32[4][1]cpu {backward}
  output([g])
)"),
           R"(
  i = placeholder
  t = placeholder
  a_recomputed = aten.clone.default(i)
  e_recomputed = aten.relu.default(a_recomputed)
  g = aten.mul.Tensor(t, e_recomputed)
  output([g])
)");
}

TEST_CASE("each copy goes before the first backward node that needs it") {
  CHECK_EQ(RecomputedBody(R"(
  i = placeholder : f32[4][1]cpu
  t = placeholder : f32[4][1]cpu
  a = aten.clone.default(i) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  b = aten.relu.default(a) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  c = aten.exp.default(b) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  g = aten.mul.Tensor(t, b) : f32[4][1]cpu {backward}
  h = aten.mul.Tensor(g, c) : f32[4][1]cpu {backward}
  k = aten.mul.Tensor(h, a) : f32[4][1]cpu {backward}
  output([k])
)"),
           R"(
  i = placeholder
  t = placeholder
  a_recomputed = aten.clone.default(i)
  b_recomputed = aten.relu.default(a_recomputed)
  g = aten.mul.Tensor(t, b_recomputed)
  c_recomputed = aten.exp.default(b_recomputed)
  h = aten.mul.Tensor(g, c_recomputed)
  k = aten.mul.Tensor(h, a_recomputed)
  output([k])
)");
}

constexpr std::string_view kOne = R"(
  i = placeholder : f32[4][1]cpu
  add_tensor = aten.add.Tensor(i, i) : f32[4][1]cpu {forward module=layers.0 seq=3 +recompute='MUST_RECOMPUTE' +tag='x'}
  g = aten.mul.Tensor(i, add_tensor) : f32[4][1]cpu {backward}
  output([g, add_tensor])
)";

TEST_CASE(
    "RM-2: direction comes from the phase; copies have the name, phase and origin of copies") {
  auto module = ParseBody(kOne);
  const Graph& graph = *module->FindGraph("g");
  const StableId original = graph.node(NodeNamed(graph, "add_tensor")).stable_id;
  module->TakeProvenance();
  OrDie(Recompute().Run(*module));
  const NodeId copy = NodeNamed(graph, "add_tensor_recomputed");
  CHECK_EQ(graph.node(copy).phase, Phase::kBackward);
  CHECK_EQ(graph.node(copy).seq_nr, 3);
  CHECK_EQ(ModuleOf(graph, copy), "layers.0");
  CHECK_EQ(graph.attribute(copy, "recomputed_from"), "add_tensor");
  REQUIRE_EQ(module->provenance().size(), 1);
  CHECK_EQ(module->provenance()[0].origin, Origin::kCloned);
  REQUIRE_EQ(module->provenance()[0].from.size(), 1);
  CHECK(module->provenance()[0].from[0] == original);
}

TEST_CASE("RM-3: the attributes of a copy are its own") {
  const auto module = Recomputed(kOne);
  Graph& graph = *module->FindGraph("g");
  Rewriter(graph).SetAttribute(NodeNamed(graph, "add_tensor_recomputed"), "tag", "y");
  CHECK_EQ(graph.attribute(NodeNamed(graph, "add_tensor"), "tag"), "x");
}

TEST_CASE("RM-4, RM-12: backward of the loss keeps originals") {
  CHECK_EQ(RecomputedBody(R"(
  i = placeholder : f32[4][1]cpu
  a = aten.sin.default(i) : f32[4][1]cpu {forward module=layers.0 +recompute='MUST_RECOMPUTE'}
  b = aten.cos.default(a) : f32[4][1]cpu {forward module=norm +recompute='MUST_RECOMPUTE'}
  l = aten.mul.Tensor(b, a) : f32[4][1]cpu {backward module=loss}
  g = aten.mul.Tensor(l, a) : f32[4][1]cpu {backward module=layers.0}
  output([g])
)"),
           R"(
  i = placeholder
  a = aten.sin.default(i)
  b = aten.cos.default(a)
  l = aten.mul.Tensor(b, a)
  a_recomputed = aten.sin.default(i)
  g = aten.mul.Tensor(l, a_recomputed)
  output([g])
)");
}

TEST_CASE("chunks of the loss, and casts of its gradients at the end, do not hide the region") {
  CHECK_EQ(RecomputedBody(R"(
  i = placeholder : f32[4][1]cpu
  a = aten.sin.default(i) : f32[4][1]cpu {forward module=layers.0 +recompute='MUST_RECOMPUTE'}
  l0 = aten.mul.Tensor(i, a) : f32[4][1]cpu {forward module=lm_head}
  g0 = aten.mul.Tensor(l0, a) : f32[4][1]cpu {backward module=lm_head}
  s0 = aten.mul.Tensor(g0, a) : f32[4][1]cpu {backward module=norm}
  l1 = aten.mul.Tensor(i, a) : f32[4][1]cpu {forward module=lm_head}
  g1 = aten.mul.Tensor(l1, a) : f32[4][1]cpu {backward module=loss}
  g = aten.mul.Tensor(g1, a) : f32[4][1]cpu {backward module=layers.0}
  c = aten._to_copy.default(g0) : f32[4][1]cpu {backward module=lm_head}
  output([g, s0, c])
)"),
           R"(
  i = placeholder
  a = aten.sin.default(i)
  l0 = aten.mul.Tensor(i, a)
  g0 = aten.mul.Tensor(l0, a)
  s0 = aten.mul.Tensor(g0, a)
  l1 = aten.mul.Tensor(i, a)
  g1 = aten.mul.Tensor(l1, a)
  a_recomputed = aten.sin.default(i)
  g = aten.mul.Tensor(g1, a_recomputed)
  c = aten._to_copy.default(g0)
  output([g, s0, c])
)");
}

TEST_CASE("RM-5: forward nodes must not separate regions that need copies") {
  constexpr std::string_view kTwo = R"(
  i = placeholder : f32[4][1]cpu
  a = aten.sin.default(i) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  b = aten.cos.default(i) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  g = aten.mul.Tensor(i, a) : f32[4][1]cpu {backward}
  f = aten.neg.default(i) : f32[4][1]cpu {forward}
  h = aten.mul.Tensor(f, b) : f32[4][1]cpu {backward}
  output([g, h])
)";
  CHECK_EQ(RecomputeError(kTwo),
           "2 disjoint backward regions require recomputation: graph g: forward nodes before h "
           "separate them, move these or tag less");
}

TEST_CASE("a region that reads nothing tagged may be apart") {
  CHECK_EQ(RecomputedBody(R"(
  i = placeholder : f32[4][1]cpu
  a = aten.sin.default(i) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  g = aten.mul.Tensor(i, a) : f32[4][1]cpu {backward}
  f = aten.neg.default(i) : f32[4][1]cpu {forward}
  h = aten.mul.Tensor(f, g) : f32[4][1]cpu {backward}
  output([h])
)"),
           R"(
  i = placeholder
  a_recomputed = aten.sin.default(i)
  g = aten.mul.Tensor(i, a_recomputed)
  f = aten.neg.default(i)
  h = aten.mul.Tensor(f, g)
  output([h])
)");
}

TEST_CASE("RM-6: forward readers and outputs keep the original") {
  CHECK_EQ(RecomputedBody(R"(
  i = placeholder : f32[4][1]cpu
  a = aten.sin.default(i) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  f = aten.cos.default(a) : f32[4][1]cpu {forward +recompute='MUST_SAVE'}
  g = aten.mul.Tensor(f, a) : f32[4][1]cpu {backward}
  output([g])
)"),
           R"(
  i = placeholder
  a = aten.sin.default(i)
  f = aten.cos.default(a)
  a_recomputed = aten.sin.default(i)
  g = aten.mul.Tensor(f, a_recomputed)
  output([g])
)");
}

TEST_CASE("RM-7: bodies are copied with the calls, tensors of the module are shared") {
  const std::string text = R"(graph g
  i = placeholder : f32[4][1]cpu
  body = attr body(graph(1))
  k = attr constant : f32[4][1]cpu
  a = higher_order.flex_attention(body, i, k) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  g = aten.mul.Tensor(i, a) : f32[4][1]cpu {backward}
  output([g, a])

graph body body
  x = placeholder : f32[4][1]cpu
  output([x])
)";
  const auto module = testing::ParseOrDie(text);
  OrDie(Recompute().Run(*module));
  CHECK_OK(Verify(*module));
  CHECK_EQ(BodyOf(*module), R"(
  i = placeholder
  body = attr body(graph(1))
  k = attr constant
  a = higher_order.flex_attention(body, i, k)
  body_1 = attr body(graph(1))
  a_recomputed = higher_order.flex_attention(body_1, i, k)
  g = aten.mul.Tensor(i, a_recomputed)
  output([g, a])
)");
}

/// `f` was offloaded before; `c` reads it and is computed again for `g`.
constexpr std::string_view kOffloaded = R"(
  i = placeholder : f32[4][1]cpu
  t = placeholder : f32[4][1]cpu
  f = aten.sin.default(i) : f32[4][1]cpu {{forward module=layers.0 +recompute='MUST_CPU_OFFLOAD'}}
  o = ao.offload.default(f) : f32[4][1]cpu {{forward module=layers.0}}
  c = aten.cos.default(f) : f32[4][1]cpu {{forward module=layers.0 +recompute='MUST_RECOMPUTE'}}
  s = aten.sum.default(c) : f32[][]cpu {{forward module=layers.0 +recompute='MUST_SAVE'}}
  w = ao.wait_tensor.default(o, f, s) : f32[4][1]cpu ~o {{forward module=layers.0}}
  e = aten.exp.default(s) : f32[][]cpu {{loss module=loss}}
{}  output([e, h])
)";

TEST_CASE("RM-8: what came back from the host is moved before a copy that reads it") {
  const auto module = Recomputed(fmt::format(kOffloaded, R"(
  g = aten.mul.Tensor(t, c) : f32[4][1]cpu {backward module=layers.0}
  l = ao.reload.default(w, device('cpu')) : f32[4][1]cpu {backward module=layers.0}
  b = ao.wait_tensor.default(l, w) : f32[4][1]cpu ~l {backward module=layers.0}
  h = aten.mul.Tensor(g, b) : f32[4][1]cpu {backward module=layers.0}
)"));
  CHECK_EQ(BodyOf(*module), R"(
  i = placeholder
  t = placeholder
  f = aten.sin.default(i)
  o = ao.offload.default(f)
  c = aten.cos.default(f)
  s = aten.sum.default(c)
  w = ao.wait_tensor.default(o, f, s)
  e = aten.exp.default(s)
  l = ao.reload.default(w, device('cpu'))
  b = ao.wait_tensor.default(l, w)
  c_recomputed = aten.cos.default(b)
  g = aten.mul.Tensor(t, c_recomputed)
  h = aten.mul.Tensor(g, b)
  output([e, h])
)");
}

TEST_CASE("RM-9: what came back earlier stays where it is") {
  CHECK_EQ(RecomputedBody(fmt::format(kOffloaded, R"(
  l = ao.reload.default(w, device('cpu')) : f32[4][1]cpu {backward module=layers.0}
  n = aten.neg.default(t) : f32[4][1]cpu {backward module=layers.0}
  b = ao.wait_tensor.default(l, w) : f32[4][1]cpu ~l {backward module=layers.0}
  g = aten.mul.Tensor(n, c) : f32[4][1]cpu {backward module=layers.0}
  h = aten.mul.Tensor(g, b) : f32[4][1]cpu {backward module=layers.0}
)")),
           R"(
  i = placeholder
  t = placeholder
  f = aten.sin.default(i)
  o = ao.offload.default(f)
  c = aten.cos.default(f)
  s = aten.sum.default(c)
  w = ao.wait_tensor.default(o, f, s)
  e = aten.exp.default(s)
  l = ao.reload.default(w, device('cpu'))
  n = aten.neg.default(t)
  b = ao.wait_tensor.default(l, w)
  c_recomputed = aten.cos.default(b)
  g = aten.mul.Tensor(n, c_recomputed)
  h = aten.mul.Tensor(g, b)
  output([e, h])
)");
}

TEST_CASE("RM-10: tagged random numbers are rejected") {
  CHECK_EQ(
      RecomputeError(R"(
  i = placeholder : f32[4][1]cpu
  (a, m) = aten.native_dropout.default(i, 0.5, True) as d : (f32[4][1]cpu, b8[4][1]cpu) {forward +recompute='MUST_RECOMPUTE'}
  g = aten.mul.Tensor(i, a) : f32[4][1]cpu {backward}
  output([g])
)"),
      "random numbers cannot be recomputed: graph g: node d (aten.native_dropout.default): tag "
      "it MUST_SAVE");
}

TEST_CASE("RM-11: a gather and its wait are copied as a pair, one for all readers") {
  CHECK_EQ(RecomputedBody(R"(
  p = placeholder : f32[4][1]cpu
  a = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp') : f32[8][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  w = _c10d_functional.wait_tensor.default(a) : f32[8][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  f = aten.sin.default(w) : f32[8][1]cpu {forward +recompute='MUST_SAVE'}
  g = aten.mul.Tensor(f, w) : f32[8][1]cpu {backward}
  h = aten.mul.Tensor(g, w) : f32[8][1]cpu {backward}
  output([h])
)"),
           R"(
  p = placeholder
  a = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp')
  w = _c10d_functional.wait_tensor.default(a)
  f = aten.sin.default(w)
  a_recomputed = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp')
  w_recomputed = _c10d_functional.wait_tensor.default(a_recomputed)
  g = aten.mul.Tensor(f, w_recomputed)
  h = aten.mul.Tensor(g, w_recomputed)
  output([h])
)");
}

TEST_CASE("copies of tuples name their elements; names that are taken get a number") {
  CHECK_EQ(RecomputedBody(R"(
  i = placeholder : f32[4][1]cpu
  a_recomputed = placeholder : f32[4][1]cpu
  (a, b) = aten.max.dim(i, 0) as m : (f32[4][1]cpu, i64[4][1]cpu) {forward +recompute='MUST_RECOMPUTE'}
  g = aten.mul.Tensor(a_recomputed, a) : f32[4][1]cpu {backward}
  h = aten.index.Tensor(g, [b]) : f32[4][1]cpu {backward}
  output([h])
)"),
           R"(
  i = placeholder
  a_recomputed = placeholder
  (a_recomputed_1, b_recomputed) = aten.max.dim(i, 0) as m_recomputed
  g = aten.mul.Tensor(a_recomputed, a_recomputed_1)
  h = aten.index.Tensor(g, [b_recomputed])
  output([h])
)");
}

TEST_CASE("writes are repeated on the copy, in the order of forward with the readers") {
  // `e` reads `m` before the write, `r` after it; backward needs `r` first.
  const auto module = Recomputed(R"(
  i = placeholder : f32[4][1]cpu
  m = aten.sin.default(i) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  e = aten.exp.default(m) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  n = aten.add_.Scalar(m, 1.0) : f32[4][1]cpu ~m {forward +recompute='MUST_RECOMPUTE'}
  r = aten.rsqrt.default(n) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  g = aten.mul.Tensor(i, r) : f32[4][1]cpu {backward}
  h = aten.mul.Tensor(g, e) : f32[4][1]cpu {backward}
  k = aten.mul.Tensor(h, m) : f32[4][1]cpu {backward}
  output([k])
)");
  CHECK_EQ(BodyOf(*module), R"(
  i = placeholder
  m_recomputed = aten.sin.default(i)
  e_recomputed = aten.exp.default(m_recomputed)
  n_recomputed = aten.add_.Scalar(m_recomputed, 1.0)
  r_recomputed = aten.rsqrt.default(n_recomputed)
  g = aten.mul.Tensor(i, r_recomputed)
  h = aten.mul.Tensor(g, e_recomputed)
  k = aten.mul.Tensor(h, m_recomputed)
  output([k])
)");
  const Graph& graph = *module->FindGraph("g");
  CHECK_EQ(graph.value(testing::ValueNamed(graph, "n_recomputed")).alias_of,
           testing::ValueNamed(graph, "m_recomputed"));
}

TEST_CASE("a reader of written memory brings the writes along, though it reads another name") {
  CHECK_EQ(RecomputedBody(R"(
  i = placeholder : f32[4][1]cpu
  m = aten.sin.default(i) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  n = aten.add_.Scalar(m, 1.0) : f32[4][1]cpu ~m {forward +recompute='MUST_RECOMPUTE'}
  g = aten.mul.Tensor(i, m) : f32[4][1]cpu {backward}
  output([g])
)"),
           R"(
  i = placeholder
  m_recomputed = aten.sin.default(i)
  n_recomputed = aten.add_.Scalar(m_recomputed, 1.0)
  g = aten.mul.Tensor(i, m_recomputed)
  output([g])
)");
}

TEST_CASE("a write stays while something reads the memory after it") {
  CHECK_EQ(RecomputedBody(R"(
  i = placeholder : f32[4][1]cpu
  m = aten.sin.default(i) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  n = aten.add_.Scalar(m, 1.0) : f32[4][1]cpu ~m {forward +recompute='MUST_RECOMPUTE'}
  f = aten.exp.default(m) : f32[4][1]cpu {forward +recompute='MUST_SAVE'}
  g = aten.mul.Tensor(f, n) : f32[4][1]cpu {backward}
  output([g])
)"),
           R"(
  i = placeholder
  m = aten.sin.default(i)
  n = aten.add_.Scalar(m, 1.0)
  f = aten.exp.default(m)
  m_recomputed = aten.sin.default(i)
  n_recomputed = aten.add_.Scalar(m_recomputed, 1.0)
  g = aten.mul.Tensor(f, n_recomputed)
  output([g])
)");
}

TEST_CASE("tagged nodes whose operands are written later, or twice, are rejected") {
  constexpr std::string_view kSuffix = ": tag it MUST_SAVE";
  const std::string prefix =
      "memory is written after or beside what shall be recomputed: graph g: node ";
  CHECK_EQ(RecomputeError(R"(
  i = placeholder : f32[4][1]cpu
  m = aten.sin.default(i) : f32[4][1]cpu {forward +recompute='MUST_SAVE'}
  e = aten.exp.default(m) : f32[4][1]cpu {forward +recompute='MUST_RECOMPUTE'}
  n = aten.add_.Scalar(m, 1.0) : f32[4][1]cpu ~m {forward +recompute='MUST_SAVE'}
  g = aten.mul.Tensor(n, e) : f32[4][1]cpu {backward}
  output([g])
)"),
           prefix + "e (aten.exp.default)" + std::string(kSuffix));
  CHECK_EQ(RecomputeError(R"(
  i = placeholder : f32[4][1]cpu
  m = aten.sin.default(i) : f32[4][1]cpu {forward +recompute='MUST_SAVE'}
  n = aten.add_.Scalar(m, 1.0) : f32[4][1]cpu ~m {forward +recompute='MUST_RECOMPUTE'}
  g = aten.mul.Tensor(i, n) : f32[4][1]cpu {backward}
  output([g])
)"),
           prefix + "n (aten.add_.Scalar)" + std::string(kSuffix));
}

TEST_CASE("views of copies share the memory of copies, views of kept values that of these") {
  const auto module = Recomputed(R"(
  i = placeholder : f32[4, 2][2, 1]cpu
  m = aten.sin.default(i) : f32[4, 2][2, 1]cpu {forward +recompute='MUST_RECOMPUTE'}
  t = aten.t.default(m) : f32[2, 4][1, 2]cpu ~m {forward +recompute='MUST_RECOMPUTE'}
  u = aten.t.default(i) : f32[2, 4][1, 2]cpu ~i {forward +recompute='MUST_RECOMPUTE'}
  v = aten.t.default(t) : f32[4, 2][2, 1]cpu ~m {backward}
  g = aten.mul.Tensor(i, v) : f32[4, 2][2, 1]cpu {backward}
  h = aten.mm.default(g, u) : f32[4, 4][4, 1]cpu {backward}
  output([h])
)");
  const Graph& graph = *module->FindGraph("g");
  const auto owner_of = [&](std::string_view name) {
    return std::string(graph.value_name(graph.value(testing::ValueNamed(graph, name)).alias_of));
  };
  CHECK_EQ(owner_of("t_recomputed"), "m_recomputed");
  CHECK_EQ(owner_of("u_recomputed"), "i");
  CHECK_EQ(owner_of("v"), "m_recomputed");
}

}  // namespace
}  // namespace strata
