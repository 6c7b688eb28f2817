#include <doctest/doctest.h>
#include <fmt/format.h>

#include "diff/pattern/titles.h"
#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::Describe;
using testing::DescribeTexts;
using testing::DiffCase;

TEST_CASE("replace: a fused region, its consumer is derived") {
  CHECK_EQ(DescribeTexts(R"(
  b = placeholder
  x = placeholder
  w = placeholder
  m = aten.mm.default(x, w)
  a = aten.add.Tensor(m, b)
  s = aten.sin.default(a)
  output(s)
)",
                         R"(
  b = placeholder
  x = placeholder
  w = placeholder
  am = aten.addmm.default(b, x, w)
  s = aten.sin.default(am)
  output(s)
)"),
           R"(
s -> s: derived
  operands[0]: a -> am (derived)
- m
- a
+ am
replace m, a -> am
)");
}

TEST_CASE("replace: a folded constant") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder
  f = aten.full.default([2], 1)
  g = aten.neg.default(f)
  s = aten.add.Tensor(x, g)
  output(s)
)",
                         R"(
  x = placeholder
  c = attr _frozen_0
  s = aten.add.Tensor(x, c)
  output(s)
)"),
           R"(
s -> s: derived
  operands[1]: g -> c (derived)
- f
- g
+ c
replace f, g -> c
)");
}

TEST_CASE("merge: equal nodes become one, the consumer of the other is derived") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder
  a = aten.sin.default(x)
  b = aten.sin.default(x)
  s = aten.sub.Tensor(a, b)
  output(s)
)",
                         R"(
  x = placeholder
  a = aten.sin.default(x)
  s = aten.sub.Tensor(a, a)
  output(s)
)"),
           R"(
s -> s: derived
  operands[1]: b -> a (derived)
- b
merge a, b -> a
)");
}

TEST_CASE("clone: a consumer that reads the copy is changed while the original lives") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder
  a = aten.sin.default(x)
  s = aten.cos.default(a)
  t = aten.sub.Tensor(s, a)
  output(t)
)",
                         R"(
  x = placeholder
  a = aten.sin.default(x)
  s = aten.cos.default(a)
  a_1 = aten.sin.default(x)
  t = aten.sub.Tensor(s, a_1)
  output(t)
)"),
           R"(
t -> t: changed
  operands[1]: a -> a_1
+ a_1
clone a -> a, a_1
)");
}

TEST_CASE("clone: of several equal nodes the original is the one that its users read before") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder
  a = aten.sin.default(x)
  b = aten.sin.default(x)
  s = aten.cos.default(a)
  t = aten.tan.default(b)
  u = aten.exp.default(b)
  output([s, t, u])
)",
                         R"(
  x = placeholder
  a = aten.sin.default(x)
  b = aten.sin.default(x)
  s = aten.cos.default(a)
  t = aten.tan.default(b)
  b_1 = aten.sin.default(x)
  u = aten.exp.default(b_1)
  output([s, t, u])
)"),
           R"(
u -> u: changed
  operands[0]: b -> b_1
+ b_1
clone b -> b, b_1
)");
}

TEST_CASE("replace: regions that touch are told apart by what they read") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder
  w = placeholder
  y = placeholder
  a = aten.sin.default(x)
  b = aten.mm.default(a, w)
  c = aten.add.Tensor(b, y)
  d = aten.relu.default(c)
  e = aten.neg.default(d)
  output(e)
)",
                         R"(
  x = placeholder
  w = placeholder
  y = placeholder
  f = fused.one.default(x, w)
  g = fused.two.default(f, y)
  e = aten.neg.default(g)
  output(e)
)"),
           R"(
e -> e: derived
  operands[0]: d -> g (derived)
- a
- b
- c
- d
+ f
+ g
replace a, b -> f
replace c, d -> g
)");
}

TEST_CASE("replace: where several cuts are possible, the names of new operators may tell") {
  constexpr std::string_view kBefore = R"(
  x = placeholder
  a = aten.add.Tensor(x, 1)
  b = aten.mul.Tensor(a, 2)
  c = aten.sub.Tensor(b, 3)
  d = aten.div.Tensor(c, 4)
  e = aten.neg.default(d)
  output(e)
)";
  const auto relations = [&](std::string_view first, std::string_view second) {
    const DiffCase both(kBefore, fmt::format(R"(
  x = placeholder
  f = fused.{}.default(x)
  g = fused.{}.default(f)
  e = aten.neg.default(g)
  output(e)
)",
                                             first, second));
    const std::string text = Describe(both.diff);
    return text.substr(text.find("replace"));
  };
  CHECK_EQ(relations("add_mul", "sub_div"), "replace a, b -> f\nreplace c, d -> g\n");
  CHECK_EQ(relations("add_mul_sub", "div_4"), "replace a, b, c -> f\nreplace d -> g\n");
  CHECK_EQ(relations("one", "two"), "replace a, b, c, d -> f, g\n");
}

