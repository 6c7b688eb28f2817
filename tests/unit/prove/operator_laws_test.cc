// Which formulas are the same function: laws of operators.

#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "prove/proof.h"
#include "tests/unit/prove/prove_texts.h"

namespace strata::prove {
namespace {

TEST_CASE("PV-6: a layer norm is its formula") {
  constexpr std::string_view kFused = R"(
  x = placeholder : f32[3, 4]
  w = placeholder : f32[4]
  b = placeholder : f32[4]
  (y, mean, r) = aten.native_layer_norm.default(x, [4], w, b, 1e-05) as norm : (f32[3, 4], f32[3, 1], f32[3, 1])
  output([y, mean, r])
)";
  constexpr std::string_view kSteps = R"(
  x = placeholder : f32[3, 4]
  w = placeholder : f32[4]
  b = placeholder : f32[4]
  mean = aten.mean.dim(x, [1], True) : f32[3, 1]
  centered = aten.sub.Tensor(x, mean) : f32[3, 4]
  squares = aten.mul.Tensor(centered, centered) : f32[3, 4]
  variance = aten.mean.dim(squares, [1], True) : f32[3, 1]
  shifted = aten.add.Scalar(variance, 1e-05) : f32[3, 1]
  r = aten.rsqrt.default(shifted) : f32[3, 1]
  normed = aten.mul.Tensor(centered, r) : f32[3, 4]
  weighted = aten.mul.Tensor(normed, w) : f32[3, 4]
  y = aten.add.Tensor(weighted, b) : f32[3, 4]
  output([y, mean, r])
)";
  const Proof proof = ProveTexts(kFused, kSteps);
  CHECK_EQ(proof.reason, "");
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK(proof.opaque.empty());
}

/// Draws by `calls`, which make x, and once more after it.
Proof ProveDraws(std::string_view calls, std::string_view others) {
  const auto text = [](std::string_view draws) {
    return fmt::format(R"(
  a = placeholder : f32[4, 3][3, 1]cpu
{}  after = aten.rand.default([2]) : f32[2]
  output([x, after])
)",
                       draws);
  };
  return ProveTexts(text(calls), text(others));
}

std::string FilledBy(std::string_view fill) {
  return fmt::format(
      "  memory = aten.empty.memory_format([4, 3], dtype=torch.float32) : f32[4, 3]\n"
      "  x = aten.{} : f32[4, 3] ~memory\n",
      fill);
}

TEST_CASE("operators that draw the same numbers are the same, in place or not") {
  constexpr std::string_view kRand = "  x = aten.rand_like.default(a) : f32[4, 3]\n",
                             kBernoulli = "  x = aten.bernoulli.p(a, 0.3) : f32[4, 3]\n",
                             kIntegers = "  x = aten.randint_like.default(a, 7) : f32[4, 3]\n";
  const auto is_same = [](std::string_view one, std::string_view other) {
    const Proof proof = ProveDraws(one, other);
    return proof.verdict == Verdict::kProven && proof.opaque.empty();
  };
  CHECK(is_same(kRand, FilledBy("uniform_.default(memory)")));
  CHECK(is_same(kRand, FilledBy("uniform_.default(memory, 0, 1.0)")));
  CHECK(is_same(kBernoulli, FilledBy("bernoulli_.float(memory, 0.3)")));
  CHECK(is_same(kIntegers, FilledBy("random_.from(memory, 0, 7)")));
  CHECK_FALSE(is_same(kRand, FilledBy("uniform_.default(memory, 0, 2)")));
  CHECK_FALSE(is_same(kRand, FilledBy("normal_.default(memory)")));
  CHECK_FALSE(is_same(kBernoulli, FilledBy("bernoulli_.float(memory, 0.7)")));
  CHECK_FALSE(is_same(kIntegers, FilledBy("random_.from(memory, 1, 7)")));
  // What is drawn later depends on how many numbers were drawn.
  CHECK_FALSE(
      is_same("  y = aten.rand.default([4, 3]) : f32[4, 3]\n  x = aten.slice.Tensor(y, 0, 0, 2) : "
              "f32[2, 3] ~y\n",
              "  x = aten.rand.default([2, 3]) : f32[2, 3]\n"));
}

