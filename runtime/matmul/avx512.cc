#include <immintrin.h>

#include "runtime/matmul/blocked.h"

namespace strata {
namespace {

/// 24 of 32 registers hold the tile: two fused multiply-adds per cycle, each with a latency of
/// four.
struct Avx512 {
  using V = __m512;
  static constexpr int kWidth = 16, kRows = 12, kVectors = 2;
  static V Zero() { return _mm512_setzero_ps(); }
  static V Load(const float* p) { return _mm512_loadu_ps(p); }
  static void Store(float* p, V v) { _mm512_storeu_ps(p, v); }
  static V Splat(float x) { return _mm512_set1_ps(x); }
  static V Fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static V Add(V a, V b) { return _mm512_add_ps(a, b); }

  /// 16 rows of 16 numbers become columns: within groups of four rows first, then the groups.
  static void Transpose(const float* from, int64_t stride, float* to, int64_t to_stride) {
    V rows[16];
    for (int i = 0; i < 16; ++i)
      rows[i] = Load(from + i * stride);
    for (int i = 0; i < 16; i += 4) {
      const __m512d low01 = _mm512_castps_pd(_mm512_unpacklo_ps(rows[i], rows[i + 1]));
      const __m512d high01 = _mm512_castps_pd(_mm512_unpackhi_ps(rows[i], rows[i + 1]));
      const __m512d low23 = _mm512_castps_pd(_mm512_unpacklo_ps(rows[i + 2], rows[i + 3]));
      const __m512d high23 = _mm512_castps_pd(_mm512_unpackhi_ps(rows[i + 2], rows[i + 3]));
      rows[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(low01, low23));
      rows[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low01, low23));
      rows[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high01, high23));
      rows[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high01, high23));
    }
    // Lane l of rows[4 * g + j]: column 4 * l + j of rows 4 * g to 4 * g + 3.
    for (int j = 0; j < 4; ++j) {
      const V even01 = _mm512_shuffle_f32x4(rows[j], rows[4 + j], 0x88);
      const V odd01 = _mm512_shuffle_f32x4(rows[j], rows[4 + j], 0xdd);
      const V even23 = _mm512_shuffle_f32x4(rows[8 + j], rows[12 + j], 0x88);
      const V odd23 = _mm512_shuffle_f32x4(rows[8 + j], rows[12 + j], 0xdd);
      Store(to + j * to_stride, _mm512_shuffle_f32x4(even01, even23, 0x88));
      Store(to + (4 + j) * to_stride, _mm512_shuffle_f32x4(odd01, odd23, 0x88));
      Store(to + (8 + j) * to_stride, _mm512_shuffle_f32x4(even01, even23, 0xdd));
      Store(to + (12 + j) * to_stride, _mm512_shuffle_f32x4(odd01, odd23, 0xdd));
    }
  }
};

}  // namespace

void RunMatmulAvx512(const Matmul& matmul, const MatmulScratch& scratch) {
  BlockedMatmul<Avx512>(matmul, scratch).Run();
}

}  // namespace strata
