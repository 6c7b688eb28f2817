#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/size_form.h"
#include "runtime/plan/memory/planner.h"
#include "runtime/plan/memory/transient.h"

namespace strata {

/// Dynamic arena allocation for values of data-dependent size. They use the parts of the plan's
/// arena that no value of static size needs during their lifetime; most of these parts hold
/// gradients, which are produced late. A value is allocated at run time, at the lowest offset that
/// stays free for its lifetime. If no part is large enough, the operator allocates it instead.
class DynamicArena {
 public:
  /// A value that is live from step `first` to step `last`, both included.
  struct Value {
    SlotId slot;
    SizeForm bytes;  ///< a function of the slots that hold data-dependent sizes
    int32_t first = 0, last = 0;
    std::vector<MemoryRange> free;  ///< parts of the arena, free for the whole lifetime; ascending
  };

  /// REQUIRES: values are added in the order in which a run makes them.
  void Add(Value value);
  /// False for values that were not added: operators always allocate them.
  bool Has(SlotId slot) const;

  /// Starts a run: nothing is allocated.
  void BeginRun() { taken_.clear(); }
  /// Allocates the value and returns its offset in the arena, a multiple of
  /// MemoryPlan::kAlignment; none: no part is large enough.
  /// REQUIRES: calls follow the order of `Add`; values may be skipped.
  std::optional<int64_t> Allocate(SlotId slot, int64_t bytes);

  /// Adds to `transient` the values that do not fit into the arena in a run with these sizes, by
  /// slot.
  void AddUnallocated(const SlotSizes& sizes, TransientMemory& transient) const;
  /// Adds all values: an upper bound for every run.
  void AddAll(TransientMemory& transient) const;

 private:
  struct Taken {
    MemoryRange range;
    int32_t last = 0;
  };

  std::vector<Value> values_;
  IdVector<SlotId, int32_t> index_of_;  // -1: none
  std::vector<Taken> taken_;            // by begin
};

}  // namespace strata