TEST_CASE("dropout is a mask and two products") {
  constexpr std::string_view kDropout =
      "  (x, mask) = aten.native_dropout.default(a, 0.2, True) as d : (f32[4, 3], b8[4, 3])\n";
  const auto spelled = [](std::string_view scale) {
    return fmt::format(
        "  memory = aten.empty.memory_format([4, 3], dtype=torch.bool) : b8[4, 3]\n"
        "  mask = aten.bernoulli_.float(memory, 0.8) : b8[4, 3] ~memory\n"
        "  kept = aten.mul.Tensor(a, mask) : f32[4, 3]\n"
        "  x = aten.mul.Tensor(kept, {}) : f32[4, 3]\n",
        scale);
  };
  CHECK_EQ(ProveDraws(kDropout, spelled("1.25")).verdict, Verdict::kProven);
  CHECK_NE(ProveDraws(kDropout, spelled("0.8")).verdict, Verdict::kProven);
}

TEST_CASE("a safe softmax is a softmax that is 0 where nothing is visible") {
  constexpr std::string_view kSafe = R"(
  x = placeholder : f32[2, 3]
  low = aten.full.default([3], -inf) : f32[3]
  i = aten.arange.default(3) : i64[3]
  is_second = aten.eq.Scalar(i, 1) : b8[3]
  some = aten.where.self(is_second, low, x) : f32[2, 3]
  none = aten.add.Tensor(x, low) : f32[2, 3]
  rows = aten.cat.default([some, none], 0) : f32[4, 3]
  y = aten._safe_softmax.default(rows, -1) : f32[4, 3]
  output([y])
)";
  constexpr std::string_view kSpelled = R"(
  x = placeholder : f32[2, 3]
  low = aten.full.default([3], -inf) : f32[3]
  i = aten.arange.default(3) : i64[3]
  is_second = aten.eq.Scalar(i, 1) : b8[3]
  some = aten.where.self(is_second, low, x) : f32[2, 3]
  zeros = aten.zeros.default([2, 3]) : f32[2, 3]
  of_some = aten._softmax.default(some, -1, False) : f32[2, 3]
  y = aten.cat.default([of_some, zeros], 0) : f32[4, 3]
  output([y])
)";
  const Proof proof = ProveTexts(kSafe, kSpelled);
  CHECK_EQ(proof.reason, "");
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK(proof.opaque.empty());
}

TEST_CASE("PV-7: the exponential of a log-softmax is a softmax, also where it is spelled out") {
  constexpr std::string_view kWhole = R"(
  x = placeholder : f32[3, 5]
  y = aten._log_softmax.default(x, 1, False) : f32[3, 5]
  e = aten.exp.default(y) : f32[3, 5]
  output([y, e])
)";
  constexpr std::string_view kSpelled = R"(
  x = placeholder : f32[3, 5]
  amax = aten.amax.default(x, [1], True) : f32[3, 1]
  shifted = aten.sub.Tensor(x, amax) : f32[3, 5]
  exp = aten.exp.default(shifted) : f32[3, 5]
  sum = aten.sum.dim_IntList(exp, [1], True) : f32[3, 1]
  log = aten.log.default(sum) : f32[3, 1]
  y = aten.sub.Tensor(shifted, log) : f32[3, 5]
  e = aten.exp.default(y) : f32[3, 5]
  output([y, e])
)";
  const Proof proof = ProveTexts(kWhole, kSpelled);
  CHECK_EQ(proof.reason, "");
  CHECK(proof.verdict == Verdict::kProven);
}

TEST_CASE("PV-7: a softmax is the same with and without a shift") {
  constexpr std::string_view kFused = R"(
  x = placeholder : f32[3, 5]
  softmax = aten._softmax.default(x, 1, False) : f32[3, 5]
  output(softmax)
)";
  CHECK(ProveTexts(kFused, R"(
  x = placeholder : f32[3, 5]
  amax = aten.amax.default(x, [1], True) : f32[3, 1]
  sub = aten.sub.Tensor(x, amax) : f32[3, 5]
  exp = aten.exp.default(sub) : f32[3, 5]
  sum = aten.sum.dim_IntList(exp, [1], True) : f32[3, 1]
  div = aten.div.Tensor(exp, sum) : f32[3, 5]
  output(div)
)")
            .verdict == Verdict::kProven);
  CHECK(ProveTexts(kFused, R"(
  x = placeholder : f32[3, 5]
  exp = aten.exp.default(x) : f32[3, 5]
  sum = aten.sum.dim_IntList(exp, [0], True) : f32[1, 5]
  div = aten.div.Tensor(exp, sum) : f32[3, 5]
  output(div)
)")
            .verdict == Verdict::kDiffers);
}

