// Traps of matching without names, each on the smallest graphs that show it.
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "diff/match/matching.h"
#include "ir/fx/fx.h"
#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::Describe;
using testing::DescribeTexts;
using testing::DiffCase;
using testing::OrDie;
using testing::PartnerOf;

/// A diff of two FX texts.
struct FxCase {
  FxCase(std::string_view before_text, std::string_view after_text)
      : before(OrDie(ParseFx(before_text))),
        after(OrDie(ParseFx(after_text))),
        diff(OrDie(Diff(before.graph(), after.graph()))) {}
  FxDocument before, after;
  GraphDiff diff;
};

TEST_CASE("dropped results do not shift the others") {
  std::string before = "  x = placeholder\n", after = before, results_before, results_after;
  for (int i = 0; i < 6; ++i) {
    const std::string node = fmt::format(
        "  a{0} = aten.mul.Tensor(x, {0}.0)\n  s{0} = aten.sum.dim_IntList(a{0}, [0])\n", i);
    before += node;
    after += node;
    results_before += fmt::format("{}s{}", i == 0 ? "" : ", ", i);
    if (i > 1) results_after += fmt::format("{}s{}", i == 2 ? "" : ", ", i);
  }
  const DiffCase both(before + "  output([" + results_before + "])\n",
                      after + "  output([" + results_after + "])\n");
  for (int i = 0; i < 6; ++i)
    CHECK_EQ(PartnerOf(both.diff, fmt::format("s{}", i)), fmt::format("s{}", i));
}

TEST_CASE("a node that now computes the value of another one keeps its identity") {
  const std::string head = R"(
  x = placeholder
  y = placeholder
  p = aten.sin.default(x)
  q = aten.cos.default(y)
  a = aten.neg.default(p)
)";
  const std::string tail = R"(
  d = aten.relu.default(c)
  e = aten.add.Tensor(b, x)
  f = aten.add.Tensor(d, y)
  output([e, f])
)";
  const DiffCase both(head + "  b = aten.relu.default(a)\n  c = aten.neg.default(q)\n" + tail,
                      head + "  b = aten.relu.default(q)\n  c = aten.neg.default(p)\n" + tail);
  for (const char* name : {"a", "b", "c", "d"})
    CHECK_EQ(PartnerOf(both.diff, name), name);
  CHECK(both.diff.inserted.empty());
}

