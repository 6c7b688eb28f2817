// Inputs under which wrong programs cannot look right.

#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ir/rewriter.h"
#include "passes/core/collectives.h"
#include "passes/placement/lowering/lower.h"
#include "passes/placement/place.h"
#include "prove/evaluation/bounds.h"
#include "prove/evaluation/evaluator.h"
#include "prove/evaluation/labels.h"
#include "prove/lowering.h"
#include "prove/on_ranks.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata::prove {
namespace {

using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;
using testing::ValueNamed;

constexpr int64_t kIgnoredLabel = -100;

/// Ignored labels in each of `parts` equal parts of dimension `dim`.
std::vector<int64_t> IgnoredInParts(const Tensor& labels, size_t dim, int64_t parts) {
  std::vector<int64_t> counts;
  Sizes sizes = labels.sizes();
  sizes[dim] /= parts;
  for (int64_t i = 0; i < parts; ++i) {
    const Tensor part(labels.domain(), labels.storage(), sizes, labels.strides(),
                      i * sizes[dim] * labels.strides()[dim]);
    int64_t count = 0;
    for (const uint64_t word : part.Read())
      count += static_cast<int64_t>(word) == kIgnoredLabel ? 1 : 0;
    counts.push_back(count);
  }
  return counts;
}

TEST_CASE("inputs: ranks that share labels ignore other numbers of them") {
  for (const Sizes& sizes :
       {Sizes{4}, Sizes{8}, Sizes{2, 4}, Sizes{4, 4}, Sizes{4, 16}, Sizes{6, 12}, Sizes{8, 128}}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const Tensor labels(Domain::kInteger, sizes, 1);
      IgnoreLabels(labels, kIgnoredLabel, seed, {});
      for (size_t dim = 0; dim < sizes.size(); ++dim) {
        for (const int64_t parts : {2, 4}) {
          const bool can_differ = parts == 2 || labels.numel() / parts > parts;
          if (sizes[dim] % parts != 0 || !can_differ) continue;
          const std::vector<int64_t> counts = IgnoredInParts(labels, dim, parts);
          CAPTURE(sizes.front());
          CAPTURE(sizes.back());
          CAPTURE(seed);
          CAPTURE(dim);
          CHECK_EQ(std::set<int64_t>(counts.begin(), counts.end()).size(), counts.size());
        }
      }
    }
  }
}

TEST_CASE("inputs: a program that reads the first or last labels alone has some") {
  for (const Sizes& sizes : {Sizes{2, 4}, Sizes{4, 8}, Sizes{4, 16}, Sizes{6, 12}, Sizes{8, 128}}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const Tensor labels(Domain::kInteger, sizes, 1);
      IgnoreLabels(labels, kIgnoredLabel, seed, {});
      for (size_t dim = 0; dim < sizes.size(); ++dim) {
        const std::vector<int64_t> counts = IgnoredInParts(labels, dim, sizes[dim]);
        CAPTURE(sizes.front());
        CAPTURE(sizes.back());
        CAPTURE(seed);
        CAPTURE(dim);
        CHECK_LT(counts.front(), labels.numel() / sizes[dim]);
        CHECK_LT(counts.back(), labels.numel() / sizes[dim]);
      }
    }
  }
}

TEST_CASE("inputs: ranks with labels of their own ignore other numbers of them") {
  std::set<int64_t> counts;
  for (int64_t rank = 0; rank < 6; ++rank) {
    const Tensor labels(Domain::kInteger, {2, 4}, 1);
    IgnoreLabels(labels, kIgnoredLabel, 7, rank);
    counts.insert(IgnoredInParts(labels, 0, 1)[0]);
  }
  CHECK_EQ(counts.size(), 6);
  CHECK_EQ(counts.count(8), 0);
}

constexpr std::string_view kLoss = R"(
  x = placeholder : f32[4, 6][6, 1]cpu {+fqn='x' +input='batch'}
  labels = placeholder : i64[4][1]cpu {+fqn='labels' +input='batch'}
  y = aten._log_softmax.default(x, 1, False) : f32[4, 6][6, 1]cpu {loss}
  (sum, total) = aten.nll_loss_forward.default(y, labels, None, 2, -100) as nll : (f32[][]cpu, f32[][]cpu) {loss}
  mean = aten.div.Tensor(sum, total) : f32[][]cpu {loss}
  output([mean])
)";

