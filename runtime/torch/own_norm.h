#pragma once
#include <cstdint>

namespace strata {

/// Whether SquareNorm of so many floats has the bits of at::linalg_vector_norm: on this machine and
/// with the threads that ATen has now. Both are run on drawn numbers and compared, once in a
/// process.
bool NormHasAtensBits(int64_t count);

}  // namespace strata
