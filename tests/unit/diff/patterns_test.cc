#include "diff/pattern/patterns.h"

#include <functional>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::DiffCase;

enum class Change : uint8_t { kNone, kCast, kNegate, kGelu, kScale, kUp, kFused };

/// A row of layers, each changed in some way; with module paths or without.
std::string ChangedLayers(int count, bool paths, const std::function<Change(int)>& change) {
  std::string text = "  x = placeholder : f32[8]\n";
  std::string last = "x";
  for (int i = 0; i < count; ++i) {
    const auto line = [&](std::string_view name, std::string_view call, std::string_view module) {
      const std::string meta = paths ? fmt::format(" {{module=layers.{}.{}}}", i, module) : "";
      text += fmt::format("  {}{} = {} : f32[8]{}\n", name, i, call, meta);
      return fmt::format("{}{}", name, i);
    };
    const Change what = change(i);
    std::string value;
    if (what == Change::kFused) {
      value = line("f", fmt::format("my.norm_silu.default({})", last), "mlp");
    } else {
      value = line("n", fmt::format("aten.rsqrt.default({})", last), "norm");
      value = line(
          "a", fmt::format("aten.{}.default({})", what == Change::kGelu ? "gelu" : "silu", value),
          "mlp");
    }
    if (what == Change::kCast)
      value = line("c", fmt::format("aten._to_copy.default({}, 15)", value), "mlp");
    if (what == Change::kNegate)
      value = line("c", fmt::format("aten.neg.default({})", value), "mlp");
    value = line("m", fmt::format("aten.mul.Tensor({}, {})", value, what == Change::kScale ? 3 : 2),
                 "mlp");
    value = line(
        "u", fmt::format("aten.{}.default({})", what == Change::kUp ? "tanh" : "sigmoid", value),
        "up");
    last = line("r", fmt::format("aten.add.Tensor({}, {})", last, value), "norm");
  }
  return text + fmt::format("  output({})\n", last);
}

/// Patterns, one line each, with their deviations below.
std::string PatternsOf(int count, bool paths, const std::function<Change(int)>& change) {
  const DiffCase both(ChangedLayers(count, paths, [](int) { return Change::kNone; }),
                      ChangedLayers(count, paths, change));
  std::string text = "\n";
  for (const Pattern& pattern : both.diff.patterns) {
    text += fmt::format("{} × {} in {}\n", pattern.hunks.size(), pattern.title, pattern.where);
    for (const Deviation& deviation : pattern.deviations)
      text += fmt::format("  {}: {}\n", deviation.where, deviation.what);
  }
  return text;
}

TEST_CASE("patterns: most layers alike, one that differs and one that was left out") {
  const auto change = [](int i) {
    return i == 7 ? Change::kNegate : i == 9 ? Change::kNone : Change::kCast;
  };
  CHECK_EQ(PatternsOf(12, true, change), R"(
10 × insert aten._to_copy.default (15) before aten.mul.Tensor in layers.{0..11}.mlp
  layers.7.mlp: insert aten.neg.default before aten.mul.Tensor
  layers.9.mlp: 
)");
  CHECK_EQ(PatternsOf(12, false, change), R"(
10 × insert aten._to_copy.default (15) before aten.mul.Tensor in 12 equal places
  place.7: insert aten.neg.default before aten.mul.Tensor
  place.9: 
)");
}

TEST_CASE("patterns: a larger change that reaches a place is what happened there") {
  const auto change = [](int i) { return i == 2 ? Change::kFused : Change::kGelu; };
  CHECK_EQ(PatternsOf(3, true, change), R"(
2 × change aten.silu.default to aten.gelu.default in layers.{0..2}.mlp
  layers.2.mlp: replace aten.rsqrt.default, aten.silu.default by my.norm_silu.default
)");
}

TEST_CASE("patterns: the first and the last layer count as layers that were left out") {
  const auto change = [](int i) { return i == 0 || i == 11 ? Change::kNone : Change::kGelu; };
  for (const bool paths : {true, false}) {
    CHECK_EQ(PatternsOf(12, paths, change),
             fmt::format(R"(
10 × change aten.silu.default to aten.gelu.default in {}
  {}: 
  {}: 
)",
                         paths ? "layers.{0..11}.mlp" : "12 equal places",
                         paths ? "layers.0.mlp" : "place.0", paths ? "layers.11.mlp" : "place.11"));
  }
}

