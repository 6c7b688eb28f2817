#include "runtime/plan/memory/transient.h"

#include <algorithm>
#include <set>
#include <utility>

namespace strata {

void TransientMemory::Add(SizeForm bytes, int32_t first, int32_t last) {
  changes_[first].push_back({.bytes = bytes, .sign = 1});
  changes_[last + 1].push_back({.bytes = std::move(bytes), .sign = -1});
}

int64_t TransientMemory::With(const SlotSizes& sizes) const {
  int64_t live = 0, most = 0;
  for (const auto& [step, changes] : changes_) {
    for (const auto& [bytes, sign] : changes) {
      live += sign * bytes.At([&](int32_t slot) { return sizes[SlotId{slot}].value_or(0); });
    }
    most = std::max(most, live);
  }
  return most;
}

std::optional<int64_t> TransientMemory::AtMost(std::span<const SizePartition> partitions) const {
  std::map<SlotId, size_t> partition_of;
  for (size_t i = 0; i < partitions.size(); ++i) {
    for (const SlotId slot : partitions[i].slots)
      partition_of.try_emplace(slot, i);
  }
  std::map<SlotId, int64_t> factors;              // live
  std::vector<int64_t> needs(partitions.size());  // at most, with these factors
  int64_t live = 0, most = 0;
  for (const auto& [step, changes] : changes_) {
    std::set<size_t> changed;
    for (const auto& [bytes, sign] : changes) {
      live += sign * bytes.constant;
      for (const auto& [name, factor] : bytes.factors) {
        const SlotId slot{name};
        const auto partition = partition_of.find(slot);
        if (partition == partition_of.end()) return std::nullopt;
        factors[slot] += sign * factor;
        changed.insert(partition->second);
      }
    }
    // A sum with one total is largest where all of it goes to the largest factor.
    for (const size_t index : changed) {
      int64_t largest = 0;
      for (const SlotId slot : partitions[index].slots)
        largest = std::max(largest, factors[slot]);
      live -= std::exchange(needs[index], largest * partitions[index].total);
      live += needs[index];
    }
    most = std::max(most, live);
  }
  return most;
}

}  // namespace strata