TEST_CASE("of two calls with equal operands, the one without additional operands is matched") {
  // Regions that are compiled separately: a forward and a backward body of each.
  constexpr std::string_view kBefore = R"fx(class G(torch.nn.Module):
    def forward(self, x: "f32[4]", w0: "f32[8]", w1: "f32[8]", t: "f32[]"):
        f0 = self.f0
        i0 = torch.ops.higher_order.invoke_subgraph(f0, 'f0', x, w0)
        g0: "f32[4]" = i0[0]
        f1 = self.f1
        i1 = torch.ops.higher_order.invoke_subgraph(f1, 'f1', g0, w1)
        g1: "f32[4]" = i1[0]
        s: "f32[]" = torch.ops.aten.sum.default(g1)
        e: "f32[4]" = torch.ops.aten.expand.default(t, [4])
        b1 = self.b1
        j1 = torch.ops.higher_order.invoke_subgraph(b1, 'b1', g0, w1, e)
        h0: "f32[4]" = j1[0]
        h1: "f32[8]" = j1[1]
        b0 = self.b0
        j0 = torch.ops.higher_order.invoke_subgraph(b0, 'b0', x, w0, h0)
        h2: "f32[4]" = j0[0]
        h3: "f32[8]" = j0[1]
        return (s, h1, h2, h3,)

    class f0(torch.nn.Module):
        def forward(self, a: "f32[4]", w: "f32[8]"):
            r: "f32[4]" = torch.ops.aten.relu.default(a)
            return (r,)

    class f1(torch.nn.Module):
        def forward(self, a: "f32[4]", w: "f32[8]"):
            r: "f32[4]" = torch.ops.aten.relu.default(a)
            return (r,)

    class b1(torch.nn.Module):
        def forward(self, a: "f32[4]", w: "f32[8]", g: "f32[4]"):
            r: "f32[4]" = torch.ops.aten.mul.Tensor(a, g)
            q: "f32[8]" = torch.ops.aten.neg.default(w)
            return (r, q)

    class b0(torch.nn.Module):
        def forward(self, a: "f32[4]", w: "f32[8]", g: "f32[4]"):
            r: "f32[4]" = torch.ops.aten.mul.Tensor(a, g)
            q: "f32[8]" = torch.ops.aten.neg.default(w)
            return (r, q)
)fx";
  constexpr std::string_view kAfter = R"fx(class G(torch.nn.Module):
    def forward(self, x: "f32[4]", w0: "f32[8]", w1: "f32[8]"):
        p0 = self.p0
        i0 = torch.ops.higher_order.invoke_subgraph(p0, 'p0', x, w0)
        g9: "b8[4]" = i0[1]
        g0: "f32[4]" = i0[0]
        p1 = self.p1
        i1 = torch.ops.higher_order.invoke_subgraph(p1, 'p1', g0, w1)
        g8: "b8[4]" = i1[1]
        g1: "f32[4]" = i1[0]
        s: "f32[]" = torch.ops.aten.sum.default(g1)
        return (s, g9, g8,)

    class p0(torch.nn.Module):
        def forward(self, a: "f32[4]", w: "f32[8]"):
            r: "f32[4]" = torch.ops.aten.relu.default(a)
            m: "b8[4]" = torch.ops.aten.le.Scalar(r, 0)
            return (r, m)

    class p1(torch.nn.Module):
        def forward(self, a: "f32[4]", w: "f32[8]"):
            r: "f32[4]" = torch.ops.aten.relu.default(a)
            m: "b8[4]" = torch.ops.aten.le.Scalar(r, 0)
            return (r, m)
)fx";
  const FxCase both(kBefore, kAfter);
  for (const char* name : {"i0", "i1", "g1", "s"})
    CHECK_EQ(PartnerOf(both.diff, name), name);
  CHECK_EQ(PartnerOf(both.diff, "f1"), "p1");
}

TEST_CASE("an operator is replaced in place even if one of its users was rewired") {
  const std::string head = R"(
  x = placeholder
  y = placeholder
  a = aten.sin.default(x)
)";
  const DiffCase both(head + R"(
  c = aten.add.Tensor(a, y)
  d = aten.relu.default(c)
  e = aten.tanh.default(c)
  output([d, e])
)",
                      head + R"(
  c = other.add.default(a, y)
  d = aten.relu.default(c)
  e = aten.tanh.default(a)
  output([d, e])
)");
  CHECK_EQ(PartnerOf(both.diff, "c"), "c");
  CHECK(both.diff.relations.empty());
}

TEST_CASE("a fused operator is not matched with the last operator that it replaces") {
  const std::string head = R"(
  x = placeholder
  y = placeholder
  a = aten.sin.default(x)
)";
  const DiffCase both(head + R"(
  b = aten.exp.default(a)
  c = aten.cos.default(b)
  d = aten.div.Tensor(c, y)
  e = aten.mul.Tensor(d, y)
  r = aten.relu.default(e)
  output([r])
)",
                      head + R"(
  f = fused.exp_cos.default(a)
  g = fused.div_mul.default(f, y)
  r = aten.relu.default(g)
  output([r])
)");
  CHECK_EQ(PartnerOf(both.diff, "e"), "-");
}

TEST_CASE("match: a hub fused with one of its many operands is a new node") {
  std::string head, nodes, list, fused = "x0";
  for (int i = 0; i < 30; ++i) {
    head += fmt::format("  x{} = placeholder : f32[8]\n", i);
    nodes += fmt::format("  n{0} = aten.norm.Scalar(x{0}, 2) : f32[]\n", i);
    list += fmt::format("{}n{}", i == 0 ? "[" : ", ", i);
    if (i > 0) fused += fmt::format(", n{}", i);
  }
  const std::string rest = "  t = aten.norm.Scalar(s, 3) : f32[]\n  output([t])\n";
  std::string fewer = nodes.substr(nodes.find("  n1 ="));
  const DiffCase both(
      head + nodes + "  s = aten.stack.default(" + list + "]) : f32[30]\n" + rest,
      head + fewer + "  s = fused.norm_stack.default(" + fused + ") : f32[30]\n" + rest);
  CHECK_EQ(PartnerOf(both.diff, "s"), "-");
  CHECK_EQ(PartnerOf(both.diff, "n7"), "n7");
}

