#include "ir/fingerprint.h"

#include <set>
#include <string>

#include <doctest/doctest.h>

#include "ir/rewriter.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::NodeNamed;
using testing::ParseOrDie;

constexpr std::string_view kBase = R"(graph g
  x = placeholder : f32[4, 8][8, 1]cpu
  w = placeholder : f32[8, 4][4, 1]cpu
  mm = aten.mm.default(x, w) : f32[4, 4][4, 1]cpu {forward module=layers.0 seq=1}
  add = aten.add.Tensor(mm, 2, alpha=1.5) : f32[4, 4][4, 1]cpu
  output([add])
)";

Fingerprint Of(std::string_view text, FingerprintScope scope = FingerprintScope::kComputation) {
  auto module = ParseOrDie(text);
  return FingerprintOf(module->graph({0}), scope);
}

std::string With(std::string_view from, std::string_view to) {
  std::string text(kBase);
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST_CASE("names and metadata are not part of the computation") {
  const std::string renamed = R"(graph h
  a = placeholder : f32[4, 8][8, 1]cpu
  b = placeholder : f32[8, 4][4, 1]cpu
  c = aten.mm.default(a, b) : f32[4, 4][4, 1]cpu {backward module=z +tag='1'} #77
  d = aten.add.Tensor(c, 2, alpha=1.5) : f32[4, 4][4, 1]cpu
  output([d])
)";
  CHECK(Of(renamed) == Of(kBase));
  CHECK(Of(renamed, FingerprintScope::kEverything) != Of(kBase, FingerprintScope::kEverything));
}

TEST_CASE("each part of the computation changes it") {
  std::set<Fingerprint> seen = {Of(kBase)};
  const auto add = [&](const std::string& text) { CHECK(seen.insert(Of(text)).second); };
  add(With("aten.mm.default", "aten.mm.out"));
  add(With("(x, w)", "(w, x)"));
  add(With("(x, w)", "([x, w])"));
  add(With("(x, w)", "((x, w))"));
  add(With("(mm, 2,", "(mm, 3,"));
  add(With("(mm, 2,", "(mm, 2.0,"));
  add(With("(mm, 2,", "(mm, '2',"));
  add(With("(mm, 2,", "(mm, True,"));
  add(With("(mm, 2,", "(mm, None,"));
  add(With("alpha=1.5", "alpha=1.25"));
  add(With("alpha=1.5", "beta=1.5"));
  add(With(", alpha=1.5", ", 1.5"));
  add(With("f32[4, 8][8, 1]cpu", "bf16[4, 8][8, 1]cpu"));
  add(With("f32[4, 8][8, 1]cpu", "f32[4, 8][1, 4]cpu"));
  add(With("f32[4, 8][8, 1]cpu", "f32[4, 8][8, 1]cuda:0"));
  add(With("f32[4, 8][8, 1]cpu", "f32[4, 9][8, 1]cpu"));
  add(With("output([add])", "output([add, mm])"));
}

TEST_CASE("order is part of the computation") {
  const std::string a =
      "graph g\n  x = placeholder\n  a = aten.neg.default(x)\n  b = aten.abs.default(x)\n  "
      "output([a, b])\n";
  const std::string b =
      "graph g\n  x = placeholder\n  b = aten.abs.default(x)\n  a = aten.neg.default(x)\n  "
      "output([a, b])\n";
  CHECK(Of(a) != Of(b));
}

TEST_CASE("a trailing unnamed element does not change the fingerprint") {
  const std::string a =
      "graph g\n  x = placeholder\n  (a, _) = aten.split.Tensor(x, 2) as s\n  output([a])\n";
  const std::string b =
      "graph g\n  x = placeholder\n  (a,) = aten.split.Tensor(x, 2) as s\n  output([a])\n";
  const std::string c =
      "graph g\n  x = placeholder\n  (a, q) = aten.split.Tensor(x, 2) as s\n  output([a])\n";
  CHECK(Of(a) == Of(b));
  CHECK(Of(a) != Of(c));
}

TEST_CASE("a body contributes its content, not its id") {
  const auto text = [](std::string_view bodies, int which, std::string_view op) {
    return "graph g\n  x = placeholder\n  f = attr f(graph(" + std::to_string(which) +
           "))\n  y = higher_order.cond(x, f)\n  output([y])\n" + std::string(bodies) +
           "graph b body\n  p = placeholder\n  q = " + std::string(op) + "(p)\n  output(q)\n";
  };
  const std::string other = "graph a body\n  p = placeholder\n  output(p)\n";
  CHECK(Of(text("", 1, "aten.neg.default")) == Of(text(other, 2, "aten.neg.default")));
  CHECK(Of(text("", 1, "aten.neg.default")) != Of(text("", 1, "aten.abs.default")));
}

TEST_CASE("erased nodes do not change the fingerprint") {
  auto module = ParseOrDie(kBase);
  Graph& graph = module->graph({0});
  const Fingerprint before = FingerprintOf(graph, FingerprintScope::kEverything);
  Rewriter rewriter(graph);
  rewriter.Erase(rewriter.Create("aten.neg.default", {}, From{NodeNamed(graph, "mm")}));
  CHECK(FingerprintOf(graph, FingerprintScope::kEverything) == before);
}

TEST_CASE("the text form of a fingerprint reads back") {
  const Fingerprint fingerprint{0x0123456789abcdefull, 0xfull};
  CHECK(ToString(fingerprint) == "0123456789abcdef000000000000000f");
  CHECK(FingerprintFromString(ToString(fingerprint)) == fingerprint);
  CHECK_FALSE(FingerprintFromString("0123").has_value());
  CHECK_FALSE(FingerprintFromString(std::string(32, 'G')).has_value());
}

}  // namespace
}  // namespace strata
