#pragma once
#include <cstdint>
#include <cstring>

#include "runtime/matmul/matmul.h"

// Included by one file per instruction set, compiled for it. What is instantiated here must stay in
// that file, or the linker may take it for processors that lack the instructions: everything is in
// an unnamed namespace, and nothing of the C++ library is used.

namespace strata {

/// How much of the operands is worked on at a time, and memory for that much of them, packed.
struct MatmulScratch {
  static constexpr int64_t kMostRows = 192;
  int64_t depth = 0;    ///< of the inner dimension: whole chains
  int64_t rows = 0;     ///< at most kMostRows: a block of a stays in the L2 cache
  int64_t columns = 0;  ///< a block of b stays in the L2 or L3 cache; a multiple of all panels
  float* a = nullptr;   ///< rows x depth, and a vector that may be overwritten
  float* b = nullptr;   ///< depth x columns, likewise
};

/// A part of c that registers hold.
struct TileSize {
  int rows, vectors, width;  // the last: floats in a vector
  constexpr int columns() const { return vectors * width; }
};
inline constexpr TileSize kAvx2Tile{.rows = 6, .vectors = 2, .width = 8};
inline constexpr TileSize kAvx512Tile{.rows = 12, .vectors = 2, .width = 16};

void RunMatmulAvx2(const Matmul& matmul, const MatmulScratch& scratch);
void RunMatmulAvx512(const Matmul& matmul, const MatmulScratch& scratch);

namespace {

constexpr int64_t Least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/// Four by four elements change places, within each 128 bits of a vector.
template <class Isa>
void TransposeFours(typename Isa::V* rows) {
  using V = typename Isa::V;
  const V low01 = Isa::UnpackLow(rows[0], rows[1]), high01 = Isa::UnpackHigh(rows[0], rows[1]);
  const V low23 = Isa::UnpackLow(rows[2], rows[3]), high23 = Isa::UnpackHigh(rows[2], rows[3]);
  rows[0] = Isa::UnpackLowPairs(low01, low23);
  rows[1] = Isa::UnpackHighPairs(low01, low23);
  rows[2] = Isa::UnpackLowPairs(high01, high23);
  rows[3] = Isa::UnpackHighPairs(high01, high23);
}

/// Goto's algorithm: panels of b that are as wide as a tile of c stay in the L1 cache while tiles
/// of rows pass over them; a tile of c stays in registers. Operands are copied ("packed") where
/// that pays: b where vectors cannot be loaded from it, both where they are large.
///
/// Isa: the size of a tile, kTile, and the operations on vectors V: LoadFirst of less than a
/// vector, Transpose of as many vectors as each has elements.
template <class Isa>
class BlockedMatmul {
  using V = typename Isa::V;
  static constexpr int kRows = Isa::kTile.rows;
  static constexpr int64_t kWidth = Isa::kTile.width, kPanel = Isa::kTile.columns();
  static constexpr int64_t kTiles = MatmulScratch::kMostRows / kRows;
  static constexpr int64_t kLarge = 16384;  // elements of a that do not stay in the L1 cache
  static_assert(MatmulScratch::kMostRows % kRows == 0);

 public:
  BlockedMatmul(const Matmul& matmul, const MatmulScratch& scratch)
      : m_(matmul),
        scratch_(scratch),
        is_large_(m_.rows * m_.inner > kLarge && m_.columns > kPanel),
        packs_b_(m_.b_column != 1 || (is_large_ && m_.rows > 2 * kRows)) {}

  void Run() {
    for (int64_t k = 0; k < m_.inner; k += scratch_.depth) {
      for (int64_t j = 0; j < m_.columns; j += scratch_.columns)
        RunBlock(k, Least(scratch_.depth, m_.inner - k), j,
                 Least(scratch_.columns, m_.columns - j));
    }
  }

 private:
  /// Rows of a block of a, in tiles of almost equal height.
  struct Tiles {
    int64_t count = 0;
    int64_t first[kTiles], size[kTiles];
    explicit Tiles(int64_t rows) : count((rows + kRows - 1) / kRows) {
      int64_t next = 0;
      for (int64_t t = 0; t < count; ++t) {
        first[t] = next;
        size[t] = (rows - next + count - t - 1) / (count - t);
        next += size[t];
      }
    }
  };

