#pragma once
#include <cstdint>
#include <cstring>

#include "runtime/matmul/matmul.h"

// Included by one file per instruction set, compiled for it. What is instantiated here must stay in
// that file, or the linker may take it for processors that lack the instructions: everything is in
// an unnamed namespace, and nothing of the C++ library is used.

namespace strata {

/// Memory for packed operands. The sizes are those of the largest tiling.
struct MatmulScratch {
  static constexpr int64_t kColumns = 1536;  ///< of b: a block of them stays in the L2 or L3 cache
  static constexpr int64_t kRows = 192;      ///< of a: a block of them stays in the L2 cache
  float* a = nullptr;
  float* b = nullptr;
};

void RunMatmulAvx2(const Matmul& matmul, const MatmulScratch& scratch);
void RunMatmulAvx512(const Matmul& matmul, const MatmulScratch& scratch);

namespace {

constexpr int64_t Least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/// Goto's algorithm: panels of b that are as wide as a tile of c stay in the L1 cache while tiles
/// of rows pass over them; a tile of c stays in registers. Operands are copied ("packed") where
/// that pays: b where vectors cannot be loaded from it, both where they are large.
///
/// Isa: kWidth floats in a vector V, tiles of kRows x kVectors vectors, and the operations on V.
template <class Isa>
class BlockedMatmul {
  using V = typename Isa::V;
  static constexpr int64_t kWidth = Isa::kWidth, kRows = Isa::kRows;
  static constexpr int64_t kPanel = kWidth * Isa::kVectors;  // columns of a tile
  static constexpr int64_t kTiles = MatmulScratch::kRows / kRows;
  static constexpr int64_t kLarge = 16384;  // elements of a that do not stay in the L1 cache
  static_assert(MatmulScratch::kRows % kRows == 0 && MatmulScratch::kColumns % kPanel == 0);

 public:
  BlockedMatmul(const Matmul& matmul, const MatmulScratch& scratch)
      : m_(matmul),
        scratch_(scratch),
        is_large_(m_.rows * m_.inner > kLarge && m_.columns > kPanel),
        packs_b_(m_.b_column != 1 || (is_large_ && m_.rows > 2 * kRows)) {}

  void Run() {
    for (int64_t k = 0; k < m_.inner; k += m_.block) {
      for (int64_t j = 0; j < m_.columns; j += MatmulScratch::kColumns)
        RunBlock(k, Least(m_.block, m_.inner - k), j,
                 Least(MatmulScratch::kColumns, m_.columns - j));
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
    for (int64_t i = 0; i < m_.rows; i += MatmulScratch::kRows) {
      const Tiles tiles(Least(MatmulScratch::kRows, m_.rows - i));
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
              .a = is_large_ ? scratch_.a + tiles.first[t] * depth : a + tiles.first[t] * m_.a_row,
              .a_row = is_large_ ? 1 : m_.a_row,
              .a_column = is_large_ ? tiles.size[t] : m_.a_column,
              .b = b,
              .b_row = b_row,
              .c = m_.c + (i + tiles.first[t]) * m_.c_row + j + p,
              .c_row = m_.c_row,
              .columns = n,
              .adds = k > 0};
          if (n <= kWidth) {
            Dispatch<1>(tile, tiles.size[t]);
          } else {
            Dispatch<Isa::kVectors>(tile, tiles.size[t]);
          }
        }
      }
    }
  }

  /// A panel of n columns: its last vector must not reach beyond b.
  bool IsPacked(int64_t n) const { return packs_b_ || (n != kPanel && n != kWidth); }

  /// Rows of kPanel columns, zeros after the last.
  void PackB(const float* b, int64_t depth, int64_t n, float* to) const {
    if (m_.b_column == 1) {
      for (int64_t k = 0; k < depth; ++k, to += kPanel) {
        std::memcpy(to, b + k * m_.b_row, static_cast<size_t>(n) * sizeof(float));
        std::memset(to + n, 0, static_cast<size_t>(kPanel - n) * sizeof(float));
      }
      return;
    }
    for (int64_t j = 0; j < kPanel; j += kWidth) {
      int64_t k = 0;
      for (; m_.b_row == 1 && j + kWidth <= n && k + kWidth <= depth; k += kWidth)
        Isa::Transpose(b + j * m_.b_column + k, m_.b_column, to + k * kPanel + j, kPanel);
      for (; k < depth; ++k) {
        for (int64_t x = j; x < j + kWidth; ++x)
          to[k * kPanel + x] = x < n ? b[k * m_.b_row + x * m_.b_column] : 0.0F;
      }
    }
  }

  /// Columns of `rows` elements, one after the other.
  void PackA(const float* a, int64_t depth, int64_t rows, float* to) const {
    if (m_.a_row == 1) {
      for (int64_t k = 0; k < depth; ++k)
        std::memcpy(to + k * rows, a + k * m_.a_column, static_cast<size_t>(rows) * sizeof(float));
      return;
    }
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t k = 0; k < depth; ++k)
        to[k * rows + i] = a[i * m_.a_row + k * m_.a_column];
    }
  }

  struct Tile {
    int64_t depth;
    const float* a;
    int64_t a_row, a_column;
    const float* b;
    int64_t b_row;
    float* c;
    int64_t c_row, columns;
    bool adds;  // to what c holds
  };

  template <int kCount, int kVectors>
  static void RunTile(const Tile& t) {
    V sums[kCount][kVectors];
    for (int i = 0; i < kCount; ++i) {
      for (int v = 0; v < kVectors; ++v)
        sums[i][v] = Isa::Zero();
    }
    const float* a = t.a;
    const float* b = t.b;
    for (int64_t k = 0; k < t.depth; ++k, a += t.a_column, b += t.b_row) {
      V right[kVectors];
      for (int v = 0; v < kVectors; ++v)
        right[v] = Isa::Load(b + v * kWidth);
#pragma GCC unroll 16
      for (int i = 0; i < kCount; ++i) {
        const V left = Isa::Splat(a[i * t.a_row]);
        for (int v = 0; v < kVectors; ++v)
          sums[i][v] = Isa::Fma(left, right[v], sums[i][v]);
      }
    }
    if (t.columns == kVectors * kWidth) {
      for (int i = 0; i < kCount; ++i) {
        for (int v = 0; v < kVectors; ++v) {
          float* const c = t.c + i * t.c_row + v * kWidth;
          Isa::Store(c, t.adds ? Isa::Add(Isa::Load(c), sums[i][v]) : sums[i][v]);
        }
      }
      return;
    }
    for (int i = 0; i < kCount; ++i) {
      float row[kVectors * kWidth];
      for (int v = 0; v < kVectors; ++v)
        Isa::Store(row + v * kWidth, sums[i][v]);
      float* const c = t.c + i * t.c_row;
      for (int64_t j = 0; j < t.columns; ++j)
        c[j] = t.adds ? c[j] + row[j] : row[j];
    }
  }

  /// A tile of `rows` rows, 1 to kRows.
  template <int kVectors, int kCount = kRows>
  static void Dispatch(const Tile& tile, int64_t rows) {
    if (rows == kCount) {
      RunTile<kCount, kVectors>(tile);
    } else if constexpr (kCount > 1) {
      Dispatch<kVectors, kCount - 1>(tile, rows);
    }
  }

  const Matmul& m_;
  const MatmulScratch& scratch_;
  bool is_large_, packs_b_;
};

}  // namespace
}  // namespace strata
