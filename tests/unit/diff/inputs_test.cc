// Inputs that neither a common list nor common users tell.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::DiffCase;
using testing::PartnerOf;

TEST_CASE("inputs: the only one of its type stays it, though all its users were replaced") {
  const std::string tail = "  e = aten.relu.default(d) : f32[2, 8]\n  output([e])\n";
  const std::string before =
      "  w = placeholder : f32[8, 3]\n  b = placeholder : f32[8]\n  x = placeholder : f32[2, 3]\n"
      "  c = aten.mm.default(x, w) : f32[2, 8]\n  d = aten.add.Tensor(c, b) : f32[2, 8]\n" +
      tail;
  SUBCASE("by others") {
    const DiffCase both(before,
                        "  x = placeholder : f32[2, 3]\n  w = attr folded : f32[24]\n"
                        "  d = mkl.linear.default(x, w) : f32[2, 8]\n" +
                            tail);
    CHECK_EQ(PartnerOf(both.diff, "x"), "x");
    CHECK_EQ(PartnerOf(both.diff, "w"), "-");
  }
  SUBCASE("but not if it stands where a computation stood") {
    const DiffCase both(before,
                        "  y = placeholder : f32[2, 3]\n  d = placeholder : f32[2, 8]\n"
                        "  s = aten.sum.default(y)\n"
                        "  e = aten.relu.default(d) : f32[2, 8]\n  output([e, s])\n");
    CHECK_EQ(PartnerOf(both.diff, "c"), "-");
    CHECK_EQ(PartnerOf(both.diff, "w"), "-");
  }
}

/// Layers `x = x + s(y @ u) * (y @ v) * g` for y = f(x), each with its own u, v and g; inputs in
/// the order of `inputs`. `f`: lines that make y of x, with the layer's number as {0}.
std::string Layers(const std::vector<std::string>& inputs, std::string_view f) {
  std::string text = "  x = placeholder : f32[2, 8]\n";
  for (const std::string& input : inputs)
    text += fmt::format("  {} = placeholder : f32[{}8]\n", input, input[0] == 'g' ? "" : "8, ");
  text += "  x0 = aten.relu.default(x) : f32[2, 8]\n";
  for (int i = 0; i < 4; ++i) {
    text += fmt::format(fmt::runtime(f), i);
    text += fmt::format(
        "  p{0} = aten.mm.default(y{0}, u{0}) : f32[2, 8]\n"
        "  s{0} = aten.silu.default(p{0}) : f32[2, 8]\n"
        "  q{0} = aten.mm.default(y{0}, v{0}) : f32[2, 8]\n"
        "  m{0} = aten.mul.Tensor(s{0}, q{0}) : f32[2, 8]\n"
        "  n{0} = aten.mul.Tensor(m{0}, g{0}) : f32[2, 8]\n"
        "  x{1} = aten.add.Tensor(x{0}, n{0}) : f32[2, 8]\n",
        i, i + 1);
  }
  return text + "  output([x4])\n";
}

TEST_CASE("inputs: a list in another order tells nothing of inputs with one use in many layers") {
  std::vector<std::string> by_kind, by_layer;
  for (const char* kind : {"g", "u", "v"}) {
    for (int i = 0; i < 4; ++i)
      by_kind.push_back(fmt::format("{}{}", kind, i));
  }
  for (int i = 0; i < 4; ++i) {
    for (const char* kind : {"g", "u", "v"})
      by_layer.push_back(fmt::format("{}{}", kind, i));
  }
  const DiffCase both(Layers(by_kind,
                             "  a{0} = aten.sin.default(x{0}) : f32[2, 8]\n"
                             "  b{0} = aten.mul.Scalar(a{0}, 2.0) : f32[2, 8]\n"
                             "  y{0} = aten.mul.Tensor(a{0}, b{0}) : f32[2, 8]\n"),
                      Layers(by_layer, "  y{0} = my.attention.default(x{0}, 0.5) : f32[2, 8]\n"));
  for (const std::string& input : by_kind)
    CHECK_EQ(PartnerOf(both.diff, input), input);
}

TEST_CASE("inputs: where no operator is on both sides the list of types is all there is") {
  const std::string inputs =
      "  a = placeholder : f32[4, 8]\n  b = placeholder : f32[4]\n  c = placeholder : f32[4]\n"
      "  x = placeholder : f32[2, 8]\n";
  const DiffCase both(inputs + "  y = torch.nn.functional.bilinear(x, a, b, c)\n  output([y])\n",
                      inputs +
                          "  t = placeholder : f32[2, 4]\n  p = aten.t.default(a)\n"
                          "  m = aten.addmm.default(b, x, p)\n  n = aten.add.Tensor(m, c)\n"
                          "  g = aten.mm.default(t, a)\n  output([n, g])\n");
  for (const char* input : {"a", "b", "c", "x"})
    CHECK_EQ(PartnerOf(both.diff, input), input);
}

}  // namespace
}  // namespace strata
