// Loops of one instruction set against those of another: their bits are the same. Whether they are
// ATen's is another matter (tests/unit/runtime/own_loops_test.cc).

#include "runtime/loops/loops.h"

#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace strata {

#if defined(__x86_64__)
const Loops& LoopsAvx2();
const Loops& LoopsAvx512();
#endif

namespace {

using Floats = std::vector<float>;

Floats Draw(size_t count, std::mt19937& random) {
  std::normal_distribution<float> normal(0.0F, 2.0F);
  Floats numbers(count);
  for (float& number : numbers)
    number = normal(random);
  return numbers;
}

/// What both sets of loops write to `size` numbers.
bool AreEqual(const Loops& a, const Loops& b, int64_t size,
              const std::function<void(const Loops&, float*)>& run) {
  Floats one(static_cast<size_t>(size), -1.0F), other = one;
  run(a, one.data());
  run(b, other.data());
  return std::memcmp(one.data(), other.data(), one.size() * sizeof(float)) == 0;
}

TEST_CASE("loops for AVX2 and for AVX-512 give the same bits") {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl")) {
    MESSAGE("skipped: this processor has no AVX-512");
    return;
  }
  const Loops &narrow = LoopsAvx2(), &wide = LoopsAvx512();
  std::mt19937 random(3);
  for (const int64_t count : {1, 7, 8, 15, 16, 17, 31, 32, 33, 64, 100, 1000}) {
    INFO(count, " numbers");
    const auto size = static_cast<size_t>(count);
    const Floats x = Draw(2 * size, random), y = Draw(2 * size, random);
    CHECK(AreEqual(narrow, wide, count, [&](const Loops& loops, float* out) {
      loops.product(x.data(), y.data(), out, count);
    }));
    CHECK(AreEqual(narrow, wide, 2 * count,
                   [&](const Loops& loops, float* out) { loops.conjugate(x.data(), out, count); }));
    CHECK(AreEqual(narrow, wide, count,
                   [&](const Loops& loops, float* out) { loops.silu(x.data(), out, count); }));
    for (const bool contracts : {false, true}) {
      CHECK(AreEqual(narrow, wide, count, [&](const Loops& loops, float* out) {
        loops.silu_backward(x.data(), y.data(), out, count, contracts);
      }));
    }
    for (int rounding = 0; rounding < kNumComplexRoundings; ++rounding) {
      // A row of the second operand for all heads of the first.
      const ComplexProduct product{.sizes = {2, 1, 3, count},
                                   .a_strides = {3 * count, 0, count, 1},
                                   .b_strides = {count, 0, 0, 1},
                                   .rest = static_cast<ComplexRounding>(rounding)};
      const Floats a = Draw(2 * 6 * size, random), b = Draw(2 * 2 * size, random);
      CHECK(AreEqual(narrow, wide, 2 * 6 * count, [&](const Loops& loops, float* out) {
        loops.complex_product(product, a.data(), b.data(), out);
      }));
    }
    for (const int64_t rows : {1, 3, 4, 16, 63, 130}) {
      INFO(rows, " rows");
      const Floats in = Draw(static_cast<size_t>(rows * count), random);
      CHECK(AreEqual(narrow, wide, count, [&](const Loops& loops, float* out) {
        loops.column_sum({.rows = rows, .columns = count}, in.data(), out);
      }));
    }
  }
#else
  MESSAGE("skipped: loops are for x86-64");
#endif
}

}  // namespace
}  // namespace strata
