#pragma once
#include <ATen/core/Tensor.h>

namespace strata {

// Products of f32 matrices on a CPU, by the fastest library there: they round as it does.
//
// MKL, which ATen calls, uses 256-bit registers on processors that are not Intel's. oneDNN, which
// LibTorch contains for narrow types, uses their 512-bit registers and takes half of the time. The
// choice depends on the processor only, so each run on it has the same bits.

/// Whether oneDNN multiplies here.
bool UsesOneDnn();

/// `[n, k] @ [k, m]`, written to `out`.
at::Tensor& FastMm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
/// The same of each matrix of a batch.
at::Tensor& FastBmm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);

/// Makes the operators of runtime/plan/fast_products.h known to ATen's dispatcher. Any number of
/// calls.
void RegisterFastProducts();

}  // namespace strata
