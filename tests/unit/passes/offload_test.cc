#include "passes/memory/offload.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "ir/fingerprint.h"
#include "ir/verify.h"
#include "passes/memory/offloadable.h"
#include "passes/memory/tag_offload.h"
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
using testing::ValueNamed;

/// Names of the nodes with the tag, joined by blanks.
std::string Tagged(std::string_view body, double budget_gb = 0) {
  const auto module = ParseBody(body);
  const Graph& graph = *module->FindGraph("g");
  const Fingerprint before = FingerprintOf(graph, FingerprintScope::kEverything);
  const Changed changed = OrDie(TagOffload({.budget_gb = budget_gb}).Run(*module));
  CHECK_EQ(changed == Changed::kYes, FingerprintOf(graph, FingerprintScope::kEverything) != before);
  CHECK_OK(Verify(*module));
  std::string names;
  for (const NodeId node : graph.nodes()) {
    if (MemoryTagOf(graph, node) == MemoryTag::kMustCpuOffload)
      names += (names.empty() ? "" : " ") + std::string(graph.name(node));
  }
  return names;
}

std::unique_ptr<Module> Offloaded(std::string_view body, Offload::Options options = {}) {
  auto module = ParseBody(body);
  const Graph& graph = *module->FindGraph("g");
  const Fingerprint before = FingerprintOf(graph, FingerprintScope::kEverything);
  const Changed changed = OrDie(Offload(options).Run(*module));
  CHECK_EQ(changed == Changed::kYes, FingerprintOf(graph, FingerprintScope::kEverything) != before);
  CHECK_OK(Verify(*module));
  CHECK_EQ(OrDie(Offload(options).Run(*module)), Changed::kNo);
  int offloads = 0, reloads = 0, waits = 0;
  for (const NodeId node : graph.nodes()) {
    offloads += graph.op(node) == kOffloadOp ? 1 : 0;
    reloads += graph.op(node) == kReloadOp ? 1 : 0;
    waits += graph.op(node) == kTransferWaitOp ? 1 : 0;
  }
  CHECK_EQ(waits, offloads + reloads);
  CHECK_EQ(offloads, reloads);
  return module;
}

std::string OffloadedBody(std::string_view body, Offload::Options options = {}) {
  return BodyOf(*Offloaded(body, options));
}

constexpr std::string_view kOffloadedLayers = R"(
  x = placeholder : f32[64, 64][64, 1]cpu
  t = placeholder : f32[64, 64][64, 1]cpu
  a = aten.mm.default(x, x) : f32[64, 64][64, 1]cpu {forward module=layers.0 +recompute='MUST_SAVE'}
  b = aten.mm.default(a, x) : f32[64, 64][64, 1]cpu {forward module=layers.1 +recompute='MUST_SAVE'}
  c = aten.mm.default(b, x) : f32[64, 64][64, 1]cpu {forward module=layers.2 +recompute='MUST_SAVE'}
  g2 = aten.mul.Tensor(t, c) : f32[64, 64][64, 1]cpu {backward module=layers.2}
  g1 = aten.mul.Tensor(g2, b) : f32[64, 64][64, 1]cpu {backward module=layers.1}
  g0 = aten.mul.Tensor(g1, a) : f32[64, 64][64, 1]cpu {backward module=layers.0}
  output([g0])
)";

TEST_CASE("OF-1: all layers but the last are offloaded, a single layer is") {
  CHECK_EQ(Tagged(kOffloadedLayers), "a b");
  CHECK_EQ(Tagged(R"(
  x = placeholder : f32[64, 64][64, 1]cpu
  a = aten.mm.default(x, x) : f32[64, 64][64, 1]cpu {forward module=layers.0 +recompute='MUST_SAVE'}
  g = aten.mul.Tensor(x, a) : f32[64, 64][64, 1]cpu {backward module=layers.0}
  output([g])
)"),
           "a");
}

TEST_CASE("OF-2: an integer stays where it is") {
  CHECK_EQ(Tagged(R"(
  x = placeholder : f32[64, 64][64, 1]cpu
  a = aten.mm.default(x, x) : f32[64, 64][64, 1]cpu {forward module=layers.0 +recompute='MUST_SAVE'}
  s = aten.sym_size.int(a, 0) : Sym(64) {forward module=layers.0 +recompute='MUST_SAVE'}
  g = aten.view.default(a, [s, 64]) : f32[64, 64][64, 1]cpu {backward module=layers.0}
  h = aten.neg.default(g) : f32[64, 64][64, 1]cpu {backward module=layers.0}
  output([h])
)"),
           "a");
}

