#include "runtime/codegen/kernel_cache.h"

#include <cstdlib>
#include <system_error>
#include <unistd.h>
#include <xxhash.h>

#include <fmt/format.h>

namespace strata {

namespace fs = std::filesystem;

Result<fs::path> KernelCacheFolder(const std::string& wanted) {
  std::error_code failure;
  fs::path folder = wanted;
  if (folder.empty()) {
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    if (cache != nullptr && *cache == '/') {
      folder = fs::path(cache) / "strata/kernels";
    } else if (home != nullptr && *home == '/') {
      folder = fs::path(home) / ".cache/strata/kernels";
    } else {
      folder = fs::temp_directory_path(failure) / fmt::format("strata-{}/kernels", ::getuid());
    }
  }
  if (!failure) fs::create_directories(folder, failure);
  if (failure) {
    return Error(ErrorCode::kIo, "cannot make folder: {}: {}", folder.string(), failure.message());
  }
  return folder;
}

std::string ContentKey(std::string_view content) {
  const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace strata
