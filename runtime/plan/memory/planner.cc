#include "runtime/plan/memory/planner.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <utility>

namespace strata {
namespace {

int64_t MostLiveBytes(std::span<const MemoryRequest> requests) {
  int32_t end = 0;
  for (const MemoryRequest& request : requests)
    end = std::max(end, request.last + 1);
  std::vector<int64_t> change(static_cast<size_t>(end) + 1, 0);
  for (const MemoryRequest& request : requests) {
    change[static_cast<size_t>(request.first)] += AlignedBytes(request.bytes);
    change[static_cast<size_t>(request.last) + 1] -= AlignedBytes(request.bytes);
  }
  int64_t live = 0, most = 0;
  for (const int64_t delta : change)
    most = std::max(most, live += delta);
  return most;
}

/// The greatest is the most urgent.
using Urgency = std::array<int64_t, 3>;

/// A request with its place. What the search reads lies together.
struct Placed {
  int64_t begin = 0, end = 0;  ///< bytes
  int32_t first = 0, last = 0;
};

/// The lowest offset at which `request` fits among `placed`, which is sorted by offset.
int64_t LowestFreeOffset(std::span<const Placed> placed, const MemoryRequest& request,
                         int64_t bytes) {
  int64_t offset = 0;
  for (const Placed& other : placed) {
    if (other.last < request.first || request.last < other.first) continue;
    if (offset + bytes <= other.begin) break;
    offset = std::max(offset, other.end);
  }
  return offset;
}

/// The most urgent first, each at the lowest offset that is free for its lifetime.
MemoryPlan PlaceByUrgency(std::span<const MemoryRequest> requests,
                          const std::function<Urgency(const MemoryRequest&)>& urgency) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](size_t i) { return urgency(requests[i]); });

  MemoryPlan plan;
  plan.offsets.assign(requests.size(), 0);
  std::vector<Placed> placed;
  placed.reserve(requests.size());
  for (const size_t index : order) {
    const MemoryRequest& request = requests[index];
    const int64_t bytes = AlignedBytes(request.bytes);
    if (bytes == 0) continue;
    const int64_t offset = LowestFreeOffset(placed, request, bytes);
    plan.offsets[index] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    placed.insert(
        std::ranges::upper_bound(placed, offset, {}, &Placed::begin),
        {.begin = offset, .end = offset + bytes, .first = request.first, .last = request.last});
  }
  return plan;
}

}  // namespace

int64_t AlignedBytes(int64_t bytes) {
  return (bytes + MemoryPlan::kAlignment - 1) / MemoryPlan::kAlignment * MemoryPlan::kAlignment;
}

MemoryPlan PlanMemory(std::span<const MemoryRequest> requests) {
  int32_t end = 0;
  for (const MemoryRequest& request : requests)
    end = std::max(end, request.last);
  const std::function<Urgency(const MemoryRequest&)> urgencies[] = {
      [&](const MemoryRequest& r) {
        return r.last == end ? Urgency{1, -int64_t{r.first}, r.bytes} : Urgency{0, r.bytes, 0};
      },
      [](const MemoryRequest& r) { return Urgency{r.bytes}; },
      [](const MemoryRequest& r) { return Urgency{r.bytes * (int64_t{r.last} - r.first + 1)}; },
      [](const MemoryRequest& r) { return Urgency{r.last}; },
  };
  MemoryPlan best = PlaceByUrgency(requests, urgencies[0]);
  best.live_bytes = MostLiveBytes(requests);
  for (const auto& urgency : std::span(urgencies).subspan(1)) {
    if (best.bytes == best.live_bytes) break;  // no plan is smaller
    MemoryPlan plan = PlaceByUrgency(requests, urgency);
    if (plan.bytes >= best.bytes) continue;
    plan.live_bytes = best.live_bytes;
    best = std::move(plan);
  }
  return best;
}

std::vector<MemoryRange> FreeRanges(std::span<const MemoryRequest> requests, const MemoryPlan& plan,
                                    int32_t first, int32_t last) {
  std::vector<MemoryRange> used;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].bytes == 0 || requests[i].last < first || last < requests[i].first) continue;
    used.push_back(
        {.begin = plan.offsets[i], .end = plan.offsets[i] + AlignedBytes(requests[i].bytes)});
  }
  std::ranges::sort(used, {}, &MemoryRange::begin);
  std::vector<MemoryRange> free;
  int64_t begin = 0;
  used.push_back({.begin = plan.bytes, .end = plan.bytes});
  for (const MemoryRange& range : used) {
    if (range.begin > begin) free.push_back({.begin = begin, .end = range.begin});
    begin = std::max(begin, range.end);
  }
  return free;
}

}  // namespace strata
