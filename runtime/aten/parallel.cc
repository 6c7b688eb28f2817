#include "runtime/aten/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>

#include <ATen/Parallel.h>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

// What compilers call for `#pragma omp parallel`, of the OpenMP that LibTorch is linked to
// (torch::openmp). The pragma would need -fopenmp, with which other compilers than GCC bring an
// OpenMP of their own: its threads and LibTorch's would wait for work on the same cores. Nor would
// ThreadSanitizer see how its threads wait for each other.
extern "C" {
// NOLINTNEXTLINE(readability-identifier-naming)
void GOMP_parallel(void (*fn)(void*), void* data, unsigned threads, unsigned flags);
int omp_get_num_threads();
int omp_get_thread_num();
}

namespace strata {
namespace {

/// ThreadSanitizer does not see how OpenMP's threads wait for each other.
void Before([[maybe_unused]] void* what) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(what);
#endif
}
void After([[maybe_unused]] void* what) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(what);
#endif
}

struct Region {
  int64_t count, grain;
  c10::function_ref<void(int64_t, int64_t)> fn;
  std::atomic_flag has_failed = ATOMIC_FLAG_INIT;
  std::exception_ptr failure = nullptr;

  /// Each thread takes at most one part, as in at::parallel_for.
  void RunPart() {
    const int64_t parts = std::min<int64_t>(omp_get_num_threads(), (count + grain - 1) / grain);
    const int64_t size = (count + parts - 1) / parts, index = omp_get_thread_num();
    const int64_t begin = index * size;
    if (begin >= count) return;
    try {
      const at::internal::ThreadIdGuard number(static_cast<int>(index));
      fn(begin, std::min(count, begin + size));
    } catch (...) {
      if (!has_failed.test_and_set()) failure = std::current_exception();
    }
  }
};

}  // namespace

void ParallelFor(int64_t count, int64_t grain, c10::function_ref<void(int64_t, int64_t)> fn) {
  if (count <= 0) return;
  at::internal::lazy_init_num_threads();
  grain = std::max<int64_t>(1, grain);
  if (count <= grain || at::in_parallel_region() || at::get_num_threads() <= 1) {
    fn(0, count);
    return;
  }
  Region region{.count = count, .grain = grain, .fn = fn};
  Before(&region);
  // As many threads as at::set_num_threads said.
  GOMP_parallel(
      [](void* data) {
        After(data);
        static_cast<Region*>(data)->RunPart();
        Before(data);
      },
      &region, 0, 0);
  After(&region);
  if (region.failure) std::rethrow_exception(region.failure);
}

}  // namespace strata
