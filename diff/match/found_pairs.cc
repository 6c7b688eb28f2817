#include "diff/match/found_pairs.h"

#include <algorithm>

#include "diff/graph/order.h"

namespace strata {
namespace {

/// A graph was rearranged, and its order is not evidence, if one pair in this many contradicts it.
constexpr size_t kDisorder = 10;

}  // namespace

void FoundPairs::DropDisordered(const Matching& matching, const ScopePair& scope) {
  std::ranges::sort(pairs_);
  std::vector<OrderPoint> points;
  std::vector<bool> is_found;
  const auto add = [&](EntityId before, EntityId after, bool found) {
    points.push_back({before.index, after.index});
    is_found.push_back(found);
  };
  auto next = pairs_.begin();
  for (EntityId i : scope.ids(kBefore)) {
    const EntityId image = matching.partner(kBefore, i);
    const bool inside = scope.ids(kAfter).Contains(image);
    if (inside) add(i, image, false);
    for (; next != pairs_.end() && next->first == i; ++next)
      add(next->first, next->second, true);
  }
  const std::vector<bool> in_order = LargestOrderedSet(points);
  const auto kept = static_cast<size_t>(std::ranges::count(in_order, true));
  if (kept == points.size() || kDisorder * (points.size() - kept) > points.size()) return;
  std::vector<bool> keep;
  for (size_t i = 0; i < points.size(); ++i) {
    if (is_found[i]) keep.push_back(in_order[i]);
  }
  size_t at = 0;
  std::erase_if(pairs_, [&](const auto&) { return !keep[at++]; });
}

bool FoundPairs::AreShuffled() const {
  constexpr size_t kFew = 1024;
  if (pairs_.size() < kFew) return false;
  std::vector<OrderPoint> points;
  for (const auto& [before, after] : pairs_)
    points.push_back({before.index, after.index});
  std::ranges::sort(points, {}, &OrderPoint::before);
  const std::vector<bool> in_order = LargestOrderedSet(points);
  const auto longest = static_cast<size_t>(std::ranges::count(in_order, true));
  // Of a random permutation of n about 2 sqrt(n) ascend.
  return longest * longest < 9 * points.size();
}

void FoundPairs::MatchAll(Matching& matching, Via via, double confidence) {
  std::ranges::sort(pairs_);
  for (const auto& [before, after] : pairs_) {
    if (matching.SameKind(before, after)) matching.Match(before, after, via, confidence);
  }
}

}  // namespace strata