/// ChangedLayers without names, each with two nodes that may change.
std::string TwicePerLayer(int layers, const std::function<std::string(int, int)>& op) {
  std::string text = "  x = placeholder\n", last = "x";
  for (int i = 0; i < layers; ++i)
    text += fmt::format("  w{} = placeholder\n", i);
  for (int i = 0; i < layers; ++i) {
    text += fmt::format(
        "  m{0} = aten.mm.default({1}, w{0})\n  a{0} = {2}(m{0})\n  s{0} = "
        "aten.sigmoid.default(a{0})\n  n{0} = aten.neg.default(s{0})\n  e{0} = "
        "aten.exp.default(n{0})\n  b{0} = {3}(e{0})\n  r{0} = aten.add.Tensor(b{0}, {1})\n",
        i, last, op(i, 0), op(i, 1));
    last = fmt::format("r{}", i);
  }
  return text + fmt::format("  output({})\n", last);
}

TEST_CASE("patterns: a place where one of two nodes changed is not one that lacks the change") {
  const auto relu = [](int, int) { return std::string("aten.relu.default"); };
  const DiffCase both(TwicePerLayer(4, relu), TwicePerLayer(4, [&](int i, int j) {
                        return i == 0 && j == 1 ? relu(i, j) : "aten.gelu.default";
                      }));
  REQUIRE_EQ(both.diff.patterns.size(), 1);
  const Pattern& pattern = both.diff.patterns[PatternId{0}];
  CHECK_EQ(pattern.hunks.size(), 7);
  CHECK_EQ(pattern.where, "4 equal places");
  CHECK(pattern.deviations.empty());
}

TEST_CASE("patterns: equal changes outside of layers without names are counted as places") {
  const auto text = [](const std::string& op) {
    std::string graph = TwicePerLayer(4, [&](int, int) { return op; });
    const std::string end = "  output(r3)\n";
    graph.resize(graph.size() - end.size());
    return graph + fmt::format("  t = aten.tanh.default(r3)\n  z = {}(t)\n  output(z)\n", op);
  };
  const DiffCase both(text("aten.relu.default"), text("aten.gelu.default"));
  REQUIRE_EQ(both.diff.patterns.size(), 1);
  const Pattern& pattern = both.diff.patterns[PatternId{0}];
  CHECK_EQ(pattern.hunks.size(), 9);
  CHECK_EQ(pattern.where, "5 equal places");
}

TEST_CASE("patterns: a change of less than two thirds of the layers is meant for these alone") {
  CHECK_EQ(PatternsOf(12, true, [](int i) { return i < 5 ? Change::kScale : Change::kNone; }), R"(
5 × change args[1] of aten.mul.Tensor: 2 → 3 in layers.{0..4}.mlp
)");
}

TEST_CASE("patterns: different changes of different layers are different patterns") {
  CHECK_EQ(PatternsOf(8, true, [](int i) { return i % 2 == 0 ? Change::kGelu : Change::kUp; }), R"(
4 × change aten.silu.default to aten.gelu.default in layers.{0,2,4,6}.mlp
4 × change aten.sigmoid.default to aten.tanh.default in layers.{1,3,5,7}.up
)");
}

TEST_CASE("patterns: one thing done at several places of the same layers is one pattern") {
  std::string before = "  x = placeholder\n", after = before, last = "x";
  for (int i = 0; i < 6; ++i) {
    for (const char* part : {"q", "k", "o"}) {
      const std::string meta = fmt::format("{{module=layers.{}.{}}}", i, part);
      before += fmt::format("  {0}{1} = aten.view.default({2}, [4]) {3}\n", part, i, last, meta);
      // Layer 4 keeps one of its views.
      const bool kept = i == 4 && part == std::string("k");
      after += fmt::format("  {0}{1} = aten.{4}.default({2}, [4]) {3}\n", part, i, last, meta,
                           kept ? "view" : "reshape");
      last = fmt::format("{}{}", part, i);
    }
  }
  const DiffCase both(before + fmt::format("  output({})\n", last),
                      after + fmt::format("  output({})\n", last));
  REQUIRE_EQ(both.diff.patterns.size(), 1);
  CHECK_EQ(both.diff.patterns[PatternId{0}].hunks.size(), 17);
  CHECK_EQ(both.diff.patterns[PatternId{0}].title,
           "change aten.view.default to aten.reshape.default");
  CHECK_EQ(both.diff.patterns[PatternId{0}].except, std::vector<std::string>{"layers.4.k"});
}

TEST_CASE("patterns: a place left out of whole layers is not named among them") {
  const auto text = [](bool after) {
    std::string body = "  x = placeholder : f32[8]\n";
    std::string last = "x";
    for (int i = 0; i < 6; ++i) {
      for (const char* place : {"q", "k", "v", "o", "g"}) {
        const auto line = [&](std::string_view name, std::string_view call) {
          const std::string node = fmt::format("{}_{}{}", name, place, i);
          body += fmt::format("  {} = {} : f32[8] {{module=layers.{}.{}}}\n", node, call, i, place);
          last = node;
        };
        line("a", fmt::format("aten.{}_like.default({})", place, last));
        if (after && !(i == 4 && place[0] == 'k'))
          line("c", fmt::format("aten.neg.default({})", last));
        line("b", fmt::format("aten.sigmoid.default({})", last));
      }
    }
    return body + fmt::format("  output({})\n", last);
  };
  const DiffCase both(text(false), text(true));
  REQUIRE_EQ(both.diff.patterns.size(), 1);
  CHECK_EQ(both.diff.patterns[PatternId{0}].where, "layers.{0..5}");
  CHECK_EQ(both.diff.patterns[PatternId{0}].except, std::vector<std::string>{"layers.4.k"});
}

