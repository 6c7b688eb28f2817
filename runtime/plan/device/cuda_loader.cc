#include "runtime/plan/device/cuda_loader.h"

#include <dlfcn.h>
#include <system_error>

namespace strata {

std::filesystem::path DefaultCudaLibrary() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path() / "lib" / "libstrata_cuda.so";
}

Result<std::unique_ptr<Device>> OpenCuda(const CudaOptions& options,
                                         const std::filesystem::path& library) {
  std::error_code error;
  if (!std::filesystem::exists(library, error)) {
    return Error(ErrorCode::kUnsupported,
                 "this build has no CUDA: {}: run ./dev setup cuda, then build again",
                 library.string());
  }
  void* loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    return Error(ErrorCode::kUnsupported, "cannot load CUDA: {}: run ./dev setup cuda",
                 ::dlerror());
  }
  void* symbol = ::dlsym(loaded, kOpenCudaSymbol);
  if (symbol == nullptr) {
    return Error(ErrorCode::kUnsupported,
                 "not the CUDA library of this program: {}: build both together", library.string());
  }
  Result<std::unique_ptr<Device>> device = std::unique_ptr<Device>();
  reinterpret_cast<OpenCudaFunction>(symbol)(options, device);
  return device;
}

}  // namespace strata
