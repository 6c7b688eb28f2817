// What proofs say of wrong graphs, whatever the inputs and the mesh.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/random.h"
#include "ir/module.h"
#include "ir/rewriter.h"
#include "passes/core/collectives.h"
#include "passes/placement/lowering/lower.h"
#include "passes/placement/place.h"
#include "prove/mutations/mutations.h"
#include "prove/prove_pass.h"
#include "prove/values/compare.h"
#include "prove/values/field.h"
#include "tests/support/graphs.h"
#include "tests/unit/prove/lowered.h"
#include "tests/unit/prove/prove_texts.h"

namespace strata::prove {
namespace {

using testing::OrDie;
using testing::ParseBody;

constexpr std::string_view kHalvedStep = R"(
  w = placeholder : f32[8, 8][8, 1]cpu {+fqn='layers.0.a.weight' +input='parameter'}
  x = placeholder : f32[8, 8][8, 1]cpu {+fqn='x' +input='batch'}
  m = aten.mm.default(x, w) : f32[8, 8][8, 1]cpu {forward module=layers.0.a}
  h = aten.mul.Tensor(m, 0.5) : f32[8, 8][8, 1]cpu {forward module=layers.0.a}
  loss = aten.sum.default(h) : f32[][]cpu {loss module=loss}
  p = aten.pow.Tensor_Scalar(h, 2) : f32[8, 8][8, 1]cpu {backward module=layers.0.a}
  xt = aten.t.default(x) : f32[8, 8][1, 8]cpu ~x {backward module=layers.0.a}
  gw = aten.mm.default(xt, p) : f32[8, 8][8, 1]cpu {backward module=layers.0.a}
  output([loss, gw])
)";

TEST_CASE("PV-10: fractions of small terms are found, and only they are") {
  for (uint64_t i = 0; i < 200; ++i) {
    const auto n = static_cast<int64_t>(Mix(i) % 4096 + 1);
    const auto d = static_cast<int64_t>(Mix(i + 1000) % 4096 + 1);
    const int64_t divisor = std::gcd(n, d);
    const std::string expected = d == divisor ? fmt::format("{}", n / divisor)
                                              : fmt::format("{}/{}", n / divisor, d / divisor);
    CHECK_EQ(FractionText(Div(FromInteger(n), FromInteger(d))), expected);
    CHECK_EQ(FractionText(Div(FromInteger(-n), FromInteger(d))), "-" + expected);
    CHECK_EQ(FractionText(Uninterpreted(1, i)), "");
  }
}

TEST_CASE("PV-28: a collective over another axis is found, of as many ranks or not") {
  for (const char* mesh : {"fsdp=2,tp=2", "fsdp=2,tp=4", "fsdp=4,tp=2"}) {
    const Lowered lowered(mesh, kHalvedStep);
    int edits = 0;
    for (const NodeId node : lowered.after().nodes()) {
      if (!CollectiveOf(lowered.after(), node)) continue;
      const auto copy = lowered.lowered->Clone();
      Graph& mutant = *copy->FindGraph("g");
      Rewriter rewriter(mutant);
      SetGroup(rewriter, node, "tp");
      CAPTURE(mesh);
      CAPTURE(mutant.name(node));
      CHECK(ProvePass(lowered.before(), mutant, {.stable_ids = true}).verdict == Verdict::kDiffers);
      ++edits;
    }
    CHECK_EQ(edits, 3);
  }
}

TEST_CASE("PV-30: other inputs give the same verdicts") {
  const Lowered lowered("fsdp=2,tp=2", kHalvedStep);
  for (const Mutation& mutation : Mutations()) {
    for (const NodeId node : lowered.after().nodes()) {
      const auto first =
          TryMutant(lowered.before(), lowered.after(), mutation, node, {.stable_ids = true});
      if (!first) continue;
      for (uint64_t seed = 2; seed <= 50; ++seed) {
        const auto other = TryMutant(lowered.before(), lowered.after(), mutation, node,
                                     {.seed = seed, .stable_ids = true});
        CAPTURE(mutation.name);
        CAPTURE(lowered.after().name(node));
        CAPTURE(seed);
        CHECK(other->outcome == first->outcome);
        CHECK_EQ(other->node, first->node);
      }
      break;  // one site of each kind
    }
  }
}

/// Programs of the inputs `f`, `i`, `u`, `m` and `c`; the result is `y`.
struct Programs {
  std::string_view before, after;
};

Verdict VerdictOf(const Programs& programs) {
  const auto text = [](std::string_view body) {
    return fmt::format(R"(
  f = placeholder : f32[8, 8]
  i = placeholder : i64[8, 8]
  u = placeholder : u8[8, 8]
  m = placeholder : b8[8, 8]
  c = placeholder : c64[8, 8]
{}
  output([y])
)",
                       body);
  };
  return ProveTexts(text(programs.before), text(programs.after)).verdict;
}

