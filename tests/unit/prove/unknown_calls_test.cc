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

TEST_CASE("PV-74: an in-place form writes what its function returns") {
  const auto text = [](std::string_view call, std::string_view read) {
    return fmt::format(R"(
  x = placeholder : f32[4]
  y = aten.mul.Tensor(x, 2) : f32[4]
  r = {} : f32[4]
  w = _c10d_functional.wait_tensor.default(r) : f32[4]
  z = aten.add.Tensor(w, {}) : f32[4]
  output(z)
)",
                       call, read);
  };
  const auto prove = [&](std::string_view call, std::string_view read) {
    return ProveTexts(text("_c10d_functional.all_reduce.default(y, 'sum', '0')", "w"),
                      text(call, read))
        .verdict;
  };
  constexpr std::string_view kInPlace = "_c10d_functional.all_reduce_.default(y, 'sum', '0')";
  CHECK(prove(kInPlace, "w") == Verdict::kProven);
  CHECK(prove(kInPlace, "y") == Verdict::kProven);  // y holds the sum now
  CHECK(prove("_c10d_functional.all_reduce.default(y, 'sum', '0')", "y") == Verdict::kDiffers);
  CHECK(prove("_c10d_functional.all_reduce_.default(y, 'max', '0')", "w") == Verdict::kUnproven);
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

TEST_CASE("PV-74: an operator that returns nothing may write to any operand") {
  constexpr std::string_view kText = R"(
  x = placeholder : f32[4, 6]
  rows = placeholder : i64[4]
  sum = aten.zeros_like.default(x) : f32[4, 6]
  {}
  y = aten.mul.Tensor(x, sum) : f32[4, 6]
  {}
  output(y)
)";
  constexpr std::string_view kWrite = "nothing = mylib.add_rows.default(x, rows, [sum])";
  const auto text = [&](std::string_view first, std::string_view second) {
    return fmt::format(kText, first, second);
  };
  const std::string before = text(kWrite, "");
  const Proof same = ProveTexts(
      before, text("dead = aten.neg.default(x) : f32[4, 6]\n  " + std::string(kWrite), ""));
  CHECK(same.verdict == Verdict::kProven);
  // Read before it is written.
  const Proof moved = ProveTexts(before, text("", kWrite));
  CHECK(moved.verdict == Verdict::kUnproven);
  CHECK_EQ(
      moved.reason,
      "y may differ: nothing is known of mylib.add_rows.default, which may write to its operands");
  const Proof removed = ProveTexts(before, text("", ""));
  CHECK(removed.verdict == Verdict::kUnproven);
  CHECK_EQ(removed.reason,
           "y may differ: nothing is known of mylib.add_rows.default, which reads other operands");
}

TEST_CASE("PV-74: a call of a body computes what the body computes") {
  const auto text = [](std::string_view call, std::string_view op) {
    return fmt::format(R"(
  x = placeholder : f32[4]
  y = placeholder : f32[4]
  body = attr body_0(graph(1))
  (z,) = {} as call : (f32[4],)
  output(z)
graph body_0 body
  a = placeholder : f32[4]
  b = placeholder : f32[4]
  c = aten.{}.Tensor(a, b) : f32[4]
  output((c,))
)",
                       call, op);
  };
  constexpr std::string_view kInline = R"(
  x = placeholder : f32[4]
  y = placeholder : f32[4]
  z = aten.mul.Tensor(y, x) : f32[4]
  output(z)
)";
  for (const std::string_view call :
       {"higher_order.invoke_subgraph(body, 'body_0', x, y)",
        "higher_order.wrap_with_autocast('cpu', torch.bfloat16, True, None, body, x, y)",
        "higher_order.wrap_with_set_grad_enabled(False, body, x, y)"}) {
    const Proof same = ProveTexts(text(call, "mul"), kInline);
    CHECK(same.verdict == Verdict::kProven);
    CHECK(same.opaque.empty());
    CHECK(ProveTexts(text(call, "add"), kInline).verdict == Verdict::kDiffers);
  }
}

TEST_CASE("PV-74: equal bodies of an unknown use compute the same of equal operands") {
  const auto text = [](std::string_view op, std::string_view operand) {
    return fmt::format(R"(
  p = placeholder : b8[]
  x = placeholder : f32[4]
  y = placeholder : f32[4]
  if = attr if_0(graph(1))
  else = attr else_0(graph(2))
  (z,) = higher_order.cond(p, if, else, ({},)) as call : (f32[4],)
  output(z)
graph if_0 body
  a = placeholder : f32[4]
  b = aten.{}.default(a) : f32[4]
  output((b,))
graph else_0 body
  a = placeholder : f32[4]
  b = aten.cos.default(a) : f32[4]
  output((b,))
)",
                       operand, op);
  };
  CHECK(ProveTexts(text("sin", "x"), text("sin", "x")).verdict == Verdict::kProven);
  CHECK(ProveTexts(text("sin", "x"), text("exp", "x")).verdict != Verdict::kProven);
  CHECK(ProveTexts(text("sin", "x"), text("sin", "y")).verdict != Verdict::kProven);
}

}  // namespace
}  // namespace strata::prove
