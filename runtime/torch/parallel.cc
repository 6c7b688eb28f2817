#include "runtime/torch/parallel.h"

#include <algorithm>
#include <atomic>
#include <dlfcn.h>
#include <exception>
#include <type_traits>

#include <ATen/Parallel.h>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace strata {
namespace {

/// Of the OpenMP that LibTorch has loaded: what compilers call for `#pragma omp parallel`.
struct OpenMp {
  void (*parallel)(void (*fn)(void*), void* data, unsigned threads, unsigned flags);
  int (*num_threads)();
  int (*thread_num)();

  bool is_there() const {
    return parallel != nullptr && num_threads != nullptr && thread_num != nullptr;
  }
};

const OpenMp& LibTorchsOpenMp() {
  static const OpenMp open_mp = [] {
    OpenMp found{};
    const auto find = [](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(RTLD_DEFAULT, name));
    };
    find(found.parallel, "GOMP_parallel");
    find(found.num_threads, "omp_get_num_threads");
    find(found.thread_num, "omp_get_thread_num");
    return found;
  }();
  return open_mp;
}

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
    const int64_t parts =
        std::min<int64_t>(LibTorchsOpenMp().num_threads(), (count + grain - 1) / grain);
    const int64_t size = (count + parts - 1) / parts, index = LibTorchsOpenMp().thread_num();
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
  if (count <= grain || at::in_parallel_region() || at::get_num_threads() <= 1 ||
      !LibTorchsOpenMp().is_there()) {
    fn(0, count);
    return;
  }
  Region region{.count = count, .grain = grain, .fn = fn};
  Before(&region);
  // As many threads as at::set_num_threads said.
  LibTorchsOpenMp().parallel(
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
