#include "prove/evaluation/labels.h"

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace strata::prove {
namespace {

/// Which labels are ignored, in row-major order.
using Ignored = std::vector<bool>;

/// Numbers of ignored labels in a grid of blocks: `first` along one dimension, `second` along
/// another one.
std::vector<int64_t> CountsOfBlocks(const Sizes& sizes, const Ignored& ignored, size_t dim,
                                    int64_t first, size_t other, int64_t second) {
  const auto stride_of = [&](size_t of) {
    int64_t stride = 1;
    for (size_t i = of + 1; i < sizes.size(); ++i)
      stride *= sizes[i];
    return stride;
  };
  const int64_t stride = stride_of(dim), other_stride = stride_of(other);
  std::vector<int64_t> counts(static_cast<size_t>(first * second), 0);
  for (size_t i = 0; i < ignored.size(); ++i) {
    if (!ignored[i]) continue;
    const auto at = static_cast<int64_t>(i);
    const int64_t row = at / stride % sizes[dim] / (sizes[dim] / first);
    const int64_t column = at / other_stride % sizes[other] / (sizes[other] / second);
    ++counts[static_cast<size_t>(row * second + column)];
  }
  return counts;
}

/// Pairs of blocks in one row or column of the grid with equal numbers, and blocks without a label.
/// 0 where blocks have too few labels to differ.
int64_t EqualBlocks(const std::vector<int64_t>& counts, int64_t first, int64_t second,
                    int64_t block) {
  if (block < std::max(first, second)) return 0;
  int64_t equal = 0;
  const auto at = [&](int64_t row, int64_t column) {
    return counts[static_cast<size_t>(row * second + column)];
  };
  for (int64_t row = 0; row < first; ++row) {
    for (int64_t column = 0; column < second; ++column) {
      equal += at(row, column) == block ? 1 : 0;
      for (int64_t i = 0; i < row; ++i)
        equal += at(i, column) == at(row, column) ? 1 : 0;
      for (int64_t i = 0; i < column; ++i)
        equal += at(row, i) == at(row, column) ? 1 : 0;
    }
  }
  return equal;
}

std::vector<int64_t> PartsOf(int64_t size) {
  constexpr int64_t kMaxParts = 8;
  std::vector<int64_t> parts = {1};
  for (int64_t count = 2; count <= std::min(size, kMaxParts); ++count)
    if (size % count == 0) parts.push_back(count);
  return parts;
}

/// Of a dimension, the first and the last slice, which programs read alone: those without a label.
int64_t EmptyEnds(const Sizes& sizes, const Ignored& ignored, size_t dim) {
  const int64_t slice = static_cast<int64_t>(ignored.size()) / sizes[dim];
  if (slice < 2) return 0;
  const std::vector<int64_t> counts = CountsOfBlocks(sizes, ignored, dim, sizes[dim], dim, 1);
  return (counts.front() == slice ? 1 : 0) + (counts.back() == slice ? 1 : 0);
}

/// 0: every rank of a grid of ranks differs from those in its row and column, and the ends of all
/// dimensions have labels. Few ranks count more.
int64_t Penalty(const Sizes& sizes, const Ignored& ignored) {
  constexpr int64_t kWeight = 1 << 12;
  int64_t penalty = 0;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    penalty += kWeight * EmptyEnds(sizes, ignored, dim);
    for (size_t other = dim; other < sizes.size(); ++other) {
      for (const int64_t first : PartsOf(sizes[dim])) {
        for (const int64_t second :
             other == dim ? std::vector<int64_t>{1} : PartsOf(sizes[other])) {
          const int64_t block = static_cast<int64_t>(ignored.size()) / (first * second);
          penalty += kWeight / (first * second * first * second) *
                     EqualBlocks(CountsOfBlocks(sizes, ignored, dim, first, other, second), first,
                                 second, block);
        }
      }
    }
  }
  return penalty;
}

/// `count` labels, more of them at the begin of the dimensions with a larger `slope`.
Ignored Draw(const Sizes& sizes, int64_t elements, int64_t count, uint64_t slope, uint64_t key) {
  constexpr uint64_t kRange = 1 << 20;
  std::vector<std::pair<uint64_t, size_t>> order;
  for (int64_t i = 0; i < elements; ++i) {
    uint64_t score = RandomBits(key, static_cast<uint64_t>(i)) % kRange;
    int64_t rest = i;
    uint64_t weight = slope * kRange / 4;
    for (size_t dim = sizes.size(); dim-- > 0; weight = weight * 3 / 4) {
      const int64_t at = rest % sizes[dim];
      rest /= sizes[dim];
      score += weight * static_cast<uint64_t>(at) / static_cast<uint64_t>(sizes[dim]);
    }
    order.emplace_back(score, static_cast<size_t>(i));
  }
  std::ranges::nth_element(order, order.begin() + count);
  Ignored ignored(static_cast<size_t>(elements), false);
  for (int64_t i = 0; i < count; ++i)
    ignored[order[static_cast<size_t>(i)].second] = true;
  return ignored;
}

}  // namespace

void IgnoreLabels(const Tensor& labels, int64_t ignored, uint64_t key,
                  std::optional<int64_t> rank) {
  constexpr uint64_t kAttempts = 64, kSlopes = 8;
  const int64_t elements = labels.numel();
  if (elements < 2) return;
  const int64_t wanted = elements * 3 / 8;
  Ignored best;
  int64_t least = 0;
  for (uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    const auto round = static_cast<int64_t>(attempt / kSlopes);
    const int64_t count = rank ? (wanted + *rank) % elements  // else any number will do
                               : 1 + (wanted + round) % (elements - 1);
    Ignored drawn =
        Draw(labels.sizes(), elements, count, attempt % kSlopes, key ^ (attempt << 32U));
    const int64_t penalty = Penalty(labels.sizes(), drawn);
    if (!best.empty() && penalty >= least) continue;
    best = std::move(drawn);
    least = penalty;
    if (least == 0) break;
  }
  std::vector<uint64_t>& words = labels.storage()->words;
  for (size_t i = 0; i < best.size(); ++i)
    if (best[i]) words[i] = static_cast<uint64_t>(ignored);
}

}  // namespace strata::prove
