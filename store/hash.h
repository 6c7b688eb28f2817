#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace strata {

/// XXH3-128 of some bytes: keys of what the trace stores once. Not against an adversary.
struct Hash128 {
  uint64_t hi = 0, lo = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};
Hash128 HashBytes(std::string_view bytes);

/// XXH3-64.
uint64_t SumBytes(std::string_view bytes, uint64_t seed = 0);

inline size_t HashForTable(const Hash128& key) {
  return key.lo;
}
/// For stable ids: a thousand that follow each other are neighbours in the table, too.
inline size_t HashForTable(uint64_t key) {
  return key + ((key >> 10) * 0x9E3779B97F4A7C15ull >> 20);
}

/// Maps keys to numbers that are not kMissing. Open addressing: an insertion or a look-up touches
/// one cache line, where a std::unordered_map touches three; snapshots do both for every node.
template <class Key>
class FlatMap {
 public:
  static constexpr uint32_t kMissing = UINT32_MAX;

  explicit FlatMap(size_t expected = 0) {
    while (entries_.size() < expected * 2)
      entries_.resize(entries_.size() * 2);
  }

  uint32_t Find(const Key& key) const { return entries_[SlotOf(key)].value; }

  /// The number kept for `key`; `value` is kept when there was none.
  uint32_t FindOrInsert(const Key& key, uint32_t value) {
    size_t slot = SlotOf(key);
    if (entries_[slot].value != kMissing) return entries_[slot].value;
    if (++size_ * 2 > entries_.size()) {
      Grow();
      slot = SlotOf(key);
    }
    entries_[slot] = {key, value};
    return value;
  }

  size_t size() const { return size_; }

 private:
  struct Entry {
    Key key{};
    uint32_t value = kMissing;
  };

  size_t SlotOf(const Key& key) const {
    const size_t mask = entries_.size() - 1;
    size_t slot = HashForTable(key) & mask;
    while (entries_[slot].value != kMissing && !(entries_[slot].key == key))
      slot = (slot + 1) & mask;
    return slot;
  }

  void Grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.value != kMissing) entries_[SlotOf(entry.key)] = entry;
    }
  }

  std::vector<Entry> entries_ = std::vector<Entry>(16);  // a power of two, at most half full
  size_t size_ = 0;
};

}  // namespace strata
