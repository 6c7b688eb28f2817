#include "diff/diff.h"

#include <tuple>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "diff/compare/contradictions.h"
#include "diff/output/diff_json.h"
#include "tests/support/results.h"
#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::Describe;
using testing::DescribeTexts;
using testing::DiffCase;
using testing::MessageOf;

TEST_CASE("names do not matter: a misleading rename is not a change") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder
  w = placeholder
  mm = aten.mm.default(x, w)
  mm_1 = aten.mm.default(mm, w)
  output(mm_1)
)",
                         R"(
  w = placeholder
  x = placeholder
  mm_1 = aten.mm.default(w, x)
  mm = aten.mm.default(mm_1, x)
  output(mm)
)"),
           R"(
x -> w: renamed
w -> x: renamed
mm -> mm_1: renamed
mm_1 -> mm: renamed
)");
}

TEST_CASE("the user of a removed identity is changed, not derived") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder
  d = aten.detach.default(x)
  s = aten.sin.default(d)
  output(s)
)",
                         R"(
  x = placeholder
  s = aten.sin.default(x)
  output(s)
)"),
           R"(
s -> s: changed
  operands[0]: d -> x
- d
)");
}

TEST_CASE("a cast inserted on an edge changes the user") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder
  s = aten.sin.default(x)
  c = aten.cos.default(s)
  output(c)
)",
                         R"(
  x = placeholder
  s = aten.sin.default(x)
  k = aten._to_copy.default(s)
  c = aten.cos.default(k)
  output(c)
)"),
           R"(
c -> c: changed
  operands[0]: s -> k
+ k
)");
}

TEST_CASE("an operator replaced between the same neighbours keeps its identity") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder
  r = aten.relu.default(x)
  s = aten.sin.default(r)
  output(s)
)",
                         R"(
  x = placeholder
  g = aten.gelu.default(x)
  s = aten.sin.default(g)
  output(s)
)"),
           "\nr -> g: renamed+changed\n  target: aten.relu.default -> aten.gelu.default\n");
}

TEST_CASE("operators replaced in a row keep their identities") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder : f32[4, 6]
  a = aten.view.default(x, [2, 12]) : f32[2, 12]
  b = aten._unsafe_view.default(a, [3, 8]) : f32[3, 8]
  s = aten.sin.default(b) : f32[3, 8]
  output(s)
)",
                         R"(
  x = placeholder : f32[4, 6]
  a = aten.reshape.default(x, [2, 12]) : f32[2, 12]
  b = aten.reshape.default(a, [3, 8]) : f32[3, 8]
  s = aten.sin.default(b) : f32[3, 8]
  output(s)
)"),
           R"(
a -> a: changed
  target: aten.view.default -> aten.reshape.default
b -> b: changed
  target: aten._unsafe_view.default -> aten.reshape.default
)");
}

TEST_CASE("nodes outside of the largest ordered set are moved") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder
  a = aten.sin.default(x)
  b = aten.cos.default(x)
  c = aten.tan.default(x)
  d = aten.exp.default(x)
  output([a, b, c, d])
)",
                         R"(
  x = placeholder
  b = aten.cos.default(x)
  c = aten.tan.default(x)
  new = aten.log.default(x)
  a = aten.sin.default(x)
  d = aten.exp.default(x)
  output([a, b, c, d, new])
)"),
           R"(
a -> a: moved
output -> output: changed
  operands[4]: null -> new
+ new
)");
}

TEST_CASE("inputs keep their identity by position and type") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder : f32[2]
  w = placeholder : f32[2]
  b = placeholder : f32[2]
  s = aten.add.Tensor(x, b)
  output(s)
)",
                         R"(
  x = placeholder : f32[2]
  w = placeholder : f32[2]
  b = placeholder : f32[2]
  s = aten.add.Tensor(x, w)
  output(s)
)"),
           R"(
s -> s: changed
  operands[1]: b -> w
)");
}

TEST_CASE("a dropped input is found by its users") {
  CHECK_EQ(DescribeTexts(R"(
  a = placeholder : f32[2]
  b = placeholder : f32[2]
  c = placeholder : f32[2]
  s = aten.sin.default(a)
  t = aten.cos.default(b)
  u = aten.tan.default(c)
  output([s, t, u])
)",
                         R"(
  a = placeholder : f32[2]
  c = placeholder : f32[2]
  s = aten.sin.default(a)
  u = aten.tan.default(c)
  output([s, u])
)"),
           R"(
output -> output: changed
  operands[1]: t -> u
  operands[2]: u -> null
- b
- t
)");
}

