#include "runtime/aten/float_product.h"

#include "runtime/aten/parallel.h"

#if defined(__x86_64__)
#include <algorithm>
#include <immintrin.h>
#include <memory>
#include <new>

#define STRATA_AVX2 __attribute__((target("avx2,fma")))
#if defined(__clang__)
#define STRATA_UNROLL _Pragma("clang loop unroll(full)")
#else
#define STRATA_UNROLL _Pragma("GCC unroll 16")
#endif

namespace strata {
namespace {

// Sums of a tile stay in 12 of 16 registers; two more hold a row of b, one a number of a.
constexpr int64_t kTileRows = 6, kTileColumns = 16;
// A block of a fills a part of the second cache, one of b a part of the third; a panel of b, of
// kTileColumns columns, half of the first.
constexpr int64_t kBlockRows = 96, kBlockColumns = 512, kBlockInner = 256;
/// Multiplications of a part that a thread takes.
constexpr int64_t kLeastWork = int64_t{1} << 20;

/// Memory of a thread, which lives as long as it.
struct Scratch {
  alignas(64) float a[kBlockRows * kBlockInner];
  alignas(64) float b[kBlockInner * kBlockColumns];
  alignas(64) float tile[kTileRows * kTileColumns];
};

Scratch& ScratchOfThread() {
  static thread_local const std::unique_ptr<Scratch> scratch(new Scratch);
  return *scratch;
}

/// Eight elements of each of kLines lines, which are `stride` apart, one of each after the other.
template <int64_t kLines>
STRATA_AVX2 void PackEight(const float* from, int64_t stride, float* to) {
  STRATA_UNROLL
  for (int64_t first = 0; first < kLines; first += 8) {
    __m256 lines[8], pairs[8], fours[8];
    STRATA_UNROLL
    for (int64_t i = 0; i < 8; ++i) {
      lines[i] =
          first + i < kLines ? _mm256_loadu_ps(from + (first + i) * stride) : _mm256_setzero_ps();
    }
    STRATA_UNROLL
    for (int64_t i = 0; i < 8; i += 2) {
      pairs[i] = _mm256_unpacklo_ps(lines[i], lines[i + 1]);
      pairs[i + 1] = _mm256_unpackhi_ps(lines[i], lines[i + 1]);
    }
    STRATA_UNROLL
    for (int64_t i = 0; i < 8; i += 4) {
      STRATA_UNROLL
      for (int64_t half = 0; half < 2; ++half) {
        fours[i + 2 * half] = _mm256_shuffle_ps(pairs[i + half], pairs[i + half + 2], 0x44);
        fours[i + 2 * half + 1] = _mm256_shuffle_ps(pairs[i + half], pairs[i + half + 2], 0xee);
      }
    }
    STRATA_UNROLL
    for (int64_t i = 0; i < 4; ++i) {
      const __m256 columns[] = {_mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20),
                                _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31)};
      STRATA_UNROLL
      for (int64_t half = 0; half < 2; ++half) {
        float* const out = to + (i + 4 * half) * kLines + first;
        if constexpr (kLines % 8 == 0) {
          _mm256_storeu_ps(out, columns[half]);
        } else {  // of six lines
          _mm_storeu_ps(out, _mm256_castps256_ps128(columns[half]));
          _mm_storel_pi(reinterpret_cast<__m64*>(out + 4), _mm256_extractf128_ps(columns[half], 1));
        }
      }
    }
  }
}

/// The panel of lines from `first` on, elements `begin` to `end`, one by one; lines from `lines` on
/// are zeros.
template <int64_t kLines>
void PackRest(FloatMatrix m, int64_t first, int64_t lines, int64_t begin, int64_t end, float* to) {
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t line = 0; line < kLines; ++line) {
      to[i * kLines + line] =
          first + line < lines ? m.data[(first + line) * m.row_stride + i * m.column_stride] : 0.0F;
    }
  }
}

/// Lines of m become panels of kLines lines, one element of each line after the other; missing
/// lines are zeros.
template <int64_t kLines>
STRATA_AVX2 void Pack(FloatMatrix m, int64_t lines, int64_t length, float* to) {
  const int64_t whole = lines / kLines * kLines;
  // Of lines beside each other kPiece elements at a time, of all lines: as many as the first cache
  // holds.
  constexpr int64_t kPiece = 16;
  for (int64_t begin = 0; begin < length; begin += m.row_stride == 1 ? kPiece : length) {
    const int64_t end = m.row_stride == 1 ? std::min(begin + kPiece, length) : length;
    for (int64_t first = 0; first < whole; first += kLines) {
      const float* const from = m.data + first * m.row_stride;
      float* const panel = to + first * length;
      int64_t i = begin;
      if (m.row_stride == 1) {
        for (; i < end; ++i) {
          STRATA_UNROLL
          for (int64_t line = 0; line < kLines; ++line)
            panel[i * kLines + line] = from[line + i * m.column_stride];
        }
      } else if (m.column_stride == 1) {
        for (; i + 8 <= end; i += 8)
          PackEight<kLines>(from + i, m.row_stride, panel + i * kLines);
      }
      PackRest<kLines>(m, first, lines, i, end, panel);
    }
  }
  if (whole < lines) PackRest<kLines>(m, whole, lines, 0, length, to + whole * length);
}

