#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>

#include "base/file.h"
#include "diff/patch/apply.h"
#include "diff/patch/make.h"
#include "diff/patch/parse.h"
#include "ir/fingerprint.h"
#include "ir/fx/fx.h"
#include "ir/rewriter.h"
#include "ir/text/native_text.h"
#include "ir/verify.h"
#include "tests/support/random_graph.h"
#include "tests/unit/diff/mutate.h"
#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::DiffCase;
using testing::Mutate;
using testing::Mutation;
using testing::OrDie;
using testing::ParseBody;
using testing::ParseOrDie;
using testing::RandomGraph;
using testing::RenameAll;

std::string MakePatch(const Graph& before, const Graph& after, const PatchOptions& options = {}) {
  return strata::MakePatch(OrDie(Diff(before, after)), options);
}

std::unique_ptr<Module> Apply(const Graph& base, std::string_view patch) {
  return OrDie(ApplyPatch(base, OrDie(ParsePatch(patch))));
}

std::string ErrorOf(const Graph& base, std::string_view text) {
  const Result<Patch> patch = ParsePatch(text, "p");
  if (!patch) return patch.error().message();
  const Result<std::unique_ptr<Module>> result = ApplyPatch(base, *patch);
  return result ? "" : result.error().message();
}

/// The patch must give what it was made for: computation, names and aliases; with metadata all of
/// it. Also as FX text.
void CheckRoundTrip(const Graph& before, const Graph& after) {
  const GraphDiff diff = OrDie(Diff(before, after));
  const std::unique_ptr<Module> plain = Apply(before, strata::MakePatch(diff));
  const Graph& result = plain->graph({0});
  OrDie(Verify(*plain));
  REQUIRE_EQ(ToString(FingerprintOf(result)), ToString(FingerprintOf(after)));
  const PrintOptions bare = {.types = true, .metadata = false, .stable_ids = false};
  CHECK_EQ(PrintText(result, bare), PrintText(after, bare));

  const std::unique_ptr<Module> full = Apply(before, strata::MakePatch(diff, {.metadata = true}));
  const auto everything = [](const Graph& graph) {
    return ToString(FingerprintOf(graph, FingerprintScope::kEverything));
  };
  CHECK_EQ(everything(full->graph({0})), everything(after));
}

TEST_CASE("a patch reads like the change") {
  const DiffCase c(R"(
    x = placeholder : f32[4, 8]
    w = placeholder : f32[8, 4]
    relu = aten.relu.default(x) : f32[4, 8] {module=layers.0}
    mm = aten.mm.default(relu, w) : f32[4, 4]
    (a, b) = aten.split.Tensor(mm, 2) as split : (f32[2, 4], f32[2, 4])
    neg = aten.neg.default(a) : f32[2, 4]
    sin = aten.sin.default(b) : f32[2, 4]
    output([neg, sin])
  )",
                   R"(
    x = placeholder : f32[4, 8]
    w = placeholder : f32[8, 4]
    mm_1 = aten.mm.default(x, w) : f32[4, 4]
    (c, b) = aten.split.Tensor(mm_1, 2) as split : (f32[2, 4], f32[2, 4])
    sin = aten.sin.default(b) : f32[2, 4]
    neg = aten.neg.default(c) : f32[2, 4]
    cos = aten.cos.default(neg) : f32[2, 4] {stream=1}
    output([cos, sin])
  )");
  const std::string text = strata::MakePatch(c.diff);
  CHECK_EQ(text.substr(text.find("\ngraph")), R"(
graph 0 g from 0
  1..2  # x … w
  # layers.0
- 3  relu = aten.relu.default(x) : f32[4, 8] {module=layers.0}
~ 4  mm = aten.mm.default(relu, w) : f32[4, 4]
=    mm_1 = aten.mm.default(x, w) : f32[4, 4]
  5  # split
> 7  # sin
  6  # neg
+    cos = aten.cos.default(neg) : f32[2, 4] {stream=1}
~ 8  output([neg, sin])
=    output([cos, sin])
names
  1 x
  2 w
  5.0 a -> c
  6 neg
  7 sin
)");
  CHECK_EQ(ToString(FingerprintOf(Apply(c.before->graph({0}), text)->graph({0}))),
           ToString(FingerprintOf(c.after->graph({0}))));
}

TEST_CASE("a patch of equal graphs keeps everything") {
  const auto module = RandomGraph(1);
  const std::string text = MakePatch(module->graph({0}), module->graph({0}));
  CHECK_NE(text.find("graph 0 g from 0\n  1.."), std::string::npos);
  CHECK_EQ(std::ranges::count(text, '\n'), 7);
}

