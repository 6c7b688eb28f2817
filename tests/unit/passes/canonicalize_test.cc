#include "passes/cleanup/canonicalize.h"

#include <doctest/doctest.h>

#include "ir/fingerprint.h"
#include "ir/text/native_text.h"
#include "ir/verify.h"
#include "tests/support/graphs.h"
#include "tests/support/mini_eval.h"

namespace strata {
namespace {

using testing::BodyOf;
using testing::Evaluate;
using testing::OrDie;
using testing::ParseBody;

/// Runs `P`. The graph must be valid, the reported change correct, and a second run must change
/// nothing.
template <class P = Canonicalize>
Changed Run(Module& module) {
  const Graph& graph = *module.FindGraph("g");
  const auto fingerprint = [&] { return FingerprintOf(graph, FingerprintScope::kEverything); };
  const Fingerprint before = fingerprint();
  const Changed changed = OrDie(P().Run(module));
  const Status sound = Verify(module);
  CHECK_MESSAGE(sound.has_value(), (sound ? "" : sound.error().message()));
  CHECK_EQ(changed == Changed::kYes, fingerprint() != before);
  CHECK(OrDie(P().Run(module)) == Changed::kNo);
  return changed;
}

/// As `Run`; outputs and written inputs must stay bitwise equal.
template <class P = Canonicalize>
Changed RunSameValues(Module& module) {
  const Graph& graph = *module.FindGraph("g");
  const auto before = OrDie(Evaluate(graph));
  const Changed changed = Run<P>(module);
  CHECK(OrDie(Evaluate(graph)) == before);
  return changed;
}

TEST_CASE("CA-1: relu, detach, neg: the detach is removed") {
  auto module = ParseBody(R"(
  x = placeholder : f32[4]
  relu = aten.relu.default(x)
  detach = aten.detach.default(relu)
  neg = aten.neg.default(detach)
  output(neg)
)");
  CHECK(RunSameValues<RemoveDetach>(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  relu = aten.relu.default(x)
  neg = aten.neg.default(relu)
  output(neg)
)");
}

TEST_CASE("CA-2: without a detach nothing changes") {
  auto module = ParseBody(R"(
  x = placeholder : f32[4]
  relu = aten.relu.default(x)
  copy = aten.detach_copy.default(relu)
  alias = aten.alias.default(copy)
  output(alias)
)");
  CHECK(Run<RemoveDetach>(*module) == Changed::kNo);
  CHECK_EQ(module->FindGraph("g")->num_nodes(), 5);
}

TEST_CASE("CA-3: both users of a detach read its input") {
  auto module = ParseBody(R"(
  x = placeholder : f32[4]
  detach = aten.detach.default(x)
  relu = aten.relu.default(detach)
  neg = aten.neg.default(detach)
  output([relu, neg])
)");
  CHECK(RunSameValues<RemoveDetach>(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  relu = aten.relu.default(x)
  neg = aten.neg.default(x)
  output([relu, neg])
)");
}

TEST_CASE("CA-4: view, reshape and _unsafe_view to the same shape are removed") {
  for (const char* op :
       {"aten.view.default", "aten.reshape.default", "aten._unsafe_view.default"}) {
    auto module = ParseBody(fmt::format(R"(
  x = placeholder : f32[2, 3]
  v = {}(x, [2, 3]) : f32[2, 3]
  relu = aten.relu.default(v)
  output(relu)
)",
                                        op));
    CHECK(RunSameValues<RemoveIdentityViews>(*module) == Changed::kYes);
    CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  relu = aten.relu.default(x)
  output(relu)
)");
  }
}

TEST_CASE("CA-4: a chain of three identity views is removed in one sweep") {
  auto module = ParseBody(R"(
  x = placeholder : f32[2, 3]
  a = aten.view.default(x, [2, 3]) : f32[2, 3]
  b = aten.reshape.default(a, [2, 3]) : f32[2, 3]
  c = aten._unsafe_view.default(b, [2, 3]) : f32[2, 3]
  relu = aten.relu.default(c)
  output(relu)
)");
  CHECK(RunSameValues<RemoveIdentityViews>(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  relu = aten.relu.default(x)
  output(relu)
)");
}

TEST_CASE("CA-4: both users of an identity view read the placeholder") {
  auto module = ParseBody(R"(
  x = placeholder : f32[2, 3]
  v = aten.view.default(x, [2, 3]) : f32[2, 3]
  relu = aten.relu.default(v)
  neg = aten.neg.default(v)
  output([relu, neg])
)");
  CHECK(RunSameValues<RemoveIdentityViews>(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  relu = aten.relu.default(x)
  neg = aten.neg.default(x)
  output([relu, neg])
)");
}

TEST_CASE("CA-5: a view to another shape stays") {
  auto module = ParseBody(R"(
  x = placeholder : f32[4, 4]
  v = aten.view.default(x, [2, 8]) : f32[2, 8]
  w = aten.view.default(v, [2, 8, 1]) : f32[2, 8, 1]
  output(w)
)");
  CHECK(RunSameValues<RemoveIdentityViews>(*module) == Changed::kNo);
}

TEST_CASE("CA-6: a view of an unknown type stays") {
  auto module = ParseBody(R"(
  x = placeholder
  v = aten.view.default(x, [2, 8])
  n = placeholder : Sym(s0)
  w = aten.view.default(n, [2, 8])
  y = placeholder : f32[2, 8]
  u = aten.view.default(y, [2, 8])
  z = aten.view.default(v, [2, 8]) : f32[2, 8]
  output([v, w, u, z])
)");
  CHECK(Run<RemoveIdentityViews>(*module) == Changed::kNo);
}

TEST_CASE("CA-7: a graph without views does not change") {
  auto module = ParseBody(R"(
  x = placeholder : f32[4]
  relu = aten.relu.default(x) : f32[4]
  output(relu)
)");
  CHECK(RunSameValues(*module) == Changed::kNo);
}

TEST_CASE("CA-8: t of t is removed, relu reads the placeholder") {
  auto module = ParseBody(R"(
  x = placeholder : f32[2, 3]
  a = aten.t.default(x)
  b = aten.t.default(a)
  relu = aten.relu.default(b)
  output(relu)
)");
  CHECK(RunSameValues<RemoveDoubleTransposes>(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  relu = aten.relu.default(x)
  output(relu)
)");
}

TEST_CASE("CA-9: a single t stays") {
  auto module = ParseBody(R"(
  x = placeholder : f32[2, 3]
  a = aten.t.default(x)
  b = aten.transpose.int(a, 0, 1)
  output(b)
)");
  CHECK(RunSameValues<RemoveDoubleTransposes>(*module) == Changed::kNo);
}

TEST_CASE("CA-10: the inner t stays for its other user") {
  auto module = ParseBody(R"(
  x = placeholder : f32[2, 3]
  a = aten.t.default(x)
  neg = aten.neg.default(a)
  b = aten.t.default(a)
  relu = aten.relu.default(b)
  output([neg, relu])
)");
  CHECK(RunSameValues<RemoveDoubleTransposes>(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  a = aten.t.default(x)
  neg = aten.neg.default(a)
  relu = aten.relu.default(x)
  output([neg, relu])
)");
}

TEST_CASE("CA-11: t of t of t becomes one t") {
  auto module = ParseBody(R"(
  x = placeholder : f32[2, 3]
  a = aten.t.default(x)
  b = aten.t.default(a)
  c = aten.t.default(b)
  output(c)
)");
  CHECK(RunSameValues<RemoveDoubleTransposes>(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  c = aten.t.default(x)
  output(c)
)");
}

TEST_CASE("CA-12: a slice of a whole dimension is removed") {
  for (const char* bounds : {"0, 0, 4", "0, 0, 9223372036854775807, 1", "2, 0, 8", "-1, 0, 8", "1",
                             "1, None, None", "1, 0, None, 1", "1, 0, 7"}) {
    auto module = ParseBody(fmt::format(R"(
  x = placeholder : f32[4, 6, 8]
  s = aten.slice.Tensor(x, {})
  relu = aten.relu.default(s)
  output(relu)
)",
                                        bounds));
    CHECK_MESSAGE(RunSameValues<RemoveIdentitySlices>(*module) == Changed::kYes, bounds);
    CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  relu = aten.relu.default(x)
  output(relu)
)");
  }
}

TEST_CASE("CA-12: bounds may be keywords or omitted") {
  for (const char* bounds : {"", ", end=4", ", dim=2, start=0, end=8, step=1"}) {
    auto module = ParseBody(fmt::format(R"(
  x = placeholder : f32[4, 6, 8]
  s = aten.slice.Tensor(x{})
  output(s)
)",
                                        bounds));
    CHECK_MESSAGE(Run<RemoveIdentitySlices>(*module) == Changed::kYes, bounds);
  }
}

TEST_CASE("CA-13: a slice that drops elements stays") {
  for (const char* bounds : {"0, 2, 8", "0, 0, 4", "0, 0, 8, 2", "0, 0, -1", "0, -8, 8"}) {
    auto module = ParseBody(fmt::format(R"(
  x = placeholder : f32[8, 8]
  s = aten.slice.Tensor(x, {})
  output(s)
)",
                                        bounds));
    CHECK_MESSAGE(RunSameValues<RemoveIdentitySlices>(*module) == Changed::kNo, bounds);
  }
}

TEST_CASE("CA-14: a slice of an unknown type stays") {
  auto module = ParseBody(R"(
  x = placeholder
  s = aten.slice.Tensor(x, 0, 0, 9223372036854775807)
  output(s)
)");
  CHECK(Run<RemoveIdentitySlices>(*module) == Changed::kNo);
}

TEST_CASE("CA-14: a slice of a missing dimension stays") {
  for (const char* dim : {"1", "-2"}) {
    auto module = ParseBody(fmt::format(R"(
  x = placeholder : f32[8]
  s = aten.slice.Tensor(x, {}, 0, 8)
  output(s)
)",
                                        dim));
    CHECK(Run<RemoveIdentitySlices>(*module) == Changed::kNo);
  }
}

TEST_CASE("CA-15: two chained identity slices are removed") {
  auto module = ParseBody(R"(
  x = placeholder : f32[4, 6]
  a = aten.slice.Tensor(x, 0, 0, 9223372036854775807) : f32[4, 6]
  b = aten.slice.Tensor(a, 1, 0, 6) : f32[4, 6]
  relu = aten.relu.default(b)
  output(relu)
)");
  CHECK(RunSameValues<RemoveIdentitySlices>(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  relu = aten.relu.default(x)
  output(relu)
)");
}

TEST_CASE("CA-16: a slice with a computed start, end or step stays") {
  for (const char* bounds : {"0, n, 8", "0, 0, n", "0, 0, 8, n"}) {
    auto module = ParseBody(fmt::format(R"(
  x = placeholder : f32[8]
  n = placeholder : Sym(s0)
  s = aten.slice.Tensor(x, {})
  output(s)
)",
                                        bounds));
    CHECK_MESSAGE(Run<RemoveIdentitySlices>(*module) == Changed::kNo, bounds);
  }
}

TEST_CASE("CA-17: _unsafe_view of view is removed entirely") {
  auto module = ParseBody(R"(
  x = placeholder : f32[4, 4]
  a = aten.view.default(x, [2, 8]) : f32[2, 8]
  b = aten._unsafe_view.default(a, [16]) : f32[16]
  c = aten.view.dtype(b, torch.int32)
  output([b, c])
)");
  CHECK(Run<NormalizeViews>(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  a = aten.reshape.default(x, [2, 8])
  b = aten.reshape.default(a, [16])
  c = aten.view.dtype(b, torch.int32)
  output([b, c])
)");
}

TEST_CASE("CA-18: of detach, t, t and view only a reshape remains") {
  auto module = ParseBody(R"(
  x = placeholder : f32[4, 4]
  detach = aten.detach.default(x) : f32[4, 4]
  a = aten.t.default(detach) : f32[4, 4]
  b = aten.t.default(a) : f32[4, 4]
  v = aten.view.default(b, [2, 8]) : f32[2, 8]
  output(v)
)");
  CHECK(RunSameValues(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  v = aten.reshape.default(x, [2, 8])
  output(v)
)");
}

TEST_CASE("CA-18: the example of the catalogue") {
  auto module = ParseBody(R"(
  w = placeholder : f32[8, 4]
  x = placeholder : f32[2, 3, 8]
  d = aten.detach.default(w) : f32[8, 4]
  t1 = aten.t.default(d) : f32[4, 8]
  t2 = aten.t.default(t1) : f32[8, 4]
  v0 = aten.view.default(x, [2, 3, 8]) : f32[2, 3, 8]
  v1 = aten._unsafe_view.default(v0, [6, 8]) : f32[6, 8]
  s = aten.slice.Tensor(v1, 0, 0, 9223372036854775807, 1) : f32[6, 8]
  m = aten.mm.default(s, t2) : f32[6, 4]
  output(m)
)");
  CHECK(RunSameValues(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  w = placeholder
  x = placeholder
  v1 = aten.reshape.default(x, [6, 8])
  m = aten.mm.default(v1, w)
  output(m)
)");
}

TEST_CASE("CA-19: the view stays if sizes are not provably equal, and symbols learn no fact") {
  auto module = OrDie(ParseText(R"(symbol s0 hint=4 min=2
symbol s1 hint=4 min=2
graph g
  x = placeholder : f32[s0, 8]
  v = aten.view.default(x, [sym(s1), 8]) : f32[s1, 8]
  w = aten.view.default(x, [sym(s0), 8]) : f32[s0, 8]
  s = aten.slice.Tensor(x, 0, 0, sym(s1)) : f32[s1, 8]
  whole = aten.slice.Tensor(x, 0, 0, sym(s0)) : f32[s0, 8]
  more = aten.slice.Tensor(x, 0, 0, sym(s0 + 1)) : f32[s0, 8]
  output([v, w, s, whole, more])
)"));
  const std::string symbols = PrintText(*module).substr(0, 50);
  CHECK(Run(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  v = aten.reshape.default(x, [sym(s1), 8])
  s = aten.slice.Tensor(x, 0, 0, sym(s1))
  output([v, x, s, x, x])
)");
  CHECK_EQ(PrintText(*module).substr(0, 50), symbols);
}

// Aliases that are written to
// ----------------------------------------------------------------------

TEST_CASE("a write through a removed detach or view still reaches its input") {
  auto module = ParseBody(R"(
  x = placeholder : f32[2, 3]
  d = aten.detach.default(x) : f32[2, 3]
  v = aten.view.default(d, [2, 3]) : f32[2, 3]
  s = aten.slice.Tensor(v, 1, 0, 3) : f32[2, 3]
  w = aten.mul_.Tensor(s, 2) : f32[2, 3]
  neg = aten.neg.default(x) : f32[2, 3]
  output([neg, w])
)");
  CHECK(RunSameValues(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  w = aten.mul_.Tensor(x, 2)
  neg = aten.neg.default(x)
  output([neg, w])
)");
}

TEST_CASE("a write to the input is still visible in its former view") {
  auto module = ParseBody(R"(
  x = placeholder : f32[2, 3]
  a = aten.t.default(x) : f32[3, 2]
  b = aten.t.default(a) : f32[2, 3]
  w = aten.add_.Tensor(x, 1) : f32[2, 3]
  neg = aten.neg.default(b) : f32[2, 3]
  output(neg)
)");
  CHECK(RunSameValues(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  w = aten.add_.Tensor(x, 1)
  neg = aten.neg.default(x)
  output(neg)
)");
}

TEST_CASE(
    "a detach stays if its input or result is transposed in place: it keeps the other shape") {
  for (const char* changed : {"d", "x", "y"}) {
    auto module = ParseBody(fmt::format(R"(
  p = placeholder : f32[2, 3]
  x = aten.relu.default(p) : f32[2, 3]
  y = aten.add_.Tensor(x, 1) : f32[2, 3]
  d = aten.detach.default(x) : f32[2, 3]
  t_ = aten.t_.default({}) : f32[3, 2]
  neg = aten.neg.default(x)
  abs = aten.neg.default(d)
  output([neg, abs])
)",
                                        changed));
    CHECK_MESSAGE(RunSameValues(*module) == Changed::kNo, changed);
  }
}

TEST_CASE("transposes that exchange the same dimensions cancel, others stay") {
  auto module = ParseBody(R"(
  x = placeholder : f32[2, 3, 4]
  a = aten.transpose.int(x, 1, 2) : f32[2, 4, 3]
  b = aten.transpose.int(a, -1, -2) : f32[2, 3, 4]
  c = aten.transpose.int(a, 0, 1) : f32[4, 2, 3]
  neg = aten.neg.default(b) : f32[2, 3, 4]
  output([neg, c])
)");
  CHECK(RunSameValues<RemoveDoubleTransposes>(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  a = aten.transpose.int(x, 1, 2)
  c = aten.transpose.int(a, 0, 1)
  neg = aten.neg.default(x)
  output([neg, c])
)");
}

TEST_CASE("t of t stays if the inner result is transposed in place in between") {
  auto module = ParseBody(R"(
  x = placeholder : f32[2, 3]
  a = aten.t.default(x) : f32[3, 2]
  t_ = aten.t_.default(a) : f32[2, 3]
  b = aten.t.default(a) : f32[3, 2]
  neg = aten.neg.default(b)
  output(neg)
)");
  CHECK(RunSameValues(*module) == Changed::kNo);
}

TEST_CASE("aliases of a removed view become aliases of its input") {
  auto module = ParseBody(R"(
  x = placeholder : f32[2, 3]
  v = aten._unsafe_view.default(x, [2, 3]) : f32[2, 3]
  t = aten.t.default(v) : f32[3, 2] ~ v
  output(t)
)");
  CHECK(RunSameValues(*module) == Changed::kYes);
  const Graph& graph = *module->FindGraph("g");
  const NodeId t = graph.node(graph.output()).prev;
  CHECK_EQ(graph.value(graph.result(t)).alias_of, graph.result(graph.first()));
}

}  // namespace
}  // namespace strata
