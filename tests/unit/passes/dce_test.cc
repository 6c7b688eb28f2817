#include "passes/cleanup/dce.h"

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

/// Runs the pass. The graph must be valid and the reported change correct.
Changed Dce(Module& module) {
  const Graph& graph = *module.FindGraph("g");
  const Fingerprint before = FingerprintOf(graph, FingerprintScope::kEverything);
  const Changed changed = OrDie(DeadCodeElimination().Run(module));
  CHECK(Verify(module).has_value());
  CHECK_EQ(changed == Changed::kYes, FingerprintOf(graph, FingerprintScope::kEverything) != before);
  return changed;
}

TEST_CASE("DC-1: a dead pure add is removed, a live relu stays") {
  auto module = ParseBody(R"(
  x = placeholder : f32[4]
  add = aten.add.Tensor(x, x)
  relu = aten.relu.default(x)
  output(relu)
)");
  const auto before = OrDie(Evaluate(*module->FindGraph("g")));
  CHECK(Dce(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  relu = aten.relu.default(x)
  output(relu)
)");
  CHECK(OrDie(Evaluate(*module->FindGraph("g"))) == before);
  CHECK(Dce(*module) == Changed::kNo);
}

TEST_CASE("DC-2: a dead mm with incompatible shapes is removed without an error") {
  auto module = ParseBody(R"(
  x = placeholder : f32[2, 3]
  mm = aten.mm.default(x, x)
  relu = aten.relu.default(x)
  output(relu)
)");
  CHECK(Dce(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  relu = aten.relu.default(x)
  output(relu)
)");
}

TEST_CASE("DC-3: an unused copy_ stays, it writes") {
  auto module = ParseBody(R"(
  x = placeholder : f32[4]
  y = placeholder : f32[4]
  copy_ = aten.copy_.default(x, y)
  relu = aten.relu.default(y)
  output(relu)
)");
  CHECK(Dce(*module) == Changed::kNo);
  CHECK_EQ(module->FindGraph("g")->num_nodes(), 5);
}

TEST_CASE("DC-4: an asynchronous assert is removed with the condition that only it reads") {
  for (const char* overload : {"default", "msg"}) {
    auto module = ParseBody(fmt::format(R"(
  x = placeholder : f32[4]
  le = aten.le.Scalar(x, 5)
  all = aten.all.default(le)
  _assert_async = aten._assert_async.{}(all, 'too large')
  add = aten.add.Tensor(x, x)
  relu = aten.relu.default(x)
  output(relu)
)",
                                        overload));
    CHECK(Dce(*module) == Changed::kYes);
    CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  relu = aten.relu.default(x)
  output(relu)
)");
  }
}

TEST_CASE("other asserts stay with their conditions") {
  auto module = ParseBody(R"(
  x = placeholder
  sym = aten.sym_size.int(x, 0)
  ge = _operator.ge(sym, 0)
  _assert_scalar = aten._assert_scalar.default(ge, 'negative')
  output(x)
)");
  CHECK(Dce(*module) == Changed::kNo);
}

TEST_CASE("unread collectives, waits and random numbers stay") {
  auto module = ParseBody(R"(
  x = placeholder
  ag = _c10d_functional.all_gather_into_tensor.default(x, 8, 'fsdp')
  wait = _c10d_functional.wait_tensor.default(ag)
  rand = aten.rand_like.default(x)
  output(x)
)");
  CHECK(Dce(*module) == Changed::kNo);
}

TEST_CASE("placeholders stay, unread attributes are removed") {
  auto module = ParseBody(R"(
  x = placeholder
  y = placeholder
  w = attr layers.0.weight
  output(x)
)");
  CHECK(Dce(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  y = placeholder
  output(x)
)");
}

TEST_CASE("methods and submodules stay: their code is not known") {
  auto module = ParseBody(R"(
  x = placeholder
  zero_ = method zero_(x)
  sub = submodule layers.0(x)
  output(x)
)");
  CHECK(Dce(*module) == Changed::kNo);
}

TEST_CASE("unread elements of a tuple lose their names, the node stays for the others") {
  auto module = ParseBody(R"(
  x = placeholder
  (a, b, c) = aten.split.Tensor(x, 2) as split
  relu = aten.relu.default(b)
  output(relu)
)");
  CHECK(Dce(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  (_, b, _) = aten.split.Tensor(x, 2) as split
  relu = aten.relu.default(b)
  output(relu)
)");
  CHECK(Dce(*module) == Changed::kNo);
}

TEST_CASE("an unread tuple is removed with the nodes that only it reads") {
  auto module = ParseBody(R"(
  x = placeholder
  neg = aten.neg.default(x)
  (a, b) = aten.split.Tensor(neg, 2) as split
  relu = aten.relu.default(a)
  output(x)
)");
  CHECK(Dce(*module) == Changed::kYes);
  CHECK_EQ(BodyOf(*module), R"(
  x = placeholder
  output(x)
)");
}

TEST_CASE("a dead storage owner is removed even if an imprecise text claims aliases of it") {
  auto module = ParseBody(R"(
  x = placeholder
  dead = aten.relu.default(x)
  neg = aten.neg.default(x) ~dead
  output(neg)
)");
  CHECK(Dce(*module) == Changed::kYes);
}

TEST_CASE("a higher-order call stays exactly when its body has an effect") {
  for (const auto& [op, kept] :
       {std::pair{"aten.neg.default(y)", false}, {"aten.neg_.default(y)", true}}) {
    auto module = OrDie(ParseText(fmt::format(R"(graph g
  x = placeholder
  body = attr body_0(graph(1))
  call = higher_order.invoke_subgraph(body, 'body_0', x)
  output(x)
graph body_0 body
  y = placeholder
  n = {}
  output(n)
)",
                                              op)));
    CHECK((Dce(*module) == Changed::kNo) == kept);
  }
}

TEST_CASE("nested and repeated bodies are visited once") {
  std::string text = R"(
graph g
  x = placeholder
  call = higher_order.wrap(graph(1), x)
  output(x)
)";
  for (int i = 1; i < 60; ++i) {
    text += fmt::format(
        R"(
graph b{0} body
  a = higher_order.wrap(graph({1}))
  b = higher_order.wrap(graph({1}))
)",
        i, i + 1);
  }
  auto module = OrDie(ParseText(text + "graph last body\n  x = placeholder\n"));
  CHECK(Dce(*module) == Changed::kYes);
}

TEST_CASE("the pass visits every program and no body") {
  auto module = OrDie(ParseText(R"(graph g
  x = placeholder
  dead = aten.neg.default(x)
  output(x)
graph second
  x = placeholder
  dead = aten.neg.default(x)
  output(x)
graph body_0 body
  x = placeholder
  dead = aten.neg.default(x)
  output(x)
)"));
  CHECK(Dce(*module) == Changed::kYes);
  CHECK_EQ(module->FindGraph("second")->num_nodes(), 2);
  CHECK_EQ(module->graph({2}).num_nodes(), 3);
}

}  // namespace
}  // namespace strata