TEST_CASE("patterns: what changed about sizes counts, not the sizes") {
  const DiffCase both(R"(
  a = placeholder : f32[4, 128, 64] {module=layers.0.x}
  b = placeholder : f32[128, 32] {module=layers.1.x}
  output([a, b])
)",
                      R"(
  a = placeholder : f32[4, 256, 64] {module=layers.0.x}
  b = placeholder : f32[256, 32] {module=layers.1.x}
  output([a, b])
)");
  REQUIRE_EQ(both.diff.patterns.size(), 1);
  CHECK_EQ(both.diff.patterns[PatternId{0}].title, "change shape of input");
  CHECK_EQ(both.diff.patterns[PatternId{0}].where, "layers.{0..1}.x");
}

TEST_CASE("patterns: hunks of neighbouring layers that touch stay apart") {
  std::string before = "  x = placeholder\n", last_before = "x", last_after = "x";
  for (int i = 0; i < 4; ++i)
    before += fmt::format("  w{} = placeholder\n", i);
  std::string after = before;
  for (int i = 0; i < 4; ++i) {
    const std::string meta = fmt::format("{{module=layers.{}}}", i);
    before += fmt::format("  a{0} = aten.mul.Tensor({1}, w{0}) {2}\n", i, last_before, meta);
    after += fmt::format(
        R"(
  i{0} = aten.neg.default({1}) {2}
  a{0} = aten.mul.Tensor(i{0}, w{0}) {2}
  o{0} = aten.exp.default(a{0}) {2}
)",
        i, last_after, meta);
    last_before = fmt::format("a{}", i);
    last_after = fmt::format("o{}", i);
  }
  const DiffCase both(before + fmt::format("  output({})\n", last_before),
                      after + fmt::format("  output({})\n", last_after));
  std::vector<std::string> sizes;
  for (const Pattern& pattern : both.diff.patterns)
    sizes.push_back(fmt::format("{} in {}", pattern.hunks.size(), pattern.where));
  CHECK_EQ(fmt::format("{}", fmt::join(sizes, "; ")), "4 in layers.{0..3}; 4 in layers.{0..3}");
}

/// Two layers that flatten their input, by numbers or by symbols; one of them may do more.
std::string Flattening(bool symbolic, std::string_view last_size) {
  const auto pick = [&](std::string_view number, std::string_view symbol) {
    return symbolic ? symbol : number;
  };
  std::string text = symbolic ? "  b = placeholder : Sym(s0)\n  t = placeholder : Sym(s1)\n" : "";
  text += fmt::format("  x = placeholder : f32[{}, {}, 8]\n", pick("2", "s0"), pick("12", "s1"));
  if (symbolic) text += "  n = _operator.mul(b, t) : Sym(s0*s1)\n";
  text += fmt::format("  v0 = aten.view.default(x, [{}, 8]) : f32[{}, 8]\n", pick("24", "n"),
                      pick("24", "s0*s1"));
  text += fmt::format("  r = aten.relu.default(v0) : f32[{}, 8]\n", pick("24", "s0*s1"));
  text += fmt::format("  v1 = aten.view.default(r, [{}, {}, 8]) : f32[{}, {}, 8]\n", pick("2", "b"),
                      last_size, pick("2", "s0"), pick("12", "s1"));
  return text + "  output(v1)\n";
}

std::string TitlesOf(std::string_view before, std::string_view after) {
  const DiffCase both(before, after);
  std::string text;
  for (const Pattern& pattern : both.diff.patterns)
    text += fmt::format("{} × {}\n", pattern.hunks.size(), pattern.title);
  return text;
}

TEST_CASE("patterns: sizes that became symbolic are one pattern, and so are those that were") {
  const std::string numbers = Flattening(false, "12"), symbols = Flattening(true, "t");
  CHECK_EQ(TitlesOf(numbers, symbols), "5 × sizes became symbolic (2 → s0, 12 → s1)\n");
  CHECK_EQ(TitlesOf(symbols, numbers), "5 × sizes became constant (s0 → 2, s1 → 12)\n");
}

TEST_CASE("patterns: a size that is another number under the symbols is not in the pattern") {
  const std::string numbers = Flattening(false, "12"), symbols = Flattening(true, "b");
  CHECK_EQ(TitlesOf(numbers, symbols), "3 × sizes became symbolic (2 → s0, 12 → s1)\n");
}

}  // namespace
}  // namespace strata
