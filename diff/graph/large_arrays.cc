#include "diff/graph/large_arrays.h"

#include <cstdint>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace strata {
namespace {

[[maybe_unused]] constexpr size_t kLargeArray = size_t{2} << 20;

}  // namespace

void AdviseHugePages([[maybe_unused]] const void* begin, [[maybe_unused]] size_t bytes) {
#ifdef MADV_HUGEPAGE
  if (bytes < kLargeArray) return;
  constexpr uintptr_t kPage = 4096;
  const uintptr_t first = reinterpret_cast<uintptr_t>(begin) & ~(kPage - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(begin) + bytes;
  ::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#endif
}

void ReturnFreedMemory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace strata
