#pragma once

namespace strata {

/// Registers shape functions (kernels for Meta tensors) for the operators of our models that
/// LibTorch 2.11 has none for in C++, once per process. Each gives the sizes, strides and dtype
/// that the CPU kernel gives.
void RegisterMetaKernels();

}  // namespace strata
