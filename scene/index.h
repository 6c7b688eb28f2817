#pragma once
#include <cstddef>
#include <cstdint>

namespace strata {

/// The place of `index` in a vector. REQUIRES: not negative.
inline size_t At(int32_t index) {
  return static_cast<size_t>(index);
}

}  // namespace strata
