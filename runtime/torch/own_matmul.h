#pragma once
#include <optional>

#include <ATen/core/Tensor.h>

#include "runtime/matmul/matmul.h"

namespace strata {

/// `result = at::mm(a, b)` as RunMatmul computes it, if that gives ATen's bits: on this machine and
/// with the threads that ATen has now. Both are run on drawn operands of these sizes and strides
/// and compared, once in a process. None: it does not, or these are not plain matrices of floats.
///
/// Looks at layouts alone: the tensors need no memory, and the returned pointers are null.
std::optional<Matmul> MatmulWithAtensBits(const at::Tensor& a, const at::Tensor& b,
                                          const at::Tensor& result);

/// Shares a product between ATen's threads, as far as it is worth it.
void RunMatmulInParallel(const Matmul& matmul, MatmulIsa isa);

}  // namespace strata
