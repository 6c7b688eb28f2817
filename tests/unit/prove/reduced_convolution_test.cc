// Convolutions that are too large to be evaluated, proven on small sizes.

#include <cstdint>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>

#include "ir/rewriter.h"
#include "prove/prove_pass.h"
#include "tests/support/graphs.h"

namespace strata::prove {
namespace {

using testing::NodeNamed;
using testing::ParseBody;

constexpr std::string_view kConvolutions = R"(
  x = placeholder : f32[4096, 60, 28, 28]
  w = placeholder : f32[120, 60, 3, 3]
  grouped = placeholder : f32[210, 40, 3, 3]
  back = placeholder : f32[210, 30, 2, 2]
  g = placeholder : f32[4096, 210, 14, 14]
  half = aten.convolution.default(x, w, None, [2, 2], [1, 1], [1, 1], False, [0, 0], 1) : f32[4096, 120, 14, 14]
  parts = aten.convolution.default(half, grouped, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 3) : f32[4096, 210, 14, 14]
  larger = aten.convolution.default(parts, back, None, [2, 2], [0, 0], [1, 1], True, [0, 0], 2) : f32[4096, 60, 28, 28]
  sum = aten.add.Tensor(larger, x) : f32[4096, 60, 28, 28]
  (dhalf, dgrouped, dbias) = aten.convolution_backward.default(g, half, grouped, [210], [1, 1], [1, 1], [1, 1], False, [0, 0], 3, [True, True, True]) as all : (f32[4096, 120, 14, 14], f32[210, 40, 3, 3], f32[210])
  output([sum, dhalf, dgrouped, dbias])
)";

Proof ProveWithPadding(int64_t padding, int64_t dilation) {
  const std::unique_ptr<Module> before = ParseBody(kConvolutions), after = before->Clone();
  Rewriter rewriter(*after->FindGraph("g"));
  const NodeId node = NodeNamed(rewriter.graph(), "parts");
  const auto args = rewriter.graph().args(node);
  for (const auto& [list, number] : {std::pair(args[4], padding), std::pair(args[5], dilation)})
    for (uint32_t i = 0; i < 2; ++i)
      rewriter.SetSlot(node, list.span_begin() + i, Arg::Int(number));
  return ProvePass(*before->FindGraph("g"), *after->FindGraph("g"), {.stable_ids = true});
}

TEST_CASE("a large convolution is proven on fewer samples and channels, of its spatial sizes") {
  const Proof proof = ProveWithPadding(1, 1);
  CHECK_EQ(proof.reason, "");
  CHECK_EQ(proof.verdict, Verdict::kProven);
  std::set<int64_t> replaced;
  for (const auto& [size, number] : proof.reduced_sizes)
    replaced.insert(size);
  CHECK(replaced.contains(4096));
  CHECK(replaced.contains(60));
  for (const int64_t kept : {28, 14, 3})
    CHECK_FALSE(replaced.contains(kept));
}

TEST_CASE("large norms of channels and pooling are proven on fewer samples and channels, too") {
  const std::unique_ptr<Module> before = ParseBody(R"(
  x = placeholder : f32[4096, 60, 28, 28]
  w = placeholder : f32[60, 60, 3, 3]
  scale = placeholder : f32[60]
  mean = placeholder : f32[60]
  g = placeholder : f32[4096, 60, 14, 14]
  i = placeholder : i64[4096, 60, 14, 14]
  y = aten.convolution.default(x, w, scale, [1, 1], [1, 1], [1, 1], False, [0, 0], 1) : f32[4096, 60, 28, 28]
  (b, bm, br, m, v) = aten._native_batch_norm_legit_functional.default(y, scale, scale, mean, scale, True, 0.1, 1e-05) as batch : (f32[4096, 60, 28, 28], f32[60], f32[60], f32[60], f32[60])
  (n, gm, gr) = aten.native_group_norm.default(b, scale, scale, 4096, 60, 784, 6, 1e-05) as group : (f32[4096, 60, 28, 28], f32[4096, 6], f32[4096, 6])
  (p, _) = aten.max_pool2d_with_indices.default(n, [3, 3], [2, 2], [1, 1]) as pool : (f32[4096, 60, 14, 14], i64[4096, 60, 14, 14])
  dn = aten.max_pool2d_with_indices_backward.default(g, n, [3, 3], [2, 2], [1, 1], [1, 1], False, i) : f32[4096, 60, 28, 28]
  a = aten._adaptive_avg_pool2d.default(p, [2, 2]) : f32[4096, 60, 2, 2]
  rows = aten.view.default(a, [4096, 240]) : f32[4096, 240]
  output([m, v, gm, dn, rows])
)");
  const std::unique_ptr<Module> after = before->Clone();
  const Proof proof =
      ProvePass(*before->FindGraph("g"), *after->FindGraph("g"), {.stable_ids = true});
  CHECK_EQ(proof.reason, "");
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK(proof.opaque.empty());
  std::set<int64_t> replaced;
  for (const auto& [size, number] : proof.reduced_sizes)
    replaced.insert(size);
  CHECK_EQ(replaced, std::set<int64_t>{60, 240, 4096});
}

TEST_CASE("a convolution of other padding and dilation differs on reduced sizes, too") {
  const Proof proof = ProveWithPadding(2, 2);  // of the same output sizes
  REQUIRE_EQ(proof.verdict, Verdict::kDiffers);
  CHECK_EQ(proof.findings.front().node, "parts");
}

}  // namespace
}  // namespace strata::prove
