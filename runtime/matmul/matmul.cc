#include "runtime/matmul/matmul.h"

#include <algorithm>
#include <vector>

#include "ir/result.h"
#include "runtime/matmul/blocked.h"

namespace strata {
namespace {

/// Floats that packed blocks may take: of a, half of an L2 cache; of b, a share of an L3 cache.
constexpr int64_t kMostOfA = 64 * 1024, kMostOfB = 512 * 1024;
/// Inner elements between two passes over c, which memory has to bring and take.
constexpr int64_t kDepth = 768;

/// The whole operands, where they are not larger than blocks may be.
MatmulScratch BlocksOf(const Matmul& matmul) {
  constexpr int64_t kTiles = 12, kPanels = 32;  // multiples of all instruction sets' tiles
  const auto rounded = [](int64_t size, int64_t step) { return (size + step - 1) / step * step; };
  MatmulScratch blocks{.depth = matmul.inner,
                       .rows = std::min(rounded(matmul.rows, kTiles), MatmulScratch::kMostRows),
                       .columns = rounded(matmul.columns, kPanels)};
  if (blocks.depth > kDepth)
    blocks.depth =
        std::min(std::max<int64_t>(1, kDepth / matmul.block) * matmul.block, matmul.inner);
  if (blocks.rows * blocks.depth > kMostOfA)
    blocks.rows = std::max<int64_t>(1, kMostOfA / blocks.depth / kTiles) * kTiles;
  if (blocks.columns * blocks.depth > kMostOfB)
    blocks.columns = std::max<int64_t>(1, kMostOfB / blocks.depth / kPanels) * kPanels;
  return blocks;
}

/// Blocks and a thread's memory for them, which only grows.
MatmulScratch ScratchFor(const Matmul& matmul) {
  constexpr size_t kVector = 16, kAlignment = 64 / sizeof(float);
  thread_local std::vector<float> a, b;
  MatmulScratch scratch = BlocksOf(matmul);
  const auto grow = [&](std::vector<float>& memory, int64_t width) {
    const size_t size = static_cast<size_t>(width * scratch.depth) + kVector + kAlignment;
    if (memory.size() < size) memory.resize(size);
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    return memory.data() + (64 - address % 64) % 64 / sizeof(float);
  };
  scratch.a = grow(a, scratch.rows);
  scratch.b = grow(b, scratch.columns);
  return scratch;
}

}  // namespace

MatmulIsa BestMatmulIsa() {
#ifdef STRATA_MATMUL_X86
  if (__builtin_cpu_supports("avx512f")) return MatmulIsa::kAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return MatmulIsa::kAvx2;
#endif
  return MatmulIsa::kNone;
}

void RunMatmul(const Matmul& matmul, [[maybe_unused]] MatmulIsa isa) {
  STRATA_CHECK(matmul.block > 0 && matmul.block <= kMaxMatmulBlock && isa != MatmulIsa::kNone);
  if (matmul.rows == 0 || matmul.columns == 0) return;
  if (matmul.inner == 0) {
    if (matmul.adds) return;
    for (int64_t i = 0; i < matmul.rows; ++i)
      std::fill_n(matmul.c + i * matmul.c_row, matmul.columns, 0.0F);
    return;
  }
#ifdef STRATA_MATMUL_X86
  const MatmulScratch scratch = ScratchFor(matmul);
  (isa == MatmulIsa::kAvx512 ? RunMatmulAvx512 : RunMatmulAvx2)(matmul, scratch);
#endif
}

int64_t MostLinesAhead(const Matmul& matmul, MatmulIsa isa) {
  const TileSize tile = isa == MatmulIsa::kAvx512 ? kAvx512Tile : kAvx2Tile;
  const int64_t tiles = (matmul.rows + tile.rows - 1) / tile.rows *
                        ((matmul.columns + tile.columns() - 1) / tile.columns());
  return tiles * matmul.inner;  // a line for each of a tile's inner elements
}

Matmul PartOf(const Matmul& whole, int64_t part, int64_t parts) {
  constexpr int64_t kStep = 32;  // columns or rows that tiles cut evenly
  Matmul result = whole;
  result.num_ahead = 0;
  const bool by_rows = whole.rows > whole.columns;
  const int64_t size = by_rows ? whole.rows : whole.columns;
  const int64_t share = (size + parts - 1) / parts, step = (share + kStep - 1) / kStep * kStep;
  const int64_t begin = std::min(size, part * step), end = std::min(size, begin + step);
  result.c += begin * (by_rows ? whole.c_row : 1);
  if (by_rows) {
    result.a += begin * whole.a_row;
    result.rows = end - begin;
  } else {
    result.b += begin * whole.b_column;
    result.columns = end - begin;
  }
  return result;
}

}  // namespace strata
