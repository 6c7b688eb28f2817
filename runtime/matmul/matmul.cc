#include "runtime/matmul/matmul.h"

#include <algorithm>
#include <vector>

#include "ir/result.h"
#include "runtime/matmul/blocked.h"

namespace strata {
namespace {

/// A thread's scratch memory; it only grows.
MatmulScratch ScratchFor(const Matmul& matmul) {
  constexpr size_t kAlignment = 64 / sizeof(float);
  thread_local std::vector<float> a, b;
  const int64_t depth = std::min(matmul.block, matmul.inner);
  // A tile may be higher than what is left of the rows, a panel wider than what is left of columns.
  const int64_t rows = std::min(MatmulScratch::kRows, matmul.rows + 16);
  const int64_t columns = std::min(MatmulScratch::kColumns, matmul.columns + 32);
  const auto grow = [&](std::vector<float>& memory, int64_t count) {
    const size_t size = static_cast<size_t>(count * depth) + kAlignment;
    if (memory.size() < size) memory.resize(size);
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    return memory.data() + (64 - address % 64) % 64 / sizeof(float);
  };
  return {.a = grow(a, rows), .b = grow(b, columns)};
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
    for (int64_t i = 0; i < matmul.rows; ++i)
      std::fill_n(matmul.c + i * matmul.c_row, matmul.columns, 0.0F);
    return;
  }
#ifdef STRATA_MATMUL_X86
  const MatmulScratch scratch = ScratchFor(matmul);
  (isa == MatmulIsa::kAvx512 ? RunMatmulAvx512 : RunMatmulAvx2)(matmul, scratch);
#endif
}

Matmul PartOf(const Matmul& whole, int64_t part, int64_t parts) {
  constexpr int64_t kStep = 32;  // columns or rows that tiles cut evenly
  Matmul result = whole;
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
