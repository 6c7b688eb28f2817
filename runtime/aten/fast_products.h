#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace strata {

// Products of f32 matrices on a CPU, by the fastest code there: they round as it does.
//
// On processors that are not Intel's, MKL, which ATen calls, uses 256-bit registers, at .7 of what
// they can do. Where there are 512-bit registers, oneDNN, which LibTorch contains for narrow types,
// takes half of its time; elsewhere BLIS takes .8 of it. The choice depends on the build and the
// processor only, so each run of a program on it has the same bits.

enum class FastProducts : uint8_t {
  kMkl,     ///< what ATen calls
  kOneDnn,  ///< on AVX-512
  kBlis,    ///< runtime/aten/float_product.h
};
FastProducts FastProductsHere();

/// `[n, k] @ [k, m]`, written to `out`.
at::Tensor& FastMm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
/// The same of each matrix of a batch.
at::Tensor& FastBmm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
/// As aten._grouped_mm: rows of `a`, of which each group ends where `ends` says, by the matrix of
/// the group in `b` `[groups, k, m]`; or, where `b` is a matrix, columns of `a` by rows of `b`, a
/// product `[groups, n, m]` for each group. Rows after the last group are not written.
at::Tensor& FastGroupedMm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                          const at::Tensor& ends);

/// Makes the operators of runtime/plan/fast_products.h known to ATen's dispatcher. Any number of
/// calls.
void RegisterFastProducts();

}  // namespace strata
