#include "diff/graph/order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace strata {
namespace {

/// Prefix maxima of (weight, point) over ranks: a Fenwick tree. Both calls stop at the end of a
/// range of ranks when all that is asked for stands in it.
class PrefixBest {
 public:
  struct Best {
    uint64_t weight = 0;
    int32_t point = -1;
  };
  explicit PrefixBest(size_t size) : tree_(size + 1) {}

  /// The best of ranks from `begin` up to, not including, `rank`; or one that is lower.
  Best Below(size_t rank, size_t begin) const {
    Best best;
    for (size_t i = rank; i > begin; i -= i & (~i + 1)) {
      if (tree_[i].weight > best.weight) best = tree_[i];
    }
    return best;
  }
  /// For calls of `Below` with ranks up to `end`.
  void Add(size_t rank, Best entry, size_t end) {
    for (size_t i = rank + 1; i <= end; i += i & (~i + 1)) {
      if (entry.weight <= tree_[i].weight) return;  // then what stands above has as much
      tree_[i] = entry;
    }
  }

 private:
  std::vector<Best> tree_;
};

}  // namespace

std::vector<bool> LargestOrderedSet(std::span<const OrderPoint> points) {
  const size_t n = points.size();
  std::vector<bool> kept(n, true);
  const bool ascending = std::ranges::is_sorted(points, {}, &OrderPoint::after);
  if (ascending) return kept;

  // How many points have a smaller place: places are dense.
  const auto [first, last_place] = std::ranges::minmax(points, {}, &OrderPoint::after);
  std::vector<int32_t> smaller(static_cast<size_t>(last_place.after - first.after) + 2, 0);
  const auto place_of = [low = first.after](const OrderPoint& point) {
    return static_cast<size_t>(point.after - low);
  };
  for (const OrderPoint& point : points)
    ++smaller[place_of(point) + 1];
  std::partial_sum(smaller.begin(), smaller.end(), smaller.begin());
  const auto rank_of = [&](size_t i) { return static_cast<size_t>(smaller[place_of(points[i])]); };
  // A point is fixed if it has all others on the right side. What comes later continues from the
  // last fixed one, or from a point in between. The next fixed one after all points before `i`:
  const auto next_fixed = [&](size_t i) {
    for (size_t end_of_ranks = i; i < n; ++i) {
      const size_t rank = rank_of(i);
      if (rank == i && end_of_ranks <= i) return i;
      end_of_ranks = std::max(end_of_ranks, rank + 1);
    }
    return n;
  };
  // A point next to the one before it in both orders is kept with it. So only the last one of such
  // a run is looked for.
  const auto continues = [&](size_t i) { return i < n && rank_of(i) == rank_of(i - 1) + 1; };
  // One more point outweighs all preferences together.
  constexpr uint64_t kPoint = uint64_t{1} << 40;
  PrefixBest best(n);
  std::vector<int32_t> previous(n, -1);
  PrefixBest::Best entry, last, fixed;
  for (size_t begin = 0, end = 0; begin < n; begin = end + 1) {
    end = next_fixed(begin);
    for (size_t i = begin; i < std::min(end + 1, n); ++i) {
      const size_t rank = rank_of(i);
      PrefixBest::Best below = fixed;
      if (i > begin) below = continues(i) ? entry : best.Below(rank, begin);
      if (below.weight < fixed.weight) below = fixed;
      previous[i] = below.point;
      const uint64_t weight = below.weight + kPoint + (points[i].preference & 0xFFFFF);
      entry = {weight, static_cast<int32_t>(i)};
      if (weight > last.weight) last = entry;
      if (i == end) {
        fixed = entry;
      } else if (!continues(i + 1)) {
        best.Add(rank, entry, end);
      }
    }
  }
  kept.assign(n, false);
  for (int32_t i = last.point; i >= 0; i = previous[static_cast<size_t>(i)])
    kept[static_cast<size_t>(i)] = true;
  return kept;
}

double PositionMap::AfterOf(int32_t before) const {
  if (anchors_.empty()) return before;
  const auto next = std::ranges::lower_bound(anchors_, before, {},
                                             [](const auto& anchor) { return anchor.first; });
  if (next == anchors_.end()) return anchors_.back().second + (before - anchors_.back().first);
  if (next->first == before) return next->second;
  if (next == anchors_.begin()) return next->second - (next->first - before);
  const auto last = std::prev(next);
  const double share = static_cast<double>(before - last->first) / (next->first - last->first);
  return last->second + share * (next->second - last->second);
}

double PositionMap::BeforeOf(int32_t after) const {
  if (anchors_.empty()) return after;
  const auto next = std::ranges::lower_bound(anchors_, after, {},
                                             [](const auto& anchor) { return anchor.second; });
  if (next == anchors_.end()) return anchors_.back().first + (after - anchors_.back().second);
  if (next->second == after) return next->first;
  if (next == anchors_.begin()) return next->first - (next->second - after);
  const auto last = std::prev(next);
  const double share = static_cast<double>(after - last->second) / (next->second - last->second);
  return last->first + share * (next->first - last->first);
}

double PositionMap::Distance(int32_t before, int32_t after) const {
  return std::abs(AfterOf(before) - after) + std::abs(BeforeOf(after) - before);
}

}  // namespace strata
