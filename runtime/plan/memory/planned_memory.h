#pragma once
#include <cstdint>
#include <optional>

namespace strata {

/// The memory that a plan uses, in bytes.
struct PlannedMemory {
  int64_t held = 0;       ///< between runs: the arena, with the outputs in it
  int64_t lendable = 0;   ///< the largest part of `held` in which no output is
  bool borrows = false;   ///< a program with as much lendable memory can hold this arena
  int64_t constants = 0;  ///< held, too: results that are computed once, when the plan is bound
  /// Peak of what operators allocate during a run, for the data-dependent sizes of the last run;
  /// `transient_at_most` before the first run.
  int64_t transient = 0;
  /// The same for all possible data-dependent sizes. None: some size has no upper bound.
  std::optional<int64_t> transient_at_most = 0;
  /// The part of `transient` that the caller owns after the run.
  int64_t outputs = 0;
  /// Of the host, for offloaded values; no part of `held`. Held from the first run on.
  int64_t offloaded = 0;
};

}  // namespace strata
