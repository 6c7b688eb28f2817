#pragma once
#include <filesystem>
#include <string>

#include "base/result.h"
#include "runtime/comm/nccl_api.h"

namespace strata {

/// NCCL, loaded when asked for: a program without GPUs starts without it. Stays loaded to the end
/// of the process, since NCCL has threads of its own.
class NcclLibrary {
 public:
  /// Loads `path`; by default the libstrata_nccl.so that was built with this program. Fails with an
  /// error that says which is missing: our library, libnccl or a GPU.
  static Result<NcclLibrary> Load(const std::filesystem::path& path = DefaultPath());

  /// `../lib/libstrata_nccl.so`, seen from the folder of the running program.
  static std::filesystem::path DefaultPath();

  const NcclApi& api() const { return *api_; }
  /// "2.28.9".
  const std::string& version() const { return version_; }
  /// GPUs that this process sees, at least one.
  int device_count() const { return device_count_; }

 private:
  NcclLibrary(const NcclApi* api, std::string version, int device_count)
      : api_(api), version_(std::move(version)), device_count_(device_count) {}

  const NcclApi* api_;
  std::string version_;
  int device_count_;
};

}  // namespace strata
