#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "passes/compile/kernel.h"

namespace strata::testing {

/// Runs the CUDA that runtime/codegen writes on the CPU: its text is compiled as C++, the threads
/// of a block take turns, and each turn ends at __syncthreads(). What a GPU would compute, but for
/// the last bits of exp, log and tanh.
class CudaEmulator {
 public:
  /// Fails the test when the text does not compile.
  explicit CudaEmulator(std::span<const Kernel> kernels);
  CudaEmulator(const CudaEmulator&) = delete;
  CudaEmulator& operator=(const CudaEmulator&) = delete;
  ~CudaEmulator();

  /// As KernelLibrary's functions, for all units.
  void Launch(size_t kernel, std::span<void* const> arguments) const;

 private:
  using Function = void (*)(void* const* arguments, int64_t blocks, int32_t threads);
  std::vector<Kernel> kernels_;
  std::vector<Function> functions_;
  void* handle_ = nullptr;
};

/// Compares what kernels give as C++ and as emulated CUDA, on random numbers. "": no difference
/// beyond rounding, or which kernel differs, where and by how much. Counts equal kernels bit by bit
/// in `num_bitwise`.
std::string CompareWithCpp(std::span<const Kernel> kernels, size_t& num_bitwise);

}  // namespace strata::testing
