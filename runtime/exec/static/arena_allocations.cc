#include "runtime/exec/static/arena_allocations.h"

#include <algorithm>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include "base/result.h"

namespace strata {
namespace {

thread_local ArenaAllocations* placing = nullptr;

}  // namespace

/// Asks the thread's object first, then the allocator that was there before.
class ArenaAllocations::Hook final : public c10::Allocator {
 public:
  static void Install() {
    static Hook hook;
    (void)hook;
  }

  c10::DataPtr allocate(size_t bytes) override {
    if (placing == nullptr || bytes == 0) return previous_->allocate(bytes);
    if (void* place = placing->Take(bytes)) {
      placing->given_.push_back(place);
      return {place, c10::Device(c10::kCPU)};
    }
    // What it does inside is not the operator's.
    ArenaAllocations* const outer = std::exchange(placing, nullptr);
    c10::DataPtr memory = previous_->allocate(bytes);
    placing = outer;
    placing->given_.push_back(memory.get());
    return memory;
  }
  c10::DeleterFnPtr raw_deleter() const override { return previous_->raw_deleter(); }
  void copy_data(void* to, const void* from, size_t count) const override {
    previous_->copy_data(to, from, count);
  }

 private:
  Hook() : previous_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(this, /*priority=*/UINT8_MAX); }
  c10::Allocator* previous_;
};

ArenaAllocations::ArenaAllocations(std::span<const ResultBuffer> places,
                                   const AllocationOrder& order)
    : places_(places), order_(order), is_taken_(places.size(), false) {
  Hook::Install();
  STRATA_CHECK(placing == nullptr);
  placing = this;
}

ArenaAllocations::~ArenaAllocations() {
  placing = nullptr;
}

void* ArenaAllocations::Take(size_t bytes) {
  int32_t place = order_.PlaceOf(given_.size());
  for (size_t i = 0; !order_.is_known() && place < 0 && i < places_.size(); ++i) {
    if (!is_taken_[i] && places_[i].bytes == bytes) place = static_cast<int32_t>(i);
  }
  if (place < 0) return nullptr;
  const auto index = static_cast<size_t>(place);
  if (is_taken_[index] || places_[index].bytes != bytes) return nullptr;
  is_taken_[index] = true;
  return places_[index].address;
}

void ArenaAllocations::Teach(AllocationOrder& order, std::span<const void* const> results) const {
  std::vector<int32_t> places(given_.size(), -1);
  for (size_t i = 0; i < results.size(); ++i) {
    const auto allocation = std::ranges::find(given_, results[i]);
    if (allocation == given_.end()) continue;
    places[static_cast<size_t>(allocation - given_.begin())] = static_cast<int32_t>(i);
  }
  order.Learn(std::move(places));
}

}  // namespace strata
