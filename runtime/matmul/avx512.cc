#include <immintrin.h>

#include "runtime/matmul/blocked.h"

namespace strata {
namespace {

/// 24 of 32 registers hold the tile: two fused multiply-adds per cycle, each with a latency of
/// four.
struct Avx512 {
  using V = __m512;
  static constexpr TileSize kTile = kAvx512Tile;
  static V Zero() { return _mm512_setzero_ps(); }
  static V Load(const float* p) { return _mm512_loadu_ps(p); }
  static void Store(float* p, V v) { _mm512_storeu_ps(p, v); }
  static V Splat(float x) { return _mm512_set1_ps(x); }
  static V Fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static V Add(V a, V b) { return _mm512_add_ps(a, b); }

  static V UnpackLow(V a, V b) { return _mm512_unpacklo_ps(a, b); }
  static V UnpackHigh(V a, V b) { return _mm512_unpackhi_ps(a, b); }
  static V UnpackLowPairs(V a, V b) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  }
  static V UnpackHighPairs(V a, V b) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  }
  /// `n` elements, zeros after them.
  static V LoadFirst(const float* p, int64_t n) {
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << n) - 1), p);
  }

  static void Transpose(V* rows) {
    for (int i = 0; i < 16; i += 4)
      TransposeFours<Avx512>(rows + i);
    // Lane l of rows[4 * g + j]: column 4 * l + j of rows 4 * g to 4 * g + 3.
    for (int j = 0; j < 4; ++j) {
      const V even01 = _mm512_shuffle_f32x4(rows[j], rows[4 + j], 0x88);
      const V odd01 = _mm512_shuffle_f32x4(rows[j], rows[4 + j], 0xdd);
      const V even23 = _mm512_shuffle_f32x4(rows[8 + j], rows[12 + j], 0x88);
      const V odd23 = _mm512_shuffle_f32x4(rows[8 + j], rows[12 + j], 0xdd);
      rows[j] = _mm512_shuffle_f32x4(even01, even23, 0x88);
      rows[4 + j] = _mm512_shuffle_f32x4(odd01, odd23, 0x88);
      rows[8 + j] = _mm512_shuffle_f32x4(even01, even23, 0xdd);
      rows[12 + j] = _mm512_shuffle_f32x4(odd01, odd23, 0xdd);
    }
  }
};

}  // namespace

void RunMatmulAvx512(const Matmul& matmul, const MatmulScratch& scratch) {
  BlockedMatmul<Avx512>(matmul, scratch).Run();
}

}  // namespace strata
