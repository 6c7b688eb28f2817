#include "runtime/comm/nccl_loader.h"

#include <dlfcn.h>
#include <system_error>

namespace strata {
namespace {

/// NCCL_VERSION_CODE as text; the code has had this form since 2.9.
std::string VersionText(int code) {
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

}  // namespace

std::filesystem::path NcclLibrary::DefaultPath() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path() / "lib" / "libstrata_nccl.so";
}

Result<NcclLibrary> NcclLibrary::Load(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return Error(ErrorCode::kUnsupported,
                 "this build has no NCCL: {}: run ./dev setup cuda, then build again",
                 path.string());
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Error(ErrorCode::kUnsupported,
                 "cannot load NCCL: {}: install libnccl.so.2 where the linker finds it", dlerror());
  }
  void* symbol = dlsym(library, kNcclApiSymbol);
  if (symbol == nullptr) {
    return Error(ErrorCode::kUnsupported,
                 "not the NCCL library of this program: {}: build both together", path.string());
  }
  const NcclApi* api = reinterpret_cast<NcclApiFunction>(symbol)();

  int version = 0;
  int devices = 0;
  if (NcclApi::Message message = api->version(&version)) {
    return Error(ErrorCode::kUnsupported, "NCCL does not start: {}: {}", path.string(), message);
  }
  NcclApi::Message message = api->device_count(&devices);
  if (message != nullptr || devices == 0) {
    return Error(ErrorCode::kUnsupported,
                 "NCCL {} needs a GPU: {}: check nvidia-smi, or use a process group of the CPU",
                 VersionText(version), message != nullptr ? message : "CUDA sees none");
  }
  return NcclLibrary(api, VersionText(version), devices);
}

}  // namespace strata
