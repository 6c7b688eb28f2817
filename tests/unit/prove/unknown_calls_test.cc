#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "prove/proof.h"
#include "tests/unit/prove/prove_texts.h"

namespace strata::prove {
namespace {

/// A custom operator that writes to its operand `y`, in the form that AOTAutograd gives it, and
/// what it adds is read.
std::string Functionalized(std::string_view read, std::string_view base, std::string_view more) {
  return fmt::format(R"(
  a = placeholder : f32[4, 6]
  b = placeholder : f32[4, 6]
  (_, y) = higher_order.auto_functionalized_v2(raw('torch.ops.mylib.scale_.default'), x={}, {}_y_base_index=0, _all_bases=[{}]) as call : (?, f32[4, 6])
  z = aten.mul.Tensor(y, 2) : f32[4, 6]
  output(z)
)",
                     read, more, base);
}

TEST_CASE("PV-74: a custom operator that writes, in its functional form, is unknown but the same") {
  const std::string before = Functionalized("a", "b", "alpha=0.5, ");
  const Proof same = ProveTexts(before, before);
  CHECK_EQ(same.reason, "");
  CHECK(same.verdict == Verdict::kProven);
  REQUIRE_EQ(same.opaque.size(), 1);
  CHECK_EQ(same.opaque[0], "mylib.scale_.default");
}

TEST_CASE("PV-74: operands that an unknown call has by keyword, in a list or as a body, matter") {
  const std::string before = Functionalized("a", "b", "alpha=0.5, ");
  constexpr std::string_view kReason =
      "z may differ: nothing is known of mylib.scale_.default, which reads other operands";
  for (const std::string& after :
       {Functionalized("b", "b", "alpha=0.5, "), Functionalized("a", "a", "alpha=0.5, "),
        Functionalized("a", "b", "alpha=0.25, "), Functionalized("a", "b", "")}) {
    const Proof proof = ProveTexts(before, after);
    CHECK(proof.verdict == Verdict::kUnproven);
    CHECK_EQ(proof.reason, kReason);
  }
}

}  // namespace
}  // namespace strata::prove
