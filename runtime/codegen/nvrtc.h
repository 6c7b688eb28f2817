#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "passes/compile/kernel.h"

namespace strata {

/// Kernels as machine code of one kind of GPU.
struct CudaImage {
  std::vector<std::byte> cubin;  ///< with a function `strata_kernel_<i>` for each kernel
  bool was_built = false;        ///< by this call, rather than found
};

struct NvrtcOptions {
  std::string cache_dir = {};  ///< where images are kept; "" as KernelCacheFolder's
  /// The library; "": $STRATA_NVRTC, or libnvrtc.so.13 of the linker's path, of LibTorch's wheels,
  /// or of the toolkit that this program was built with.
  std::string library = {};
};

/// Compiles the CUDA source of kernels (cuda_source.h) with NVRTC, which needs no GPU, or finds it
/// compiled: images are kept under the hash of source, options and compiler. `arch`: 90 for compute
/// capability 9.0. Additions are not contracted, as in the C++ of the same kernels.
///
/// Errors: no NVRTC (kNotFound), one that fails, with the first line of its log, a folder that
/// cannot be written. What another process compiles at the same time does no harm.
Result<CudaImage> CompileCuda(std::span<const Kernel> kernels, int32_t arch,
                              const NvrtcOptions& options = {});
/// The same for any source.
Result<CudaImage> CompileCudaSource(const std::string& source, int32_t arch,
                                    const NvrtcOptions& options = {});

/// Loads NVRTC, where it is, for libraries that compile kernels of their own, as cuDNN does: they
/// open it by name, which finds what is loaded, but not always the wheels'.
void PreloadNvrtc();

}  // namespace strata
