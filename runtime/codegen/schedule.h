#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "passes/compile/kernel.h"

namespace strata {

/// How a kernel's space becomes loops. Units are independent of each other and may be shared
/// between threads: rows of a reduction; otherwise lines of the last dimension, or single elements
/// when there is only one dimension.
struct Schedule {
  size_t num_outer_dims = 0;  ///< leading dimensions that a unit's number counts
  size_t num_inner_dims = 0;  ///< the loops inside a unit
  int64_t units = 1;
  int64_t unit_elements = 1;

  /// What a unit does, in order: values of the row, then a loop over its columns, and again.
  struct Stage {
    std::vector<int32_t> row_ops;     ///< ascending; what one value per row computes
    std::vector<int32_t> row_stores;  ///< indices of Kernel::stores
    std::vector<int32_t> column_ops;  ///< ascending; what the loop computes, some of it again
    std::vector<int32_t> column_stores;
    std::vector<int32_t> reductions;  ///< ops whose sum or maximum the loop takes
    bool has_loop() const { return !column_stores.empty() || !reductions.empty(); }
  };
  std::vector<Stage> stages;
};

Schedule MakeSchedule(const Kernel& kernel);

/// Whether `result` may lie where `input` lies: each element is read for the last time before it is
/// written, by the unit that writes it.
bool MayOverwrite(const Kernel& kernel, const Schedule& schedule, int32_t input, int32_t result);

}  // namespace strata
