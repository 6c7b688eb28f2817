// Inputs that a compiler stores with its program: which attribute holds which is inferred, and
// stated.

#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "prove/proof.h"
#include "tests/unit/prove/prove_texts.h"

namespace strata::prove {
namespace {

constexpr std::string_view kWithInputs = R"(
  w = placeholder : f32[4, 4]
  b = placeholder : f32[4]
  x = placeholder : f32[2, 4]
  mm = aten.mm.default(x, w) : f32[2, 4]
  add = aten.add.Tensor(mm, b) : f32[2, 4]
  again = aten.mm.default(add, w) : f32[2, 4]
  output((again,))
)";

TEST_CASE("an input that became an attribute has its value, which is inferred") {
  const Proof proof = ProveTexts(kWithInputs, R"(
  x = placeholder : f32[2, 4]
  weight = attr %'0.weight' : f32[4, 4]
  bias = attr %'0.bias' : f32[4]
  mm = aten.mm.default(x, weight) : f32[2, 4]
  add = aten.add.Tensor(mm, bias) : f32[2, 4]
  again = aten.mm.default(add, weight) : f32[2, 4]
  output((again,))
)");
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK_EQ(proof.assumptions,
           std::vector<Assumption>{{.text = "the attribute 0.bias holds the input b"},
                                   {.text = "the attribute 0.weight holds the input w"}});
}

TEST_CASE("a graph that computes something else with its attributes differs") {
  CHECK_EQ(ProveTexts(kWithInputs, R"(
  x = placeholder : f32[2, 4]
  weight = attr %'0.weight' : f32[4, 4]
  bias = attr %'0.bias' : f32[4]
  mm = aten.mm.default(x, weight) : f32[2, 4]
  add = aten.add.Tensor(mm, bias) : f32[2, 4]
  again = aten.mm.default(mm, weight) : f32[2, 4]
  output((again,))
)")
               .verdict,
           Verdict::kDiffers);
}

TEST_CASE("what calls state in different ways is not inferred") {
  // One attribute in place of two inputs, and two attributes that hold one input.
  CHECK_EQ(ProveTexts(R"(
  a = placeholder : f32[4]
  b = placeholder : f32[4]
  y = aten.neg.default(a) : f32[4]
  z = aten.exp.default(b) : f32[4]
  output((y, z))
)",
                      R"(
  k = attr k : f32[4]
  y = aten.neg.default(k) : f32[4]
  z = aten.exp.default(k) : f32[4]
  output((y, z))
)")
               .verdict,
           Verdict::kUnproven);
  CHECK_EQ(ProveTexts(R"(
  a = placeholder : f32[4]
  y = aten.neg.default(a) : f32[4]
  z = aten.exp.default(a) : f32[4]
  output((y, z))
)",
                      R"(
  k = attr k : f32[4]
  l = attr l : f32[4]
  y = aten.neg.default(k) : f32[4]
  z = aten.exp.default(l) : f32[4]
  output((y, z))
)")
               .verdict,
           Verdict::kUnproven);
}

TEST_CASE("an input that is written to is not proven to be an attribute") {
  const Proof proof = ProveTexts(R"(
  a = placeholder : f32[4]
  x = placeholder : f32[4]
  y = aten.mul.Tensor(x, a) : f32[4]
  z = aten.add_.Tensor(a, x) : f32[4] ~a
  output((y,))
)",
                                 R"(
  x = placeholder : f32[4]
  k = attr k : f32[4]
  y = aten.mul.Tensor(x, k) : f32[4]
  output((y,))
)");
  CHECK_EQ(proof.verdict, Verdict::kUnproven);
  CHECK_EQ(proof.reason, "a, which is an attribute afterwards, is written to");
}

}  // namespace
}  // namespace strata::prove