TEST_CASE("a NaN where an element is none hides no change of what is added to it") {
  constexpr std::string_view kSum = R"(
  n = aten.isnan.default(f) : b8[8, 8]
  none = aten.full.default([], nan, dtype=torch.float32) : f32[]
  w = aten.where.self(n, none, f) : f32[8, 8]
  s = aten.sum.default(w) : f32[]
  y = aten.{}.Tensor(s, f) : f32[8, 8])";
  CHECK(VerdictOf({fmt::format(fmt::runtime(kSum), "add"),
                   fmt::format(fmt::runtime(kSum), "sub")}) == Verdict::kDiffers);
}

TEST_CASE(
    "PV-31: a bound, a divisor and a literal that is compared with are part of the function") {
  constexpr Programs kDifferent[] = {
      {"  y = aten.gt.Scalar(f, 0.5) : b8[8, 8]", "  y = aten.gt.Scalar(f, 0.25) : b8[8, 8]"},
      {"  y = aten.clamp.default(f, -1, 1) : f32[8, 8]", "  y = aten.sign.default(f) : f32[8, 8]"},
      {"  y = aten.clamp.default(f, 0, 6) : f32[8, 8]",
       "  y = aten.clamp.default(f, 0, 3) : f32[8, 8]"},
      {"  r = aten.rand_like.default(f) : f32[8, 8]\n  y = aten.gt.Scalar(r, 0.1) : b8[8, 8]",
       "  r = aten.rand_like.default(f) : f32[8, 8]\n  y = aten.gt.Scalar(r, 0.2) : b8[8, 8]"},
      {"  y = aten.clamp.default(i, None, 5) : i64[8, 8]",
       "  y = aten.add.Tensor(i, 0) : i64[8, 8]"},
      {"  y = aten.clamp.default(i, 0) : i64[8, 8]", "  y = aten.add.Tensor(i, 0) : i64[8, 8]"},
      {"  y = aten.remainder.Scalar(i, 8) : i64[8, 8]", "  y = aten.add.Tensor(i, 0) : i64[8, 8]"},
      {"  y = aten.remainder.Scalar(i, 3) : i64[8, 8]", "  y = aten.fmod.Scalar(i, 3) : i64[8, 8]"},
      {"  y = aten.eq.Scalar(i, 77) : b8[8, 8]", "  y = aten.eq.Scalar(i, 78) : b8[8, 8]"},
      {"  n = aten.linalg_vector_norm.default(f, 2, [0], True) : f32[1, 8]\n"
       "  l = aten.clamp_min.default(n, 1e-12) : f32[1, 8]\n"
       "  y = aten.div.Tensor(f, l) : f32[8, 8]",
       "  n = aten.linalg_vector_norm.default(f, 2, [1], True) : f32[8, 1]\n"
       "  l = aten.clamp_min.default(n, 1e-12) : f32[8, 1]\n"
       "  y = aten.div.Tensor(f, l) : f32[8, 8]"},
      {"  y = aten.abs.default(i) : i64[8, 8]", "  y = aten.add.Tensor(i, 0) : i64[8, 8]"},
  };
  for (const Programs& programs : kDifferent) {
    CAPTURE(programs.before);
    CHECK(VerdictOf(programs) == Verdict::kDiffers);
    CHECK(VerdictOf({programs.before, programs.before}) == Verdict::kProven);
  }
}

TEST_CASE("PV-31: every number that rand draws is from 0 to 1") {
  CHECK(VerdictOf({"  r = aten.rand_like.default(f) : f32[8, 8]\n"
                   "  y = aten.clamp.default(r, 0, 1) : f32[8, 8]",
                   "  y = aten.rand_like.default(f) : f32[8, 8]"}) == Verdict::kProven);
}

