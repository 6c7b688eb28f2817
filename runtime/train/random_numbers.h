#pragma once
#include <cstdint>

#include "ir/module.h"

namespace strata {

/// Whether a graph draws random numbers: dropout of a program of the user's.
bool DrawsRandomNumbers(const Module& module);

/// Seeds the generator of the calling thread, which runs a rank, with these two: a run can be
/// repeated and resumed, and all ranks draw the same numbers.
void SeedStep(uint64_t seed, int64_t step);

}  // namespace strata
