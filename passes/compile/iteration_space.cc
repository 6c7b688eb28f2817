#include "passes/compile/iteration_space.h"

#include <algorithm>
#include <cstddef>

namespace strata {

void SpaceBuilder::Add(std::span<const int64_t> shape, int64_t inner) {
  int64_t suffix = inner;
  cuts_.push_back(suffix);
  for (size_t i = shape.size(); i-- > 0;)
    cuts_.push_back(suffix *= shape[i]);
}

std::optional<std::vector<int64_t>> SpaceBuilder::Build() {
  cuts_.push_back(1);
  std::ranges::sort(cuts_);
  const auto rest = std::ranges::unique(cuts_);
  cuts_.erase(rest.begin(), rest.end());
  std::vector<int64_t> sizes;
  for (size_t i = 1; i < cuts_.size(); ++i) {
    if (cuts_[i] % cuts_[i - 1] != 0) return std::nullopt;
    sizes.push_back(cuts_[i] / cuts_[i - 1]);
  }
  std::ranges::reverse(sizes);
  return sizes;
}

void Coalesce(Kernel& kernel) {
  std::vector<int64_t>& sizes = kernel.sizes;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    const bool drop = sizes[dim] == 1;
    const bool is_first_column = kernel.has_rows && dim == kernel.num_row_dims;
    const bool merge = !drop && dim > 0 && !is_first_column &&
                       std::ranges::all_of(kernel.accesses, [&](const Kernel::Access& access) {
                         return access.strides[dim - 1] == access.strides[dim] * sizes[dim];
                       });
    if (!drop && !merge) continue;
    const auto at = static_cast<std::ptrdiff_t>(dim);
    for (Kernel::Access& access : kernel.accesses) {
      if (merge) access.strides[dim - 1] = access.strides[dim];
      access.strides.erase(access.strides.begin() + at);
    }
    if (merge) sizes[dim - 1] *= sizes[dim];
    sizes.erase(sizes.begin() + at);
    if (dim < kernel.num_row_dims) {
      --kernel.num_row_dims;
    } else if (!kernel.has_rows) {
      kernel.num_row_dims = sizes.size();
    }
  }
  if (!kernel.has_rows) kernel.num_row_dims = sizes.size();
}

}  // namespace strata
