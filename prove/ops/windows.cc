#include "prove/ops/windows.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace strata::prove {
namespace {

Result<Sizes> PerDimension(std::optional<Sizes> integers, const Sizes& otherwise, size_t rank,
                           int64_t least) {
  if (!integers || integers->empty()) return otherwise;
  if (integers->size() == 1) integers->resize(rank, integers->front());
  if (integers->size() != rank ||
      std::ranges::any_of(*integers, [&](int64_t i) { return i < least; }))
    return Error(ErrorCode::kInvalid, "windows of other dimensions");
  return *std::move(integers);
}

/// ATen/native/Pool.h, pooling_output_shape.
int64_t NumWindows(const Pooling& pooling, size_t axis, int64_t size) {
  const int64_t stride = pooling.stride[axis], padding = pooling.padding[axis];
  const int64_t reach = pooling.dilation[axis] * (pooling.kernel[axis] - 1) + 1;
  const int64_t room = size + 2 * padding - reach + (pooling.ceil ? stride - 1 : 0);
  if (room < 0) return 0;
  const int64_t count = room / stride + 1;
  return pooling.ceil && (count - 1) * stride >= size + padding ? count - 1 : count;
}

AxisWindows AxisOf(const Pooling& pooling, size_t axis, int64_t size) {
  AxisWindows windows;
  windows.size = size;
  const int64_t count = NumWindows(pooling, axis, size);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = i * pooling.stride[axis] - pooling.padding[axis];
    std::vector<int64_t>& elements = windows.elements.emplace_back();
    for (int64_t k = 0; k < pooling.kernel[axis]; ++k) {
      const int64_t at = begin + k * pooling.dilation[axis];
      if (at >= 0 && at < size) elements.push_back(at);
    }
    const int64_t end = std::min(begin + pooling.kernel[axis], size + pooling.padding[axis]);
    windows.counts.push_back(pooling.counts_padding ? end - begin : std::ssize(elements));
  }
  return windows;
}

}  // namespace

PlaneWindows Combine(const std::vector<AxisWindows>& axes) {
  PlaneWindows plane;
  plane.elements = {{0}};
  plane.counts = {1};
  for (const AxisWindows& axis : axes) {
    std::vector<std::vector<int64_t>> elements;
    std::vector<int64_t> counts;
    for (size_t before = 0; before < plane.elements.size(); ++before) {
      for (size_t i = 0; i < axis.elements.size(); ++i) {
        std::vector<int64_t>& both = elements.emplace_back();
        for (const int64_t row : plane.elements[before])
          for (const int64_t column : axis.elements[i])
            both.push_back(row * axis.size + column);
        counts.push_back(plane.counts[before] * axis.counts[i]);
      }
    }
    plane.elements = std::move(elements);
    plane.counts = std::move(counts);
    plane.input.push_back(axis.size);
    plane.output.push_back(std::ssize(axis.elements));
  }
  return plane;
}

size_t SpatialDims(std::string_view op) {
  for (size_t i = 1; i < op.size(); ++i)
    if (op[i] == 'd' && op[i - 1] >= '1' && op[i - 1] <= '3')
      return static_cast<size_t>(op[i - 1] - '0');
  return 0;
}

Result<Pooling> PoolingAt(const Call& call, size_t position, size_t rank) {
  Pooling pooling;
  STRATA_TRY(pooling.kernel,
             PerDimension(call.IntegersAt(position, "kernel_size"), Sizes{}, rank, 1));
  STRATA_TRY(pooling.stride,
             PerDimension(call.IntegersAt(position + 1, "stride"), pooling.kernel, rank, 1));
  STRATA_TRY(pooling.padding,
             PerDimension(call.IntegersAt(position + 2, "padding"), Sizes(rank, 0), rank, 0));
  pooling.dilation.assign(rank, 1);
  if (pooling.kernel.size() != rank) return Error(ErrorCode::kInvalid, "windows without sizes");
  return pooling;
}

Result<PlaneWindows> WindowsOf(const Pooling& pooling, const Tensor& a) {
  const size_t rank = pooling.kernel.size();
  if (static_cast<size_t>(a.dim()) < rank)
    return Error(ErrorCode::kInvalid, "windows of a tensor with {} dimensions", a.dim());
  std::vector<AxisWindows> axes;
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t size = a.sizes()[a.sizes().size() - rank + axis];
    axes.push_back(AxisOf(pooling, axis, size));
    if (axes.back().elements.empty())
      return Error(ErrorCode::kInvalid, "windows that are larger than what they read");
  }
  return Combine(axes);
}

}  // namespace strata::prove