TEST_CASE("PV-31: a margin is found, though most inputs of two elements are beyond it") {
  const auto graph = [](std::string_view margin) {
    return ParseBody(fmt::format(R"(
  f = placeholder : f32[2]
  s = aten.add.Tensor(f, {}) : f32[2]
  y = aten.relu.default(s) : f32[2]
  b = aten.gt.Scalar(y, 0) : b8[2]
  output([b])
)",
                                 margin));
  };
  const auto before = graph("0"), after = graph("8");
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    const ProofOptions options = {.seed = seed};
    CHECK(Prove(*before->FindGraph("g"), *after->FindGraph("g"), options).verdict ==
          Verdict::kDiffers);
  }
}

TEST_CASE("PV-31: inputs are 0 where a graph asks for it") {
  constexpr Programs kDifferent[] = {
      {"  y = aten.eq.Scalar(f, 0) : b8[8, 8]", "  y = aten.zeros_like.default(m) : b8[8, 8]"},
      {"  y = aten._to_copy.default(f, dtype=torch.bool) : b8[8, 8]",
       "  y = aten.ones_like.default(m) : b8[8, 8]"},
      {"  z = aten.eq.Scalar(f, 0) : b8[8, 8]\n"
       "  y = aten.masked_fill.Scalar(f, z, 1) : f32[8, 8]",
       "  y = aten.clone.default(f) : f32[8, 8]"},
      {"  y = aten.any.dim(f, 1) : b8[8]",
       "  p = aten.gt.Scalar(f, 8) : b8[8, 8]\n  y = aten.any.dim(p, 1) : b8[8]"},
  };
  for (const Programs& programs : kDifferent) {
    CAPTURE(programs.before);
    CHECK(VerdictOf(programs) == Verdict::kDiffers);
    CHECK(VerdictOf({programs.before, programs.before}) == Verdict::kProven);
  }
}

TEST_CASE("PV-34: an output that an index out of range makes undefined is not proven") {
  const auto text = [](int factor) {
    return fmt::format(R"(
  f = placeholder : f32[4, 4]
  i = placeholder : i64[4, 4]
  b = placeholder : f32[4, 4]
  j = aten.add.Tensor(i, 1) : i64[4, 4]
  s = aten.mul.Tensor(b, {}) : f32[4, 4]
  y = aten.scatter.src(f, 1, j, s) : f32[4, 4]
  output([y])
)",
                       factor);
  };
  const Proof proof = ProveTexts(text(2), text(3));
  CHECK_EQ(proof.verdict, Verdict::kUnproven);
  CHECK_EQ(proof.reason, "output 0, y, is undefined: an index is out of range");
}

TEST_CASE("PV-34: what a scatter does at its places is part of the function") {
  constexpr std::string_view kReductions[] = {"", ", reduce='add'", ", reduce='multiply'"};
  const auto text = [](std::string_view reduction) {
    return fmt::format(R"(
  f = placeholder : f32[4, 4]
  i = placeholder : i64[4, 4]
  b = placeholder : f32[4, 4]
  y = aten.scatter.reduce(f, 1, i, b{}) : f32[4, 4]
  output([y])
)",
                       reduction);
  };
  for (const std::string_view first : kReductions) {
    for (const std::string_view second : kReductions) {
      CHECK_EQ(ProveTexts(text(first), text(second)).verdict,
               first == second ? Verdict::kProven : Verdict::kDiffers);
    }
  }
}

TEST_CASE("PV-31: functions in pieces are their formulas") {
  constexpr Programs kEqual[] = {
      {"  y = aten.hardtanh.default(f, -2.0, 2.0) : f32[8, 8]",
       "  y = aten.clamp.default(f, -2, 2) : f32[8, 8]"},
      {"  y = aten.leaky_relu.default(f, 0.1) : f32[8, 8]",
       "  p = aten.gt.Scalar(f, 0) : b8[8, 8]\n  s = aten.mul.Tensor(f, 0.1) : f32[8, 8]\n"
       "  y = aten.where.self(p, f, s) : f32[8, 8]"},
      {"  y = aten.hardswish.default(f) : f32[8, 8]",
       "  p = aten.add.Tensor(f, 3) : f32[8, 8]\n"
       "  l = aten.clamp_min.default(p, 0) : f32[8, 8]\n"
       "  h = aten.clamp_max.default(l, 6) : f32[8, 8]\n"
       "  s = aten.mul.Tensor(f, h) : f32[8, 8]\n  y = aten.div.Tensor(s, 6) : f32[8, 8]"},
      {"  y = aten.threshold.default(f, 0, 0) : f32[8, 8]",
       "  y = aten.relu.default(f) : f32[8, 8]"},
      {"  y = aten.hardtanh_backward.default(f, f, -1.0, 1.0) : f32[8, 8]",
       "  a = aten.le.Scalar(f, -1.0) : b8[8, 8]\n  b = aten.ge.Scalar(f, 1.0) : b8[8, 8]\n"
       "  o = aten.bitwise_or.Tensor(a, b) : b8[8, 8]\n"
       "  z = aten.full.default([], 0.0) : f32[]\n  y = aten.where.self(o, z, f) : f32[8, 8]"},
  };
  for (const Programs& programs : kEqual) {
    CAPTURE(programs.before);
    CHECK(VerdictOf(programs) == Verdict::kProven);
  }
}

