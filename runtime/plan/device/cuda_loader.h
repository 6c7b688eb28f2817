#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/result.h"
#include "runtime/plan/device/device.h"

namespace strata {

/// How a process uses CUDA. What is not a matter of a device holds for all of LibTorch.
struct CudaOptions {
  int32_t index = 0;           ///< of the GPUs that CUDA_VISIBLE_DEVICES leaves
  bool deterministic = false;  ///< only algorithms that give the same bits in every run
  bool warn_only = false;      ///< where there is none, warn instead of failing
  bool allow_tf32 = false;     ///< products of fp32 matrices with 10 bits of their mantissas
};

/// `../lib/libstrata_cuda.so`, seen from the folder of the running program.
std::filesystem::path DefaultCudaLibrary();

/// Opens a GPU: loads libstrata_cuda.so, and with it LibTorch's operators for CUDA, both of which a
/// program without GPUs starts and works without. Stays loaded to the end of the process.
///
/// Errors (kUnsupported) say which is missing: our library, LibTorch's libraries, a driver, a GPU.
Result<std::unique_ptr<Device>> OpenCuda(
    const CudaOptions& options, const std::filesystem::path& library = DefaultCudaLibrary());

/// The one symbol that libstrata_cuda.so exports, of type `OpenCudaFunction`.
inline constexpr const char* kOpenCudaSymbol = "strata_open_cuda_1";
using OpenCudaFunction = void (*)(const CudaOptions& options,
                                  Result<std::unique_ptr<Device>>& device);

}  // namespace strata
