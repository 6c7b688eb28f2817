#include "runtime/plan/memory.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace strata {
namespace {

int64_t Aligned(int64_t bytes) {
  return (bytes + MemoryPlan::kAlignment - 1) / MemoryPlan::kAlignment * MemoryPlan::kAlignment;
}

int64_t MostLiveBytes(std::span<const MemoryRequest> requests) {
  int32_t end = 0;
  for (const MemoryRequest& request : requests)
    end = std::max(end, request.last + 1);
  std::vector<int64_t> change(static_cast<size_t>(end) + 1, 0);
  for (const MemoryRequest& request : requests) {
    change[static_cast<size_t>(request.first)] += Aligned(request.bytes);
    change[static_cast<size_t>(request.last) + 1] -= Aligned(request.bytes);
  }
  int64_t live = 0, most = 0;
  for (const int64_t delta : change)
    most = std::max(most, live += delta);
  return most;
}

/// The most urgent first, each at the lowest place that is free while it lives.
MemoryPlan PlaceByUrgency(std::span<const MemoryRequest> requests,
                          const std::function<int64_t(size_t)>& urgency) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), urgency);

  MemoryPlan plan;
  plan.offsets.assign(requests.size(), 0);
  std::vector<size_t> placed;  // by offset
  for (const size_t index : order) {
    const MemoryRequest& request = requests[index];
    const int64_t bytes = Aligned(request.bytes);
    if (bytes == 0) continue;
    int64_t offset = 0;
    for (const size_t other : placed) {
      if (requests[other].last < request.first || request.last < requests[other].first) continue;
      if (offset + bytes <= plan.offsets[other]) break;
      offset = std::max(offset, plan.offsets[other] + Aligned(requests[other].bytes));
    }
    plan.offsets[index] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    const auto by_offset = [&](size_t a, size_t b) { return plan.offsets[a] < plan.offsets[b]; };
    placed.insert(std::ranges::upper_bound(placed, index, by_offset), index);
  }
  return plan;
}

}  // namespace

MemoryPlan PlanMemory(std::span<const MemoryRequest> requests) {
  const auto bytes = [&](size_t i) { return requests[i].bytes; };
  const auto steps = [&](size_t i) { return int64_t{requests[i].last} - requests[i].first + 1; };
  const std::function<int64_t(size_t)> urgencies[] = {
      bytes,
      [&](size_t i) { return bytes(i) * steps(i); },
      [&](size_t i) { return int64_t{requests[i].last}; },
  };
  MemoryPlan best;
  for (const auto& urgency : urgencies) {
    MemoryPlan plan = PlaceByUrgency(requests, urgency);
    if (&urgency == &urgencies[0] || plan.bytes < best.bytes) best = std::move(plan);
  }
  best.live_bytes = MostLiveBytes(requests);
  return best;
}

}  // namespace strata