TEST_CASE("PV-32: integers have the bits of their type, and truth values are 0 and 1") {
  constexpr Programs kDifferent[] = {
      {"  n = aten._to_copy.default(i, dtype=torch.uint8) : u8[8, 8]\n"
       "  y = aten._to_copy.default(n, dtype=torch.int64) : i64[8, 8]",
       "  y = aten.clone.default(i) : i64[8, 8]"},
      {"  n = aten.neg.default(u) : u8[8, 8]\n"
       "  y = aten._to_copy.default(n, dtype=torch.int64) : i64[8, 8]",
       "  w = aten._to_copy.default(u, dtype=torch.int64) : i64[8, 8]\n"
       "  y = aten.neg.default(w) : i64[8, 8]"},
      {"  s = aten.add.Tensor(m, m) : b8[8, 8]\n"
       "  y = aten._to_copy.default(s, dtype=torch.int64) : i64[8, 8]",
       "  w = aten._to_copy.default(m, dtype=torch.int64) : i64[8, 8]\n"
       "  y = aten.add.Tensor(w, w) : i64[8, 8]"},
      {"  y = aten.bitwise_not.default(i) : i64[8, 8]",
       "  d = aten.mul.Tensor(i, 2) : i64[8, 8]\n"
       "  y = aten.bitwise_not.default(d) : i64[8, 8]"},
  };
  for (const Programs& programs : kDifferent) {
    CAPTURE(programs.before);
    CHECK(VerdictOf(programs) == Verdict::kDiffers);
  }
  constexpr Programs kEqual[] = {
      {"  y = aten.add.Tensor(m, m) : b8[8, 8]", "  y = aten.bitwise_or.Tensor(m, m) : b8[8, 8]"},
      {"  y = aten.bitwise_not.default(m) : b8[8, 8]",
       "  y = aten.logical_not.default(m) : b8[8, 8]"},
      {"  n = aten.neg.default(i) : i64[8, 8]\n  y = aten.sub.Tensor(n, 1) : i64[8, 8]",
       "  y = aten.bitwise_not.default(i) : i64[8, 8]"},
      {"  y = aten.bitwise_not.default(u) : u8[8, 8]", "  y = aten.rsub.Scalar(u, 255) : u8[8, 8]"},
  };
  for (const Programs& programs : kEqual) {
    CAPTURE(programs.before);
    CHECK(VerdictOf(programs) == Verdict::kProven);
  }
}

TEST_CASE("PV-33: NaN is not equal to itself, and complex numbers have no order") {
  CHECK(VerdictOf({"  n = aten.full_like.default(f, nan) : f32[8, 8]\n"
                   "  y = aten.ne.Tensor(n, n) : b8[8, 8]",
                   "  y = aten.ones_like.default(m) : b8[8, 8]"}) == Verdict::kProven);
  constexpr Programs kUnknown = {
      "  k = aten._conj.default(c) : c64[8, 8]\n  y = aten.eq.Tensor(c, k) : b8[8, 8]",
      "  y = aten.eq.Tensor(c, 0) : b8[8, 8]"};
  CHECK(VerdictOf(kUnknown) == Verdict::kUnproven);
}

TEST_CASE("PV-33: one over a root is the root of one over the number, of any head size") {
  for (const int size : {64, 80, 96, 12, 48}) {
    CAPTURE(size);
    const double root = std::sqrt(size);
    CHECK_EQ(Mul(FromLiteral(root), FromLiteral(1 / root)), 1);
  }
}

}  // namespace
}  // namespace strata::prove