TEST_CASE("nodes in bodies are matched within the bodies of their callers") {
  const auto module = [](std::string_view op) {
    return testing::ParseOrDie(fmt::format(R"(graph g
  x = placeholder
  true_graph_0 = attr true_graph_0(graph(1))
  false_graph_0 = attr false_graph_0(graph(2))
  cond = higher_order.cond(x, true_graph_0, false_graph_0, [x])
  output(cond)
graph true_graph_0 body
  y = placeholder
  sin = aten.sin.default(y)
  output(sin)
graph false_graph_0 body
  y = placeholder
  f = {}(y)
  output(f)
)",
                                           op));
  };
  const auto before = module("aten.cos.default"), after = module("aten.tan.default");
  const GraphDiff diff = testing::OrDie(Diff(before->graph({0}), after->graph({0})));
  CHECK_EQ(Describe(diff),
           R"(
false_graph_0/f -> false_graph_0/f: changed
  target: aten.cos.default -> aten.tan.default
)");
}

TEST_CASE("stable ids decide matches inside one trace") {
  // By structure `a` is `a`; the ids say that `a` became `b`.
  constexpr std::string_view kBefore = R"(
  x = placeholder #1
  a = aten.sin.default(x) #2
  output(a) #3
)";
  constexpr std::string_view kAfter = R"(
  x = placeholder #1
  a = aten.sin.default(x) #9
  b = aten.cos.default(a) #2
  output(b) #3
)";
  CHECK_EQ(DescribeTexts(kBefore, kAfter, {.stable_ids = true}), R"(
a -> b: renamed+changed
  target: aten.sin.default -> aten.cos.default
  operands[0]: x -> a
+ a
)");
}

TEST_CASE("diff of snapshots: a program that was traced again is matched by structure") {
  constexpr std::string_view kBefore = R"(
  x = placeholder #1
  a = aten.sin.default(x) #2
  b = aten.exp.default(a) #3
  output(b) #4
)";
  constexpr std::string_view kAfter = R"(
  x = placeholder #1
  a = aten.cos.default(x) #12
  b = aten.exp.default(a) #13
  output(b) #4
)";
  const Provenance of_input{StableId{12}, Origin::kCreated, {StableId{1}}};
  CHECK_EQ(DescribeTexts(kBefore, kAfter, {.stable_ids = true, .provenance = {of_input}}), R"(
a -> a: changed
  target: aten.sin.default -> aten.cos.default
)");
  // Where it is known what one node was made from, nothing is guessed.
  const Provenance gone{StableId{7}, Origin::kCreated, {StableId{2}}};
  const Provenance born{StableId{12}, Origin::kReplaced, {StableId{7}}};
  const DiffCase both(kBefore, kAfter, {.stable_ids = true, .provenance = {gone, born}});
  CHECK_EQ(both.diff.pairs.size(), 2);  // input and output
}

/// `a: by id it is b, by structure a`, one line each.
std::string ContradictionsOf(std::string_view before, std::string_view after,
                             std::vector<Provenance> provenance = {}) {
  const DiffCase both(
      before, after,
      {.stable_ids = true, .provenance = std::move(provenance), .contradictions = true});
  std::string text;
  for (const Contradiction& contradiction : both.diff.contradictions) {
    text += both.diff.before.name(contradiction.before) + ": " +
            ToString(both.diff, contradiction) + "\n";
  }
  return text;
}

