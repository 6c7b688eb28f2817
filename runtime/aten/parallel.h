#pragma once
#include <cstdint>

#include <c10/util/FunctionRef.h>

namespace strata {

/// Calls `fn(begin, end)` for parts that together are [0, count), none of them but the last smaller
/// than `grain`, on as many of ATen's threads as there are parts. What it throws is thrown again.
///
/// at::parallel_for does so only in files that are compiled with OpenMP (parallel.cc says why none
/// is), and elsewhere silently takes one thread.
void ParallelFor(int64_t count, int64_t grain, c10::function_ref<void(int64_t, int64_t)> fn);

}  // namespace strata
