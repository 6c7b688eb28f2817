#pragma once
#include <cstdint>

#include "ir/module.h"

namespace strata {

/// Whether a graph draws random numbers: dropout of a program of the user's.
bool DrawsRandomNumbers(const Module& module);

/// Lets ATen's generator go on with numbers that depend on these two only, so that a run can be
/// repeated, and continued.
void SeedStep(uint64_t seed, int64_t step);

}  // namespace strata