TEST_CASE("contradictions: an id assigned to another node") {
  constexpr std::string_view kBefore = R"(
  x = placeholder #1
  a = aten.sin.default(x) #2
  b = aten.cos.default(a) #3
  output(b) #4
)";
  CHECK_EQ(ContradictionsOf(kBefore, kBefore), "");
  CHECK_EQ(ContradictionsOf(kBefore, R"(
  x = placeholder #1
  a = aten.sin.default(x) #3
  b = aten.cos.default(a) #2
  output(b) #4
)"),
           "a: by id it is b, by structure a, which by id was b\n"
           "b: by id it is a, by structure b, which by id was a\n");
  const DiffCase both(kBefore,
                      R"(
  x = placeholder #1
  a = aten.sin.default(x) #8
  b = aten.cos.default(a) #2
  output(b) #4
)",
                      {.stable_ids = true, .contradictions = true});
  const std::string json = DiffJson(both.diff, "a", "b");
  CHECK_NE(json.find("{\"before\": \"a\", \"by_id\": \"b\", \"by_structure\": \"a\", "
                     "\"origin\": null, \"confidence\": 0.999}"),
           std::string::npos);
  // Nodes that are exchangeable contradict nothing.
  constexpr std::string_view kTwins = R"(
  x = placeholder #1
  a = aten.sin.default(x) #2
  b = aten.sin.default(x) #3
  c = aten.add.Tensor(a, b) #4
  output(c) #5
)";
  CHECK_EQ(ContradictionsOf(kTwins, R"(
  x = placeholder #1
  b = aten.sin.default(x) #3
  a = aten.sin.default(x) #2
  c = aten.add.Tensor(a, b) #4
  output(c) #5
)"),
           "");
}

TEST_CASE("contradictions: exchanged ids of two regions are reported at their boundaries") {
  // Two chains of eight from an input each; `first` and `second` are the first ids of their nodes.
  const auto chains = [](int first, int second) {
    std::string text = "  x = placeholder #1\n  y = placeholder #2\n";
    for (const auto& [name, input, id] : {std::tuple("a", "x", first), {"b", "y", second}}) {
      for (int i = 0; i < 8; ++i) {
        const std::string operand = i == 0 ? std::string(input) : fmt::format("{}{}", name, i - 1);
        text += fmt::format("  {}{} = aten.{}.default({}) #{}\n", name, i, i % 2 ? "cos" : "sin",
                            operand, id + i);
      }
    }
    return text + "  output([a7, b7]) #30\n";
  };
  CHECK_EQ(ContradictionsOf(chains(10, 20), chains(10, 20)), "");
  const std::string told = ContradictionsOf(chains(10, 20), chains(20, 10));
  for (const char* end : {"a0: by id it is b0, by structure a0, which by id was b0\n",
                          "b0: by id it is a0, by structure b0, which by id was a0\n",
                          "a7: by id it is b7, by structure a7, which by id was b7\n"})
    CHECK_NE(told.find(end), std::string::npos);
}

TEST_CASE("contradictions: a recreated node with another node as ancestor") {
  constexpr std::string_view kBefore = R"(
  x = placeholder #1
  y = placeholder #2
  a = aten.sin.default(x) #3
  b = aten.cos.default(y) #4
  c = aten.tan.default(b) #5
  d = aten.exp.default(c) #6
  output([a, d]) #7
)";
  constexpr std::string_view kAfter = R"(
  x = placeholder #1
  y = placeholder #2
  a = aten.sin.default(x) #9
  b = aten.cos.default(y) #4
  c = aten.tan.default(b) #5
  d = aten.exp.default(c) #6
  output([a, d]) #7
)";
  const auto record = [](uint64_t from) {
    return std::vector<Provenance>{{StableId{9}, Origin::kReplaced, {StableId{from}}}};
  };
  CHECK_EQ(ContradictionsOf(kBefore, kAfter, record(3)), "");
  CHECK_EQ(ContradictionsOf(kBefore, kAfter, record(5)),
           "a: by id it is gone, by structure it is a, which says that it was made from others\n");
  CHECK_EQ(ContradictionsOf(kBefore, kAfter), "");
}

TEST_CASE("pins override everything") {
  constexpr std::string_view kBefore = R"(
  x = placeholder
  a = f(x)
  b = f(a)
  output(b)
)";
  CHECK_EQ(DescribeTexts(kBefore, R"(
  x = placeholder
  a = f(x)
  output(a)
)",
                         {.pins = {{"b", "a"}}}),
           R"(
b -> a: renamed+changed
  operands[0]: a -> x
- a
)");
}