  /// Adds the products of inner elements [k, k + depth) to columns [j, j + width) of c.
  void RunBlock(int64_t k, int64_t depth, int64_t j, int64_t width) {
    for (int64_t p = 0; p < width; p += kPanel) {
      const int64_t n = Least(kPanel, width - p);
      if (IsPacked(n)) {
        PackB(m_.b + k * m_.b_row + (j + p) * m_.b_column, depth, n, scratch_.b + p * depth);
      }
    }
    for (int64_t i = 0; i < m_.rows; i += scratch_.rows) {
      const Tiles tiles(Least(scratch_.rows, m_.rows - i));
      const float* a = m_.a + i * m_.a_row + k * m_.a_column;
      for (int64_t t = 0; is_large_ && t < tiles.count; ++t)
        PackA(a + tiles.first[t] * m_.a_row, depth, tiles.size[t],
              scratch_.a + tiles.first[t] * depth);
      for (int64_t p = 0; p < width; p += kPanel) {
        const int64_t n = Least(kPanel, width - p);
        const bool is_packed = IsPacked(n);
        const float* b = is_packed ? scratch_.b + p * depth : m_.b + k * m_.b_row + j + p;
        const int64_t b_row = is_packed ? kPanel : m_.b_row;
        for (int64_t t = 0; t < tiles.count; ++t) {
          const Tile tile{
              .depth = depth,
              .block = m_.block,
              .a = is_large_ ? scratch_.a + tiles.first[t] * depth : a + tiles.first[t] * m_.a_row,
              .a_row = is_large_ ? 1 : m_.a_row,
              .a_column = is_large_ ? tiles.size[t] : m_.a_column,
              .b = b,
              .b_row = b_row,
              .c = m_.c + (i + tiles.first[t]) * m_.c_row + j + p,
              .c_row = m_.c_row,
              .columns = n,
              .adds = m_.adds || k > 0,
              .ahead = TakeAhead(depth)};
          if (n <= kWidth) {
            is_large_ ? Dispatch<1, true>(tile, tiles.size[t])
                      : Dispatch<1, false>(tile, tiles.size[t]);
          } else {
            is_large_ ? Dispatch<Isa::kTile.vectors, true>(tile, tiles.size[t])
                      : Dispatch<Isa::kTile.vectors, false>(tile, tiles.size[t]);
          }
        }
      }
    }
  }

  /// The next lines to fetch: one for each of a tile's inner elements, or fewer.
  Lines TakeAhead(int64_t depth) {
    if (ahead_.count == 0 && next_ahead_ < m_.num_ahead) ahead_ = m_.ahead[next_ahead_++];
    if (ahead_.count == 0) return {reinterpret_cast<const char*>(m_.b), 1};
    const Lines taken{ahead_.data, Least(ahead_.count, depth)};
    ahead_ = {taken.data + taken.count * Lines::kBytes, ahead_.count - taken.count};
    return taken;
  }

  /// A panel of n columns: its last vector must not reach beyond b.
  bool IsPacked(int64_t n) const { return packs_b_ || (n != kPanel && n != kWidth); }

  /// Rows of kPanel columns, zeros after the last.
  void PackB(const float* b, int64_t depth, int64_t n, float* to) const {
    for (int64_t j = 0; j < kPanel; j += kWidth) {
      const int64_t columns = n - j < 0 ? 0 : Least(kWidth, n - j);
      const float* from = b + j * m_.b_column;
      if (m_.b_column == 1) {
        CopyRows(from, m_.b_row, depth, columns, to + j, kPanel);
      } else {
        CopyColumns(from, m_.b_column, m_.b_row, columns, depth, to + j, kPanel);
      }
    }
  }

  /// Columns of `rows` elements, one after the other.
  void PackA(const float* a, int64_t depth, int64_t rows, float* to) const {
    if (m_.a_row == 1) {
      CopyRows(a, m_.a_column, depth, rows, to, rows);
    } else {
      CopyColumns(a, m_.a_row, m_.a_column, rows, depth, to, rows);
    }
  }

  /// `count` rows of `n` elements, at most a vector. As the next function: elements of `to` that
  /// belong to no row before the next one, and behind the last, are overwritten.
  static void CopyRows(const float* from, int64_t stride, int64_t count, int64_t n, float* to,
                       int64_t to_stride) {
    if (n == kWidth) {
      for (int64_t k = 0; k < count; ++k)
        Isa::Store(to + k * to_stride, Isa::Load(from + k * stride));
    } else {
      for (int64_t k = 0; k < count; ++k)
        Isa::Store(to + k * to_stride, Isa::LoadFirst(from + k * stride, n));
    }
  }

  /// `count` columns of `n` elements, at most a vector, become rows.
  static void CopyColumns(const float* from, int64_t row, int64_t column, int64_t n, int64_t count,
                          float* to, int64_t to_stride) {
    int64_t k = 0;
    if (column == 1 && n > 0) {
      k = n == kWidth ? TransposeRows<true>(from, row, n, count, to, to_stride)
                      : TransposeRows<false>(from, row, n, count, to, to_stride);
    }
    for (; k < count; ++k) {
      for (int64_t i = 0; i < kWidth; ++i)
        to[k * to_stride + i] = i < n ? from[i * row + k * column] : 0.0F;
    }
  }

