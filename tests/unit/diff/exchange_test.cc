// Nodes that others could stand for: which of them each one is, where they changed places.
#include "diff/match/exchange.h"

#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "diff/match/repair.h"
#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::DescribeTexts;
using testing::DiffCase;
using testing::PartnerOf;

TEST_CASE("match: nodes that exchanged their users are matched by operands") {
  const std::string head = R"(
  x = placeholder
  y = placeholder
  u = placeholder
  v = placeholder
  p = aten.sin.default(x)
  q = aten.cos.default(y)
  a = aten.mm.default(p, u)
  b = aten.mm.default(q, v)
)";
  SUBCASE("all of them") {
    CHECK_EQ(DescribeTexts(head + "  c = aten.sub.Tensor(a, b)\n  output([c])\n",
                           head + "  c = aten.sub.Tensor(b, a)\n  output([c])\n"),
             R"(
c -> c: changed
  operands[0]: a -> b
  operands[1]: b -> a
)");
  }
  SUBCASE("also among the remaining nodes") {
    std::string rewired = head;
    rewired.replace(rewired.find("(p, u)"), 6, "(p, v)");
    CHECK_EQ(DescribeTexts(head + "  c = aten.sub.Tensor(a, b)\n  output([c, u])\n",
                           rewired + "  c = aten.sub.Tensor(b, a)\n  output([c, u])\n"),
             R"(
a -> a: changed
  operands[1]: u -> v
c -> c: changed
  operands[0]: a -> b
  operands[1]: b -> a
)");
  }
  SUBCASE("with equal evidence for the exchange, users decide") {
    std::string crossed = head;
    crossed.replace(crossed.find("(p, u)"), 6, "(p, v)");
    crossed.replace(crossed.find("(q, v)"), 6, "(q, u)");
    const DiffCase both(head + "  c = aten.sub.Tensor(a, b)\n  output([c])\n",
                        crossed + "  c = aten.sub.Tensor(b, a)\n  output([c])\n");
    CHECK_EQ(PartnerOf(both.diff, "a"), "b");
    CHECK_EQ(PartnerOf(both.diff, "b"), "a");
  }
}

TEST_CASE("match: reordered layers keep their nodes, identified by their weights") {
  std::string inputs;
  for (int i = 0; i < 5; ++i)
    inputs +=
        fmt::format("  u{0} = placeholder : f32[8, 8]\n  w{0} = placeholder : f32[8, 8]\n", i);
  const auto graph = [&](const std::vector<int>& order) {
    std::string text = "  x = placeholder : f32[8, 8]\n" + inputs, value = "x";
    for (const int i : order) {
      text += fmt::format(
          R"(
  a{0} = aten.mm.default({1}, u{0}) : f32[8, 8]
  b{0} = aten.relu.default(a{0}) : f32[8, 8]
  c{0} = aten.mm.default(b{0}, w{0}) : f32[8, 8]
  d{0} = aten.add.Tensor({1}, c{0}) : f32[8, 8]
)",
          i, value);
      value = fmt::format("d{}", i);
    }
    return text + "  output([" + value + "])\n";
  };
  const DiffCase both(graph({0, 1, 2, 3, 4}), graph({0, 3, 1, 2, 4}));
  for (const Pair& pair : both.diff.pairs)
    CHECK_EQ(both.diff.before.name(pair.before), both.diff.after.name(pair.after));
  CHECK_EQ(both.diff.summary.inserted, 0);
  CHECK_EQ(both.diff.summary.deleted, 0);
  // Layers 1, 3 and 4 read another layer each, twice.
  CHECK_EQ(both.diff.summary.changed, 6);
  CHECK_EQ(both.diff.summary.moved, 4);
}

