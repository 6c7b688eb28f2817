// Random calls that Inductor gives seeds: that they draw the same numbers is inferred, and stated.

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

constexpr std::string_view kDrawn = R"(
  x = placeholder : f32[2, 3]
  a = aten.rand.default([2, 3]) : f32[2, 3]
  b = aten.rand.default([2, 3]) : f32[2, 3]
  c = aten.randn.default([2, 3]) : f32[2, 3]
  d = aten.randint.low(0, 5, [2, 3]) : i64[2, 3]
  y = aten.mul.Tensor(x, a) : f32[2, 3]
  z = aten.sub.Tensor(y, b) : f32[2, 3]
  u = aten.mul.Tensor(z, c) : f32[2, 3]
  v = aten.add.Tensor(u, d) : f32[2, 3]
  output((v,))
)";

/// The same with seeds; `first` and `second` are the seeds of a and b.
std::string Seeded(int first, int second, std::string_view high = "5") {
  return fmt::format(R"(
  x = placeholder : f32[2, 3]
  seeds = prims.inductor_seeds.default(4, device('cpu')) : i64[4]
  s0 = prims.inductor_lookup_seed.default(seeds, {}) : i64[]
  a = prims.inductor_random.default([2, 3], s0, 'rand') : f32[2, 3]
  s1 = prims.inductor_lookup_seed.default(seeds, {}) : i64[]
  b = prims.inductor_random.default([2, 3], s1, 'rand') : f32[2, 3]
  s2 = prims.inductor_lookup_seed.default(seeds, 2) : i64[]
  c = prims.inductor_random.default([2, 3], s2, 'randn') : f32[2, 3]
  s3 = prims.inductor_lookup_seed.default(seeds, 3) : i64[]
  d = prims.inductor_randint.default(0, {}, [2, 3], s3) : i64[2, 3]
  y = aten.mul.Tensor(x, a) : f32[2, 3]
  z = aten.sub.Tensor(y, b) : f32[2, 3]
  u = aten.mul.Tensor(z, c) : f32[2, 3]
  v = aten.add.Tensor(u, d) : f32[2, 3]
  output((v,))
)",
                     first, second, high);
}

TEST_CASE("calls with seeds draw what random calls drew, which is inferred") {
  const Proof proof = ProveTexts(kDrawn, Seeded(0, 1));
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK_EQ(proof.assumptions,
           std::vector<Assumption>{
               {.text = "calls with seeds draw what the 4 random calls before drew, in order"}});
  CHECK(proof.opaque.empty());
}

TEST_CASE("draws of other seeds differ") {
  CHECK_EQ(ProveTexts(kDrawn, Seeded(1, 0)).verdict, Verdict::kDiffers);
}

TEST_CASE("draws of fewer seeds, or of other numbers, are not inferred") {
  for (const std::string& seeded : {Seeded(0, 0), Seeded(0, 1, "6"), Seeded(0, 7)}) {
    const Proof proof = ProveTexts(kDrawn, seeded);
    CHECK_EQ(proof.verdict, Verdict::kUnproven);
    CHECK(proof.assumptions.empty());
  }
}

TEST_CASE("graphs with the same seeds need no assumption") {
  const Proof proof = ProveTexts(Seeded(0, 1), Seeded(0, 1));
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK(proof.assumptions.empty());
}

/// The proof of a dropout whose mask the backward graph draws again from seed `seed`.
Proof ProofOfDropout(int seed) {
  const auto joint = ParseBody(R"(
  x = placeholder : f32[4]
  tangents_1 = placeholder : f32[4]
  rand = aten.rand.default([4]) : f32[4]
  rand_1 = aten.rand.default([4]) : f32[4]
  gt = aten.gt.Scalar(rand, 0.5) : b8[4]
  gt_1 = aten.gt.Scalar(rand_1, 0.5) : b8[4]
  kept = aten.mul.Tensor(x, gt) : f32[4]
  y = aten.mul.Tensor(kept, gt_1) : f32[4]
  g = aten.mul.Tensor(tangents_1, gt_1) : f32[4]
  output((y, g))
)");
  const auto forward = ParseBody(R"(
  x = placeholder : f32[4]
  seeds = prims.inductor_seeds.default(2, device('cpu')) : i64[2]
  s0 = prims.inductor_lookup_seed.default(seeds, 0) : i64[]
  random = prims.inductor_random.default([4], s0, 'rand') : f32[4]
  s1 = prims.inductor_lookup_seed.default(seeds, 1) : i64[]
  random_1 = prims.inductor_random.default([4], s1, 'rand') : f32[4]
  gt = aten.gt.Scalar(random, 0.5) : b8[4]
  gt_1 = aten.gt.Scalar(random_1, 0.5) : b8[4]
  kept = aten.mul.Tensor(x, gt) : f32[4]
  y = aten.mul.Tensor(kept, gt_1) : f32[4]
  output((y, seeds))
)");
  const auto backward = ParseBody(fmt::format(R"(
  seeds = placeholder : i64[2]
  tangents_1 = placeholder : f32[4]
  s1 = prims.inductor_lookup_seed.default(seeds, {}) : i64[]
  random_1 = prims.inductor_random.default([4], s1, 'rand') : f32[4]
  gt_1 = aten.gt.Scalar(random_1, 0.5) : b8[4]
  g = aten.mul.Tensor(tangents_1, gt_1) : f32[4]
  output((g,))
)",
                                              seed));
  return ProvePartition(*joint->FindGraph("g"), *forward->FindGraph("g"), *backward->FindGraph("g"),
                        {});
}

TEST_CASE("a backward graph that draws a mask again has the mask of its seed") {
  CHECK_EQ(ProofOfDropout(1).verdict, Verdict::kProven);
  CHECK_EQ(ProofOfDropout(0).verdict, Verdict::kDiffers);
}

}  // namespace
}  // namespace strata::prove
