#include "runtime/torch/atens_roots.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <random>
#include <vector>

#include <ATen/Context.h>

#include "runtime/loops/loops.h"

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

void OwnRoots(int64_t count, const float* from, float* to) {
  static const Loops& loops = *BestLoops();
  if (!loops.library_roots(from, to, count)) LibraryRoots(count, from, to);
}

/// Which mantissas and exponents there are decides; each sixth root is not the nearest number.
bool OwnRootsAreTheLibrarys() {
  const Loops* const loops = BestLoops();
  if (loops == nullptr) return false;
  std::minstd_rand random(1);
  std::vector<float> numbers{0.0F, -0.0F, 1.0F, 0x1p-96F, 0x1p96F};
  while (numbers.size() < 65'541) {
    const auto exponent = static_cast<uint32_t>(31 + random() % 192);
    const auto mantissa = static_cast<uint32_t>(random() % (1U << 23));
    numbers.push_back(__builtin_bit_cast(float, exponent << 23 | mantissa));
  }
  std::vector<float> expected = numbers, actual = numbers;
  LibraryRoots(std::ssize(numbers), numbers.data(), expected.data());
  return loops->library_roots(numbers.data(), actual.data(), std::ssize(numbers)) &&
         std::memcmp(actual.data(), expected.data(), sizeof(float) * actual.size()) == 0;
}

}  // namespace

RootsOfFloats AtensRoots() {
  static const RootsOfFloats roots = FindVmsSqrt() == nullptr   ? nullptr
                                     : OwnRootsAreTheLibrarys() ? OwnRoots
                                                                : LibraryRoots;
  return roots;
}

}  // namespace strata
