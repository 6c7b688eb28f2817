#include "passes/compile/kernel.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

namespace strata {
int64_t Product(std::span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

int64_t PlanLayout::num_elements() const {
  return Product(sizes);
}

int64_t PlanLayout::storage_bytes() const {
  int64_t last = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    last += (sizes[i] - 1) * strides[i];
  }
  return (last + 1) * ByteSize(dtype);
}

int64_t Kernel::rows() const {
  return Product(std::span(sizes).first(num_row_dims));
}

int64_t Kernel::columns() const {
  return Product(std::span(sizes).subspan(num_row_dims));
}

bool Kernel::IsElementwise(int32_t input, int32_t result) const {
  if (has_rows) return false;
  const int32_t output = result_arguments[static_cast<size_t>(result)];
  const Access* written = nullptr;
  for (const Access& access : accesses) {
    if (access.argument == output) written = &access;
  }
  if (written == nullptr) return false;
  return std::ranges::all_of(accesses, [&](const Access& access) {
    return access.argument != input ||
           (access.strides == written->strides && access.dtype == written->dtype);
  });
}

bool IsReduction(const Kernel::Op& op) {
  return op.code == "sum" || op.code == "max" || op.code == "aten sum";
}

std::vector<int64_t> Kernel::dynamic_numbers() const {
  std::vector<int64_t> numbers;
  const auto add = [&](const std::vector<int64_t>& all, const std::vector<bool>& open) {
    for (size_t i = 0; i < open.size(); ++i)
      if (open[i]) numbers.push_back(all[i]);
  };
  add(sizes, dynamic_sizes);
  for (const Access& access : accesses)
    add(access.strides, access.dynamic_strides);
  return numbers;
}

}  // namespace strata
