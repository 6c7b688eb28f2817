#include <immintrin.h>

#include "runtime/attention/rows.h"

// Compiled for AVX-512: nothing of the C++ library is used, see runtime/matmul/blocked.h.

namespace strata::attention_rows {
namespace {

using V = __m512;

V Splat(float x) {
  return _mm512_set1_ps(x);
}

/// The vector's first `seen` lanes; all of them where there are that many.
__mmask16 First(int64_t seen) {
  return static_cast<__mmask16>(seen >= kLanes ? 0xffff : (1U << (seen < 0 ? 0 : seen)) - 1);
}

/// As VecReduceAllSIMD: halves, quarters, pairs, neighbours.
template <class Fn>
float Reduce(V v, Fn&& fn) {
  v = fn(v, _mm512_shuffle_f32x4(v, v, 0x4E));
  v = fn(v, _mm512_shuffle_f32x4(v, v, 0xB1));
  v = fn(v, _mm512_shuffle_ps(v, v, 0x4E));
  v = fn(v, _mm512_shuffle_ps(v, v, 0xB1));
  return _mm512_cvtss_f32(v);
}

V Add(V a, V b) {
  return _mm512_add_ps(a, b);
}
V Max(V a, V b) {
  return _mm512_max_ps(a, b);
}

/// exp_u20 of ATen/cpu/vec/vec512/vec512_float.h: 2^n and a polynomial of degree five.
V RoughExp(V x) {
  const V low = _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(0xc2aeac50)));
  const V high = _mm512_castsi512_ps(_mm512_set1_epi32(0x42b17218));
  const __mmask16 is_zero = _mm512_cmp_ps_mask(x, low, _CMP_LT_OS);
  const V c = Max(_mm512_min_ps(x, high), low);
  const V log2e = _mm512_castsi512_ps(_mm512_set1_epi32(0x3fb8aa3b));
  const V ln2 = _mm512_castsi512_ps(_mm512_set1_epi32(0x3f317218));
  const V n = _mm512_cvtepi32_ps(_mm512_cvt_roundps_epi32(
      _mm512_fmadd_ps(c, log2e, Splat(0.5F)), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
  const V r = _mm512_fnmadd_ps(n, ln2, c);
  V p = _mm512_fmadd_ps(r, Splat(0.00828929059F), Splat(0.0418978221F));
  p = _mm512_fmadd_ps(r, p, Splat(0.166676521F));
  p = _mm512_fmadd_ps(r, p, Splat(0.499991506F));
  p = _mm512_fmadd_ps(r, p, Splat(0.999999701F));
  p = _mm512_fmadd_ps(r, p, Splat(1.0F));
  const __m512i exponent =
      _mm512_add_epi32(_mm512_cvtps_epi32(_mm512_sub_ps(n, Splat(1.0F))), _mm512_set1_epi32(127));
  const V power = _mm512_mask_mov_ps(_mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23)), is_zero,
                                     _mm512_setzero_ps());
  return _mm512_mul_ps(_mm512_mul_ps(p, power), Splat(2.0F));
}

/// 2^n, n within the exponents of floats.
V PowerOf2(__m512i n) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(127)), 23));
}

/// Sleef_expf16_u10 (SLEEF, sleefsimdsp.c).
V Exp(V x) {
  const __m512i n = _mm512_cvtps_epi32(_mm512_mul_ps(x, Splat(1.442695040888963407F)));
  const V f = _mm512_cvtepi32_ps(n);
  V s = _mm512_fmadd_ps(f, Splat(-0.693145751953125F), x);
  s = _mm512_fmadd_ps(f, Splat(-1.428606765330187045e-06F), s);
  V u = _mm512_fmadd_ps(Splat(0.000198527617612853646278381F), s,
                        Splat(0.00139304355252534151077271F));
  u = _mm512_fmadd_ps(u, s, Splat(0.00833336077630519866943359F));
  u = _mm512_fmadd_ps(u, s, Splat(0.0416664853692054748535156F));
  u = _mm512_fmadd_ps(u, s, Splat(0.166666671633720397949219F));
  u = _mm512_fmadd_ps(u, s, Splat(0.5F));
  u = Add(Splat(1.0F), _mm512_fmadd_ps(_mm512_mul_ps(s, s), u, s));
  const __m512i half = _mm512_srai_epi32(n, 1);
  u = _mm512_mul_ps(_mm512_mul_ps(u, PowerOf2(half)), PowerOf2(_mm512_sub_epi32(n, half)));
  u = _mm512_mask_mov_ps(u, _mm512_cmp_ps_mask(x, Splat(-104.0F), _CMP_LT_OQ), _mm512_setzero_ps());
  return _mm512_mask_mov_ps(u, _mm512_cmp_ps_mask(Splat(100.0F), x, _CMP_LT_OQ),
                            Splat(__builtin_inff()));
}

}  // namespace

float ScaleAndMax(float* row, int64_t seen, float scale) {
  V max = Splat(-__builtin_inff());
  for (int64_t i = 0; i < seen; i += kLanes) {
    const V x = _mm512_mul_ps(_mm512_loadu_ps(row + i), Splat(scale));
    max = _mm512_mask_max_ps(max, First(seen - i), max, x);
    _mm512_storeu_ps(row + i, x);
  }
  return Reduce(max, Max);
}

float ExpAndSum(float* row, int64_t seen, int64_t size, float max) {
  V sum = _mm512_setzero_ps();
  int64_t i = 0;
  for (; i < seen; i += kLanes) {
    const V x = _mm512_maskz_mov_ps(First(seen - i),
                                    RoughExp(_mm512_sub_ps(_mm512_loadu_ps(row + i), Splat(max))));
    sum = Add(sum, x);
    _mm512_storeu_ps(row + i, x);
  }
  for (; i < size; i += kLanes)
    _mm512_storeu_ps(row + i, _mm512_setzero_ps());
  return Reduce(sum, Add);
}

void Multiply(const float* from, int64_t size, float factor, float* to) {
  for (int64_t i = 0; i < size; i += kLanes)
    _mm512_storeu_ps(to + i, _mm512_mul_ps(_mm512_loadu_ps(from + i), Splat(factor)));
}

float Dot(const float* x, const float* y, int64_t size) {
  V sum = _mm512_mul_ps(_mm512_loadu_ps(x), _mm512_loadu_ps(y));
  for (int64_t i = kLanes; i < size; i += kLanes)
    sum = Add(sum, _mm512_mul_ps(_mm512_loadu_ps(x + i), _mm512_loadu_ps(y + i)));
  return Reduce(sum, Add);
}

void SoftmaxGradient(float* p, float* gradient, int64_t seen, int64_t size, float log_sum,
                     float mean) {
  int64_t i = 0;
  for (; i < seen; i += kLanes) {
    const V x = _mm512_maskz_mov_ps(First(seen - i),
                                    Exp(_mm512_sub_ps(_mm512_loadu_ps(p + i), Splat(log_sum))));
    _mm512_storeu_ps(p + i, x);
    const V change = _mm512_sub_ps(_mm512_loadu_ps(gradient + i), Splat(mean));
    _mm512_storeu_ps(gradient + i, _mm512_mul_ps(x, change));
  }
  for (; i < size; i += kLanes) {
    _mm512_storeu_ps(p + i, _mm512_setzero_ps());
    _mm512_storeu_ps(gradient + i, _mm512_setzero_ps());
  }
}

}  // namespace strata::attention_rows