TEST_CASE("replace: a region stays one where a consumer of many was rewired to something else") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder
  y = placeholder
  a = aten.sin.default(x)
  b = aten.add.Tensor(a, y)
  s = aten.cos.default(b)
  t = aten.tan.default(b)
  u = aten.exp.default(b)
  output([s, t, u])
)",
                         R"(
  x = placeholder
  y = placeholder
  f = fused.sin_add.default(x, y)
  s = aten.cos.default(f)
  t = aten.tan.default(f)
  u = aten.exp.default(y)
  output([s, t, u])
)"),
           R"(
s -> s: derived
  operands[0]: b -> f (derived)
t -> t: derived
  operands[0]: b -> f (derived)
u -> u: changed
  operands[0]: b -> y
- a
- b
+ f
replace a, b -> f
)");
}

TEST_CASE("replace: a node that is computed in chunks, its consumer is derived") {
  constexpr std::string_view kBefore = R"(
  x = placeholder : f32[8, 4]
  w = placeholder : f32[4, 4]
  n = aten.neg.default(x) : f32[8, 4]
  y = aten.mm.default(n, w) : f32[8, 4]
  z = aten.relu.default(y) : f32[8, 4]
  output(z)
)";
  constexpr std::string_view kAfter = R"(
  x = placeholder : f32[8, 4]
  w = placeholder : f32[4, 4]
  n = aten.neg.default(x) : f32[8, 4]
  (a, b) = aten.split.Tensor(n, 4) as split : (f32[4, 4], f32[4, 4])
  y0 = aten.mm.default(a, w) : f32[4, 4]
  y1 = aten.mm.default(b, w) : f32[4, 4]
  y = aten.cat.default([y0, y1]) : f32[8, 4]
  z = aten.relu.default(y) : f32[8, 4]
  output(z)
)";
  CHECK_EQ(DescribeTexts(kBefore, kAfter), R"(
z -> z: derived
  operands[0]: y -> y (derived)
- y
+ split
+ a
+ b
+ y0
+ y1
+ y
replace y -> split, a, b, y0, y1, y
)");
  CHECK_EQ(DescribeTexts(kAfter, kBefore), R"(
z -> z: derived
  operands[0]: y -> y (derived)
- split
- a
- b
- y0
- y1
- y
+ y
replace split, a, b, y0, y1, y -> y
)");
}

/// A chain of unary nodes `n0 = op(first)`, `n1 = op(n0)`, …; suffixes distinguish chains.
std::string Chain(std::string_view first, std::string_view suffix) {
  std::string text, last(first);
  for (const std::string_view op : {"sin", "cos", "tan", "exp", "log"}) {
    text += fmt::format("  {0}{1} = aten.{0}.default({2})\n", op, suffix, last);
    last = fmt::format("{}{}", op, suffix);
  }
  return text;
}

TEST_CASE("clone: a long body that is cut into parts is kept, the copies are clones") {
  const std::string before =
      "  x = placeholder\n" + Chain("x", "") + "  z = aten.relu.default(log)\n  output(z)\n";
  const std::string after = "  x = placeholder\n  (a, b) = aten.split.Tensor(x, 4) as split\n" +
                            Chain("a", "") + Chain("b", "_1") +
                            "  c = aten.cat.default([log, log_1])\n  z = aten.relu.default(c)\n" +
                            "  output(z)\n";
  CHECK_EQ(DescribeTexts(before, after), R"(
sin -> sin: changed
  operands[0]: x -> a
z -> z: changed
  operands[0]: log -> c
+ split
+ a
+ b
+ sin_1
+ cos_1
+ tan_1
+ exp_1
+ log_1
+ c
clone sin -> sin, sin_1
clone cos -> cos, cos_1
clone tan -> tan, tan_1
clone exp -> exp, exp_1
clone log -> log, log_1
)");
  const DiffCase parts(before, after);
  REQUIRE_EQ(parts.diff.hunks.size(), 1);
  CHECK_EQ(Titles(parts.diff).OfHunk(parts.diff.hunks[HunkId{0}]),
           "copy aten.sin.default, aten.cos.default, aten.tan.default and 2 more, insert "
           "aten.split.Tensor, aten.cat.default");
}

