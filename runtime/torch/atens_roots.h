#pragma once
#include <cstdint>

namespace strata {

/// What at::sqrt computes roots of floats with; `from` and `to` may be the same. Null: the
/// processor's roots.
///
/// Where LibTorch is built with MKL that is its vector library, whose roots are not always the
/// nearest numbers; where runtime/loops gives the same bits, it is that. This is tried once, on
/// drawn numbers.
using RootsOfFloats = void (*)(int64_t count, const float* from, float* to);
RootsOfFloats AtensRoots();

}  // namespace strata
