#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "runtime/loops/loops.h"

// Included by one file per instruction set, compiled for it, without contraction of products and
// sums but where they say so. Everything is in an unnamed namespace, and nothing of the C++
// library's templates is used, or the linker may take it for processors that lack the instructions.

namespace strata {
namespace {

inline float FromBits(int32_t bits) {
  return __builtin_bit_cast(float, bits);
}

/// e^x within an ulp: x = n·ln2 + r and a polynomial in r.
/// Source: Sleef's expf (sleefsimdsp.c, "u10"), which ATen's vectors call.
inline float Exp(float x) {
  const float n = __builtin_rintf(x * 1.442695040888963407359924681001892137426645954152985934135F);
  float r = __builtin_fmaf(n, -0.693145751953125F, x);
  r = __builtin_fmaf(n, -1.428606765330187045e-06F, r);
  float u = 0.000198527617612853646278381F;
  u = __builtin_fmaf(u, r, 0.00139304355252534151077271F);
  u = __builtin_fmaf(u, r, 0.00833336077630519866943359F);
  u = __builtin_fmaf(u, r, 0.0416664853692054748535156F);
  u = __builtin_fmaf(u, r, 0.166666671633720397949219F);
  u = __builtin_fmaf(u, r, 0.5F);
  u = 1.0F + __builtin_fmaf(r * r, u, r);
  // Beyond these the power of two below is none; the result is replaced.
  const float bounded = n < -200.0F ? -200.0F : n > 200.0F ? 200.0F : n;
  const auto exponent = static_cast<int32_t>(bounded);
  const int32_t half = exponent >> 1;
  u = u * FromBits((half + 127) << 23) * FromBits((exponent - half + 127) << 23);
  u = x < -104.0F ? 0.0F : u;
  return x > 100.0F ? __builtin_inff() : u;
}

void Product(const float* a, const float* b, float* c, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i)
    c[i] = a[i] * b[i];
}

/// Eight numbers, each product rounded. GCC 12 contracts what it knows as a complex product even
/// where it must not (vfmaddsub), so the products go through memory.
inline void MultiplyEightComplex(const float* x, const float* y, float* z) {
  float straight[16], crossed[16];
#pragma omp simd
  for (int i = 0; i < 8; ++i) {
    straight[2 * i] = x[2 * i] * y[2 * i];
    straight[2 * i + 1] = x[2 * i + 1] * y[2 * i + 1];
    crossed[2 * i] = x[2 * i] * y[2 * i + 1];
    crossed[2 * i + 1] = x[2 * i + 1] * y[2 * i];
  }
  asm volatile("" : "+m"(straight), "+m"(crossed));
#pragma omp simd
  for (int i = 0; i < 8; ++i) {
    z[2 * i] = straight[2 * i] - straight[2 * i + 1];
    z[2 * i + 1] = crossed[2 * i] + crossed[2 * i + 1];
  }
}

/// One number.
template <ComplexRounding kRounding>
inline void MultiplyComplex(const float* x, const float* y, float* z) {
  const float a = x[0], b = x[1], c = y[0], d = y[1];
  if constexpr (kRounding == ComplexRounding::kAll) {
    float ac = a * c, bd = b * d, ad = a * d, bc = b * c;
    asm volatile("" : "+m"(ac), "+m"(bd), "+m"(ad), "+m"(bc));
    z[0] = ac - bd;
    z[1] = ad + bc;
    return;
  }
  z[0] = kRounding == ComplexRounding::kSecond || kRounding == ComplexRounding::kSecondFirst
             ? __builtin_fmaf(a, c, -(b * d))
             : __builtin_fmaf(-b, d, a * c);
  z[1] = kRounding == ComplexRounding::kSecond || kRounding == ComplexRounding::kFirstSecond
             ? __builtin_fmaf(a, d, b * c)
             : __builtin_fmaf(b, c, a * d);
}

template <ComplexRounding kRest>
void MultiplyComplexLines(const ComplexProduct& p, const float* a, const float* b, float* c) {
  const int64_t count = p.sizes[3], whole = count / 8 * 8;
  for (int64_t i = 0; i < p.sizes[0]; ++i) {
    for (int64_t j = 0; j < p.sizes[1]; ++j) {
      for (int64_t k = 0; k < p.sizes[2]; ++k, c += 2 * count) {
        const float* const x =
            a + 2 * (i * p.a_strides[0] + j * p.a_strides[1] + k * p.a_strides[2]);
        const float* const y =
            b + 2 * (i * p.b_strides[0] + j * p.b_strides[1] + k * p.b_strides[2]);
        for (int64_t first = 0; first < whole; first += 8)
          MultiplyEightComplex(x + 2 * first, y + 2 * first, c + 2 * first);
        for (int64_t one = whole; one < count; ++one)
          MultiplyComplex<kRest>(x + 2 * one, y + 2 * one, c + 2 * one);
      }
    }
  }
}

void MultiplyComplexTensors(const ComplexProduct& p, const float* a, const float* b, float* c) {
  switch (p.rest) {
    case ComplexRounding::kAll:
      return MultiplyComplexLines<ComplexRounding::kAll>(p, a, b, c);
    case ComplexRounding::kSecond:
      return MultiplyComplexLines<ComplexRounding::kSecond>(p, a, b, c);
    case ComplexRounding::kSecondFirst:
      return MultiplyComplexLines<ComplexRounding::kSecondFirst>(p, a, b, c);
    case ComplexRounding::kFirstSecond:
      return MultiplyComplexLines<ComplexRounding::kFirstSecond>(p, a, b, c);
    case ComplexRounding::kFirst:
      return MultiplyComplexLines<ComplexRounding::kFirst>(p, a, b, c);
  }
}

void Conjugate(const float* from, float* to, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    to[2 * i] = from[2 * i];
    to[2 * i + 1] = -from[2 * i + 1];
  }
}

