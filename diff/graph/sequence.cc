#include "diff/graph/sequence.h"

#include <algorithm>
#include <unordered_map>

#include "diff/graph/order.h"

namespace strata {
namespace {

using Pairs = std::vector<std::pair<int32_t, int32_t>>;

/// Elements that both have once, in the largest set that keeps their order.
Pairs UniqueInOrder(std::span<const uint64_t> a, std::span<const uint64_t> b) {
  struct Places {
    int32_t in_a = -1, in_b = -1;
    bool repeated = false;
  };
  std::unordered_map<uint64_t, Places> places;
  const auto note = [&](std::span<const uint64_t> elements, int32_t Places::* place) {
    for (size_t i = 0; i < elements.size(); ++i) {
      Places& p = places[elements[i]];
      p.repeated |= p.*place >= 0;
      p.*place = static_cast<int32_t>(i);
    }
  };
  note(a, &Places::in_a);
  note(b, &Places::in_b);
  std::vector<OrderPoint> points;
  for (const uint64_t element : a) {
    const Places& p = places[element];
    if (!p.repeated && p.in_b >= 0) points.push_back({p.in_a, p.in_b});
  }
  const std::vector<bool> kept = LargestOrderedSet(points);
  Pairs pairs;
  for (size_t i = 0; i < points.size(); ++i) {
    if (kept[i]) pairs.emplace_back(points[i].before, points[i].after);
  }
  return pairs;
}

/// The textbook table.
Pairs Longest(std::span<const uint64_t> a, std::span<const uint64_t> b) {
  const size_t n = a.size(), m = b.size();
  std::vector<int32_t> length((n + 1) * (m + 1), 0);
  const auto at = [&](size_t i, size_t j) -> int32_t& { return length[i * (m + 1) + j]; };
  for (size_t i = n; i-- > 0;) {
    for (size_t j = m; j-- > 0;)
      at(i, j) = a[i] == b[j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
  }
  Pairs pairs;
  for (size_t i = 0, j = 0; i < n && j < m;) {
    if (a[i] == b[j]) {
      pairs.emplace_back(i++, j++);
    } else if (at(i + 1, j) >= at(i, j + 1)) {
      ++i;
    } else {
      ++j;
    }
  }
  return pairs;
}

}  // namespace

std::vector<std::pair<int32_t, int32_t>> CommonSubsequence(std::span<const uint64_t> a,
                                                           std::span<const uint64_t> b) {
  const size_t limit = std::min(a.size(), b.size());
  size_t head = 0, tail = 0;
  while (head < limit && a[head] == b[head])
    ++head;
  while (tail < limit - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    ++tail;
  Pairs pairs;
  for (size_t i = 0; i < head; ++i)
    pairs.emplace_back(i, i);
  const auto middle_a = a.subspan(head, a.size() - head - tail);
  const auto middle_b = b.subspan(head, b.size() - head - tail);
  constexpr size_t kMaxCells = size_t{1} << 22;
  const bool small = (middle_a.size() + 1) * (middle_b.size() + 1) <= kMaxCells;
  for (const auto& [i, j] : small ? Longest(middle_a, middle_b) : UniqueInOrder(middle_a, middle_b))
    pairs.emplace_back(i + static_cast<int32_t>(head), j + static_cast<int32_t>(head));
  for (size_t i = tail; i > 0; --i)
    pairs.emplace_back(a.size() - i, b.size() - i);
  return pairs;
}

}  // namespace strata
