#pragma once
#include <cstddef>
#include <cstdint>

namespace strata {

/// How one complex number is multiplied by another: `(a + bi)(c + di)`. Compilers contract
/// `a·c - b·d` where they may, so that which product is rounded differs between loops of ATen.
enum class ComplexRounding : uint8_t {
  kAll,          ///< each product
  kSecond,       ///< b·d and b·c
  kSecondFirst,  ///< b·d and a·d
  kFirstSecond,  ///< a·c and b·c
  kFirst,        ///< a·c and a·d
};
inline constexpr int kNumComplexRoundings = 5;

/// `c = a · b` for complex numbers; c is contiguous.
struct ComplexProduct {
  static constexpr size_t kRank = 4;
  int64_t sizes[kRank] = {1, 1, 1, 1};
  int64_t a_strides[kRank] = {};  ///< in numbers; 1 for the last, whose numbers are a line
  int64_t b_strides[kRank] = {};
  /// The last numbers of a line that are no eight, which ATen computes one by one.
  ComplexRounding rest = ComplexRounding::kAll;
};

/// `out = sum of the rows of in`: contiguous rows of `columns` floats.
struct ColumnSum {
  int64_t rows = 0, columns = 0;
};

/// Loops over floats that are there for one instruction set. Their bits do not depend on it: they
/// are those of ATen's vectorised loops on x86-64, as long as its vectors are full.
struct Loops {
  void (*product)(const float* a, const float* b, float* c, int64_t count);
  void (*complex_product)(const ComplexProduct& product, const float* a, const float* b, float* c);
  /// Complex numbers, each the conjugate.
  void (*conjugate)(const float* from, float* to, int64_t count);
  /// `x / (1 + exp(-x))`
  void (*silu)(const float* x, float* y, int64_t count);
  /// `contracts`: the product in `1 + x·(1 - s)` is not rounded.
  void (*silu_backward)(const float* gradient, const float* x, float* out, int64_t count,
                        bool contracts);
  /// Roots as MKL's vector library, which ATen calls, computes them on AMD's processors: from the
  /// processor's rough reciprocal root, so that they are not always the nearest numbers. False,
  /// and nothing is written, where a number is neither zero nor between 2^-96 and 2^96.
  bool (*library_roots)(const float* from, float* to, int64_t count);
  /// In the order of ATen's sums over leading dimensions: 32 columns at a time straight on, the
  /// others in four sums side by side, each in levels (ATen/native/cpu/SumKernel.cpp).
  void (*column_sum)(const ColumnSum& sum, const float* in, float* out);
};

/// Null where this processor has no AVX2.
const Loops* BestLoops();

}  // namespace strata
