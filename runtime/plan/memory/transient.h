#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "ir/size_form.h"
#include "runtime/plan/plan.h"

namespace strata {

/// Memory that operators allocate and free while a plan runs, as a function of the data-dependent
/// sizes of the run, by slot.
class TransientMemory {
 public:
  /// Adds `bytes` that are live from step `first` to step `last`, both included.
  void Add(SizeForm bytes, int32_t first, int32_t last);

  /// The peak for these sizes, by slot; an unknown size counts as 0.
  int64_t With(const SlotSizes& sizes) const;
  /// An upper bound for all sizes: at each step every partition is distributed in the most
  /// expensive way. None: some size is in no partition, so it has no bound.
  std::optional<int64_t> AtMost(std::span<const SizePartition> partitions) const;

 private:
  struct Change {
    SizeForm bytes;
    int64_t sign = 1;
  };
  std::map<int32_t, std::vector<Change>> changes_;  // by the step before which it happens
};

}  // namespace strata
