#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/size_form.h"
#include "runtime/plan/memory/planner.h"
#include "runtime/plan/memory/transient.h"

namespace strata {

/// Places for values whose sizes a run reads from data: in those parts of a plan's block of memory
/// that nothing of known size needs while they live (gradients, before they are there). Which part
/// is large enough only the run knows: each value gets, when it is made, the lowest place that is
/// free as long as it lives. One that finds none is allocated as if there were no block.
class OpenPlaces {
 public:
  /// A value that lives from step `first` to step `last`, both included.
  struct Value {
    int32_t slot = -1;
    SizeForm bytes;  ///< by the slots that sizes are read into
    int32_t first = 0, last = 0;
    std::vector<MemoryRange> free;  ///< of the block, all the while; ascending
  };

  /// REQUIRES: values come in the order in which a run makes them.
  void Add(Value value);
  /// False for values that were not added: those are always allocated.
  bool Has(int32_t slot) const;

  /// A run begins: nothing is taken.
  void Begin() { taken_.clear(); }
  /// Where the value lies in the block, at a multiple of MemoryPlan::kAlignment; none: nowhere.
  /// REQUIRES: values are asked for in their order; one that is not needs no place.
  std::optional<int64_t> Take(int32_t slot, int64_t bytes);

  /// Adds to `passing` the values that find no place in a run that reads these sizes, by slot.
  void AddUnplaced(std::span<const std::optional<int64_t>> sizes, PassingMemory& passing) const;
  /// Adds all: whatever sizes are, no run allocates more.
  void AddAll(PassingMemory& passing) const;

 private:
  struct Taken {
    MemoryRange range;
    int32_t last = 0;
  };

  std::vector<Value> values_;
  std::vector<int32_t> index_of_;  // by slot; -1: none
  std::vector<Taken> taken_;       // by begin
};

}  // namespace strata
