#pragma once
#include <cstdint>

#include "ir/type.h"

namespace strata {

// Shards whose rows are not a contiguous chunk, by `Placement::split`.

/// `T(0)`: the rows of the rank's tokens, ordered by expert. `E(0)`: those of the rank's experts.
/// Together the ranks have each row once; rows of values that are read together stay together, and
/// numbers that say where a row is count the rank's own rows. Sizes under `E` depend on data.
inline constexpr int32_t kByToken = -1;
inline constexpr int32_t kByExpert = -2;

/// `F(0, k)`: a part of each of the k blocks that one after the other are the dimension: what a
/// shard of `s` becomes when `[b, s]` is flattened; k = b.
inline constexpr int32_t SplitOfBlocks(int32_t blocks) {
  return kByExpert - blocks;
}
inline constexpr int32_t BlocksOf(int32_t split) {
  return kByExpert - split;
}

inline bool IsByToken(const Placement& p) {
  return p.kind == Placement::Kind::kShard && p.split == kByToken;
}
inline bool IsByExpert(const Placement& p) {
  return p.kind == Placement::Kind::kShard && p.split == kByExpert;
}
inline bool IsBlocked(const Placement& p) {
  return p.kind == Placement::Kind::kShard && p.split < kByExpert;
}

}  // namespace strata
