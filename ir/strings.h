#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "ir/ids.h"

namespace strata {

/// Interned strings of one module: equal text has one id. Views stay valid as long as the table.
class StringTable {
 public:
  StringTable();
  StringTable(const StringTable& other);
  StringTable& operator=(const StringTable&) = delete;

  StrId Intern(std::string_view text);
  /// The id of `text`, or none when it was never interned.
  StrId Find(std::string_view text) const;
  /// REQUIRES: `id` is invalid (gives "") or of this table.
  std::string_view operator[](StrId id) const {
    return id.valid() ? texts_[static_cast<size_t>(id.index)] : std::string_view{};
  }
  size_t size() const { return texts_.size(); }

 private:
  size_t SlotOf(std::string_view text, uint64_t hash) const;
  void Grow();
  std::string_view Store(std::string_view text);

  std::vector<std::string_view> texts_;
  std::vector<uint64_t> hashes_;
  // By hash: indices into texts_, -1 is free; open addressing, a power of two. Not a FlatMap, whose
  // slots hold their keys: a slot here is 4 bytes where a key alone would take 16.
  std::vector<int32_t> slots_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  size_t block_used_ = 0, block_size_ = 0;
};

}  // namespace strata