/// Of a panel of a and one of b the tile of sums, which is written to `out` or added to it.
STRATA_AVX2 void MultiplyTile(const float* a, const float* b, int64_t inner, float* out,
                              int64_t out_stride, bool adds) {
  __m256 sums[kTileRows][2];
  STRATA_UNROLL
  for (int64_t r = 0; r < kTileRows; ++r) {
    __builtin_prefetch(out + r * out_stride, 1);
    __builtin_prefetch(out + r * out_stride + kTileColumns - 1, 1);
    sums[r][0] = sums[r][1] = _mm256_setzero_ps();
  }
  for (int64_t i = 0; i < inner; ++i, a += kTileRows, b += kTileColumns) {
    const __m256 left = _mm256_load_ps(b), right = _mm256_load_ps(b + 8);
    STRATA_UNROLL
    for (int64_t r = 0; r < kTileRows; ++r) {
      const __m256 factor = _mm256_broadcast_ss(a + r);
      sums[r][0] = _mm256_fmadd_ps(factor, left, sums[r][0]);
      sums[r][1] = _mm256_fmadd_ps(factor, right, sums[r][1]);
    }
  }
  STRATA_UNROLL
  for (int64_t r = 0; r < kTileRows; ++r) {
    float* const to = out + r * out_stride;
    if (adds) {
      sums[r][0] = _mm256_add_ps(sums[r][0], _mm256_loadu_ps(to));
      sums[r][1] = _mm256_add_ps(sums[r][1], _mm256_loadu_ps(to + 8));
    }
    _mm256_storeu_ps(to, sums[r][0]);
    _mm256_storeu_ps(to + 8, sums[r][1]);
  }
}

/// The same of a tile of which only `rows` and `columns` belong to `out`.
void MultiplyEdge(Scratch& scratch, const float* a, const float* b, int64_t inner, int64_t rows,
                  int64_t columns, float* out, int64_t out_stride, bool adds) {
  MultiplyTile(a, b, inner, scratch.tile, kTileColumns, /*adds=*/false);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const float sum = scratch.tile[r * kTileColumns + c];
      float& to = out[r * out_stride + c];
      to = adds ? to + sum : sum;
    }
  }
}

/// The product of the packed blocks.
void MultiplyBlocks(Scratch& scratch, int64_t rows, int64_t columns, int64_t inner, float* out,
                    int64_t out_stride, bool adds) {
  for (int64_t c = 0; c < columns; c += kTileColumns) {
    for (int64_t r = 0; r < rows; r += kTileRows) {
      const float *const a = scratch.a + r * inner, *const b = scratch.b + c * inner;
      float* const to = out + r * out_stride + c;
      const int64_t r_left = rows - r, c_left = columns - c;
      if (r_left >= kTileRows && c_left >= kTileColumns) {
        MultiplyTile(a, b, inner, to, out_stride, adds);
      } else {
        MultiplyEdge(scratch, a, b, inner, std::min(r_left, kTileRows),
                     std::min(c_left, kTileColumns), to, out_stride, adds);
      }
    }
  }
}

FloatMatrix Transposed(FloatMatrix m) {
  return {.data = m.data, .row_stride = m.column_stride, .column_stride = m.row_stride};
}

FloatMatrix PartOf(FloatMatrix m, int64_t row, int64_t column) {
  return {.data = m.data + row * m.row_stride + column * m.column_stride,
          .row_stride = m.row_stride,
          .column_stride = m.column_stride};
}

/// On this thread.
void Multiply(FloatMatrix a, FloatMatrix b, int64_t rows, int64_t columns, int64_t inner,
              float* out, int64_t out_stride) {
  Scratch& scratch = ScratchOfThread();
  for (int64_t c = 0; c < columns; c += kBlockColumns) {
    const int64_t block_columns = std::min(kBlockColumns, columns - c);
    for (int64_t i = 0; i < inner; i += kBlockInner) {
      const int64_t block_inner = std::min(kBlockInner, inner - i);
      Pack<kTileColumns>(Transposed(PartOf(b, i, c)), block_columns, block_inner, scratch.b);
      for (int64_t r = 0; r < rows; r += kBlockRows) {
        const int64_t block_rows = std::min(kBlockRows, rows - r);
        Pack<kTileRows>(PartOf(a, r, i), block_rows, block_inner, scratch.a);
        MultiplyBlocks(scratch, block_rows, block_columns, block_inner, out + r * out_stride + c,
                       out_stride, /*adds=*/i > 0);
      }
    }
  }
}

}  // namespace

bool CanMultiplyFloats() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

void MultiplyFloats(FloatMatrix a, FloatMatrix b, int64_t rows, int64_t columns, int64_t inner,
                    float* out, int64_t out_stride) {
  const bool cuts_rows = rows >= columns;
  const int64_t unit = cuts_rows ? kTileRows : kTileColumns, size = cuts_rows ? rows : columns;
  const int64_t unit_work = unit * inner * (cuts_rows ? columns : rows);
  ParallelFor((size + unit - 1) / unit, (kLeastWork + unit_work - 1) / unit_work,
              [&](int64_t begin, int64_t end) {
                const int64_t first = begin * unit, count = std::min(end * unit, size) - first;
                if (cuts_rows) {
                  Multiply(PartOf(a, first, 0), b, count, columns, inner, out + first * out_stride,
                           out_stride);
                } else {
                  Multiply(a, PartOf(b, 0, first), rows, count, inner, out + first, out_stride);
                }
              });
}

}  // namespace strata

#else

namespace strata {

bool CanMultiplyFloats() {
  return false;
}

void MultiplyFloats(FloatMatrix, FloatMatrix, int64_t, int64_t, int64_t, float*, int64_t) {}

}  // namespace strata

#endif
