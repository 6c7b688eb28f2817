#include "prove/precision.h"

#include <memory>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/module.h"
#include "passes/placement/lowering/lower.h"
#include "passes/placement/place.h"
#include "prove/evaluation/rounding.h"
#include "prove/mutations/mutations.h"
#include "prove/ops/elementwise.h"
#include "prove/prove_pass.h"
#include "tests/support/graphs.h"
#include "tests/unit/prove/lowered.h"

namespace strata::prove {
namespace {

using testing::OrDie;
using testing::ParseBody;

/// "layers.*: 2 mm in bf16"
std::string TextOf(const Proof& proof) {
  std::string text(ToString(proof.verdict));
  for (const PrecisionChange& change : proof.precision)
    text += fmt::format("; {}{}{} {}: {}", change.modules, change.modules.empty() ? "" : ": ",
                        change.places, change.node, change.what);
  return text;
}

std::string ChangesBetween(std::string_view before, std::string_view after) {
  const auto a = ParseBody(before), b = ParseBody(after);
  return TextOf(ProvePass(*a->FindGraph("g"), *b->FindGraph("g"),
                          {.stable_ids = false, .lists_precision = true}));
}

TEST_CASE("precision: numbers of a narrow type stay, others round, opposites to opposites") {
  for (uint64_t i = 0; i < 1000; ++i) {
    const Residue x = Uninterpreted(1, i);
    const Residue rounded = Round(x, DType::kBF16);
    CHECK_NE(rounded, x);
    CHECK_EQ(Round(rounded, DType::kBF16), rounded);
    CHECK_EQ(Round(Neg(x), DType::kBF16), Neg(rounded));
    CHECK_NE(Round(x, DType::kF16), rounded);
    const Residue eight = Round(x, DType::kF8E4M3FN);
    CHECK_EQ(Round(eight, DType::kBF16), eight);
    CHECK_NE(Round(rounded, DType::kF8E4M3FN), rounded);
  }
  CHECK_EQ(Round(0, DType::kBF16), 0);
  CHECK_EQ(Round(1, DType::kBF16), 1);
  CHECK_EQ(Round(kMinusInfinity, DType::kBF16), kMinusInfinity);
}

TEST_CASE("B93: a cast that moves across a sum is a change of precision") {
  CHECK_EQ(ChangesBetween(R"(
  x = placeholder : f32[4, 6][6, 1]cpu
  s = aten.sum.dim_IntList(x, [0]) : f32[6][1]cpu
  y = aten._to_copy.default(s, dtype=torch.bfloat16) : bf16[6][1]cpu
  output([y])
)",
                          R"(
  x = placeholder : f32[4, 6][6, 1]cpu
  s = aten._to_copy.default(x, dtype=torch.bfloat16) : bf16[4, 6][6, 1]cpu
  y = aten.sum.dim_IntList(s, [0]) : bf16[6][1]cpu
  output([y])
)"),
           "proven; 1 y: rounded otherwise");
}

TEST_CASE("B93: a sum in bf16 is not the sum in f32 of the same numbers") {
  CHECK_EQ(ChangesBetween(R"(
  x = placeholder : bf16[4, 6][6, 1]cpu
  c = aten._to_copy.default(x, dtype=torch.float32) : f32[4, 6][6, 1]cpu
  y = aten.sum.dim_IntList(c, [0]) : f32[6][1]cpu
  output([y])
)",
                          R"(
  x = placeholder : bf16[4, 6][6, 1]cpu
  s = aten.sum.dim_IntList(x, [0]) : bf16[6][1]cpu
  y = aten._to_copy.default(s, dtype=torch.float32) : f32[6][1]cpu
  output([y])
)"),
           "proven; 1 y: rounded otherwise");
}

TEST_CASE("E16: a cast that moves past a view, or is undone at once, is none") {
  CHECK_EQ(ChangesBetween(R"(
  x = placeholder : f32[4, 6][6, 1]cpu
  s = aten.view.default(x, [24]) : f32[24][1]cpu ~x
  y = aten._to_copy.default(s, dtype=torch.bfloat16) : bf16[24][1]cpu
  z = aten.mul.Tensor(y, y) : bf16[24][1]cpu
  output([z])
)",
                          R"(
  x = placeholder : f32[4, 6][6, 1]cpu
  s = aten._to_copy.default(x, dtype=torch.bfloat16) : bf16[4, 6][6, 1]cpu
  w = aten._to_copy.default(s, dtype=torch.float32) : f32[4, 6][6, 1]cpu
  n = aten._to_copy.default(w, dtype=torch.bfloat16) : bf16[4, 6][6, 1]cpu
  y = aten.view.default(n, [24]) : bf16[24][1]cpu ~n
  z = aten.mul.Tensor(y, y) : bf16[24][1]cpu
  output([z])
)"),
           "proven");
}