TEST_CASE("OF-3: what backward does not read is not offloaded; without tags nothing changes") {
  constexpr std::string_view kUnread = R"(
  x = placeholder : f32[64, 64][64, 1]cpu
  a = aten.mm.default(x, x) : f32[64, 64][64, 1]cpu {forward module=layers.0 +recompute='MUST_SAVE'}
  s = aten.sum.default(a) : f32[][]cpu {loss module=loss}
  g = aten.mul.Tensor(x, s) : f32[64, 64][64, 1]cpu {backward module=layers.0}
  output([g])
)";
  CHECK_EQ(Tagged(kUnread), "");
  const std::string before = BodyOf(*ParseBody(kOffloadedLayers));
  CHECK_EQ(OffloadedBody(kOffloadedLayers), before);
}

constexpr std::string_view kTwoOffloads = R"(
  x = placeholder : f32[64, 64][64, 1]cpu
  t = placeholder : f32[64, 64][64, 1]cpu
  a = aten.mm.default(x, x) : f32[64, 64][64, 1]cpu {forward module=layers.0 +recompute='MUST_CPU_OFFLOAD'}
  r = aten.relu.default(a) : f32[64, 64][64, 1]cpu {forward module=layers.0}
  b = aten.mm.default(r, x) : f32[64, 64][64, 1]cpu {forward module=layers.1}
  c = aten.mm.default(b, x) : f32[64, 64][64, 1]cpu {forward module=layers.2}
  g2 = aten.mul.Tensor(t, c) : f32[64, 64][64, 1]cpu {backward module=layers.2}
  g1 = aten.neg.default(g2) : f32[64, 64][64, 1]cpu {backward module=layers.1}
  g0 = aten.mul.Tensor(g1, a) : f32[64, 64][64, 1]cpu {backward module=layers.0}
  output([g0])
)";

TEST_CASE("OF-4: copies are awaited a layer later and start a layer earlier") {
  CHECK_EQ(OffloadedBody(kTwoOffloads), R"(
  x = placeholder
  t = placeholder
  a = aten.mm.default(x, x)
  a_offload = ao.offload.default(a)
  r = aten.relu.default(a)
  b = aten.mm.default(r, x)
  a_offloaded = ao.wait_tensor.default(a_offload, a, r)
  c = aten.mm.default(b, x)
  g2 = aten.mul.Tensor(t, c)
  a_reload = ao.reload.default(a_offloaded, device('cpu'))
  g1 = aten.neg.default(g2)
  a_reloaded = ao.wait_tensor.default(a_reload, a_offloaded)
  g0 = aten.mul.Tensor(g1, a_reloaded)
  output([g0])
)");
  const auto module = Offloaded(kTwoOffloads);
  const Graph& graph = *module->FindGraph("g");
  CHECK(graph.node(NodeNamed(graph, "a_reload")).phase == Phase::kBackward);
  CHECK(graph.node(NodeNamed(graph, "a_reloaded")).phase == Phase::kBackward);
  CHECK_EQ(ModuleOf(graph, NodeNamed(graph, "a_reload")), "layers.0");
  CHECK(graph.value(ValueNamed(graph, "a_reloaded")).alias_of == ValueNamed(graph, "a_reload"));
  CHECK_EQ(graph.node(NodeNamed(graph, "a_reload")).stream, 0);
}

TEST_CASE("OF-5: views and small tensors are not tagged") {
  CHECK_EQ(Tagged(R"(
  x = placeholder : f32[64, 64][64, 1]cpu
  y = placeholder : f32[8, 8][8, 1]cpu
  a = aten.view.default(x, [4096]) : f32[4096][1]cpu ~ x {forward module=layers.0 +recompute='MUST_SAVE'}
  b = aten.mm.default(y, y) : f32[8, 8][8, 1]cpu {forward module=layers.0 +recompute='MUST_SAVE'}
  g = aten.neg.default(a) : f32[4096][1]cpu {backward module=layers.0}
  h = aten.neg.default(b) : f32[8, 8][8, 1]cpu {backward module=layers.0}
  output([g, h])
)"),
           "");
}

