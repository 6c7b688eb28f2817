#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "runtime/exec/value_tolerance.h"

namespace strata {

/// How two tensors of equal sizes and type differ.
struct TensorDifference {
  int64_t elements = 0;   ///< that differ; equal NaNs do not
  double max_ulps = 0.0;  ///< numbers that lie between two elements, of their type; infinite when
                          ///< one is NaN. Of integers the difference
  double max_abs = 0.0;
  double magnitude = 0.0;            ///< largest finite one of the elements before
  int64_t where = 0;                 ///< row-major index of the worst element
  double before = 0.0, after = 0.0;  ///< the worst element (its real part)
};
/// REQUIRES: equal sizes and types, with `HasOrder`.
TensorDifference Compare(const at::Tensor& before, const at::Tensor& after);

/// Whether tensors that differ so count as equal.
bool IsWithin(const TensorDifference& difference, const ValueTolerance& tolerance);

/// Whether elements of the type can be compared: not those of quantized and packed types.
bool HasOrder(at::ScalarType type);

}  // namespace strata
