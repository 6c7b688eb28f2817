#include "passes/placement/strided_views.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/module.h"
#include "ir/rewriter.h"
#include "ir/text/native_text.h"
#include "ir/verify.h"
#include "prove/proof.h"
#include "tests/support/graphs.h"

namespace strata::prove {
namespace {

using testing::OrDie;
using testing::ParseBody;

/// A tensor's place in memory.
struct Layout {
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;

  std::string Type() const {
    return fmt::format("f32[{}][{}]cpu{}", fmt::join(sizes, ", "), fmt::join(strides, ", "),
                       offset == 0 ? "" : fmt::format("@({})", offset));
  }
};

/// The tensor `x`, as views of an input.
struct Source {
  std::string_view nodes;
  Layout layout;
};

constexpr std::string_view kMatrix = "  x = placeholder : f32[4, 6][6, 1]cpu\n";
const Source kSources[] = {
    {"  x = placeholder : f32[4, 6, 2][12, 2, 1]cpu\n", {{4, 6, 2}, {12, 2, 1}}},
    {"  base = placeholder : f32[6, 2, 4][8, 4, 1]cpu\n"
     "  x = aten.permute.default(base, [2, 0, 1]) : f32[4, 6, 2][1, 8, 4]cpu ~base\n",
     {{4, 6, 2}, {1, 8, 4}}},
    {"  base = placeholder : f32[3, 5, 4][20, 4, 1]cpu\n"
     "  rows = aten.slice.Tensor(base, 1, 0, 4) : f32[3, 4, 4][20, 4, 1]cpu ~base\n"
     "  x = aten.slice.Tensor(rows, 2, 0, 4, 2) : f32[3, 4, 2][20, 4, 2]cpu ~base\n",
     {{3, 4, 2}, {20, 4, 2}}},
    {"  base = placeholder : f32[1, 3, 6][18, 6, 1]cpu\n"
     "  x = aten.permute.default(base, [0, 2, 1]) : f32[1, 6, 3][18, 1, 6]cpu ~base\n",
     {{1, 6, 3}, {18, 1, 6}}},
    {"  base = placeholder : f32[16][1]cpu\n"
     "  x = aten.slice.Tensor(base, 0, 1, 16, 3) : f32[5][3]cpu@(1) ~base\n",
     {{5}, {3}, 1}},
};

std::string Body(std::string_view nodes, const Layout& to) {
  return fmt::format(R"(
{}  y = aten.as_strided.default(x, [{}], [{}], {}) : {} ~{}
  z = aten.neg.default(y) : f32[{}]
  output([z])
)",
                     nodes, fmt::join(to.sizes, ", "), fmt::join(to.strides, ", "), to.offset,
                     to.Type(), nodes.find("base") == std::string_view::npos ? "x" : "base",
                     fmt::join(to.sizes, ", "));
}

/// What makes `z` of `x`, after the views of strides were replaced.
std::string ViewsOf(std::string_view source, const Layout& to) {
  const auto before = ParseBody(Body(source, to)), after = before->Clone();
  Graph& graph = *after->FindGraph("g");
  {
    Rewriter rewriter(graph);
    MakeViewsOfStrides(rewriter);
  }
  OrDie(Verify(*after));
  const Proof proof = Prove(*before->FindGraph("g"), graph, {});
  CHECK_EQ(proof.reason, "");
  CHECK(proof.verdict == Verdict::kProven);
  const std::string all = PrintText(graph, {.types = false, .metadata = false});
  const size_t begin = all.find('\n', all.find("  x = ") + 1) + 1;
  return all.substr(begin, all.find("  z = ") - begin);
}

/// A view of `from` by a chain of views by dimensions.
Layout RandomView(Layout from, std::mt19937& random) {
  const auto pick = [&](int64_t count) { return static_cast<int64_t>(random() % count); };
  for (size_t dim = 0; dim < from.sizes.size(); ++dim) {
    const int64_t size = 1 + pick(from.sizes[dim]), start = pick(from.sizes[dim] - size + 1);
    if (pick(2) == 0) continue;
    from.offset += start * from.strides[dim];
    from.sizes[dim] = size;
  }
  std::vector<size_t> order(from.sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::shuffle(order, random);
  Layout to{.sizes = {}, .strides = {}, .offset = from.offset};
  for (const size_t dim : order) {
    if (from.sizes[dim] == 1 && pick(2) == 0) continue;
    to.sizes.push_back(from.sizes[dim]);
    to.strides.push_back(from.strides[dim]);
  }
  return to;
}

TEST_CASE("views by strides are the views by dimensions that replace them") {
  CHECK_EQ(ViewsOf(kMatrix, {{4, 3}, {6, 1}, 2}), "  slice_1 = aten.slice.Tensor(x, 1, 2, 5)\n");
  CHECK_EQ(ViewsOf(kMatrix, {{4, 6}, {6, 1}}), "  alias = aten.alias.default(x)\n");
  CHECK_EQ(ViewsOf(kMatrix, {{6, 4}, {1, 6}}), "  permute = aten.permute.default(x, [1, 0])\n");
  CHECK_EQ(ViewsOf(kMatrix, {{2, 2, 6}, {12, 6, 1}}), "  view = aten.view.default(x, [2, 2, 6])\n");
  CHECK_EQ(
      ViewsOf(kMatrix, {{1, 4}, {24, 6}, 5}),
      "  select = aten.select.int(x, 1, 5)\n  unsqueeze = aten.unsqueeze.default(select, 0)\n");
  // Each second column; rows of a tensor with gaps between them.
  CHECK_EQ(ViewsOf(kMatrix, {{4, 3}, {6, 2}}),
           "  view = aten.view.default(x, [4, 3, 2])\n  select = aten.select.int(view, 2, 0)\n");
  CHECK_EQ(ViewsOf(kSources[2].nodes, {{2, 4, 2}, {20, 4, 2}, 20}),
           "  slice_1 = aten.slice.Tensor(x, 0, 1, 3)\n");
}

TEST_CASE("views by strides that overlap, repeat or leave the tensor stay") {
  for (const Layout& to : {Layout{{20, 5}, {1, 1}}, Layout{{4, 6}, {0, 1}}, Layout{{4}, {7}}})
    CHECK(ViewsOf(kMatrix, to).starts_with("  y = aten.as_strided.default(x, "));
}

TEST_CASE("each chain of slices, selections and permutations is found in its strides") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const Source& from = kSources[static_cast<size_t>(round) % std::size(kSources)];
    const Layout to = RandomView(from.layout, random);
    CAPTURE(from.layout.Type());
    CAPTURE(to.Type());
    CHECK(ViewsOf(from.nodes, to).find("as_strided") == std::string::npos);
  }
}

}  // namespace
}  // namespace strata::prove
