#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace strata {

/// A buffer that is live from step `first` to step `last`, both included.
struct MemoryRequest {
  int64_t bytes = 0;
  int32_t first = 0, last = 0;
};

/// The offset of each request in one arena.
struct MemoryPlan {
  static constexpr int64_t kAlignment = 64;

  std::vector<int64_t> offsets;  ///< by request, aligned
  int64_t bytes = 0;             ///< of the arena
  int64_t live_bytes = 0;        ///< maximum over the steps: a lower bound of `bytes`
};

/// A part of the arena, in bytes.
struct MemoryRange {
  int64_t begin = 0, end = 0;
  friend bool operator==(const MemoryRange&, const MemoryRange&) = default;
};

/// Rounds up to MemoryPlan::kAlignment.
int64_t AlignedBytes(int64_t bytes);

/// Assigns offsets such that requests with overlapping lifetimes do not overlap in memory.
///
/// First fit: each request gets the lowest offset that is free for its lifetime. Four orders are
/// tried, and the smallest arena wins (the first of equal ones):
///   1. requests that live to the end by their first step, then the others by size: short-lived
///      buffers use the space of outputs that are not produced yet, or the space above them;
///   2. by size, largest first (as TFLite and Static Runtime do);
///   3. by size times lifetime, largest first;
///   4. by last step, latest first.
/// No order is tried after one whose arena is the lower bound, `live_bytes`.
/// Cost is quadratic in requests that overlap in time.
MemoryPlan PlanMemory(std::span<const MemoryRequest> requests);

/// The parts of the arena that no request uses from step `first` to step `last`; ascending,
/// aligned.
std::vector<MemoryRange> FreeRanges(std::span<const MemoryRequest> requests, const MemoryPlan& plan,
                                    int32_t first, int32_t last);

}  // namespace strata
