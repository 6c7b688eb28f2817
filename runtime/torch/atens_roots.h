#pragma once
#include <cstdint>

namespace strata {

/// What at::sqrt computes roots of floats with; `from` and `to` may be the same. Null: the
/// processor's roots.
///
/// Where LibTorch is built with MKL, that is MKL's vector library, whose roots are not always the
/// nearest numbers.
using RootsOfFloats = void (*)(int64_t count, const float* from, float* to);
RootsOfFloats AtensRoots();

}  // namespace strata
