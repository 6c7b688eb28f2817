#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "passes/compile/kernel.h"

namespace strata {

/// What every generated CUDA file begins with. Needs no header: NVRTC compiles it as it is.
extern const std::string_view kCudaPreamble;

/// How a kernel is launched.
struct CudaLaunch {
  int64_t blocks = 1;
  int32_t threads = 1;  ///< of a block, a multiple of 32
};
CudaLaunch LaunchOf(const Kernel& kernel);

/// The CUDA function of a kernel, of the same description as its C++ (cpp_source.h):
///
///   extern "C" __global__ void NAME(T0* a0, …)     // one pointer per Kernel::Access
///
/// Without rows, a thread computes single elements, of large tensors four at once. With rows, a
/// block computes one row after the other: its threads share the columns, and sums and maxima are
/// joined over shared memory, in an order that depends on the launch alone: results are the same in
/// every run.
std::string CudaFunction(const Kernel& kernel, std::string_view name);

/// A file with a function `strata_kernel_<i>` for each kernel.
std::string CudaSource(std::span<const Kernel> kernels);

}  // namespace strata
