#include <immintrin.h>

#include "runtime/matmul/blocked.h"

namespace strata {
namespace {

/// 12 of 16 registers hold the tile.
struct Avx2 {
  using V = __m256;
  static constexpr TileSize kTile = kAvx2Tile;
  static V Zero() { return _mm256_setzero_ps(); }
  static V Load(const float* p) { return _mm256_loadu_ps(p); }
  static void Store(float* p, V v) { _mm256_storeu_ps(p, v); }
  static V Splat(float x) { return _mm256_set1_ps(x); }
  static V Fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static V Add(V a, V b) { return _mm256_add_ps(a, b); }

  static V UnpackLow(V a, V b) { return _mm256_unpacklo_ps(a, b); }
  static V UnpackHigh(V a, V b) { return _mm256_unpackhi_ps(a, b); }
  static V UnpackLowPairs(V a, V b) {
    return _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
  }
  static V UnpackHighPairs(V a, V b) {
    return _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
  }
  /// `n` elements, zeros after them.
  static V LoadFirst(const float* p, int64_t n) {
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), index));
  }

  static void Transpose(V* rows) {
    TransposeFours<Avx2>(rows);
    TransposeFours<Avx2>(rows + 4);
    for (int j = 0; j < 4; ++j) {
      const V first = rows[j], second = rows[4 + j];
      rows[j] = _mm256_permute2f128_ps(first, second, 0x20);
      rows[4 + j] = _mm256_permute2f128_ps(first, second, 0x31);
    }
  }
};

}  // namespace

void RunMatmulAvx2(const Matmul& matmul, const MatmulScratch& scratch) {
  BlockedMatmul<Avx2>(matmul, scratch).Run();
}

}  // namespace strata
