#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/plan/memory/planner.h"
#include "runtime/plan/plan.h"

namespace strata {

/// Lifetimes of the storages of a plan, and their offsets in its arena. A storage is named by the
/// slot that owns it.
class BufferAssignment {
 public:
  static constexpr int32_t kForever = INT32_MAX;

  /// REQUIRES: the plan outlives this.
  explicit BufferAssignment(const Plan& plan);

  /// The last step that reads or makes the storage, kForever for outputs; -1 if no step does.
  int32_t last_use(int32_t owner) const { return last_use_[static_cast<size_t>(owner)]; }
  /// True if a step writes to the storage after it was made.
  bool is_written(int32_t owner) const { return is_written_[static_cast<size_t>(owner)]; }
  bool is_output(int32_t owner) const;

  /// Requests memory for a result of step `step`. REQUIRES: the slot has a layout and owns its
  /// storage.
  void Add(int32_t slot, int32_t step);

  /// Lets a requested result reuse the buffer of the first operand of the same layout whose
  /// lifetime ends with this step and for which `may_share` holds.
  void Share(int32_t slot, int32_t step, const std::function<bool(int32_t operand)>& may_share);

  struct Arena {
    std::vector<int64_t> offsets;  ///< by owner; -1: nothing was requested
    int64_t bytes = 0;
  };
  /// Runs the memory planner. REQUIRES: `Add` and `Share` are not called afterwards.
  Arena Assign();
  /// The parts of the arena that are free from step `first` to step `last`. REQUIRES: `Assign` ran.
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