/// A body with an operator of two results, a part of its own value, and a size of its own.
std::string Choice(std::string_view input, std::string_view suffix, std::string_view size) {
  return fmt::format(
      R"(  (v{0}, i{0}) = aten.topk.default({1}, 2, -1) as topk{0} : (f32[4, 2], i64[4, 2])
  h{0} = aten.slice.Tensor({1}, 1, 0, 2) : f32[4, 2]
  g{0} = aten.gather.default({1}, 1, i{0}) : f32[4, 2]
  n{0} = aten.nonzero.default(g{0}) : i64[{2}, 2]
  a{0} = aten.add.Tensor(v{0}, h{0}) : f32[4, 2]
  s{0} = aten.index.Tensor(a{0}, [n{0}]) : f32[{2}, 2]
)",
      suffix, input, size);
}

TEST_CASE("clone: copies have elements of tuples, parts and data-dependent sizes of their own") {
  const std::string before = "  x = placeholder : f32[8, 4]\n" + Choice("x", "", "u0") +
                             "  z = aten.relu.default(s)\n  output(z)\n";
  const std::string after =
      "  x = placeholder : f32[8, 4]\n" +
      std::string("  (p, q) = aten.split.Tensor(x, 4) as split : (f32[4, 4], f32[4, 4])\n") +
      Choice("p", "", "u0") + Choice("q", "_1", "u1") +
      "  c = aten.cat.default([s, s_1])\n  z = aten.relu.default(c)\n  output(z)\n";
  const DiffCase parts(before, after);
  std::string clones;
  for (const Relation& relation : parts.diff.relations) {
    if (relation.kind != RelationKind::kClone) continue;
    clones += fmt::format("{}: {}\n", parts.diff.before.name(relation.before[0]),
                          parts.diff.after.name(relation.after[1]));
  }
  CHECK_EQ(clones, "topk: topk_1\nv: v_1\ni: i_1\nh: h_1\ng: g_1\nn: n_1\na: a_1\ns: s_1\n");
}

TEST_CASE("became_input: a computation that another graph hands over") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder : f32[5]
  w = placeholder : f32[3]
  a = aten.sin.default(x) : f32[2]
  b = aten.cos.default(a) : f32[2]
  c = aten.sub.Tensor(b, w) : f32[3]
  d = aten.mul.Tensor(c, b) : f32[3]
  output(d)
)",
                         R"(
  b = placeholder : f32[2]
  w = placeholder : f32[3]
  c = aten.sub.Tensor(b, w) : f32[3]
  d = aten.mul.Tensor(c, b) : f32[3]
  output(d)
)"),
           R"(
c -> c: derived
  operands[0]: b -> b (derived)
d -> d: derived
  operands[1]: b -> b (derived)
- x
- a
- b
+ b
became_input b -> b
)");
}

TEST_CASE("became_compute: an input that is computed now") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder : f32[5]
  b = placeholder : f32[2]
  c = aten.sub.Tensor(b, x) : f32[5]
  output(c)
)",
                         R"(
  x = placeholder : f32[5]
  b = aten.sin.default(x) : f32[2]
  c = aten.sub.Tensor(b, x) : f32[5]
  output(c)
)"),
           R"(
c -> c: derived
  operands[0]: b -> b (derived)
- b
+ b
became_compute b -> b
)");
}

TEST_CASE("became_compute: an input that a compiler stores is a constant now") {
  const DiffCase parts(R"(
  x = placeholder : f32[2]
  w = placeholder : f32[2]
  c = aten.sub.Tensor(w, x) : f32[2]
  output(c)
)",
                       R"(
  x = placeholder : f32[2]
  weight = attr %'0.weight' : f32[2]
  c = aten.sub.Tensor(weight, x) : f32[2]
  output(c)
)");
  REQUIRE_EQ(parts.diff.hunks.size(), 1);
  CHECK_EQ(Titles(parts.diff).OfHunk(parts.diff.hunks[HunkId{0}]), "make an input a constant");
}

}  // namespace
}  // namespace strata