TEST_CASE("a patch gives the after side whatever happened between the two") {
  for (int i = 0; i < testing::kNumMutations; ++i) {
    for (uint32_t seed = 1; seed <= 6; ++seed) {
      const auto before = RandomGraph(seed, {.num_nodes = 120});
      const auto after = before->Clone();
      Mutate(*after, static_cast<Mutation>(i), 0.05 * seed, seed);
      if (seed % 2 == 0) RenameAll(*after);
      CAPTURE(ToString(static_cast<Mutation>(i)));
      CheckRoundTrip(before->graph({0}), after->graph({0}));
      CheckRoundTrip(after->graph({0}), before->graph({0}));
    }
  }
}

TEST_CASE("a patch between unrelated graphs is a patch all the same") {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    const auto a = RandomGraph(seed, {.num_nodes = 60});
    const auto b = RandomGraph(seed + 100, {.num_nodes = 90});
    CheckRoundTrip(a->graph({0}), b->graph({0}));
  }
}

TEST_CASE("patches between all texts of the test data") {
  std::vector<FxDocument> documents;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator("tests/data/fx"))
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  std::ranges::sort(paths);
  for (const auto& path : paths) {
    Result<FxDocument> document = ParseFx(OrDie(ReadFile(path.string())));
    if (document && document->num_diagnostics == 0) documents.push_back(std::move(*document));
  }
  REQUIRE_GE(documents.size(), 8);
  for (const FxDocument& before : documents) {
    for (const FxDocument& after : documents) {
      CheckRoundTrip(before.graph(), after.graph());
      const auto result = Apply(before.graph(), MakePatch(before.graph(), after.graph()));
      const std::string text = PrintFx(result->graph({0}), {.comments = false});
      const FxDocument again = OrDie(ParseFx(text, {.strict = true}));
      CHECK_EQ(ToString(FingerprintOf(again.graph())), ToString(FingerprintOf(after.graph())));
      CHECK_EQ(text, PrintFx(after.graph(), {.comments = false}));
    }
  }
}

TEST_CASE("bodies come, go and change places") {
  const auto before = ParseOrDie(R"(
graph step
  p = placeholder : b8[]
  x = placeholder : f32[4]
  f = attr f(graph(1))
  g = attr g(graph(2))
  (y, _) = higher_order.cond(p, f, g, [x]) as cond : (f32[4], f32[4])
  output(y)
graph f body
  x = placeholder : f32[4]
  s = aten.sin.default(x) : f32[4]
  output((s, s))
graph g body
  x = placeholder : f32[4]
  c = aten.cos.default(x) : f32[4]
  output((c, c))
)");
  const auto after = ParseOrDie(R"(
graph step
  p = placeholder : b8[]
  x = placeholder : f32[4]
  g = attr g(graph(1))
  h = attr h(graph(2))
  w = higher_order.wrap(graph(3), x) : f32[4]
  (_, z) = higher_order.cond(p, g, h, [w]) as cond : (f32[4], f32[4])
  output(z)
graph g body
  x = placeholder : f32[4]
  d = aten.tan.default(x) : f32[4]
  output((d, x))
graph h body
  y = placeholder : i64[2, 2]
  output((y, 7))
graph w body
  x = placeholder : f32[4]
  output(x)
)");
  CheckRoundTrip(before->graph({0}), after->graph({0}));
  CheckRoundTrip(after->graph({0}), before->graph({0}));
}

TEST_CASE("symbols, offsets, aliases and hostile names survive a patch") {
  const auto before = ParseOrDie(R"(
symbol s0 hint=4 min=2
graph g
  s0 = placeholder : Sym(s0)
  x = placeholder : f32[s0, 8][8, 1]cpu
  %'a -> b' = aten.view.default(x, [-1]) : f32[8*s0][1]cpu ~x
  output(%'a -> b')
)");
  const auto after = ParseOrDie(R"(
symbol s0 hint=4 min=2
symbol u0 unbacked
graph %'# g\n'
  s0 = placeholder : Sym(s0)
  x = placeholder : f32[s0, 8][8, 1]cpu
  %'names' = aten.add_.Tensor(x, 1.5, alpha=sym(2*s0)) : f32[s0, 8][8, 1]cpu@(s0)+grad ~x {+%'we\'ird'='\n# x'}
  %'=' = aten.view.default(%'names', [-1]) : f32[8*s0][1]cpu ~x {+k='v'}
  %'// c' = aten.item.default(%'=') : Sym(u0)
  output((%'=', %'// c', 'line\nbreak', raw('weird # thing')))
)");
  CheckRoundTrip(before->graph({0}), after->graph({0}));
  CheckRoundTrip(after->graph({0}), before->graph({0}));
  const auto result = Apply(before->graph({0}), MakePatch(before->graph({0}), after->graph({0})));
  CHECK_NE(PrintText(*result).find("symbol u0 unbacked"), std::string::npos);
}

