#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace strata {

/// Memory for one result of an operator.
struct ResultBuffer {
  void* address = nullptr;
  size_t bytes = 0;
};

/// Which of the allocations of an operator become which results: learnt from its first call, and
/// true of further ones as long as operands have the same layouts.
class AllocationOrder {
 public:
  bool is_known() const { return is_known_; }
  /// Place for the allocation of that number; -1: none.
  int32_t PlaceOf(size_t allocation) const {
    return allocation < places_.size() ? places_[allocation] : -1;
  }
  void Learn(std::vector<int32_t> places) {
    places_ = std::move(places);
    is_known_ = true;
  }

 private:
  bool is_known_ = false;
  std::vector<int32_t> places_;
};

/// During its lifetime, ATen's CPU allocator returns these buffers to the calling thread, so that
/// operators without an out-variant allocate their results in the arena. Until the order is known,
/// a buffer goes to the first allocation of its size. Other allocations are served as before.
/// At most one per thread.
///
/// The caller must check whether the results use the buffers.
class ArenaAllocations {
 public:
  ArenaAllocations(std::span<const ResultBuffer> places, const AllocationOrder& order);
  ArenaAllocations(const ArenaAllocations&) = delete;
  ArenaAllocations& operator=(const ArenaAllocations&) = delete;
  ~ArenaAllocations();

  /// The order, from where each result lies: `results[i]` belongs to place i.
  void Teach(AllocationOrder& order, std::span<const void* const> results) const;

 private:
  class Hook;
  void* Take(size_t bytes);

  std::span<const ResultBuffer> places_;
  const AllocationOrder& order_;
  std::vector<bool> is_taken_;
  std::vector<const void*> given_;  // by allocation
};

}  // namespace strata
