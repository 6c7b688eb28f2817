#pragma once
#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>

/// What collectives return, not filled: also their kernels for Meta tensors.
namespace strata {

/// The size of the first dimension; 1 for a scalar.
int64_t Rows(const at::Tensor& input);

// Kernels take strings by value, as LibTorch's do: signatures of one operator must be equal.
// NOLINTBEGIN(performance-unnecessary-value-param)

at::Tensor GatheredShape(const at::Tensor& input, int64_t group_size, std::string group);
at::Tensor ScatteredShape(const at::Tensor& input, std::string op, int64_t group_size,
                          std::string group);
at::Tensor ReducedShape(const at::Tensor& input, std::string op, std::string group);
at::Tensor ExchangedShape(const at::Tensor& input, c10::SymIntArrayRef output_splits,
                          c10::SymIntArrayRef input_splits, std::string group);
at::Tensor BroadcastShape(const at::Tensor& input, int64_t source, std::string group);
at::Tensor WaitedShape(const at::Tensor& tensor);

// NOLINTEND(performance-unnecessary-value-param)

}  // namespace strata