TEST_CASE("a patch fits the same graph under other names") {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    const auto before = RandomGraph(seed, {.num_nodes = 100});
    const auto after = before->Clone();
    Mutate(*after, Mutation::kInsert, 0.1, seed);
    Mutate(*after, Mutation::kReplaceOp, 0.1, seed);
    Mutate(*after, Mutation::kDelete, 0.1, seed);
    const auto renamed = before->Clone();
    RenameAll(*renamed);
    const std::string patch = MakePatch(before->graph({0}), after->graph({0}));
    CHECK_EQ(ToString(FingerprintOf(Apply(renamed->graph({0}), patch)->graph({0}))),
             ToString(FingerprintOf(after->graph({0}))));
  }
}

TEST_CASE("keywords and types of a shown line are no names") {
  const DiffCase c(R"(
    a = placeholder : f32[4]
    b = placeholder : f32[4]
    c = aten.where.default(a, mask=b) : f32[4]
    output(c)
  )",
                   R"(
    a = placeholder : f32[4]
    b = placeholder : f32[4]
    c = aten.where.default(a, mask=a) : f32[4]
    output(c)
  )");
  const auto other = ParseBody(R"(
    mask = placeholder : f32[4]
    f32 = placeholder : f32[4]
    x = aten.where.default(mask, mask=f32) : f32[4]
    output(x)
  )");
  CHECK_EQ(ErrorOf(other->graph({0}), strata::MakePatch(c.diff)), "");
}

TEST_CASE("readers of a node that another replaced under its name are kept") {
  const DiffCase c(R"(
    x = placeholder : f32[4]
    a = aten.sin.default(x) : f32[4]
    b = aten.cos.default(a) : f32[4]
    (p, q) = aten.split.Tensor(b, 2) as split : (f32[2], f32[2])
    m = aten.mul.Tensor(p, q) : f32[2]
    output(m)
  )",
                   R"(
    x = placeholder : f32[4]
    b = mylib.sincos.default(x, 1, 2, 3) : f32[4]
    (p, q) = mylib.halves.default(x, b, 'other') as split : (f32[2], f32[2])
    m = aten.mul.Tensor(p, q) : f32[2]
    output(m)
  )",
                   {.vetoes = {{"b", ""}, {"a", ""}, {"split", ""}, {"p", ""}, {"q", ""}}});
  const std::string text = strata::MakePatch(c.diff);
  CHECK_NE(text.find("\n  5..6  # m … output\n"), std::string::npos);
  CHECK_EQ(ToString(FingerprintOf(Apply(c.before->graph({0}), text)->graph({0}))),
           ToString(FingerprintOf(c.after->graph({0}))));
  const auto renamed = c.before->Clone();
  RenameAll(*renamed);
  CHECK_EQ(ToString(FingerprintOf(Apply(renamed->graph({0}), text)->graph({0}))),
           ToString(FingerprintOf(c.after->graph({0}))));
}

TEST_CASE("nodes that stay keep their identity and what the patch does not carry") {
  const DiffCase c(R"(
    x = placeholder : f32[4] #7
    sin = aten.sin.default(x) : f32[4] {seq=3} #9
    neg = aten.neg.default(sin) : f32[4] {seq=4 loc=('m.py', 3, None, None)} #11
    output(neg) #12
  )",
                   R"(
    x = placeholder : f32[4]
    sin = aten.sin.default(x) : f32[4] {seq=5}
    cos = aten.cos.default(sin) : f32[4]
    neg = aten.neg.default(cos) : f32[4] {forward}
    output(neg)
  )");
  const auto result = Apply(c.before->graph({0}), strata::MakePatch(c.diff));
  CHECK_EQ(PrintText(result->graph({0}), {.stable_ids = true}), R"(graph g
  x = placeholder : f32[4] #7
  sin = aten.sin.default(x) : f32[4] {seq=3} #9
  cos = aten.cos.default(sin) : f32[4] #13
  neg = aten.neg.default(cos) : f32[4] {forward seq=4 loc=('m.py', 3, None, None)} #11
  output(neg) #12
)");
}

