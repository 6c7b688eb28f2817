// Inputs that neither a common list nor common users identify.
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::DiffCase;
using testing::PartnerOf;

TEST_CASE("inputs: the only input of a type is matched even if all its users were replaced") {
  const std::string tail = "  e = aten.relu.default(d) : f32[2, 8]\n  output([e])\n";
  const std::string before = R"(
  w = placeholder : f32[8, 3]
  b = placeholder : f32[8]
  x = placeholder : f32[2, 3]
  c = aten.mm.default(x, w) : f32[2, 8]
  d = aten.add.Tensor(c, b) : f32[2, 8]
)" + tail;
  SUBCASE("users replaced by other operators") {
    const DiffCase both(before,
                        R"(
  x = placeholder : f32[2, 3]
  w = attr folded : f32[24]
  d = mkl.linear.default(x, w) : f32[2, 8]
)" + tail);
    CHECK_EQ(PartnerOf(both.diff, "x"), "x");
    CHECK_EQ(PartnerOf(both.diff, "w"), "-");
  }
  SUBCASE("not if it replaces a computation") {
    const DiffCase both(before,
                        R"(
  y = placeholder : f32[2, 3]
  d = placeholder : f32[2, 8]
  s = aten.sum.default(y)
  e = aten.relu.default(d) : f32[2, 8]
  output([e, s])
)");
    CHECK_EQ(PartnerOf(both.diff, "c"), "-");
    CHECK_EQ(PartnerOf(both.diff, "w"), "-");
  }
}

/// LayersText `x = x + s(y @ u) * (y @ v) * g` for y = f(x), each with its own u, v and g; inputs
/// in the order of `inputs`. `f`: lines that make y of x, with the layer's number as {0}.
std::string LayersText(const std::vector<std::string>& inputs, std::string_view f) {
  std::string text = "  x = placeholder : f32[2, 8]\n";
  for (const std::string& input : inputs)
    text += fmt::format("  {} = placeholder : f32[{}8]\n", input, input[0] == 'g' ? "" : "8, ");
  text += "  x0 = aten.relu.default(x) : f32[2, 8]\n";
  for (int i = 0; i < 4; ++i) {
    text += fmt::format(fmt::runtime(f), i);
    text += fmt::format(
        R"(
  p{0} = aten.mm.default(y{0}, u{0}) : f32[2, 8]
  s{0} = aten.silu.default(p{0}) : f32[2, 8]
  q{0} = aten.mm.default(y{0}, v{0}) : f32[2, 8]
  m{0} = aten.mul.Tensor(s{0}, q{0}) : f32[2, 8]
  n{0} = aten.mul.Tensor(m{0}, g{0}) : f32[2, 8]
  x{1} = aten.add.Tensor(x{0}, n{0}) : f32[2, 8]
)",
        i, i + 1);
  }
  return text + "  output([x4])\n";
}

TEST_CASE("inputs: reordered inputs with one use per layer are matched by use") {
  std::vector<std::string> by_kind, by_layer;
  for (const char* kind : {"g", "u", "v"}) {
    for (int i = 0; i < 4; ++i)
      by_kind.push_back(fmt::format("{}{}", kind, i));
  }
  for (int i = 0; i < 4; ++i) {
    for (const char* kind : {"g", "u", "v"})
      by_layer.push_back(fmt::format("{}{}", kind, i));
  }
  const DiffCase both(
      LayersText(by_kind,
                 R"(
  a{0} = aten.sin.default(x{0}) : f32[2, 8]
  b{0} = aten.mul.Scalar(a{0}, 2.0) : f32[2, 8]
  y{0} = aten.mul.Tensor(a{0}, b{0}) : f32[2, 8]
)"),
      LayersText(by_layer, "  y{0} = my.attention.default(x{0}, 0.5) : f32[2, 8]\n"));
  for (const std::string& input : by_kind)
    CHECK_EQ(PartnerOf(both.diff, input), input);
}

TEST_CASE("inputs: without common operators inputs are matched by their list of types") {
  const std::string inputs = R"(
  a = placeholder : f32[4, 8]
  b = placeholder : f32[4]
  c = placeholder : f32[4]
  x = placeholder : f32[2, 8]
)";
  const DiffCase both(inputs + "  y = torch.nn.functional.bilinear(x, a, b, c)\n  output([y])\n",
                      inputs + R"(
  t = placeholder : f32[2, 4]
  p = aten.t.default(a)
  m = aten.addmm.default(b, x, p)
  n = aten.add.Tensor(m, c)
  g = aten.mm.default(t, a)
  output([n, g])
)");
  for (const char* input : {"a", "b", "c", "x"})
    CHECK_EQ(PartnerOf(both.diff, input), input);
}

/// Each input of a list is added to what came before; their sizes repeat no sequence of eight.
std::string SumText(int count, const std::function<bool(int)>& is_left_out) {
  std::string inputs, calls;
  std::mt19937 random(1);
  int last = -1;
  uint32_t rows = 0;
  for (int i = 0; i < count; ++i) {
    // Of two equal neighbours either may be the one that is left out.
    rows = static_cast<uint32_t>((rows + random() % 7) % 8 + 1);
    if (is_left_out(i)) continue;
    inputs += fmt::format("  p{} = placeholder : f32[{}, 4]\n", i, rows);
    calls += last < 0 ? fmt::format("  s{0} = aten.relu.default(p{0}) : f32[4, 4]\n", i)
                      : fmt::format("  s{0} = aten.add.Tensor(s{1}, p{0}) : f32[4, 4]\n", i, last);
    last = i;
  }
  return inputs + calls + fmt::format("  output([s{}])\n", last);
}

TEST_CASE("inputs: in a list without repetitions, inputs are known by those next to them") {
  constexpr int kInputs = 200;
  const auto is_gone = [](int i) { return i % 10 == 3; };
  const DiffCase both(SumText(kInputs, [](int) { return false; }), SumText(kInputs, is_gone));
  for (int i = 0; i < kInputs; ++i) {
    const std::string input = fmt::format("p{}", i), call = fmt::format("s{}", i);
    CHECK_EQ(PartnerOf(both.diff, input), is_gone(i) ? "-" : input);
    CHECK_EQ(PartnerOf(both.diff, call), is_gone(i) ? "-" : call);
  }
}

}  // namespace
}  // namespace strata
