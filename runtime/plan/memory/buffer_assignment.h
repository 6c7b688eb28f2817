#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/plan/memory/planner.h"
#include "runtime/plan/plan.h"

namespace strata {

/// How long a plan needs each storage, and which results share a place in its block of memory.
/// Storages are named by the slot that owns them.
class Places {
 public:
  static constexpr int32_t kForever = INT32_MAX;

  /// REQUIRES: the plan outlives this.
  explicit Places(const Plan& plan);

  /// The last step that reads or makes the storage, kForever for outputs; -1: nobody does.
  int32_t last_use(int32_t owner) const { return last_use_[static_cast<size_t>(owner)]; }
  /// Some step writes to it after it was made.
  bool is_written(int32_t owner) const { return is_written_[static_cast<size_t>(owner)]; }
  bool is_output(int32_t owner) const;

  /// Asks for memory for a result of step `step`. REQUIRES: the slot has a layout and owns its
  /// storage.
  void Add(int32_t slot, int32_t step);

  /// Lets the result, which was added, live where an operand of the same layout lies that dies with
  /// this step; of several, the first. Operands for which `may_share` is false are left alone.
  void Share(int32_t slot, int32_t step, const std::function<bool(int32_t operand)>& may_share);

  struct Block {
    std::vector<int64_t> offsets;  ///< by owner; -1: it asked for none
    int64_t bytes = 0;
  };
  /// REQUIRES: nothing is added after it.
  Block Assign();
  /// What of the block nothing needs from step `first` to step `last`. REQUIRES: it is assigned.
  std::vector<MemoryRange> FreeRanges(int32_t first, int32_t last) const {
    return strata::FreeRanges(requests_, memory_, first, last);
  }

 private:
  const PlanSlot& SlotAt(int32_t slot) const { return plan_.slots[static_cast<size_t>(slot)]; }
  int32_t RequestOf(int32_t slot) const {
    return request_of_[static_cast<size_t>(SlotAt(slot).storage)];
  }

  const Plan& plan_;
  std::vector<int32_t> last_use_;    // by owner
  std::vector<bool> is_written_;     // by owner
  std::vector<int32_t> request_of_;  // by owner: index in requests_
  std::vector<MemoryRequest> requests_;
  MemoryPlan memory_;
};

}  // namespace strata
