#pragma once
#include <optional>
#include <string_view>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "base/result.h"

namespace strata {

/// The operator of that name, `aten.mm.default`, of LibTorch or of `RegisterPrims`. Errors: neither
/// has it.
Result<c10::OperatorHandle> FindOp(std::string_view op);

/// The overload that takes the same arguments and, after them, a tensor for each result to write
/// to: one with a kernel of its own, as the generated ones call the functional operator and copy.
std::optional<c10::OperatorHandle> OutVariantOf(const c10::OperatorHandle& op);

/// No conjugate or negative view, no subclass: the CPU's kernels may be called directly.
bool IsPlain(const at::Tensor& tensor);

}  // namespace strata
