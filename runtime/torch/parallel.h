#pragma once
#include <cstdint>

#include <c10/util/FunctionRef.h>

namespace strata {

/// Calls `fn(begin, end)` for parts that together are [0, count), none of them but the last smaller
/// than `grain`, on as many of ATen's threads as there are parts. What it throws is thrown again.
///
/// at::parallel_for does so only in files that are compiled with OpenMP, and elsewhere takes one
/// thread without a word; a compiler may bring another OpenMP than LibTorch's, whose threads would
/// wait for work on the same cores.
void ParallelFor(int64_t count, int64_t grain, c10::function_ref<void(int64_t, int64_t)> fn);

}  // namespace strata
