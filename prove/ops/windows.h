#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "prove/values/call.h"
#include "prove/values/tensor.h"

namespace strata::prove {

/// Which elements of a dimension each element of the result reads.
struct AxisWindows {
  int64_t size = 0;                            ///< of the dimension that is read
  std::vector<std::vector<int64_t>> elements;  ///< for each element of the result
  std::vector<int64_t> counts;                 ///< what a mean divides by: padding may count
};

/// The same of all spatial dimensions, of one plane: row-major indices.
struct PlaneWindows {
  Sizes input, output;
  std::vector<std::vector<int64_t>> elements;
  std::vector<int64_t> counts;
};

PlaneWindows Combine(const std::vector<AxisWindows>& axes);

/// How many spatial dimensions an operator has: 2 of "aten.max_pool2d_with_indices". 0: no such
/// number is in its name.
size_t SpatialDims(std::string_view op);

/// Windows of a kernel that slides over the last dimensions.
struct Pooling {
  Sizes kernel, stride, padding, dilation;
  bool ceil = false;           ///< a last window that begins inside and ends outside counts
  bool counts_padding = true;  ///< in means
};

/// `kernel_size`, `stride` and `padding` are at `position` and after it. Errors: sizes that do not
/// fit.
Result<Pooling> PoolingAt(const Call& call, size_t position, size_t rank);
/// Of a tensor whose last dimensions are read.
Result<PlaneWindows> WindowsOf(const Pooling& pooling, const Tensor& a);

}  // namespace strata::prove