TEST_CASE("an operator that was replaced everywhere is matched like any other") {
  std::string before = "  x = placeholder\n", after = before;
  std::string last_before = "x", last_after = "x";
  for (int i = 0; i < 4; ++i) {
    before += fmt::format(
        R"(
  v{0} = aten.view.default({1}, [4, 8])
  m{0} = aten.addmm.default(x, v{0}, x)
  w{0} = aten.view.default(m{0}, [2, 2, 8])
  r{0} = aten.relu.default(w{0})
)",
        i, last_before);
    after += fmt::format(
        R"(
  v{0} = aten.reshape.default({1}, [4, 8])
  n{0} = aten.mm.default(v{0}, x)
  p{0} = aten.add.Tensor(n{0}, x)
  w{0} = aten.reshape.default(p{0}, [2, 2, 8])
  r{0} = aten.relu.default(w{0})
)",
        i, last_after);
    last_before = last_after = fmt::format("r{}", i);
  }
  const DiffCase both(before + "  output(r3)\n", after + "  output(r3)\n");
  for (int i = 0; i < 4; ++i) {
    for (const char* name : {"v", "w", "r"})
      CHECK_EQ(PartnerOf(both.diff, fmt::format("{}{}", name, i)), fmt::format("{}{}", name, i));
    CHECK_EQ(PartnerOf(both.diff, fmt::format("m{}", i)), "-");
  }
}

TEST_CASE("a part of a decomposed operator is not matched with the operator") {
  // silu(g) * u with sigmoid and a product: the sigmoid looks like the silu from above.
  const DiffCase both(
      R"(
  x = placeholder
  g = aten.sin.default(x)
  s = aten.silu.default(g)
  m = aten.mul.Tensor(s, x)
  output(m)
)",
      R"(
  x = placeholder
  g = aten.sin.default(x)
  q = aten.sigmoid.default(g)
  s = aten.mul.Tensor(g, q)
  m = aten.mul.Tensor(s, x)
  output(m)
)");
  CHECK_EQ(Describe(both.diff), R"(
m -> m: derived
  operands[0]: s -> s (derived)
- s
+ q
+ s
replace s -> q, s
)");
}

TEST_CASE("of merged equal nodes the first is matched, and their users are derived changes") {
  const DiffCase both(
      R"(
  x = placeholder
  a = f(x)
  b = g(a)
  c = f(x)
  d = g(c)
  s = h(b, d)
  output(s)
)",
      R"(
  x = placeholder
  a = f(x)
  b = g(a)
  s = h(b, b)
  output(s)
)");
  CHECK_EQ(PartnerOf(both.diff, "a"), "a");
  CHECK_EQ(PartnerOf(both.diff, "b"), "b");
  CHECK_EQ(both.diff.summary.merged, 2);
  CHECK_EQ(both.diff.summary.changed, 0);
}

TEST_CASE("match: of merged equal nodes the first is matched even if its own user was removed") {
  // A backward graph that computes again what it needs of the forward one: `d` for `n`.
  const std::string head = R"(
  x = placeholder
  y = placeholder
  m = aten.mul.Tensor(x, y)
  s = aten.add.Tensor(x, y)
  d = aten.div.Tensor(m, s)
)";
  const std::string rest = R"(
  f = aten.neg.default(e)
  g = aten.mul.Tensor(f, s)
  output([g])
)";
  const DiffCase both(head + R"(
  a = aten.add.Tensor(d, x)
  b = aten.sin.default(a)
  n = aten.div.Tensor(m, s)
  e = aten.div.Tensor(n, s)
)" + rest,
                      head + "  e = aten.div.Tensor(d, s)\n" + rest);
  CHECK_EQ(PartnerOf(both.diff, "d"), "d");
  CHECK_EQ(PartnerOf(both.diff, "n"), "-");
}