/// bf16 products of an f32 parameter, whose gradient is f32.
constexpr std::string_view kNarrowStep = R"(
  w = placeholder : f32[8, 4][4, 1]cpu {+fqn='w' +input='parameter'}
  x = placeholder : bf16[8, 4][4, 1]cpu {+fqn='x' +input='batch'}
  c = aten._to_copy.default(w, dtype=torch.bfloat16) : bf16[8, 4][4, 1]cpu {forward module=layers.0.a}
  t = aten.t.default(c) : bf16[4, 8][1, 4]cpu ~c {forward module=layers.0.a}
  mm = aten.mm.default(x, t) : bf16[8, 8][8, 1]cpu {forward module=layers.0.a}
  pow_1 = aten.pow.Tensor_Scalar(mm, 3) : bf16[8, 8][8, 1]cpu {forward module=layers.0.a}
  f = aten._to_copy.default(pow_1, dtype=torch.float32) : f32[8, 8][8, 1]cpu {loss}
  loss = aten.sum.default(f) : f32[][]cpu {loss}
  t_1 = aten.t.default(pow_1) : bf16[8, 8][1, 8]cpu ~pow_1 {backward module=layers.0.a}
  g = aten.mm.default(t_1, x) : bf16[8, 4][4, 1]cpu {backward module=layers.0.a}
  grad = aten._to_copy.default(g, dtype=torch.float32) : f32[8, 4][4, 1]cpu {backward module=layers.0.a}
  output([loss, grad])
)";

TEST_CASE("B94: a scale that ranks take from another maximum rounds otherwise") {
  // Numbers of eight bits are scaled by the largest one, of this axis or of another.
  constexpr std::string_view kScaled = R"(
  x = placeholder : f32[4, 6][6, 1]cpu {{+global='f32[8, 12]'}}
  a = aten.abs.default(x) : f32[4, 6][6, 1]cpu
  m = aten.amax.default(a) : f32[][]cpu
  s = _c10d_functional.all_reduce.default(m, 'max', '{}') : f32[][]cpu
  t = _c10d_functional.wait_tensor.default(s) : f32[][]cpu
  q = aten.div.Tensor(x, t) : f32[4, 6][6, 1]cpu
  n = prims.convert_element_type.default(q, torch.float8_e4m3fn) : f8e4m3fn[4, 6][6, 1]cpu
  w = prims.convert_element_type.default(n, torch.float32) : f32[4, 6][6, 1]cpu
  y = aten.mul.Tensor(w, t) : f32[4, 6][6, 1]cpu
  output([y]) {{+mesh='fsdp=2,tp=2'}}
)";
  const auto right = ParseBody(fmt::format(kScaled, "tp"));
  const auto wrong = ParseBody(fmt::format(kScaled, "fsdp"));
  const auto prove = [&](const Module& after) {
    return ProvePass(*right->FindGraph("g"), *after.FindGraph("g"), {.lists_precision = true});
  };
  CHECK_EQ(TextOf(prove(*right)), "proven");
  const Proof proof = prove(*wrong);
  CHECK(proof.verdict == Verdict::kProven);  // without rounding, the scale cancels
  CHECK_FALSE(proof.precision.empty());
}

TEST_CASE("B93: gradients that ranks round before they sum them are listed, parameters are not") {
  const ProofOptions options{.stable_ids = true, .lists_precision = true};
  const Lowered fsdp("fsdp=2", kNarrowStep), replicas("dp_replicate=2", kNarrowStep);
  CHECK_EQ(TextOf(ProvePass(fsdp.before(), fsdp.after(), options)),
           "proven; layers.*.a: 1 wait_tensor_2: reduce_scatter(sum) over fsdp of parts in bf16");
  CHECK_EQ(TextOf(ProvePass(replicas.before(), replicas.after(), options)),
           "proven; layers.*.a: 1 wait_tensor_1: all_reduce(sum) over dp_replicate of parts in "
           "bf16");
  CHECK_EQ(TextOf(ProvePass(fsdp.before(), fsdp.after(), {.stable_ids = true})), "proven");
}

TEST_CASE("B93: a sum over ranks in bf16 is found where it is, unless all parts are in bf16") {
  const Lowered fsdp("fsdp=2", kNarrowStep);
  std::string found;
  for (const Mutation& mutation : Mutations()) {
    if (mutation.kinds[0] != BugKind::kPrecision) continue;
    for (const NodeId node : fsdp.after().nodes()) {
      const auto result =
          TryMutant(fsdp.before(), fsdp.after(), mutation, node, {.stable_ids = true});
      if (!result) continue;
      const bool is_caught = result->outcome == MutantOutcome::kCaught;
      CHECK_EQ(result->is_near, is_caught);
      found += fmt::format("{} at {}: {}\n", mutation.name, fsdp.after().name(node),
                           is_caught ? result->diagnosis.reason : "equivalent");
    }
  }
  CHECK_EQ(found,
           "reduce-narrow at all_reduce: all_reduce(sum) over fsdp in bf16, f32 before\n"
           "reduce-narrow at reduce_scatter_tensor: reduce_scatter(sum) over fsdp in bf16, f32 "
           "before\n"
           "cast-before-sum at loss: equivalent\n");
}

}  // namespace
}  // namespace strata::prove