TEST_CASE("a vetoed pair is not made, nor any pair of a node pinned to no counterpart") {
  constexpr std::string_view kText = R"(
  x = placeholder
  a = f(x)
  b = f(x)
  c = g(a, b)
  output(c)
)";
  CHECK_EQ(DescribeTexts(kText, kText, {.vetoes = {{"a", "a"}}}), R"(
c -> c: changed
  operands[0]: a -> a
- a
+ a
clone b -> b, a
)");
  CHECK_EQ(DescribeTexts(kText, kText, {.vetoes = {{"", "c"}}}), R"(
output -> output: derived
  operands[0]: c -> c (derived)
- c
+ c
replace c -> c
)");
  for (const char* name : {"x", "a", "c"}) {
    const DiffCase both(kText, kText, {.vetoes = {{name, ""}}});
    CHECK_EQ(both.diff.deleted.size(), 1);
    CHECK_EQ(both.diff.before.name(both.diff.deleted[0]), name);
  }
}

TEST_CASE("impossible pins are errors") {
  const auto module = testing::ParseBody(R"(
  x = placeholder
  a = f(x)
  output(a)
)");
  const Graph& graph = module->graph({0});
  const auto error_of = [&](std::vector<std::pair<std::string, std::string>> pins) {
    return MessageOf(Diff(graph, graph, {.pins = std::move(pins)}));
  };
  CHECK_EQ(error_of({{"q", "a"}}),
           "pin of an unknown node: 'q': the before graph has no node of that name");
  CHECK_EQ(error_of({{"a", "q"}}),
           "pin of an unknown node: 'q': the after graph has no node of that name");
  CHECK_EQ(error_of({{"a", "a"}, {"a", "a"}}),
           "pin of a node that is pinned already: 'a' = 'a': name each node once");
  CHECK_EQ(error_of({{"a", "x"}}),
           "pin of nodes of different kinds: 'a' = 'x': pin inputs with inputs, computations with "
           "computations");
  const auto error_of_veto = [&](const std::string& before, const std::string& after) {
    return MessageOf(Diff(graph, graph, {.pins = {{"a", "a"}}, .vetoes = {{before, after}}}));
  };
  CHECK_EQ(error_of_veto("q", ""),
           "veto of an unknown node: 'q': the before graph has no node of that name");
  CHECK_EQ(error_of_veto("", ""),
           "veto without a node: name one node, or two that are not the same");
  CHECK_EQ(error_of_veto("a", "a"), "pin of a vetoed pair: 'a' = 'a': drop one of the two");
  CHECK_EQ(error_of_veto("a", ""), "pin of a vetoed pair: 'a' = 'a': drop one of the two");
}

TEST_CASE("a change in every layer but one is a pattern with an exception") {
  std::string before = "  x = placeholder\n", after = before;
  std::string last_before = "x", last_after = "x";
  for (int i = 0; i < 8; ++i) {
    const std::string meta = fmt::format(" {{module=layers.{}.mlp}}\n", i);
    before += fmt::format("  a{} = aten.sin.default({}){}", i, last_before, meta);
    before += fmt::format("  b{} = aten.add.Tensor(a{}, {}){}", i, i, i, meta);
    after += fmt::format("  a{} = aten.sin.default({}){}", i, last_after, meta);
    std::string operand = fmt::format("a{}", i);
    if (i != 5) {
      after += fmt::format("  k{} = aten._to_copy.default(a{}){}", i, i, meta);
      operand = fmt::format("k{}", i);
    }
    after += fmt::format("  b{} = aten.add.Tensor({}, {}){}", i, operand, i, meta);
    last_before = last_after = fmt::format("b{}", i);
  }
  before += "  output(b7)\n";
  after += "  output(b7)\n";
  const DiffCase both(before, after);
  CHECK_EQ(both.diff.summary.inserted, 7);
  CHECK_EQ(both.diff.summary.changed, 7);
  REQUIRE_EQ(both.diff.patterns.size(), 1);
  const Pattern& pattern = both.diff.patterns[PatternId{0}];
  CHECK_EQ(pattern.title, "insert aten._to_copy.default before aten.add.Tensor");
  CHECK_EQ(pattern.where, "layers.{0..7}.mlp");
  CHECK_EQ(pattern.except, std::vector<std::string>{"layers.5.mlp"});
  CHECK_EQ(pattern.hunks.size(), 7);
  CHECK_EQ(pattern.nodes, 14);
}

}  // namespace
}  // namespace strata