TEST_CASE("a user whose operand was merged into an equal node is found through that node") {
  std::string text = "  x = placeholder\n  y = placeholder\n";
  const DiffCase both(text + R"(
  a = f(x)
  b = f(x)
  p = aten.mul.Tensor(y, a)
  q = aten.mul.Tensor(y, b)
  r = g(p)
  s = g(q)
  t = h(r, s)
  output(t)
)",
                      text + R"(
  a = f(x)
  p = aten.mul.Tensor(y, a)
  q = aten.mul.Tensor(y, a)
  r = g(p)
  s = g(q)
  t = h(r, s)
  output(t)
)");
  for (const char* name : {"p", "q", "r", "s"})
    CHECK_EQ(PartnerOf(both.diff, name), name);
}

TEST_CASE("chained equal nodes that all get casts keep their positions") {
  std::string before = "  x = placeholder\n", after = before;
  for (int i = 0; i < 3; ++i) {
    const std::string operand = i == 0 ? "x" : fmt::format("p{}", i - 1);
    before += fmt::format("  p{} = aten.permute.default({}, [1, 0])\n", i, operand);
    after += fmt::format(
        R"(
  d{0} = cast.down({1})
  q{0} = aten.permute.default(d{0}, [1, 0])
  p{0} = cast.up(q{0})
)",
        i, operand);
  }
  const DiffCase both(before + "  output(p2)\n", after + "  output(p2)\n");
  for (int i = 0; i < 3; ++i)
    CHECK_EQ(PartnerOf(both.diff, fmt::format("p{}", i)), fmt::format("q{}", i));
}

TEST_CASE("an edited node in a chain of equal nodes is not matched with the next one") {
  constexpr std::string_view kBefore = R"(
  x = placeholder
  a = aten.permute.default(x, [1, 0])
  b = aten.permute.default(a, [1, 0])
  c = f(a, b)
  output(c)
)";
  for (const char* edited : {"aten.permute.default(x, [0, 1])", "aten.other.default(x, [1, 0])"}) {
    std::string after(kBefore);
    after.replace(after.find("aten.permute.default(x, [1, 0])"), 31, edited);
    const DiffCase both(kBefore, after);
    CHECK_EQ(PartnerOf(both.diff, "a"), "a");
    CHECK_EQ(PartnerOf(both.diff, "b"), "b");
  }
}

TEST_CASE("an activation that became an input is not matched with a dropped input") {
  // w1 has the type of the saved value, and stands where it stands.
  const DiffCase both(R"(
  w0 = placeholder : f32[4]
  w1 = placeholder : f32[4]
  t = placeholder : f32[4]
  a = aten.mul.Tensor(w0, w1) : f32[4]
  b = aten.sin.default(a) : f32[4]
  c = aten.mul.Tensor(t, b) : f32[4]
  d = aten.mul.Tensor(c, w0) : f32[4]
  output([b, d])
)",
                      R"(
  w0 = placeholder : f32[4]
  b = placeholder : f32[4]
  t = placeholder : f32[4]
  c = aten.mul.Tensor(t, b) : f32[4]
  d = aten.mul.Tensor(c, w0) : f32[4]
  output([d])
)");
  CHECK_EQ(PartnerOf(both.diff, "w0"), "w0");
  CHECK_EQ(PartnerOf(both.diff, "t"), "t");
  CHECK_EQ(PartnerOf(both.diff, "c"), "c");
  CHECK_EQ(PartnerOf(both.diff, "b"), "-");
}

TEST_CASE("added inputs do not change the matches of the others, used or unused") {
  std::string before, after, calls_before, calls_after;
  for (int i = 0; i < 6; ++i) {
    before += fmt::format("  w{} = placeholder : f32[4]\n", i);
    calls_before += fmt::format("  s{0} = aten.sin.default(w{0}) : f32[4]\n", i);
    if (i % 2 == 0) calls_after += fmt::format("  s{0} = aten.sin.default(w{0}) : f32[4]\n", i);
  }
  after = before + "  saved = placeholder : f32[4]\n";
  calls_after += "  z = aten.cos.default(saved) : f32[4]\n";
  const DiffCase both(before + calls_before + "  output([s0, s1, s2, s3, s4, s5])\n",
                      after + calls_after + "  output([s0, s2, s4, z])\n");
  for (int i = 0; i < 6; ++i)
    CHECK_EQ(PartnerOf(both.diff, fmt::format("w{}", i)), fmt::format("w{}", i));
}