TEST_CASE("inputs: a mean over each rank's own labels is found, whatever the seed") {
  auto placed = ParseBody(kLoss);
  OrDie(Place({.mesh = "fsdp=2", .plan = ""}).Run(*placed));
  auto lowered = placed->Clone();
  OrDie(LowerPlacements().Run(*lowered));
  const auto correct = lowered->Clone();
  Graph& graph = *lowered->FindGraph("g");
  const ValueId total = ValueNamed(graph, "total");
  NodeId reduce;
  for (const NodeId node : graph.nodes())
    if (CollectiveOf(graph, node) && graph.args(node)[0].value() == total) reduce = node;
  REQUIRE(reduce.valid());
  // The sum over the ranks is as large only where both ignore equally many labels.
  const ValueId complete = graph.result(OnlyWaitOf(graph, reduce));
  Rewriter rewriter(graph);
  rewriter.SetCursorBefore(reduce);
  const NodeId twice = rewriter.Create("aten.mul.Scalar", {Arg(total), Arg::Int(2)}, {reduce});
  rewriter.SetType(graph.result(twice), graph.value(complete).type);
  rewriter.ReplaceUses(complete, graph.result(twice));
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    const ProofOptions options = {.seed = seed, .stable_ids = true};
    const Graph& before = *correct->FindGraph("g");
    CHECK(ProveLowering(*placed->FindGraph("g"), before, options).verdict == Verdict::kProven);
    CHECK(ProveLowering(*placed->FindGraph("g"), graph, options).verdict == Verdict::kDiffers);
    CHECK(ProveOnRanks(before, graph, options).verdict == Verdict::kDiffers);
  }
}

constexpr std::string_view kClip = R"(
  g = placeholder : f32[4, 6]
  norm = aten.linalg_vector_norm.default(g, 2) : f32[]
  inverse = aten.reciprocal.default(norm) : f32[]
  factor = aten.clamp.default(inverse, None, 1.0) : f32[]
  out = aten.mul.Tensor(g, factor) : f32[4, 6]
  output(out)
)";

TEST_CASE("inputs: the clip of a gradient is active, so that a wrong norm is found") {
  const auto before = ParseBody(kClip), after = ParseBody(kClip);
  Graph& graph = *after->FindGraph("g");
  Rewriter rewriter(graph);
  const NodeId node = NodeNamed(graph, "inverse");
  rewriter.SetOp(node, "aten.mul.Scalar");
  const Arg args[] = {Arg(ValueNamed(graph, "norm")), Arg::Int(3)};
  rewriter.SetArgs(node, args, {});
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    CHECK(Prove(*before->FindGraph("g"), *before->FindGraph("g"), {.seed = seed}).verdict ==
          Verdict::kProven);
    CHECK(Prove(*before->FindGraph("g"), graph, {.seed = seed}).verdict == Verdict::kDiffers);
  }
}

TEST_CASE("inputs: the seed stays where nothing is at its bound") {
  const auto module = ParseBody(kClip);
  const Graph& graph = *module->FindGraph("g");
  CHECK(HasBounds(graph));
  int kept = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    std::vector<uint64_t> tried;
    int64_t at_bound = -1;
    CHECK_OK(EvaluateInsideBounds(graph, seed, [&](uint64_t next) -> Result<int64_t> {
      tried.push_back(next);
      Evaluator evaluator(graph, next);
      OrDie(evaluator.Run(OrDie(MakeInputs(graph, next))));
      at_bound = evaluator.at_bound();
      return at_bound;
    }));
    CHECK_EQ(at_bound, 0);
    CHECK_EQ(tried.front(), seed);
    kept += tried.size() == 1 ? 1 : 0;
  }
  CHECK_GT(kept, 5);
  CHECK_LT(kept, 35);
}

}  // namespace
}  // namespace strata::prove
