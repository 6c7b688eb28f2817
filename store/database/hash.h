#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/flat_map.h"

namespace strata {

/// XXH3-128 of some bytes: keys of what the trace stores once. Not against an adversary.
struct Hash128 {
  uint64_t hi = 0, lo = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};
Hash128 HashBytes(std::string_view bytes);

/// XXH3-64.
uint64_t SumBytes(std::string_view bytes, uint64_t seed = 0);

template <>
struct FlatHash<Hash128> {
  size_t operator()(const Hash128& key) const { return key.lo; }
};

/// Consecutive stable ids, up to a thousand, are neighbours in the table.
struct StableIdHash {
  size_t operator()(uint64_t stable_id) const {
    return stable_id + ((stable_id >> 10) * 0x9E3779B97F4A7C15ull >> 20);
  }
};

/// Where the node with a stable id is: an index into some list of nodes.
using StableIdIndex = FlatMap<uint64_t, uint32_t, StableIdHash>;

/// The number of each content that is kept once.
using ContentIndex = FlatMap<Hash128, uint32_t>;

}  // namespace strata
