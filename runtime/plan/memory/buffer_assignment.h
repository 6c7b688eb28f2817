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
  static constexpr StepId kForever{INT32_MAX};

  /// REQUIRES: the plan outlives this.
  explicit BufferAssignment(const Plan& plan);

  /// The last step that reads or makes the storage, kForever for outputs; invalid if no step does.
  StepId last_use(SlotId owner) const { return last_use_[owner]; }
  /// True if a step writes to the storage after it was made.
  bool is_written(SlotId owner) const { return is_written_[owner]; }
  bool is_output(SlotId owner) const;

  /// Requests memory for a result of step `step`. REQUIRES: the slot has a layout and owns its
  /// storage.
  void Add(SlotId slot, StepId step);

  /// Lets a requested result reuse the buffer of the first operand of the same layout whose
  /// lifetime ends with this step and for which `may_share` holds.
  void Share(SlotId slot, StepId step, const std::function<bool(SlotId operand)>& may_share);

  /// A donated input whose memory holds the result of step `step` from now on, for the lifetime of
  /// the result; invalid: none is free and large enough. REQUIRES: the slot has a layout and owns
  /// its storage.
  SlotId TakeDonated(SlotId slot, StepId step);

  struct Arena {
    IdVector<SlotId, int64_t> offsets;  ///< by owner; -1: nothing was requested
    int64_t bytes = 0;
  };
  /// Runs the memory planner. REQUIRES: `Add` and `Share` are not called afterwards.
  Arena Assign();
  /// The parts of the arena that are free from step `first` to step `last`. REQUIRES: `Assign` ran.
  std::vector<MemoryRange> FreeRanges(StepId first, StepId last) const {
    return strata::FreeRanges(requests_, memory_, first.index, last.index);
  }

 private:
  const PlanSlot& SlotAt(SlotId slot) const { return plan_.slots[slot]; }
  int32_t RequestOf(SlotId slot) const { return request_of_[SlotAt(slot).storage]; }

  /// An input whose memory is free after a step.
  struct Donated {
    SlotId input;
    StepId in_use_until;  ///< invalid: it is never read
  };

  const Plan& plan_;
  IdVector<SlotId, StepId> last_use_;     // by owner
  IdVector<SlotId, bool> is_written_;     // by owner
  IdVector<SlotId, int32_t> request_of_;  // by owner: index in requests_; -1: none
  std::vector<MemoryRequest> requests_;
  MemoryPlan memory_;
  std::vector<Donated> donated_;
};

}  // namespace strata
