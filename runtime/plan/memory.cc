#include "runtime/plan/memory.h"

#include <algorithm>
#include <numeric>

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

}  // namespace

MemoryPlan PlanMemory(std::span<const MemoryRequest> requests) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(
      order, [&](size_t a, size_t b) { return requests[a].bytes > requests[b].bytes; });

  MemoryPlan plan{.offsets = std::vector<int64_t>(requests.size(), 0),
                  .bytes = 0,
                  .live_bytes = MostLiveBytes(requests)};
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

}  // namespace strata
