#pragma once
#include <cstdint>
#include <optional>

namespace strata {

/// Memory that a plan needs, in bytes.
struct PlannedMemory {
  int64_t held = 0;  ///< from run to run: the block that results share, outputs there included
  /// Most that operators allocate at one moment of a run: with the sizes that the last run read
  /// from data, `passing_at_most` before the first.
  int64_t passing = 0;
  /// Whatever the sizes are. None: a size may be anything.
  std::optional<int64_t> passing_at_most = 0;
  /// Of `passing`: outputs, which are the caller's after the run.
  int64_t outputs = 0;
};

}  // namespace strata
