#include "diff/graph/order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace strata {
namespace {

/// Prefix maxima of (weight, point) over ranks: a Fenwick tree.
class PrefixBest {
 public:
  struct Best {
    uint64_t weight = 0;
    int32_t point = -1;
  };
  explicit PrefixBest(size_t size) : tree_(size + 1) {}

  /// The best of ranks below `rank`.
  Best Below(size_t rank) const {
    Best best;
    for (size_t i = rank; i > 0; i -= i & (~i + 1)) {
      if (tree_[i].weight > best.weight) best = tree_[i];
    }
    return best;
  }
  void Add(size_t rank, Best entry) {
    for (size_t i = rank + 1; i < tree_.size(); i += i & (~i + 1)) {
      if (entry.weight > tree_[i].weight) tree_[i] = entry;
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
  // One more point outweighs all preferences together.
  constexpr uint64_t kPoint = uint64_t{1} << 40;
  PrefixBest best(n);
  std::vector<int32_t> previous(n, -1);
  PrefixBest::Best last;
  // Most points have all others on the right side: what comes later continues from the last such
  // one, or from what is between, which alone is in `best`.
  PrefixBest::Best fixed;
  size_t end_of_ranks = 0;  // of the points so far
  bool any_between = false;
  for (size_t i = 0; i < n; ++i) {
    const auto rank = static_cast<size_t>(smaller[place_of(points[i])]);
    PrefixBest::Best below = any_between ? best.Below(rank) : fixed;
    if (below.weight < fixed.weight) below = fixed;
    previous[i] = below.point;
    const uint64_t weight = below.weight + kPoint + (points[i].preference & 0xFFFFF);
    const PrefixBest::Best entry{weight, static_cast<int32_t>(i)};
    const bool is_fixed = rank == i && end_of_ranks <= i;
    end_of_ranks = std::max(end_of_ranks, rank + 1);
    any_between = !is_fixed;
    if (is_fixed) {
      fixed = entry;
    } else {
      best.Add(rank, entry);
    }
    if (weight > last.weight) last = entry;
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