TEST_CASE("a change at a hub does not affect its neighbours") {
  std::string before = "  x = placeholder\n  h = aten.exp.default(x)\n", after = before, results;
  for (int i = 0; i < 100; ++i) {
    before += fmt::format("  a{0} = aten.mul.Tensor(h, {0})\n", i);
    after += fmt::format("  a{0} = aten.{1}.Tensor(h, {0})\n", i, i == 50 ? "add" : "mul");
    results += fmt::format("{}a{}", i == 0 ? "" : ", ", i);
  }
  const std::string end = "  output([" + results + "])\n";
  const DiffCase both(before + end, after + end);
  CHECK_EQ(both.diff.summary.same, 102);
  CHECK_EQ(both.diff.summary.changed, 1);
}

TEST_CASE("match: operands outweigh any number of users") {
  const DiffCase both(
      R"(
  x = placeholder
  y = placeholder
  a = f(x)
  b = f(y)
  c = g(a, 1)
  d = g(a, 2)
  e = g(b, 3)
  k = g(b, 4)
  output([c, d, e, k])
)",
      R"(
  x = placeholder
  y = placeholder
  a = f(y)
  b = f(x)
  c = g(a, 1)
  d = g(a, 2)
  e = g(b, 3)
  k = g(b, 4)
  output([c, d, e, k])
)");
  // Operands count before users, however many these are.
  CHECK_EQ(PartnerOf(both.diff, "a"), "b");
  CHECK_EQ(PartnerOf(both.diff, "b"), "a");
}

TEST_CASE("names of symbols do not matter") {
  const auto text = [](std::string_view s, std::string_view t) {
    return fmt::format(R"fx(class G(torch.nn.Module):
    def forward(self, {0}: "Sym({0})", {1}: "Sym({1})", x: "f32[{0}, {1}][{1}, 1]cpu", y: "f32[{1}, 8][8, 1]cpu"):
        mul: "Sym({0}*{1})" = {0} * {1}
        view: "f32[{0}*{1}][1]cpu" = torch.ops.aten.view.default(x, [mul])
        mm: "f32[{0}, 8][8, 1]cpu" = torch.ops.aten.mm.default(x, y)
        return [view, mm]
)fx",
                       s, t);
  };
  CHECK(FxCase(text("s0", "s1"), text("s77", "s13")).diff.Equal());
  CHECK(FxCase(text("s0", "s1"), text("s1", "s0")).diff.Equal());
  // One symbol for two is another program.
  CHECK_FALSE(FxCase(text("s0", "s1"), text("s0", "s0")).diff.Equal());
}

TEST_CASE("nodes of a body keep their identity when it is inlined, and when it is outlined") {
  constexpr std::string_view kOutlined = R"(class G(torch.nn.Module):
    def forward(self, x: "f32[4]", y: "f32[4]"):
        sin: "f32[4]" = torch.ops.aten.sin.default(x)
        body_0 = self.body_0
        invoke = torch.ops.higher_order.invoke_subgraph(body_0, 'body_0', sin, y);  body_0 = None
        getitem: "f32[4]" = invoke[0];  invoke = None
        exp: "f32[4]" = torch.ops.aten.exp.default(getitem)
        return [exp]

    class body_0(torch.nn.Module):
        def forward(self, a: "f32[4]", b: "f32[4]"):
            mul: "f32[4]" = torch.ops.aten.mul.Tensor(a, b)
            relu: "f32[4]" = torch.ops.aten.relu.default(mul)
            add: "f32[4]" = torch.ops.aten.add.Tensor(relu, b)
            return [add]
)";
  constexpr std::string_view kInlined = R"(class G(torch.nn.Module):
    def forward(self, x: "f32[4]", y: "f32[4]"):
        sin: "f32[4]" = torch.ops.aten.sin.default(x)
        mul: "f32[4]" = torch.ops.aten.mul.Tensor(sin, y)
        relu: "f32[4]" = torch.ops.aten.relu.default(mul)
        add: "f32[4]" = torch.ops.aten.add.Tensor(relu, y)
        exp: "f32[4]" = torch.ops.aten.exp.default(add)
        return [exp]
)";
  const FxCase inlined(kOutlined, kInlined), outlined(kInlined, kOutlined);
  for (const char* name : {"mul", "relu", "add"}) {
    CHECK_EQ(PartnerOf(inlined.diff, fmt::format("body_0/{}", name)), name);
    CHECK_EQ(PartnerOf(outlined.diff, name), fmt::format("body_0/{}", name));
  }
}

