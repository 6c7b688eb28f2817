#include "runtime/offload/host_memory.h"

#include <cstddef>
#include <new>
#include <sys/mman.h>

namespace strata {

std::shared_ptr<void> AllocateHostMemory(int64_t bytes) {
  if (bytes == 0) return nullptr;
  const auto size = static_cast<size_t>(bytes);
  void* const address =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) throw std::bad_alloc();
  return {address, [size](void* pages) { ::munmap(pages, size); }};
}

}  // namespace strata