TEST_CASE("match: a long chain whose operators all have other names") {
  const auto chain = [](std::string_view name, int length) {
    std::string text = "  n = placeholder : f32[4]\n", value = "n";
    for (int i = 0; i < length; ++i) {
      text += fmt::format("  n{0} = {1}.{0}({2}) : f32[4]\n", i, name, value);
      value = fmt::format("n{}", i);
    }
    return text + "  output([" + value + "])\n";
  };
  CHECK_EQ(DiffCase(chain("layers", 50), chain("model.layers", 50)).diff.summary.changed, 50);
  // Nothing says which one is missing.
  CHECK_EQ(PartnerOf(DiffCase(chain("layers", 50), chain("model.layers", 49)).diff, "n25"), "-");
}

TEST_CASE("match: nodes that rotated positions are matched cyclically") {
  const auto graph = [](std::string_view a, std::string_view b, std::string_view c) {
    std::string text = "  x = placeholder\n";
    for (int i = 1; i <= 4; ++i)
      text += fmt::format("  w{} = placeholder\n", i);
    for (const auto& [name, weight] : {std::pair("a", a), std::pair("b", b), std::pair("c", c)}) {
      text += fmt::format("  {0} = aten.t.default({1})\n  {0}m = aten.mm.default(x, {0})\n", name,
                          weight);
    }
    return testing::ParseBody(text + "  output([am, bm, cm])\n");
  };
  const auto before_module = graph("w1", "w2", "w3"), after_module = graph("w2", "w3", "w4");
  const Listing before(before_module->graph({0})), after(after_module->graph({0}));
  const Labels before_labels(before, KnownTypeFields(before));
  const Labels after_labels(after, KnownTypeFields(after));
  Matching matching(before_labels, after_labels);
  const auto match = [&](std::string_view a, std::string_view b) {
    matching.Match(before.FindName(a), after.FindName(b), Via::kLocal, 1);
  };
  for (std::string_view name : {"x", "w1", "w2", "w3", "w4", "am", "bm", "cm", "output"})
    match(name, name);
  match("b", "a");
  match("c", "b");
  HopelessNodes hopeless(matching);
  CHECK(Repair(matching,
               {{EntityId{0}, EntityId{0}}, {before.ids().end_id(), after.ids().end_id()}},
               hopeless));
  CHECK_EQ(matching.partner(kBefore, before.FindName("a")), after.FindName("c"));
}

TEST_CASE("match: a region between replaced nodes is found at its new position") {
  // Two branches; all that is around them is replaced, and the second one comes first.
  const auto graph = [](bool is_after) {
    const auto branch = [&](std::string_view n, std::string_view w, std::string_view c) {
      const std::string in =
          is_after ? fmt::format(
                         R"(
  m{0} = aten.mm.default(x, {1}) : f32[8, 8]
  p{0} = aten.add.Tensor(m{0}, {2}) : f32[8, 8]
)",
                         n, w, c)
                   : fmt::format("  p{0} = aten.addmm.default({2}, x, {1}) : f32[8, 8]\n", n, w, c);
      const std::string out =
          is_after
              ? fmt::format(
                    R"(
  q{0} = aten.mm.default(k{0}, {1}) : f32[8, 8]
  r{0} = aten.add.Tensor(q{0}, {2}) : f32[8, 8]
)",
                    n, w, c)
              : fmt::format("  r{0} = aten.addmm.default({2}, k{0}, {1}) : f32[8, 8]\n", n, w, c);
      return in +
             fmt::format(
                 R"(
  h{0} = aten.mul.Tensor(p{0}, 0.5) : f32[8, 8]
  i{0} = aten.mul.Tensor(p{0}, 0.7) : f32[8, 8]
  e{0} = aten.erf.default(i{0}) : f32[8, 8]
  j{0} = aten.add.Scalar(e{0}, 1) : f32[8, 8]
  k{0} = aten.mul.Tensor(h{0}, j{0}) : f32[8, 8]
)",
                 n) +
             out + fmt::format("  s{0} = aten.relu.default(r{0}) : f32[8, 8]\n", n);
    };
    const std::string a = branch("a", "w1", "c1"), b = branch("b", "w2", "c2");
    return R"(
  x = placeholder : f32[8, 8]
  w1 = placeholder : f32[8, 8]
  w2 = placeholder : f32[8, 8]
  c1 = placeholder : f32[8]
  c2 = placeholder : f32[8]
)" + (is_after ? b + a : a + b) +
           "  output([sa, sb])\n";
  };
  const DiffCase both(graph(false), graph(true));
  for (const std::string name : {"ha", "ia", "ea", "ja", "ka", "hb", "ib", "eb", "jb", "kb"})
    CHECK_EQ(PartnerOf(both.diff, name), name);
}