TEST_CASE("match: replaced operators next to decomposed ones") {
  // `view` lives on elsewhere, so that the two operators are not one to the matcher.
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder : f32[2, 3, 4]
  w = placeholder : f32[4, 5]
  c = placeholder : f32[5]
  a = aten.view.default(x, [6, 4]) : f32[6, 4]
  b = aten.view.default(x, [6, 4]) : f32[6, 4]
  m = aten.addmm.default(c, a, w) : f32[6, 5]
  n = aten.addmm.default(c, b, w) : f32[6, 5]
  d = aten.view.default(m, [2, 3, 5]) : f32[2, 3, 5]
  e = aten.view.default(n, [2, 3, 5]) : f32[2, 3, 5]
  f = aten.sin.default(d) : f32[2, 3, 5]
  g = aten.cos.default(e) : f32[2, 3, 5]
  h = aten.view.default(x, [24]) : f32[24]
  output([f, g, h])
)",
                         R"(
  x = placeholder : f32[2, 3, 4]
  w = placeholder : f32[4, 5]
  c = placeholder : f32[5]
  a = aten.reshape.default(x, [6, 4]) : f32[6, 4]
  b = aten.reshape.default(x, [6, 4]) : f32[6, 4]
  m = aten.mm.default(a, w) : f32[6, 5]
  m1 = aten.add.Tensor(m, c) : f32[6, 5]
  n = aten.mm.default(b, w) : f32[6, 5]
  n1 = aten.add.Tensor(n, c) : f32[6, 5]
  d = aten.reshape.default(m1, [2, 3, 5]) : f32[2, 3, 5]
  e = aten.reshape.default(n1, [2, 3, 5]) : f32[2, 3, 5]
  f = aten.sin.default(d) : f32[2, 3, 5]
  g = aten.cos.default(e) : f32[2, 3, 5]
  h = aten.view.default(x, [24]) : f32[24]
  output([f, g, h])
)"),
           R"(
a -> a: changed
  target: aten.view.default -> aten.reshape.default
b -> b: changed
  target: aten.view.default -> aten.reshape.default
d -> d: changed
  target: aten.view.default -> aten.reshape.default
  operands[0]: m -> m1 (derived)
e -> e: changed
  target: aten.view.default -> aten.reshape.default
  operands[0]: n -> n1 (derived)
- m
- n
+ m
+ m1
+ n
+ n1
replace m -> m, m1
replace n -> n, n1
)");
}

TEST_CASE("match: returned values are found without a search through all results") {
  // Looking through them would take minutes.
  constexpr int kResults = 100'000;
  const auto write = [](int first) {
    std::string text = "  x = placeholder : f32[4]\n", results;
    for (int i = 0; i < kResults; ++i) {
      text += fmt::format("  n{} = aten.sin.default(x) : f32[4]\n", i);
      if (i >= first) results += fmt::format("{}n{}", i == first ? "" : ", ", i);
    }
    return testing::ParseBody(text + "  output([" + results + "])\n");
  };
  const auto modules = std::pair(write(0), write(1));
  const Listing before(modules.first->graph({0})), after(modules.second->graph({0}));
  const LabelledSides labels = LabelSides(before, after);
  Matching matching(labels.before, labels.after);
  const EntityId output{before.size() - 1};
  matching.ForgetSlotsOf(kBefore, output);
  matching.ForgetSlotsOf(kAfter, output);
  matching.Match(output, output, Via::kInput, 1);
  int64_t agreeing = 0;
  for (int round = 0; round < 10; ++round) {
    for (EntityId i : IdRange<EntityId>(EntityId{1}, output))
      agreeing += matching.Score(i, i).agreeing_users;
  }
  CHECK_EQ(agreeing, 10 * (kResults - 1));
}

}  // namespace
}  // namespace strata
