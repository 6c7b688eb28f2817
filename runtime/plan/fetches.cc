#include "runtime/plan/fetches.h"

#include <algorithm>
#include <limits>

namespace strata {
namespace {

/// Bytes of other memory after which some is far: a share of an L2 cache.
constexpr int64_t kNear = int64_t{256} * 1024;
/// Lines that may be fetched and not used yet: 64 KB.
constexpr int64_t kMostPending = 1024;
/// Memory is followed in pieces of this size.
constexpr int64_t kPiece = 1024;

/// What is far when a step begins, by steps.
std::vector<Fetch> FarMemory(std::span<const StepMemory> steps) {
  int64_t end = 0;
  for (const StepMemory& step : steps) {
    for (const MemoryRange& range : step.ranges)
      end = std::max(end, range.end);
  }
  constexpr int64_t kNever = std::numeric_limits<int64_t>::min() / 2;
  std::vector<int64_t> touched(static_cast<size_t>(end / kPiece + 1), kNever);  // by piece: clock
  std::vector<Fetch> far;
  int64_t clock = 0;  // bytes that were touched
  for (size_t i = 0; i < steps.size(); ++i) {
    for (size_t r = 0; r < steps[i].ranges.size(); ++r) {
      const MemoryRange& range = steps[i].ranges[r];
      for (int64_t begin = range.begin; begin < range.end;) {
        const int64_t next = std::min(range.end, (begin / kPiece + 1) * kPiece);
        int64_t& last = touched[static_cast<size_t>(begin / kPiece)];
        if (clock - last > kNear) {
          const int64_t offset = begin - range.begin;
          const int64_t lines = (next - begin + Fetch::kLineBytes - 1) / Fetch::kLineBytes;
          const bool goes_on = !far.empty() && far.back().step == static_cast<int32_t>(i) &&
                               far.back().range == static_cast<int32_t>(r) &&
                               far.back().offset + far.back().lines * Fetch::kLineBytes == offset;
          if (goes_on) {
            far.back().lines += lines;
          } else {
            far.push_back({.step = static_cast<int32_t>(i),
                           .range = static_cast<int32_t>(r),
                           .offset = offset,
                           .lines = lines});
          }
        }
        last = clock;
        begin = next;
      }
      clock += range.end - range.begin;
    }
  }
  return far;
}

}  // namespace

std::vector<std::vector<Fetch>> PlanFetches(std::span<const StepMemory> steps) {
  std::vector<Fetch> far = FarMemory(steps);
  std::vector<std::vector<Fetch>> fetches(steps.size());
  std::vector<int64_t> lines_for(steps.size(), 0);
  int64_t pending = 0;
  auto next = far.begin();
  for (size_t i = 0; i < steps.size(); ++i) {
    pending -= lines_for[i];
    while (next != far.end() && next->step <= static_cast<int32_t>(i))
      ++next;
    int64_t spare = steps[i].spare_lines;
    while (next != far.end() && spare > 0 && pending < kMostPending) {
      Fetch fetch = *next;
      fetch.lines = std::min({fetch.lines, spare, kMostPending - pending});
      fetches[i].push_back(fetch);
      lines_for[static_cast<size_t>(fetch.step)] += fetch.lines;
      pending += fetch.lines;
      spare -= fetch.lines;
      next->offset += fetch.lines * Fetch::kLineBytes;
      next->lines -= fetch.lines;
      if (next->lines == 0) ++next;
    }
  }
  return fetches;
}

}  // namespace strata