TEST_CASE("match: values that lost their users keep their counterparts") {
  std::string before = "  x = placeholder : f32[]\n", after = before, results, unused;
  for (int i = 0; i < 3; ++i) {
    const std::string values = fmt::format(
        R"(
  f{0} = aten.full.default([], 0.1) : f32[]
  a{0} = aten.abs.default(f{0}) : f32[]
  s{0} = aten.sub.Tensor(f{0}, 1) : f32[]
)",
        i);
    before += values + fmt::format("  r{0} = my.step.default(x, {0}, a{0}, s{0}) : f32[]\n", i);
    unused += values;
    after += fmt::format("  r{0} = my.step.default(x, {0}) : f32[]\n", i);
    results += fmt::format("{}r{}", i == 0 ? "" : ", ", i);
  }
  const std::string end = "  output([" + results + "])\n";
  const DiffCase both(before + end, after + unused + end);
  for (const std::string name : {"f0", "a1", "s2"})
    CHECK_EQ(PartnerOf(both.diff, name), name);
}

TEST_CASE("match: chains exchange their counterparts if more edges agree afterwards") {
  const auto module = testing::ParseBody(R"(
  x = placeholder
  v = placeholder
  w = placeholder
  p = aten.mean.default(x)
  p1 = aten.rsqrt.default(p)
  a = aten.mul.Tensor(v, p1)
  q = aten.mean.default(x)
  q1 = aten.rsqrt.default(q)
  b = aten.mul.Tensor(w, q1)
  output([a, b])
)");
  const Listing listing(module->graph({0}));
  const Labels labels(listing, KnownTypeFields(listing));
  const ScopePair scope{{EntityId{0}, EntityId{0}},
                        {listing.ids().end_id(), listing.ids().end_id()}};
  const auto id = [&](std::string_view name) { return listing.FindName(name); };
  const auto partner = [&](const Matching& matching, std::string_view name) {
    const EntityId image = matching.partner(kBefore, id(name));
    return image.valid() ? listing.name(image) : std::string();
  };
  const auto matched_as = [&](std::vector<std::pair<std::string_view, std::string_view>> pairs) {
    Matching matching(labels, labels);
    for (std::string_view name : {"x", "v", "w", "a", "b", "output"})
      matching.Match(id(name), id(name), Via::kLocal, 1);
    for (const auto& [before, after] : pairs)
      matching.Match(id(before), id(after), Via::kLocal, 1);
    return matching;
  };
  SUBCASE("two chains") {
    Matching matching = matched_as({{"p", "q"}, {"p1", "q1"}, {"q", "p"}, {"q1", "p1"}});
    CHECK(Exchange(matching, scope));
    for (std::string_view name : {"p", "p1", "q", "q1"})
      CHECK_EQ(partner(matching, name), name);
    CHECK_FALSE(Exchange(matching, scope));
  }
  SUBCASE("a chain whose counterparts are free; the released nodes are matched again") {
    Matching matching = matched_as({{"p", "q"}, {"p1", "q1"}});
    CHECK(Exchange(matching, scope));
    for (std::string_view name : {"p", "p1", "q", "q1"})
      CHECK_EQ(partner(matching, name), name);
  }
  SUBCASE("pinned pairs stay") {
    Matching matching(labels, labels);
    for (std::string_view name : {"x", "v", "w", "a", "b", "output"})
      matching.Match(id(name), id(name), Via::kLocal, 1);
    matching.Match(id("p1"), id("q1"), Via::kPin, 1);
    matching.Match(id("q1"), id("p1"), Via::kPin, 1);
    CHECK_FALSE(Exchange(matching, scope));
  }
}

