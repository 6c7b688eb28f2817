#include "store/count_changes.h"

#include <algorithm>
#include <span>
#include <vector>

namespace strata {
namespace {

/// Where two snapshots differ: all but their common first and last chunks. Stable ids are unique in
/// a snapshot, so nothing outside can have moved in or out.
struct Window {
  std::span<const uint32_t> before, after;  // chunks
};

Window FindWindow(std::span<const uint32_t> before, std::span<const uint32_t> after) {
  const size_t limit = std::min(before.size(), after.size());
  size_t head = 0;
  while (head < limit && before[head] == after[head])
    ++head;
  size_t tail = 0;
  while (tail < limit - head && before[before.size() - 1 - tail] == after[after.size() - 1 - tail])
    ++tail;
  return {before.subspan(head, before.size() - head - tail),
          after.subspan(head, after.size() - head - tail)};
}

std::vector<uint32_t> NodesOf(std::span<const uint32_t> chunks, const SnapshotPools& pools) {
  std::vector<uint32_t> nodes;
  for (uint32_t chunk : chunks) {
    const std::vector<uint32_t>& members =
        pools.chunk_nodes[chunk - pools.chunks.num_forgotten() - 1];
    nodes.insert(nodes.end(), members.begin(), members.end());
  }
  return nodes;
}

/// Length of the longest increasing subsequence, O(n log n). Source: Fredman 1975.
size_t LongestIncreasing(const std::vector<uint32_t>& positions) {
  std::vector<uint32_t> tails;
  for (uint32_t position : positions) {
    const auto place = std::ranges::lower_bound(tails, position);
    if (place == tails.end()) {
      tails.push_back(position);
    } else {
      *place = position;
    }
  }
  return tails.size();
}

/// As `strata diff`: placements that only one graph has are unknown in the other.
template <class Facts>
bool IsChanged(const Facts& then, const Facts& now) {
  const bool both_placed = then.placements != 0 && now.placements != 0;
  return now.content != then.content || (both_placed && now.placements != then.placements);
}

/// Adds a node that lives on. It may be read at more elements, or at fewer.
void AddKept(const SnapshotPools::NodeFacts& then, const SnapshotPools::NodeFacts& now,
             const SnapshotPools& pools, ChangeCounts& counts) {
  counts.changed += IsChanged(then, now) ? 1 : 0;
  const uint32_t common = std::min(now.printed, then.printed);
  counts.inserted += now.printed - common;
  counts.deleted -= common;
  const std::span<const SnapshotPools::ElementFacts> old_elements = pools.elements(then);
  size_t old = 0;
  for (const SnapshotPools::ElementFacts& element : pools.elements(now)) {
    while (old < old_elements.size() && old_elements[old].result < element.result)
      ++old;
    if (old < old_elements.size() && old_elements[old].result == element.result)
      counts.changed += IsChanged(old_elements[old], element) ? 1 : 0;
  }
}

}  // namespace

ChangeCounts CountChanges(const EncodedSnapshot& before, const EncodedSnapshot& after,
                          const SnapshotPools& pools) {
  const Window window = FindWindow(before.chunks, after.chunks);
  const std::vector<uint32_t> old_nodes = NodesOf(window.before, pools);
  const std::vector<uint32_t> new_nodes = NodesOf(window.after, pools);
  StableIdIndex old_places(old_nodes.size());
  for (size_t i = 0; i < old_nodes.size(); ++i) {
    old_places.Emplace(pools.facts(old_nodes[i]).stable_id, static_cast<uint32_t>(i));
  }

  ChangeCounts counts;
  std::vector<uint32_t> kept;  // places in the old order, in the new order
  for (uint32_t version : old_nodes)
    counts.deleted += pools.facts(version).printed;
  for (uint32_t version : new_nodes) {
    const SnapshotPools::NodeFacts& now = pools.facts(version);
    const uint32_t* place = old_places.Find(now.stable_id);
    if (place == nullptr) {
      counts.inserted += now.printed;
      continue;
    }
    const SnapshotPools::NodeFacts& then = pools.facts(old_nodes[*place]);
    kept.push_back(*place);
    AddKept(then, now, pools, counts);
  }
  counts.moved = static_cast<int64_t>(kept.size() - LongestIncreasing(kept));
  return counts;
}

}  // namespace strata
