#include "runtime/offload/host_memory.h"

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

namespace strata {
namespace {

[[noreturn]] void ThrowFileError(int error, const std::string& folder, int64_t bytes) {
  throw std::system_error(
      error, std::generic_category(),
      fmt::format("cannot keep {} bytes of offloaded values in the folder '{}'", bytes, folder));
}

/// A file without a name. Not every file system makes one.
class UnnamedFile {
 public:
  UnnamedFile(const std::string& folder, int64_t bytes)
      : descriptor_(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) {
    if (descriptor_ < 0) {
      std::string path = folder + "/strata-offload-XXXXXX";
      descriptor_ = ::mkostemp(path.data(), O_CLOEXEC);
      if (descriptor_ < 0) ThrowFileError(errno, folder, bytes);
      ::unlink(path.c_str());
    }
    if (const int error = ::posix_fallocate(descriptor_, 0, bytes); error != 0) {
      ::close(descriptor_);
      ThrowFileError(error, folder, bytes);
    }
  }
  ~UnnamedFile() { ::close(descriptor_); }
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

std::shared_ptr<void> Map(size_t bytes, int flags, int descriptor) {
  void* const address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (address == MAP_FAILED) throw std::bad_alloc();
  return {address, [bytes](void* pages) { ::munmap(pages, bytes); }};
}

}  // namespace

std::shared_ptr<void> AllocateHostMemory(int64_t bytes, const std::string& folder) {
  if (bytes == 0) return nullptr;
  const auto size = static_cast<size_t>(bytes);
  if (folder.empty()) return Map(size, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  const UnnamedFile file(folder, bytes);
  return Map(size, MAP_SHARED, file.descriptor());
}

}  // namespace strata
