#include "runtime/torch/atens_roots.h"

#include <algorithm>
#include <dlfcn.h>

#include <ATen/Context.h>

namespace strata {
namespace {

using VmsSqrt = void (*)(int count, const float* from, float* to, long long mode);

VmsSqrt FindVmsSqrt() {
  return at::hasMKL() ? reinterpret_cast<VmsSqrt>(::dlsym(RTLD_DEFAULT, "vmsSqrt")) : nullptr;
}

void LibraryRoots(int64_t count, const float* from, float* to) {
  static const VmsSqrt vms_sqrt = FindVmsSqrt();
  constexpr int64_t kMost = int64_t{1} << 30U;  // it counts in 32 bits
  for (int64_t begin = 0; begin < count; begin += kMost) {
    const auto part = static_cast<int>(std::min(kMost, count - begin));
    // As ATen/cpu/vml.h: VML_HA | VML_FTZDAZ_OFF | VML_ERRMODE_IGNORE.
    vms_sqrt(part, from + begin, to + begin, 0x2 | 0x140000 | 0x100);
  }
}

}  // namespace

RootsOfFloats AtensRoots() {
  static const RootsOfFloats roots = FindVmsSqrt() == nullptr ? nullptr : LibraryRoots;
  return roots;
}

}  // namespace strata
