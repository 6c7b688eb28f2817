#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "ir/size_form.h"
#include "runtime/plan/plan.h"

namespace strata {

/// Memory that operators allocate and return while a plan runs: how much at one moment, as a
/// function of the sizes that the run reads from data, by slot.
class PassingMemory {
 public:
  /// `bytes` from step `first` to step `last`, both included.
  void Add(SizeForm bytes, int32_t first, int32_t last);

  /// The most at one moment where sizes are these, by slot; what is not told counts as nothing.
  int64_t With(std::span<const std::optional<int64_t>> sizes) const;
  /// No sizes need more: at each step every partition is given as it needs most. None: a size that
  /// is in no partition, and so may be anything.
  std::optional<int64_t> AtMost(std::span<const SizePartition> partitions) const;

 private:
  struct Change {
    SizeForm bytes;
    int64_t sign = 1;
  };
  std::map<int32_t, std::vector<Change>> changes_;  // by the step before which it happens
};

}  // namespace strata
