#include <immintrin.h>

#include "runtime/matmul/blocked.h"

namespace strata {
namespace {

/// 12 of 16 registers hold the tile.
struct Avx2 {
  using V = __m256;
  static constexpr int kWidth = 8, kRows = 6, kVectors = 2;
  static V Zero() { return _mm256_setzero_ps(); }
  static V Load(const float* p) { return _mm256_loadu_ps(p); }
  static void Store(float* p, V v) { _mm256_storeu_ps(p, v); }
  static V Splat(float x) { return _mm256_set1_ps(x); }
  static V Fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static V Add(V a, V b) { return _mm256_add_ps(a, b); }

  /// 8 rows of 8 numbers become columns: within groups of four rows first, then the two groups.
  static void Transpose(const float* from, int64_t stride, float* to, int64_t to_stride) {
    V rows[8];
    for (int i = 0; i < 8; ++i)
      rows[i] = Load(from + i * stride);
    for (int i = 0; i < 8; i += 4) {
      const __m256d low01 = _mm256_castps_pd(_mm256_unpacklo_ps(rows[i], rows[i + 1]));
      const __m256d high01 = _mm256_castps_pd(_mm256_unpackhi_ps(rows[i], rows[i + 1]));
      const __m256d low23 = _mm256_castps_pd(_mm256_unpacklo_ps(rows[i + 2], rows[i + 3]));
      const __m256d high23 = _mm256_castps_pd(_mm256_unpackhi_ps(rows[i + 2], rows[i + 3]));
      rows[i] = _mm256_castpd_ps(_mm256_unpacklo_pd(low01, low23));
      rows[i + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low01, low23));
      rows[i + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(high01, high23));
      rows[i + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(high01, high23));
    }
    for (int j = 0; j < 4; ++j) {
      Store(to + j * to_stride, _mm256_permute2f128_ps(rows[j], rows[4 + j], 0x20));
      Store(to + (4 + j) * to_stride, _mm256_permute2f128_ps(rows[j], rows[4 + j], 0x31));
    }
  }
};

}  // namespace

void RunMatmulAvx2(const Matmul& matmul, const MatmulScratch& scratch) {
  BlockedMatmul<Avx2>(matmul, scratch).Run();
}

}  // namespace strata
