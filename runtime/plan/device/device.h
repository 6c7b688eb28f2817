#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "passes/compile/kernel.h"
#include "passes/flex/flex_kernel.h"
#include "runtime/plan/device/graph_replay.h"

namespace strata {

/// What a program is made for: which operators it calls depends on it.
struct DeviceTraits {
  std::string name = "cpu";    ///< as types write it: "cpu", "cuda:0"
  bool is_gpu = false;         ///< calls what LibTorch has for CUDA
  double capability = 0.0;     ///< of a GPU, 9.0 for an H100
  int64_t cudnn = 0;           ///< version, 91900 for 9.19.0; 0: none
  bool deterministic = false;  ///< same bits in every run, slower where that costs
};

/// What the device's allocator gave, in bytes.
struct DeviceMemory {
  int64_t allocated = 0;       ///< lives now
  int64_t peak_allocated = 0;  ///< since the last `ResetPeakMemory`
  int64_t reserved = 0;        ///< held from the driver
};

/// A kernel that was loaded; its layout is the device's.
struct DeviceFunction;

/// Where plans run: CUDA (runtime/cuda), or a double in tests. Used by the thread that opened it:
/// work goes to its current stream, in the order of calls; only `Synchronize` waits for it.
class Device : public CaptureDevice {
 public:
  virtual const DeviceTraits& traits() const = 0;
  /// The graphs that were captured on it.
  ReplayManager& graphs() { return graphs_; }

  /// Makes a stream current: for kernels, for LibTorch's operators and its allocator. 0 computes,
  /// others work beside it.
  virtual Status UseStream(int32_t stream) = 0;
  /// The current one as the device's own functions take it: a cudaStream_t.
  virtual void* stream() const = 0;
  /// An event after what was issued to the current stream. Numbers are small; recording one anew
  /// replaces it.
  virtual Status Record(int32_t event) = 0;
  /// What is issued to the current stream next runs after that event.
  virtual Status Wait(int32_t event) = 0;
  /// Returns when everything issued is done. Errors of kernels come to light here.
  virtual Status Synchronize() = 0;

  /// Builds kernels for this device, or finds them built: loaded to the end of the process.
  virtual Result<std::vector<DeviceFunction*>> Load(std::span<const Kernel> kernels) = 0;
  /// The same of flex attention.
  virtual Result<std::vector<DeviceFunction*>> LoadFlex(std::span<const FlexKernel> kernels) = 0;
  /// `arguments`: addresses of the first elements, by argument of the kernel.
  virtual Status Launch(DeviceFunction* function, std::span<void* const> arguments) = 0;

  virtual DeviceMemory memory() const = 0;
  virtual void ResetPeakMemory() = 0;

 private:
  ReplayManager graphs_{*this};
};

}  // namespace strata
