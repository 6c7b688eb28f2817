#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace strata {

/// The hash function of FlatMap for a type of keys. Table slots are chosen by its low bits.
template <class Key>
struct FlatHash;

/// Keys may be hashes or small numbers: every bit of a key reaches the low bits.
template <>
struct FlatHash<uint64_t> {
  size_t operator()(uint64_t key) const {
    const uint64_t product = key * 0x9E3779B97F4A7C15ull;
    return product ^ (product >> 32);
  }
};

/// A hash table without removal and without order, in one array: for one entry per node of a large
/// graph, where a node-based table costs an allocation and a cache miss for each entry. Open
/// addressing with linear probing.
///
/// REQUIRES: Key and Value are default-constructible and copyable.
template <class Key, class Value, class Hash = FlatHash<Key>>
class FlatMap {
 public:
  /// Room for `expected` entries before the table grows.
  explicit FlatMap(size_t expected = 0) {
    size_t capacity = kMinCapacity;
    while (IsFull(expected, capacity))
      capacity *= 2;
    slots_.resize(capacity);
  }

  size_t size() const { return size_; }

  Value* Find(const Key& key) {
    Slot& slot = slots_[SlotOf(key)];
    return slot.used ? &slot.value : nullptr;
  }
  const Value* Find(const Key& key) const { return const_cast<FlatMap*>(this)->Find(key); }
  bool Contains(const Key& key) const { return Find(key) != nullptr; }

  /// The value of `key`, which is `value` if the key is new, and whether it is new. The pointer is
  /// valid until the next insertion.
  std::pair<Value*, bool> Emplace(const Key& key, const Value& value) {
    size_t slot = SlotOf(key);
    if (slots_[slot].used) return {&slots_[slot].value, false};
    if (IsFull(size_ + 1, slots_.size())) {
      Grow();
      slot = SlotOf(key);
    }
    ++size_;
    slots_[slot] = {key, value, true};
    return {&slots_[slot].value, true};
  }

 private:
  struct Slot {
    Key key{};
    Value value{};
    bool used = false;
  };
  static constexpr size_t kMinCapacity = 16;

  static bool IsFull(size_t size, size_t capacity) { return 2 * size > capacity; }

  /// Where the key is, or would be inserted.
  size_t SlotOf(const Key& key) const {
    const size_t mask = slots_.size() - 1;
    size_t slot = Hash()(key) & mask;
    while (slots_[slot].used && !(slots_[slot].key == key))
      slot = (slot + 1) & mask;
    return slot;
  }

  void Grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (Slot& slot : old) {
      if (slot.used) slots_[SlotOf(slot.key)] = std::move(slot);
    }
  }

  std::vector<Slot> slots_;  // a power of two, at most half of them used
  size_t size_ = 0;
};

}  // namespace strata
