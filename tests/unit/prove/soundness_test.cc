// What proofs say of wrong graphs, whatever the inputs and the mesh.
#include <algorithm>
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

}  // namespace
}  // namespace strata::prove