TEST_CASE("PV-7: a norm of norms is the norm of all elements") {
  CHECK(ProveTexts(R"(
  x = placeholder : f32[6]
  norm = aten.linalg_vector_norm.default(x) : f32[]
  output(norm)
)",
                   R"(
  x = placeholder : f32[6]
  a = aten.slice.Tensor(x, 0, 0, 2) : f32[2]
  b = aten.slice.Tensor(x, 0, 2, 6) : f32[4]
  na = aten.linalg_vector_norm.default(a) : f32[]
  nb = aten.linalg_vector_norm.default(b) : f32[]
  stack = aten.stack.default([na, nb]) : f32[2]
  norm = aten.linalg_vector_norm.default(stack) : f32[]
  output(norm)
)")
            .verdict == Verdict::kProven);
}

TEST_CASE("PV-7: a norm in one operator is the norm that is spelled out") {
  const Proof proof = ProveTexts(R"(
  x = placeholder : f32[4, 6]
  w = placeholder : f32[6]
  (y, r) = aten._fused_rms_norm.default(x, [6], w, 1e-05) as norm : (f32[4, 6], f32[4, 1])
  output([y, r])
)",
                                 R"(
  x = placeholder : f32[4, 6]
  w = placeholder : f32[6]
  squares = aten.pow.Tensor_Scalar(x, 2) : f32[4, 6]
  mean = aten.mean.dim(squares, [1], True) : f32[4, 1]
  shifted = aten.add.Scalar(mean, 1e-05) : f32[4, 1]
  r = aten.rsqrt.default(shifted) : f32[4, 1]
  scaled = aten.mul.Tensor(x, r) : f32[4, 6]
  y = aten.mul.Tensor(scaled, w) : f32[4, 6]
  output([y, r])
)");
  CHECK_EQ(proof.reason, "");
  CHECK(proof.verdict == Verdict::kProven);
}

constexpr std::string_view kFusedUpdate = R"(
  p = placeholder : f32[4, 6]
  g = placeholder : f32[4, 6]
  m = placeholder : f32[4, 6]
  v = placeholder : f32[4, 6]
  step = placeholder : f32[]
  lr = placeholder : f32[]
  scale = placeholder : f32[]
  update = aten._fused_adamw_.tensor_lr([p], [g], [m], [v], [], [step], lr=lr, beta1=0.9, beta2=0.95, weight_decay=0.1, eps=1e-08, amsgrad=False, maximize=False, grad_scale=scale)
  output([p, m, v])
)";

TEST_CASE("an update in one operator is the update that is spelled out") {
  const auto spelled_out = [](std::string_view decay) {
    return fmt::format(R"(
  p = placeholder : f32[4, 6]
  g = placeholder : f32[4, 6]
  m = placeholder : f32[4, 6]
  v = placeholder : f32[4, 6]
  step = placeholder : f32[]
  lr = placeholder : f32[]
  scale = placeholder : f32[]
  g1 = aten.div.Tensor(g, scale) : f32[4, 6]
  lost = aten.mul.Scalar(lr, {}) : f32[]
  kept = aten.rsub.Scalar(lost, 1) : f32[]
  p1 = aten.mul.Tensor(p, kept) : f32[4, 6]
  m1 = aten.mul.Scalar(m, 0.9) : f32[4, 6]
  m2 = aten.add.Tensor(m1, g1, alpha=0.1) : f32[4, 6]
  v1 = aten.mul.Scalar(v, 0.95) : f32[4, 6]
  squares = aten.mul.Tensor(g1, g1) : f32[4, 6]
  v2 = aten.add.Tensor(v1, squares, alpha=0.05) : f32[4, 6]
  power1 = aten.pow.Scalar(0.9, step) : f32[]
  power2 = aten.pow.Scalar(0.95, step) : f32[]
  correction1 = aten.rsub.Scalar(power1, 1) : f32[]
  correction2 = aten.rsub.Scalar(power2, 1) : f32[]
  step_size = aten.div.Tensor(lr, correction1) : f32[]
  root = aten.sqrt.default(v2) : f32[4, 6]
  root2 = aten.sqrt.default(correction2) : f32[]
  spread = aten.div.Tensor(root, root2) : f32[4, 6]
  denominator = aten.add.Scalar(spread, 1e-08) : f32[4, 6]
  direction = aten.div.Tensor(m2, denominator) : f32[4, 6]
  change = aten.mul.Tensor(direction, step_size) : f32[4, 6]
  p2 = aten.sub.Tensor(p1, change) : f32[4, 6]
  p3 = aten.copy_.default(p, p2) : f32[4, 6] ~p
  g3 = aten.copy_.default(g, g1) : f32[4, 6] ~g
  m3 = aten.copy_.default(m, m2) : f32[4, 6] ~m
  v3 = aten.copy_.default(v, v2) : f32[4, 6] ~v
  output([p3, m3, v3])
)",
                       decay);
  };
  const Proof proof = ProveTexts(kFusedUpdate, spelled_out("0.1"));
  CHECK_EQ(proof.reason, "");
  CHECK(proof.opaque.empty());
  CHECK(proof.verdict == Verdict::kProven);
  CHECK(ProveTexts(kFusedUpdate, spelled_out("0.2")).verdict == Verdict::kDiffers);
}

