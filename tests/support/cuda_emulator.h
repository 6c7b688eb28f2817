#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "passes/compile/kernel.h"
#include "passes/flex/flex_kernel.h"
#include "runtime/codegen/cuda_source.h"

namespace strata::testing {

/// Runs the CUDA source of runtime/codegen on the CPU: the source is compiled as C++, and the
/// threads of a block take turns that end at __syncthreads(), and where they exchange numbers.
/// Results equal those of a GPU except for the last bits of exp, log and tanh.
class EmulatedCuda {
 public:
  /// `entries`: functions `run_<name>` that call the kernels. Fails the test if the source does not
  /// compile.
  EmulatedCuda(std::string_view cuda, std::string_view entries);
  EmulatedCuda(EmulatedCuda&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  EmulatedCuda& operator=(EmulatedCuda&&) = delete;
  ~EmulatedCuda();

  /// All of a launch. `arguments`: addresses, in the order of the kernel's arguments.
  void Launch(const std::string& name, const CudaLaunch& launch,
              std::span<void* const> arguments) const;

 private:
  void* handle_ = nullptr;
};

/// Kernel i is named "i".
EmulatedCuda Emulated(std::span<const Kernel> kernels);
/// Launch j of kernel i is named "i_j".
EmulatedCuda Emulated(std::span<const FlexKernel> kernels);

/// Compares the results of kernels as C++ and as emulated CUDA on random operands. Returns "" if
/// they differ by rounding only, else the kernel, the position and the difference. Counts the
/// bitwise equal kernels in `num_bitwise`.
std::string CompareWithCpp(std::span<const Kernel> kernels, size_t& num_bitwise);

}  // namespace strata::testing