  /// As long as there are vectors of columns; how many these are. What is missing of a vector of
  /// rows is the last of them again.
  template <bool kIsWhole>
  static int64_t TransposeRows(const float* from, int64_t row, int64_t n, int64_t count, float* to,
                               int64_t to_stride) {
    int64_t k = 0;
    for (; k + kWidth <= count; k += kWidth) {
      V rows[kWidth];
      for (int64_t i = 0; i < kWidth; ++i) {
        rows[i] = Isa::Load(from + (kIsWhole ? i : Least(i, n - 1)) * row + k);
        // Parameters come from far, and their rows are too short for the processor to look ahead.
        if (kIsWhole) __builtin_prefetch(from + (kWidth + i) * row + k);
      }
      Isa::Transpose(rows);
      for (int64_t i = 0; i < kWidth; ++i)
        Isa::Store(to + (k + i) * to_stride, rows[i]);
    }
    return k;
  }

  struct Tile {
    int64_t depth, block;
    const float* a;
    int64_t a_row, a_column;
    const float* b;
    int64_t b_row;
    float* c;
    int64_t c_row, columns;
    bool adds;    // to what c holds
    Lines ahead;  // at least one
  };

  /// Chain after chain, while a tile of c is in the L1 cache.
  template <int kCount, int kVectors, bool kIsPacked>
  [[gnu::noinline]] static void RunTile(const Tile& t) {
    const int64_t a_row = kIsPacked ? 1 : t.a_row, a_column = kIsPacked ? kCount : t.a_column;
    const float* a = t.a;
    const float* b = t.b;
    const char* ahead = t.ahead.data;
    const char* const last = ahead + (t.ahead.count - 1) * Lines::kBytes;
    for (int64_t k = 0; k < t.depth;) {
      const bool adds = t.adds || k > 0;
      V sums[kCount][kVectors];
#pragma GCC unroll 16
      for (int i = 0; i < kCount; ++i) {
        __builtin_prefetch(t.c + i * t.c_row, 1);
        for (int v = 0; v < kVectors; ++v)
          sums[i][v] = Isa::Zero();
      }
      for (const int64_t end = Least(k + t.block, t.depth); k < end;
           ++k, a += a_column, b += t.b_row) {
        __builtin_prefetch(ahead);
        ahead = ahead < last ? ahead + Lines::kBytes : last;
        V right[kVectors];
        for (int v = 0; v < kVectors; ++v)
          right[v] = Isa::Load(b + v * kWidth);
#pragma GCC unroll 16
        for (int i = 0; i < kCount; ++i) {
          const V left = Isa::Splat(a[i * a_row]);
          for (int v = 0; v < kVectors; ++v)
            sums[i][v] = Isa::Fma(left, right[v], sums[i][v]);
        }
      }
      StoreTile<kCount, kVectors>(t, sums, adds);
    }
  }

  template <int kCount, int kVectors>
  [[gnu::always_inline]] static void StoreTile(const Tile& t, const V (&sums)[kCount][kVectors],
                                               bool adds) {
    if (t.columns == kVectors * kWidth) {
#pragma GCC unroll 16
      for (int i = 0; i < kCount; ++i) {
        for (int v = 0; v < kVectors; ++v) {
          float* const c = t.c + i * t.c_row + v * kWidth;
          Isa::Store(c, adds ? Isa::Add(Isa::Load(c), sums[i][v]) : sums[i][v]);
        }
      }
      return;
    }
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) {
      float row[kVectors * kWidth];
      for (int v = 0; v < kVectors; ++v)
        Isa::Store(row + v * kWidth, sums[i][v]);
      float* const c = t.c + i * t.c_row;
      for (int64_t j = 0; j < t.columns; ++j)
        c[j] = adds ? c[j] + row[j] : row[j];
    }
  }

  /// A tile of `rows` rows, 1 to kRows.
  template <int kVectors, bool kIsPacked, int kCount = kRows>
  static void Dispatch(const Tile& tile, int64_t rows) {
    if (rows == kCount) {
      RunTile<kCount, kVectors, kIsPacked>(tile);
    } else if constexpr (kCount > 1) {
      Dispatch<kVectors, kIsPacked, kCount - 1>(tile, rows);
    }
  }

  const Matmul& m_;
  const MatmulScratch& scratch_;
  bool is_large_, packs_b_;
  Lines ahead_;  // of m_.ahead[next_ahead_ - 1], what is left
  int64_t next_ahead_ = 0;
};

}  // namespace
}  // namespace strata
