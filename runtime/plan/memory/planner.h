#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace strata {

/// Memory that a plan needs for a while: from step `first` to step `last`, both included.
struct MemoryRequest {
  int64_t bytes = 0;
  int32_t first = 0, last = 0;
};

/// A place for each request in one block of memory.
struct MemoryPlan {
  static constexpr int64_t kAlignment = 64;

  std::vector<int64_t> offsets;  ///< by request, aligned
  int64_t bytes = 0;             ///< of the block
  int64_t live_bytes = 0;        ///< most that lives at one step: no block can be smaller
};

/// Part of a block of memory, in bytes.
struct MemoryRange {
  int64_t begin = 0, end = 0;
  friend bool operator==(const MemoryRange&, const MemoryRange&) = default;
};

/// Rounded up to MemoryPlan::kAlignment.
int64_t AlignedBytes(int64_t bytes);

/// Requests that live at the same step do not overlap. Each gets the lowest place that is free
/// while it lives, in four orders: what lives to the end first, by birth, then the largest, so that
/// the rest lies where outputs are not yet, or above all of them; largest first (as TFLite and
/// Static Runtime do); largest times longest first; and last to die first. The smallest block wins,
/// the first of equal ones. Cost is quadratic in requests that overlap in time.
MemoryPlan PlanMemory(std::span<const MemoryRequest> requests);

/// What no request needs of its plan's block from step `first` to step `last`; ascending, aligned.
std::vector<MemoryRange> FreeRanges(std::span<const MemoryRequest> requests, const MemoryPlan& plan,
                                    int32_t first, int32_t last);

}  // namespace strata
