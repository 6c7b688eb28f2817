#include "runtime/plan/memory/dynamic_arena.h"

#include <algorithm>
#include <utility>

namespace strata {

void DynamicArena::Add(Value value) {
  if (index_of_.end_id() <= value.slot)
    index_of_.resize(static_cast<size_t>(value.slot.index) + 1, -1);
  index_of_[value.slot] = static_cast<int32_t>(values_.size());
  values_.push_back(std::move(value));
}

bool DynamicArena::Has(SlotId slot) const {
  return slot < index_of_.end_id() && index_of_[slot] >= 0;
}

std::optional<int64_t> DynamicArena::Allocate(SlotId slot, int64_t bytes) {
  if (!Has(slot) || bytes == 0) return std::nullopt;
  const Value& value = values_[static_cast<size_t>(index_of_[slot])];
  std::erase_if(taken_, [&](const Taken& taken) { return taken.last < value.first; });
  const int64_t size = AlignedBytes(bytes);
  auto next = taken_.begin();
  int64_t passed = 0;  // end of what lies before `next`, perhaps beyond a part that was free for it
  for (const MemoryRange& free : value.free) {
    int64_t begin = std::max(free.begin, passed);
    for (; next != taken_.end() && next->range.begin < free.end; ++next) {
      if (next->range.begin - begin >= size) break;
      passed = next->range.end;
      begin = std::max(begin, passed);
    }
    if (free.end - begin < size) continue;
    taken_.insert(next, {.range = {.begin = begin, .end = begin + size}, .last = value.last});
    return begin;
  }
  return std::nullopt;
}

void DynamicArena::AddUnallocated(const SlotSizes& sizes, TransientMemory& transient) const {
  DynamicArena run = *this;
  run.BeginRun();
  for (const Value& value : values_) {
    const int64_t bytes =
        value.bytes.At([&](int32_t slot) { return sizes[SlotId{slot}].value_or(0); });
    if (!run.Allocate(value.slot, bytes)) transient.Add(value.bytes, value.first, value.last);
  }
}

void DynamicArena::AddAll(TransientMemory& transient) const {
  for (const Value& value : values_)
    transient.Add(value.bytes, value.first, value.last);
}

}  // namespace strata
