#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace strata {

/// A hash table without removal and without order, in one piece of memory: for one entry per node
/// of a large graph, where a node-based table costs a cache miss and an allocation each. Keys are
/// hashes.
template <class Value>
class FlatMap {
 public:
  /// `expected`: how many entries there will be, about.
  explicit FlatMap(size_t expected = 0) {
    size_t capacity = 16;
    while (2 * capacity < 3 * expected)
      capacity *= 2;
    Resize(capacity);
  }

  size_t size() const { return size_; }

  Value* Find(uint64_t key) {
    Slot& slot = slots_[PlaceOf(key)];
    return slot.used ? &slot.value : nullptr;
  }
  const Value* Find(uint64_t key) const { return const_cast<FlatMap*>(this)->Find(key); }
  bool Contains(uint64_t key) const { return Find(key) != nullptr; }

  /// The value of `key`, which is `value` if the key is new. Valid until the next insertion.
  std::pair<Value*, bool> Emplace(uint64_t key, const Value& value) {
    size_t place = PlaceOf(key);
    if (slots_[place].used) return {&slots_[place].value, false};
    if (3 * (size_ + 1) > 2 * slots_.size()) {
      std::vector<Slot> old = std::move(slots_);
      Resize(2 * old.size());
      for (Slot& slot : old) {
        if (slot.used) slots_[PlaceOf(slot.key)] = std::move(slot);
      }
      place = PlaceOf(key);
    }
    ++size_;
    slots_[place] = {key, value, true};
    return {&slots_[place].value, true};
  }

 private:
  struct Slot {
    uint64_t key = 0;
    Value value{};
    bool used = false;
  };

  void Resize(size_t capacity) {
    slots_.assign(capacity, Slot{});
    shift_ = 64;
    for (; capacity > 1; capacity /= 2)
      --shift_;
  }

  /// Where the key is, or would be.
  size_t PlaceOf(uint64_t key) const {
    size_t place = (key * 0x9E3779B97F4A7C15ull) >> shift_;
    while (slots_[place].used && slots_[place].key != key)
      place = (place + 1) % slots_.size();
    return place;
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
  int shift_ = 64;
};

}  // namespace strata
