#include "runtime/ranks/collective_shapes.h"

#include <vector>

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

namespace strata {
namespace {

using at::Tensor;

Tensor WithRows(const Tensor& input, int64_t rows) {
  std::vector<int64_t> sizes = input.sizes().vec();
  if (sizes.empty()) sizes.push_back(1);
  sizes[0] = rows;
  return at::empty(sizes, input.options());
}

}  // namespace

// Kernels take strings by value, as LibTorch's do: signatures of one operator must be equal.
// NOLINTBEGIN(performance-unnecessary-value-param)

int64_t Rows(const Tensor& input) {
  return input.dim() == 0 ? 1 : input.size(0);
}

Tensor GatheredShape(const Tensor& input, int64_t group_size, std::string /*group*/) {
  return WithRows(input, Rows(input) * group_size);
}

Tensor ScatteredShape(const Tensor& input, std::string /*op*/, int64_t group_size,
                      std::string /*group*/) {
  TORCH_CHECK(Rows(input) % group_size == 0, "reduce_scatter_tensor of ", Rows(input), " rows in ",
              group_size, " parts");
  return WithRows(input, Rows(input) / group_size);
}

Tensor ReducedShape(const Tensor& input, std::string /*op*/, std::string /*group*/) {
  return at::empty(input.sizes(), input.options());
}

Tensor ExchangedShape(const Tensor& input, c10::SymIntArrayRef output_splits,
                      c10::SymIntArrayRef input_splits, std::string /*group*/) {
  (void)input_splits;
  int64_t rows = 0;
  for (const c10::SymInt& split : output_splits)
    rows += split.expect_int();
  return WithRows(input, output_splits.empty() ? Rows(input) : rows);
}

Tensor BroadcastShape(const Tensor& input, int64_t /*source*/, std::string /*group*/) {
  return at::empty(input.sizes(), input.options());
}

Tensor WaitedShape(const Tensor& tensor) {
  return tensor;
}

// NOLINTEND(performance-unnecessary-value-param)

}  // namespace strata
