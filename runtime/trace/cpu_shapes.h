#pragma once
#include <optional>
#include <span>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

namespace strata {

/// What an operator gives on Meta tensors that it has no kernel for: it runs once on the CPU, on
/// zeros of the same sizes and strides, and its results become Meta tensors. A result that is an
/// operand stays that operand.
///
/// None: its results depend on data, share memory with an operand in another way, it fails on the
/// CPU, too, or the operands are larger than a machine may hold (16 GiB).
std::optional<std::vector<c10::IValue>> ResultsByCpu(const c10::OperatorHandle& op,
                                                     std::span<const c10::IValue> args);

}  // namespace strata
