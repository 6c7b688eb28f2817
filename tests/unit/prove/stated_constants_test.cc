// Constants of logs that a compiler folds into literals: their numbers are inferred, and stated.

#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "prove/partition.h"
#include "prove/proof.h"
#include "tests/support/graphs.h"
#include "tests/unit/prove/prove_texts.h"

namespace strata::prove {
namespace {

using testing::ParseBody;

constexpr std::string_view kWithConstants = R"(
  x = placeholder : f32[4]
  k = attr _tensor_constant0 : f32[]
  copy = aten.lift_fresh_copy.default(k) : f32[]
  z = attr _tensor_constant1 : c64[]
  mul = aten.mul.Tensor(x, copy) : f32[4]
  add = aten.add.Tensor(mul, copy) : f32[4]
  turned = aten.mul.Tensor(add, z) : c64[4]
  parts = aten.view_as_real.default(turned) : f32[4, 2]
  output((parts,))
)";

/// The same, with literals where constants were.
std::string Folded(std::string_view first, std::string_view second, std::string_view dtype = "f32",
                   std::string_view name = "mul") {
  return fmt::format(R"(
  x = placeholder : f32[4]
  full = aten.full.default([], {0}, dtype=torch.float32) : {2}[]
  full_1 = aten.full.default([], {1}, dtype=torch.float32) : {2}[]
  full_2 = aten.full.default([], raw('(1-2j)'), dtype=torch.complex64) : c64[]
  {3} = aten.mul.Tensor(x, full) : f32[4]
  add = aten.add.Tensor({3}, full_1) : f32[4]
  turned = aten.mul.Tensor(add, full_2) : c64[4]
  parts = aten.view_as_real.default(turned) : f32[4, 2]
  output((parts,))
)",
                     first, second, dtype, name);
}

TEST_CASE("a constant that became a literal has its number, which is inferred") {
  const Proof proof = ProveTexts(kWithConstants, Folded("3.0", "3.0"));
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK_EQ(proof.assumptions,
           std::vector<Assumption>{{.text = "the constant _tensor_constant0 is 3"},
                                   {.text = "the constant _tensor_constant1 is (1-2j)"}});
}

TEST_CASE("a constant with two numbers differs") {
  CHECK_EQ(ProveTexts(kWithConstants, Folded("3.0", "4.0")).verdict, Verdict::kDiffers);
}

TEST_CASE("a literal of another type, or in a call of another name, states no constant") {
  const Proof other_type = ProveTexts(kWithConstants, Folded("3", "3", "i64"));
  CHECK_EQ(other_type.verdict, Verdict::kDiffers);
  CHECK_EQ(other_type.assumptions.size(), 1);
  // `add` states the number for `product`, too.
  CHECK_EQ(ProveTexts(kWithConstants, Folded("3.0", "3.0", "f32", "product")).verdict,
           Verdict::kProven);
  CHECK_EQ(ProveTexts(kWithConstants, Folded("4.0", "3.0", "f32", "product")).verdict,
           Verdict::kDiffers);
}

TEST_CASE("constants that stay constants need no assumption") {
  const Proof proof = ProveTexts(kWithConstants, kWithConstants);
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK(proof.assumptions.empty());
}

TEST_CASE("forward and backward state constants of their joint graph") {
  const auto joint = ParseBody(R"(
  x = placeholder : f32[4]
  tangents_1 = placeholder : f32[4]
  k = attr _tensor_constant0 : f32[]
  y = aten.mul.Tensor(x, k) : f32[4]
  g = aten.mul.Tensor(tangents_1, k) : f32[4]
  output((y, g))
)");
  const auto half = [](std::string_view input, std::string_view name, std::string_view number) {
    return ParseBody(fmt::format(R"(
  {0} = placeholder : f32[4]
  full = aten.full.default([], {2}) : f32[]
  {1} = aten.mul.Tensor({0}, full) : f32[4]
  output(({1},))
)",
                                 input, name, number));
  };
  const auto proof_of = [&](std::string_view backward_number) {
    const auto forward = half("x", "y", "3.0"), backward = half("tangents_1", "g", backward_number);
    return ProvePartition(*joint->FindGraph("g"), *forward->FindGraph("g"),
                          *backward->FindGraph("g"), {});
  };
  const Proof proof = proof_of("3.0");
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK_EQ(proof.assumptions,
           std::vector<Assumption>{{.text = "the constant _tensor_constant0 is 3"}});
  CHECK_EQ(proof_of("4.0").verdict, Verdict::kDiffers);
}

}  // namespace
}  // namespace strata::prove