constexpr std::string_view kBefore = R"(
    x = placeholder : f32[4]
    sin = aten.sin.default(x) : f32[4]
    neg = aten.neg.default(sin) : f32[4]
    output(neg)
)";
constexpr std::string_view kAfter = R"(
    x = placeholder : f32[4]
    cos = aten.cos.default(x) : f32[4]
    neg = aten.neg.default(cos) : f32[4]
    output(neg)
)";

std::string Replaced(std::string text, std::string_view what, std::string_view by) {
  const size_t at = text.find(what);
  REQUIRE_NE(at, std::string::npos);
  return text.replace(at, what.size(), by);
}

TEST_CASE("another base is refused with both fingerprints") {
  const auto before = ParseBody(kBefore), after = ParseBody(kAfter);
  const std::string patch = MakePatch(before->graph({0}), after->graph({0}));
  CHECK_EQ(
      ErrorOf(after->graph({0}), patch),
      fmt::format("the patch is for another graph: p: it expects fingerprint {} (4 nodes), this "
                  "graph has {} (4 nodes): give the graph that it was made from",
                  ToString(FingerprintOf(before->graph({0}))),
                  ToString(FingerprintOf(after->graph({0})))));
}

TEST_CASE("errors of patches show the place") {
  const auto before = ParseBody(kBefore), after = ParseBody(kAfter);
  const Graph& base = before->graph({0});
  const std::string patch = MakePatch(base, after->graph({0}));
  REQUIRE_EQ(patch.substr(patch.find("\ngraph")), R"(
graph 0 g from 0
  1  # x
~ 2  sin = aten.sin.default(x) : f32[4]
=    cos = aten.cos.default(x) : f32[4]
  3..4  # neg … output
names
  1 x
)");
  CHECK_EQ(ErrorOf(base, "hello"),
           "p:1:1: not a patch: it begins with 'strata patch 1'\n  hello\n  ^");
  CHECK_EQ(ErrorOf(base, "strata patch 2\n"),
           "p:1:14: format 2 is not known, 1 is\n  strata patch 2\n               ^");
  CHECK_EQ(ErrorOf(base, Replaced(patch, "1  # x\n", "")),
           "p:6:1: nothing is said of node 1 (x)\n  graph 0 g from 0\n  ^");
  CHECK_EQ(ErrorOf(base, Replaced(patch, "3..4", "3..5")),
           "p:10:1: the base's graph has 4 nodes\n    3..5  # neg … output\n  ^");
  CHECK_EQ(ErrorOf(base, Replaced(patch, "3..4", "2..4")),
           "p:10:1: node 2 occurs twice\n    2..4  # neg … output\n  ^");
  CHECK_EQ(ErrorOf(base, Replaced(patch, "  3..4", "  4\n  3")),
           "p:11:1: out of order: a node that moved is marked with '>'\n"
           "    3  # neg … output\n  ^");
  CHECK_EQ(ErrorOf(base, Replaced(patch, "=    cos = aten.cos.default(x)",
                                  "=    cos = aten.cos.default(y)")),
           "p:9:29: no value 'y' above\n"
           "  =    cos = aten.cos.default(y) : f32[4]\n"
           "                              ^");
  CHECK_EQ(ErrorOf(base, Replaced(patch, "=    cos =", "+    cos =")),
           "p:9:1: expected '=' and the line that it becomes\n"
           "  +    cos = aten.cos.default(x) : f32[4]\n  ^");
  CHECK_EQ(
      ErrorOf(base, Replaced(patch, "=    cos = aten.cos.default(x) : f32[4]", "=    graph other")),
      "p:9:6: expected 'NAME = …' or 'output(…)'\n  =    graph other\n       ^");
  CHECK_EQ(ErrorOf(base, Replaced(patch, "~ 2  sin = aten.sin", "~ 2  sin = aten.cos")),
           "p:8:6: node 2 of the base is another: sin = aten.sin.default(x) : f32[4]\n"
           "  ~ 2  sin = aten.cos.default(x) : f32[4]\n       ^");
  CHECK_EQ(ErrorOf(base, Replaced(patch, "  1 x\n", "  1 y\n")),
           "p:12:3: node 1 of the base is called x\n    1 y\n    ^");
  CHECK_EQ(ErrorOf(base, Replaced(Replaced(patch, "~ 2", "- 2"), "=    cos", "+    sun")),
           "p:10:1: node 3 is kept, but speaks of 'sin', which is dropped\n"
           "    3..4  # neg … output\n  ^");
  const std::string edited = ErrorOf(base, Replaced(patch, "aten.cos", "aten.tan"));
  CHECK(edited.starts_with("the patch does not give what it promises: p: "));
}

}  // namespace
}  // namespace strata