void Silu(const float* x, float* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i)
    y[i] = x[i] / (1.0F + Exp(-x[i]));
}

template <bool kContracts>
void SiluGradient(const float* gradient, const float* x, float* out, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float s = 1.0F / (1.0F + Exp(-x[i])), rest = 1.0F - s;
    const float slope = kContracts ? __builtin_fmaf(x[i], rest, 1.0F) : 1.0F + x[i] * rest;
    out[i] = gradient[i] * s * slope;
  }
}

void SiluBackward(const float* gradient, const float* x, float* out, int64_t count,
                  bool contracts) {
  (contracts ? SiluGradient<true> : SiluGradient<false>)(gradient, x, out, count);
}

/// Sums of kWidth columns of `count` rows: four levels that are added up every 2^k rows.
template <int64_t kWidth>
inline void SumInLevels(const float* in, int64_t stride, int64_t count, float* out) {
  int64_t log2 = 0;
  while ((int64_t{1} << log2) < count)
    ++log2;
  const int64_t power = log2 / 4 > 4 ? log2 / 4 : 4, step = int64_t{1} << power;
  float sums[4][kWidth] = {};
  int64_t i = 0;
  while (i + step <= count) {
    for (int64_t j = 0; j < step; ++j, ++i) {
      for (int64_t c = 0; c < kWidth; ++c)
        sums[0][c] += in[i * stride + c];
    }
    for (int level = 1; level < 4; ++level) {
      for (int64_t c = 0; c < kWidth; ++c) {
        sums[level][c] += sums[level - 1][c];
        sums[level - 1][c] = 0.0F;
      }
      if ((i & ((step - 1) << (level * power))) != 0) break;
    }
  }
  for (; i < count; ++i) {
    for (int64_t c = 0; c < kWidth; ++c)
      sums[0][c] += in[i * stride + c];
  }
  for (int level = 1; level < 4; ++level) {
    for (int64_t c = 0; c < kWidth; ++c)
      sums[0][c] += sums[level][c];
  }
  for (int64_t c = 0; c < kWidth; ++c)
    out[c] = sums[0][c];
}

/// Every fourth row to a sum of its own.
template <int64_t kWidth>
inline void SumInFours(const float* in, int64_t stride, int64_t count, float* out) {
  float sums[4][kWidth];
  for (int64_t k = 0; k < 4; ++k)
    SumInLevels<kWidth>(in + k * stride, 4 * stride, count / 4, sums[k]);
  for (int64_t i = count / 4 * 4; i < count; ++i) {
    for (int64_t c = 0; c < kWidth; ++c)
      sums[0][c] += in[i * stride + c];
  }
  for (int64_t c = 0; c < kWidth; ++c)
    out[c] = ((sums[0][c] + sums[1][c]) + sums[2][c]) + sums[3][c];
}

void SumColumns(const ColumnSum& sum, const float* in, float* out) {
  int64_t c = 0;
  for (; c + 32 <= sum.columns; c += 32)
    SumInLevels<32>(in + c, sum.columns, sum.rows, out + c);
  for (; c + 8 <= sum.columns; c += 8)
    SumInFours<8>(in + c, sum.columns, sum.rows, out + c);
  for (; c < sum.columns; ++c)
    SumInFours<1>(in + c, sum.columns, sum.rows, out + c);
  // ATen adds to zeros.
  for (c = 0; c < sum.columns; ++c)
    out[c] = 0.0F + out[c];
}

using EightFloats = float __attribute__((vector_size(32)));

/// Twice refined by Goldschmidt's iteration, each operation rounded.
inline EightFloats LibraryRoot(EightFloats x) {
  const EightFloats half = EightFloats{} + 0.5F;
  const EightFloats rough = __builtin_ia32_rsqrtps256(x);  // of the reciprocal
  EightFloats root = x * rough, half_reciprocal = half * rough;
  const EightFloats error = half - root * half_reciprocal;
  root += root * error;
  half_reciprocal += half_reciprocal * error;
  root += (x - root * root) * half_reciprocal;
  return x == 0.0F ? x : root;
}

bool LibraryRoots(const float* from, float* to, int64_t count) {
  int is_odd = 0;
  for (int64_t i = 0; i < count; ++i)
    is_odd |= static_cast<int>(from[i] != 0.0F && !(from[i] >= 0x1p-96F && from[i] <= 0x1p96F));
  if (is_odd != 0) return false;
  int64_t i = 0;
  for (EightFloats x; i + 8 <= count; i += 8) {
    std::memcpy(&x, from + i, sizeof x);
    x = LibraryRoot(x);
    std::memcpy(to + i, &x, sizeof x);
  }
  EightFloats rest{};
  std::memcpy(&rest, from + i, sizeof(float) * static_cast<size_t>(count - i));
  rest = LibraryRoot(rest);
  std::memcpy(to + i, &rest, sizeof(float) * static_cast<size_t>(count - i));
  return true;
}

constexpr Loops kLoops = {.product = Product,
                          .complex_product = MultiplyComplexTensors,
                          .conjugate = Conjugate,
                          .silu = Silu,
                          .silu_backward = SiluBackward,
                          .library_roots = LibraryRoots,
                          .column_sum = SumColumns};

}  // namespace
}  // namespace strata
