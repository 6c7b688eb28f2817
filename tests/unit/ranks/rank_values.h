#pragma once
#include <cstdint>

#include <ATen/ATen.h>

namespace strata::testing {

/// Values of which every sum over ranks rounds.
inline at::Tensor ValuesOf(int64_t rank, at::IntArrayRef sizes, at::ScalarType type = at::kFloat) {
  at::Generator generator = at::detail::createCPUGenerator(static_cast<uint64_t>(rank) + 1);
  return at::randn(sizes, generator).to(type);
}

}  // namespace strata::testing
