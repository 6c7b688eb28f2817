#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/plan/memory.h"

namespace strata {

/// A step as caches see it. Bytes have numbers: different memory, different ones.
struct StepMemory {
  std::vector<MemoryRange> ranges;  ///< what it reads and writes
  int64_t spare_lines = 0;          ///< that can be fetched while it computes, at no cost
};

/// Cache lines of what a later step works on.
struct Fetch {
  static constexpr int64_t kLineBytes = 64;
  int32_t step = 0, range = 0;  ///< of StepMemory::ranges
  int64_t offset = 0;           ///< bytes from the range's first
  int64_t lines = 0;
  friend bool operator==(const Fetch&, const Fetch&) = default;
};

/// For each step, what it shall bring near for later ones, in the order of their use: memory that
/// nobody touched for so long that a core's own cache has lost it. What is fetched and not used yet
/// is never more than a part of that cache. A processor cannot do this by itself: operands of small
/// operators end before it sees a pattern.
std::vector<std::vector<Fetch>> PlanFetches(std::span<const StepMemory> steps);

}  // namespace strata
