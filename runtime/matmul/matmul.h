#pragma once
#include <cstdint>

namespace strata {

/// Memory by cache lines, the first of which holds `data`.
struct Lines {
  static constexpr int64_t kBytes = 64;
  const char* data = nullptr;
  int64_t count = 0;
};

/// `c = a · b` in single precision. Strides count elements.
///
/// An element of c is a chain of fused multiply-adds over `block` elements of the inner dimension,
/// from zero, in their order; chains of further blocks are added to it one after the other. Nothing
/// else decides its bits: neither sizes nor strides, threads or the processor.
struct Matmul {
  int64_t rows = 0, columns = 0, inner = 0;
  int64_t block = 0;  ///< 1 to kMaxMatmulBlock
  const float* a = nullptr;
  int64_t a_row = 0, a_column = 0;
  const float* b = nullptr;
  int64_t b_row = 0, b_column = 0;
  float* c = nullptr;
  int64_t c_row = 0;  ///< columns of c lie side by side
  bool adds = false;  ///< chains to what c holds, its first one, too
  /// What is needed next: brought near while the product is computed, as far as that costs no time.
  const Lines* ahead = nullptr;
  int64_t num_ahead = 0;
};

inline constexpr int64_t kMaxMatmulBlock = 512;

enum class MatmulIsa : uint8_t { kNone, kAvx2, kAvx512 };

/// The best that this processor has.
MatmulIsa BestMatmulIsa();

/// REQUIRES: this processor has `isa`, which is not kNone; c overlaps neither a nor b.
void RunMatmul(const Matmul& matmul, MatmulIsa isa);

/// Lines of `ahead` that are fetched while it is computed, at most.
int64_t MostLinesAhead(const Matmul& matmul, MatmulIsa isa);

/// The part of a product that one of `parts` threads computes; may be empty. It fetches nothing
/// ahead.
Matmul PartOf(const Matmul& whole, int64_t part, int64_t parts);

}  // namespace strata
