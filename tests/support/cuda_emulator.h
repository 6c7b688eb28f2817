#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "passes/compile/kernel.h"

namespace strata::testing {

/// Runs the CUDA source of runtime/codegen on the CPU: the source is compiled as C++, and the
/// threads of a block take turns that end at __syncthreads(). Results equal those of a GPU except
/// for the last bits of exp, log and tanh.
class CudaEmulator {
 public:
  /// Fails the test if the source does not compile.
  explicit CudaEmulator(std::span<const Kernel> kernels);
  CudaEmulator(const CudaEmulator&) = delete;
  CudaEmulator& operator=(const CudaEmulator&) = delete;
  ~CudaEmulator();

  /// The functions of KernelLibrary, for all units.
  void Launch(size_t kernel, std::span<void* const> arguments) const;

 private:
  using Function = void (*)(void* const* arguments, int64_t blocks, int32_t threads);
  std::vector<Kernel> kernels_;
  std::vector<Function> functions_;
  void* handle_ = nullptr;
};

/// Compares the results of kernels as C++ and as emulated CUDA on random operands. Returns "" if
/// they differ by rounding only, else the kernel, the position and the difference. Counts the
/// bitwise equal kernels in `num_bitwise`.
std::string CompareWithCpp(std::span<const Kernel> kernels, size_t& num_bitwise);

}  // namespace strata::testing