TEST_CASE("PV-5: derivatives are linear in the gradient") {
  for (const std::string_view op : {"aten.silu_backward.default", "aten.gelu_backward.default"}) {
    const auto once = [&](std::string_view gradient) {
      return fmt::format("  {0}_out = {1}({0}, x) : f32[4]\n", gradient, op);
    };
    const std::string inputs =
        "\n  g = placeholder : f32[4]\n  h = placeholder : f32[4]\n  x = placeholder : f32[4]\n";
    const std::string apart = inputs + once("g") + once("h") +
                              "  sum = aten.add.Tensor(g_out, h_out) : f32[4]\n  output(sum)\n";
    const std::string together =
        inputs + "  gh = aten.add.Tensor(g, h) : f32[4]\n" + once("gh") + "  output(gh_out)\n";
    CHECK(ProveTexts(apart, together).verdict == Verdict::kProven);
  }
}

TEST_CASE("the integer part of a number is not the number") {
  constexpr std::string_view kTruncated = R"(
  x = placeholder : f32[4]
  i = aten._to_copy.default(x, dtype=torch.int64) : i64[4]
  y = aten._to_copy.default(i, dtype=torch.float32) : f32[4]
  output((y,))
)";
  constexpr std::string_view kCopied = R"(
  x = placeholder : f32[4]
  y = aten.clone.default(x) : f32[4]
  output((y,))
)";
  CHECK_EQ(ProveTexts(kTruncated, kTruncated).verdict, Verdict::kProven);
  CHECK_EQ(ProveTexts(kTruncated, kCopied).verdict, Verdict::kUnproven);
  CHECK_EQ(ProveTexts(kCopied, kTruncated).verdict, Verdict::kUnproven);
}

TEST_CASE("integers and their truth values differ") {
  CHECK_EQ(ProveTexts(R"(
  x = placeholder : i64[32]
  b = aten._to_copy.default(x, dtype=torch.bool) : b8[32]
  y = aten._to_copy.default(b, dtype=torch.int64) : i64[32]
  output((y,))
)",
                      R"(
  x = placeholder : i64[32]
  y = aten.clone.default(x) : i64[32]
  output((y,))
)")
               .verdict,
           Verdict::kDiffers);
}

TEST_CASE("what Inductor's decompositions make of a product and a sum is equal to them") {
  const Proof proof = ProveTexts(R"(
  x = placeholder : f32[4]
  y = placeholder : f32[4]
  z = aten.mul.Tensor(x, y) : f32[4]
  s = aten.add.Tensor(z, x) : f32[4]
  f = aten.flip.default(s, [0]) : f32[4]
  output((f,))
)",
                                 R"(
  x = placeholder : f32[4]
  y = placeholder : f32[4]
  s = prims.fma.default(x, y, x) : f32[4]
  f = prims.rev.default(s, [0]) : f32[4]
  output((f,))
)");
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK(proof.opaque.empty());
}

TEST_CASE("PV-7: functions are odd or even, and have their values at 0") {
  struct Law {
    std::string_view name, at_zero, of_opposite;
  };
  constexpr Law kLaws[] = {{"sin", "0", "neg"},   {"tan", "0", "neg"},  {"atan", "0", "neg"},
                           {"erf", "0", "neg"},   {"sinh", "0", "neg"}, {"cos", "1", "clone"},
                           {"cosh", "1", "clone"}};
  for (const Law& law : kLaws) {
    CAPTURE(law.name);
    const std::string applied = fmt::format(R"(
  x = placeholder : f32[3, 4]
  z = aten.zeros_like.default(x) : f32[3, 4]
  n = aten.neg.default(x) : f32[3, 4]
  y = aten.{0}.default(n) : f32[3, 4]
  a = aten.{0}.default(z) : f32[3, 4]
  output([y, a])
)",
                                            law.name);
    const std::string known = fmt::format(R"(
  x = placeholder : f32[3, 4]
  s = aten.{}.default(x) : f32[3, 4]
  y = aten.{}.default(s) : f32[3, 4]
  a = aten.full_like.default(x, {}) : f32[3, 4]
  output([y, a])
)",
                                          law.name, law.of_opposite, law.at_zero);
    CHECK_EQ(ProveTexts(applied, known).verdict, Verdict::kProven);
  }
}

}  // namespace
}  // namespace strata::prove
