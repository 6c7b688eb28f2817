#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "ir/ids.h"

namespace strata {

/// Interned strings of one module: equal text has one id. Views stay valid as long as the table.
///
/// A large graph has a name per node. Beside its characters a string takes a byte for its size,
/// four for its place, four for its hash, and 8 to 16 in the hash table.
class StringTable {
 public:
  StringTable();
  StringTable(const StringTable&) = default;
  StringTable& operator=(const StringTable&) = delete;

  StrId Intern(std::string_view text);
  /// A string of another table, whose hash is known.
  StrId Intern(const StringTable& other, StrId id) {
    return Intern(other[id], other.hashes_[static_cast<size_t>(id.index)]);
  }
  /// The id of `text`, or none when it was never interned.
  StrId Find(std::string_view text) const;
  /// REQUIRES: `id` is invalid (gives "") or of this table.
  std::string_view operator[](StrId id) const {
    return id.valid() ? TextAt(places_[static_cast<size_t>(id.index)]) : std::string_view{};
  }
  size_t size() const { return places_.size(); }

 private:
  /// Before the characters stands their number: one byte, or this one and eight more.
  static constexpr unsigned char kLong = 255;

  std::string_view TextAt(uint32_t place) const {
    const char* at = &chars_[place];
    size_t size = static_cast<unsigned char>(*at++);
    if (size == kLong) {
      std::memcpy(&size, at, sizeof size);
      at += sizeof size;
    }
    return {at, size};
  }
  StrId Intern(std::string_view text, uint32_t hash);
  uint32_t Store(std::string_view text);
  size_t SlotOf(std::string_view text, uint32_t hash) const;
  void Grow();

  Arena<char, 16> chars_;
  std::vector<uint32_t> places_, hashes_;
  // By hash: indices into places_, -1 is free; open addressing, a power of two. Not a FlatMap,
  // whose slots hold their keys: a slot here is 4 bytes where a key alone would take 16.
  std::vector<int32_t> slots_;
};

}  // namespace strata