TEST_CASE("OF-6: a longer lookahead starts a copy back earlier") {
  const auto place = [](int64_t prefetch) {
    const auto module = Offloaded(kTwoOffloads, {.prefetch = prefetch});
    const Graph& graph = *module->FindGraph("g");
    const std::vector<int32_t> order = OrderOf(graph);
    const auto at = [&](std::string_view name) {
      return order[static_cast<size_t>(NodeNamed(graph, name).index)];
    };
    CHECK_LT(at("a_reload"), at("a_reloaded"));
    return at("a_reload");
  };
  CHECK_LT(place(1), place(0));
  CHECK_LT(place(2), place(1));
  CHECK_EQ(place(3), place(2));  // no earlier than backward
}

TEST_CASE("OF-7: the wait follows all forward readers, however short the delay") {
  for (const int64_t defer : {0, 1, 2}) {
    const auto module = Offloaded(kTwoOffloads, {.defer = defer});
    const Graph& graph = *module->FindGraph("g");
    const std::vector<int32_t> order = OrderOf(graph);
    for (const Use use : graph.uses(ValueNamed(graph, "a"))) {
      if (IsTransfer(graph, use.user)) continue;
      CHECK_LT(order[static_cast<size_t>(use.user.index)],
               order[static_cast<size_t>(NodeNamed(graph, "a_offloaded").index)]);
    }
  }
}

TEST_CASE("OF-8 OF-12: backward reads clones of views of what comes back") {
  CHECK_EQ(OffloadedBody(R"(
  x = placeholder : f32[64, 64][64, 1]cpu
  a = aten.mm.default(x, x) : f32[64, 64][64, 1]cpu {forward module=layers.0 +recompute='MUST_CPU_OFFLOAD'}
  v = aten.view.default(a, [4096]) : f32[4096][1]cpu ~ a {forward module=layers.0 +recompute='MUST_SAVE'}
  w = aten.t.default(a) : f32[64, 64][1, 64]cpu ~ a {forward module=layers.0}
  u = aten.view.default(a, [1, 4096]) : f32[1, 4096][4096, 1]cpu ~ a {forward module=layers.0}
  r = aten.relu.default(u) : f32[1, 4096][4096, 1]cpu {forward module=layers.0}
  d = aten.neg.default(r) : f32[1, 4096][4096, 1]cpu {backward module=layers.0}
  g = aten.mul.Tensor(v, w) : f32[64, 64][64, 1]cpu {backward module=layers.0}
  output([g, d])
)"),
           R"(
  x = placeholder
  a = aten.mm.default(x, x)
  a_offload = ao.offload.default(a)
  v = aten.view.default(a, [4096])
  w = aten.t.default(a)
  u = aten.view.default(a, [1, 4096])
  r = aten.relu.default(u)
  a_offloaded = ao.wait_tensor.default(a_offload, a, r)
  a_reload = ao.reload.default(a_offloaded, device('cpu'))
  d = aten.neg.default(r)
  a_reloaded = ao.wait_tensor.default(a_reload, a_offloaded)
  v_reloaded = aten.view.default(a_reloaded, [4096])
  w_reloaded = aten.t.default(a_reloaded)
  g = aten.mul.Tensor(v_reloaded, w_reloaded)
  output([g, d])
)");
}

TEST_CASE("OF-9 OF-10: the wait names the last forward reader, through views") {
  const auto module = Offloaded(R"(
  x = placeholder : f32[64, 64][64, 1]cpu
  a = aten.mm.default(x, x) : f32[64, 64][64, 1]cpu {forward module=layers.0 +recompute='MUST_CPU_OFFLOAD'}
  v = aten.view.default(a, [4096]) : f32[4096][1]cpu ~ a {forward module=layers.0}
  m = aten.mm.default(a, x) : f32[64, 64][64, 1]cpu {forward module=layers.0}
  r = aten.relu.default(v) : f32[4096][1]cpu {forward module=layers.1}
  g = aten.mul.Tensor(x, a) : f32[64, 64][64, 1]cpu {backward module=layers.0}
  output([g, m, r])
)");
  const Graph& graph = *module->FindGraph("g");
  const NodeId wait = NodeNamed(graph, "a_offloaded");
  REQUIRE_EQ(graph.args(wait).size(), 3);
  CHECK(graph.args(wait)[2].value() == ValueNamed(graph, "r"));
}