TEST_CASE("match: a chain without counterparts takes those of another if more edges agree then") {
  const auto before = testing::ParseBody(R"(
  x = placeholder
  w = placeholder
  p = aten.mean.default(x)
  p1 = aten.rsqrt.default(p)
  q = aten.mean.default(x)
  q1 = aten.rsqrt.default(q)
  b = aten.mul.Tensor(w, q1)
  output(b)
)");
  const auto after = testing::ParseBody(R"(
  x = placeholder
  w = placeholder
  q = aten.mean.default(x)
  q1 = aten.rsqrt.default(q)
  b = aten.mul.Tensor(w, q1)
  output(b)
)");
  const Listing listings[2] = {Listing(before->graph({0})), Listing(after->graph({0}))};
  const LabelledSides labels = LabelSides(listings[kBefore], listings[kAfter]);
  const ScopePair scope{{EntityId{0}, EntityId{0}},
                        {listings[kBefore].ids().end_id(), listings[kAfter].ids().end_id()}};
  Matching matching(labels.before, labels.after);
  const auto match = [&](std::string_view name, std::string_view image) {
    matching.Match(listings[kBefore].FindName(name), listings[kAfter].FindName(image), Via::kLocal,
                   1);
  };
  for (std::string_view name : {"x", "w", "b", "output"})
    match(name, name);
  match("p", "q");
  match("p1", "q1");
  CHECK(Exchange(matching, scope));
  for (std::string_view name : {"q", "q1"}) {
    CHECK_EQ(matching.partner(kBefore, listings[kBefore].FindName(name)),
             listings[kAfter].FindName(name));
  }
  CHECK_FALSE(Exchange(matching, scope));
}

TEST_CASE(
    "match: of two candidates with one agreeing edge each, the one with equal operands is "
    "matched") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder : f32[4]
  r1 = placeholder : f32[5]
  r2 = placeholder : f32[4]
  n = aten.neg.default(r1) : f32[4]
  a = aten.add.Tensor(x, n) : f32[4]
  b = aten.add.Tensor(a, r2) : f32[4]
  s = aten.sin.default(a) : f32[4]
  t = aten.cos.default(b) : f32[4]
  output([s, t])
)",
                         R"(
  x = placeholder : f32[4]
  r1 = placeholder : f32[5]
  r2 = placeholder : f32[4]
  b = aten.add.Tensor(x, r2) : f32[4]
  s = aten.sin.default(x) : f32[4]
  t = aten.cos.default(b) : f32[4]
  output([s, t])
)"),
           R"(
b -> b: changed
  operands[0]: a -> x
s -> s: changed
  operands[0]: a -> x
- n
- a
)");
}

TEST_CASE("match: one of several equal nodes has another operator now") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder
  a = aten.unsqueeze.default(x, 0)
  a1 = aten.sin.default(a)
  b = aten.unsqueeze.default(x, 0)
  b1 = aten.sin.default(b)
  c = aten.unsqueeze.default(x, 0)
  c1 = aten.sin.default(c)
  output([a1, b1, c1])
)",
                         R"(
  x = placeholder
  a = other.unsqueeze.default(x, 0)
  a1 = aten.sin.default(a)
  b = aten.unsqueeze.default(x, 0)
  b1 = aten.sin.default(b)
  c = aten.unsqueeze.default(x, 0)
  c1 = aten.sin.default(c)
  output([a1, b1, c1])
)"),
           "\na -> a: changed\n  target: aten.unsqueeze.default -> other.unsqueeze.default\n");
}

}  // namespace
}  // namespace strata
