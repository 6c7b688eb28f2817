// Flex attention in proofs: equal to attention without bodies where masks and scores coincide.

#include <memory>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/module.h"
#include "ir/text/native_text.h"
#include "prove/proof.h"
#include "tests/support/graphs.h"

namespace strata::prove {
namespace {

using testing::OrDie;

/// Query, key and value `[2, heads, 6, 4]`, and a gradient of what comes out.
constexpr std::string_view kInputs = R"(graph g
  q = placeholder : f32[2, 4, 6, 4][96, 24, 4, 1]cpu
  k = placeholder : f32[2, 2, 6, 4][48, 24, 4, 1]cpu
  v = placeholder : f32[2, 2, 6, 4][48, 24, 4, 1]cpu
  grad = placeholder : f32[2, 4, 6, 4][96, 24, 4, 1]cpu
  ids = placeholder : i64[2, 6][6, 1]cpu
)";

constexpr std::string_view kDense = R"(
  (out, lse) = aten._scaled_dot_product_flash_attention_for_cpu.default(q, k, v, 0.0, True, scale=0.5) as sdpa : (f32[2, 4, 6, 4][96, 24, 4, 1]cpu, f32[2, 4, 6][24, 6, 1]cpu)
  (of_q, of_k, of_v) = aten._scaled_dot_product_flash_attention_for_cpu_backward.default(grad, q, k, v, out, lse, 0.0, True, scale=0.5) as back : (f32[2, 4, 6, 4][96, 24, 4, 1]cpu, f32[2, 2, 6, 4][48, 24, 4, 1]cpu, f32[2, 2, 6, 4][48, 24, 4, 1]cpu)
  output([out, of_q, of_k, of_v])
)";

struct Bodies {
  std::string mask = "aten.ge.Tensor(q_idx, kv_idx)";
  std::string score = "score", joint = "grad_out";
  std::string blocks = "[1, 1, 6, 6, 2, 2]", buffers = "()", first_block = "a0";
};

std::string FlexText(const Bodies& bodies) {
  const std::string scalars =
      "  b = placeholder : i32[][]cpu\n  h = placeholder : i32[][]cpu\n"
      "  q_idx = placeholder : i32[][]cpu\n  kv_idx = placeholder : i32[][]cpu\n";
  const std::string mask_of =
      fmt::format("(6, 6, {}, a1, a2, a3, a4, a5, a6, a7, 2, 2, mask_mod)", bodies.first_block);
  std::string text(kInputs);
  text += fmt::format(
      "  mask_mod = attr mask_mod(graph(1))\n  score_mod = attr score_mod(graph(2))\n"
      "  joint = attr joint(graph(3))\n"
      "  (a0, a1, a2, a3, a4, a5, a6, a7) = strata.create_block_mask.default(mask_mod, {0}, "
      "{1}, device('cpu')) as blocks : (i32[1, 1, 3], i32[1, 1, 3, 3], i32[1, 1, 3], "
      "i32[1, 1, 3, 3], i32[1, 1, 3], i32[1, 1, 3, 3], i32[1, 1, 3], i32[1, 1, 3, 3])\n"
      "  none = aten.zeros_like.default(a0) : i32[1, 1, 3]\n"
      "  (out, lse) = higher_order.flex_attention(q, k, v, score_mod, {2}, 0.5, {{}}, (), {1}) as "
      "flex : (f32[2, 4, 6, 4][96, 24, 4, 1]cpu, f32[2, 4, 6][24, 6, 1]cpu)\n"
      "  (of_q, of_k, of_v) = higher_order.flex_attention_backward(q, k, v, out, lse, grad, None, "
      "score_mod, joint, {2}, 0.5, {{}}, (), {1}) as back : (f32[2, 4, 6, 4][96, 24, 4, 1]cpu, "
      "f32[2, 2, 6, 4][48, 24, 4, 1]cpu, f32[2, 2, 6, 4][48, 24, 4, 1]cpu)\n"
      "  output([out, of_q, of_k, of_v])\n",
      bodies.blocks, bodies.buffers, mask_of);
  const bool has_buffer = bodies.buffers != "()";
  text += "graph mask_mod body\n" + scalars +
          (has_buffer ? "  ids = placeholder : i64[2, 6][6, 1]cpu\n" : "");
  text += fmt::format("  mask = {} : b8[][]cpu\n  output(mask)\n", bodies.mask);
  text += "graph score_mod body\n  score = placeholder : f32[][]cpu\n" + scalars;
  text += bodies.score == "score"
              ? std::string("  output(score)\n")
              : fmt::format("  y = {} : f32[][]cpu\n  output(y)\n", bodies.score);
  text += "graph joint body\n  score = placeholder : f32[][]cpu\n" + scalars +
          "  grad_out = placeholder : f32[][]cpu\n";
  text += bodies.joint == "grad_out"
              ? std::string("  output([grad_out, None, None, None, None])\n")
              : fmt::format("  y = {} : f32[][]cpu\n  output([y, None, None, None, None])\n",
                            bodies.joint);
  return text;
}

Proof ProveModules(const std::string& before, const std::string& after) {
  const auto a = OrDie(ParseText(before)), b = OrDie(ParseText(after));
  return Prove(*a->FindGraph("g"), *b->FindGraph("g"), {});
}

Verdict AgainstDense(const Bodies& bodies) {
  return ProveModules(std::string(kInputs) + std::string(kDense), FlexText(bodies)).verdict;
}

TEST_CASE("flex attention with a causal mask is causal attention, and so are its gradients") {
  CHECK_EQ(AgainstDense({}), Verdict::kProven);
}

TEST_CASE("flex attention with another mask, score, derivative or block mask differs") {
  CHECK_EQ(AgainstDense({.mask = "aten.gt.Tensor(q_idx, kv_idx)"}), Verdict::kDiffers);
  CHECK_EQ(AgainstDense({.score = "aten.mul.Scalar(score, 2)"}), Verdict::kDiffers);
  CHECK_EQ(AgainstDense({.joint = "aten.mul.Scalar(grad_out, 2)"}), Verdict::kDiffers);
  CHECK_EQ(AgainstDense({.first_block = "none"}), Verdict::kDiffers);
}

TEST_CASE("a scaled score with its derivative is a score of another scale") {
  const Bodies twice = {.score = "aten.mul.Scalar(score, 2)",
                        .joint = "aten.mul.Scalar(grad_out, 2)"};
  std::string dense(kDense);
  for (size_t at = dense.find("scale=0.5"); at != std::string::npos; at = dense.find("scale=0.5"))
    dense.replace(at, std::string_view("scale=0.5").size(), "scale=1.0");
  CHECK_EQ(ProveModules(std::string(kInputs) + dense, FlexText(twice)).verdict, Verdict::kProven);
}

}  // namespace
}  // namespace strata::prove