TEST_CASE("OF-11: the wait names a tensor of a last reader that returns several results") {
  const auto module = Offloaded(R"(
  x = placeholder : f32[64, 64][64, 1]cpu
  a = aten.mm.default(x, x) : f32[64, 64][64, 1]cpu {forward module=layers.0 +recompute='MUST_CPU_OFFLOAD'}
  (s, i) = aten.sort.default(a) as sort : (f32[64, 64][64, 1]cpu, i64[64, 64][64, 1]cpu) {forward module=layers.0}
  g = aten.mul.Tensor(x, a) : f32[64, 64][64, 1]cpu {backward module=layers.0}
  output([g, s, i])
)");
  const Graph& graph = *module->FindGraph("g");
  const NodeId wait = NodeNamed(graph, "a_offloaded");
  REQUIRE_EQ(graph.args(wait).size(), 3);
  CHECK_EQ(graph.op(graph.value(graph.args(wait)[2].value()).def), "aten.sort.default");
}

TEST_CASE("OF-13: the largest that fit into the budget are tagged; budget 0 is none") {
  constexpr std::string_view kSizes = R"(
  x = placeholder : f32[6, 1024][1024, 1]cpu
  y = placeholder : f32[5, 1024][1024, 1]cpu
  z = placeholder : f32[4, 1024][1024, 1]cpu
  a = aten.neg.default(z) : f32[4, 1024][1024, 1]cpu {forward module=layers.0 +recompute='MUST_SAVE'}
  b = aten.neg.default(y) : f32[5, 1024][1024, 1]cpu {forward module=layers.0 +recompute='MUST_SAVE'}
  c = aten.neg.default(x) : f32[6, 1024][1024, 1]cpu {forward module=layers.0 +recompute='MUST_SAVE'}
  ga = aten.neg.default(a) : f32[4, 1024][1024, 1]cpu {backward module=layers.0}
  gb = aten.neg.default(b) : f32[5, 1024][1024, 1]cpu {backward module=layers.0}
  gc = aten.neg.default(c) : f32[6, 1024][1024, 1]cpu {backward module=layers.0}
  output([ga, gb, gc])
)";
  CHECK_EQ(Tagged(kSizes, 10.0 * 4096 / (1 << 30)), "a c");
  CHECK_EQ(Tagged(kSizes, 0), "a b c");
}

TEST_CASE("OF-14: a tag on a view is an error") {
  CHECK_EQ(MessageOf(Offload().Run(*ParseBody(R"(
  x = placeholder : f32[64, 64][64, 1]cpu
  a = aten.view.default(x, [4096]) : f32[4096][1]cpu ~ x {forward module=layers.0 +recompute='MUST_CPU_OFFLOAD'}
  g = aten.neg.default(a) : f32[4096][1]cpu {backward module=layers.0}
  output([g])
)"))),
           "a view cannot be offloaded: graph g: node a (aten.view.default): tag what it views");
}

TEST_CASE("memory that is written later, and outputs, stay where they are") {
  CHECK_EQ(Tagged(R"(
  x = placeholder : f32[64, 64][64, 1]cpu
  a = aten.mm.default(x, x) : f32[64, 64][64, 1]cpu {forward module=layers.0 +recompute='MUST_SAVE'}
  b = aten.mm.default(x, x) : f32[64, 64][64, 1]cpu {forward module=layers.0 +recompute='MUST_SAVE'}
  i = aten.relu_.default(a) : f32[64, 64][64, 1]cpu ~ a {forward module=layers.0}
  g = aten.mul.Tensor(i, b) : f32[64, 64][64, 1]cpu {backward module=layers.0}
  output([g, b])
)"),
           "");
}

TEST_CASE("results of a GPU are copied on a stream of their own") {
  std::string body(kTwoOffloads);
  for (size_t at = 0; (at = body.find("cpu\n", at)) != std::string::npos; at += 4)
    body.replace(at, 3, "cuda:0");
  for (size_t at = 0; (at = body.find("]cpu {", at)) != std::string::npos; at += 4)
    body.replace(at + 1, 3, "cuda:0");
  const auto module = Offloaded(body);
  const Graph& graph = *module->FindGraph("g");
  const auto type = [&](std::string_view name) {
    return module->types().ToString(graph.value(ValueNamed(graph, name)).type);
  };
  CHECK_EQ(type("a_offloaded"), "f32[64, 64][64, 1]cpu");
  CHECK_EQ(type("a_reloaded"), "f32[64, 64][64, 1]cuda:0");
  for (const char* copy : {"a_offload", "a_reload"})
    CHECK_EQ(graph.node(NodeNamed(graph, copy)).stream, Offload::kTransferStream);
  for (const char* wait : {"a_offloaded", "a_reloaded"})
    CHECK_EQ(graph.node(NodeNamed(graph, wait)).stream, 0);
}

}  // namespace
}  // namespace strata
