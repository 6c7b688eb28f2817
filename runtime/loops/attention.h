#pragma once
#include <cstdint>
#include <vector>

#include "runtime/loops/loops.h"
#include "runtime/matmul/matmul.h"

namespace strata {

/// Attention of few and short sequences, where calling operators and products for each head costs
/// more than the numbers: `softmax(scale · q kᵀ) v` in blocks of 32 queries over all keys, and its
/// gradient from the logarithms of the sums. Each query head reads the key head of its group.
/// Follows ATen's flash kernel for CPUs, and has its bits where the library's products are chains
/// of fused multiply-adds (ATen/native/cpu/FlashAttentionKernel.cpp).
struct Attention {
  static constexpr int64_t kBlock = 32, kMostQueries = 191, kMostKeys = 512;

  int64_t batch = 0, heads = 0, key_heads = 0, queries = 0, keys = 0, head_dim = 0;
  bool is_causal = false;
  float scale = 1.0F;

  /// How library and compiler round, see Loops::dot; and `c + scale·sum` in products that add.
  bool contracts_dots = false, contracts_sums = false;

  /// Where the rows of a tensor [batch, head, row, …] lie, in floats; a row is contiguous.
  struct Rows {
    int64_t batch = 0, head = 0, row = 0;
    int64_t At(int64_t b, int64_t h, int64_t r) const { return b * batch + h * head + r * row; }
  };
  Rows query = {}, key = {}, value = {}, out = {}, logsumexp = {};
  Rows out_gradient = {}, query_gradient = {}, key_gradient = {};  ///< of the gradient
  Rows value_gradient = {};
};

class AttentionLoops {
 public:
  /// REQUIRES: this processor has `isa`; sizes within the bounds above, heads a multiple of
  /// key_heads.
  AttentionLoops(const Attention& shape, const Loops& loops, MatmulIsa isa);

  void Forward(const float* q, const float* k, const float* v, float* out, float* logsumexp);

  struct Gradients {
    float *query = nullptr, *key = nullptr, *value = nullptr;
  };
  void Backward(const float* out_gradient, const float* q, const float* k, const float* v,
                const float* out, const float* logsumexp, const Gradients& gradients);

 private:
  /// A matrix for products; elements of a row are `column` apart.
  struct Matrix {
    const float* data;
    int64_t row, column;
  };
  void Multiply(const Matrix& a, const Matrix& b, int64_t rows, int64_t columns, int64_t inner,
                float* c) const;
  /// `to = scale · sums`, or adds that to what is there.
  void Add(const std::vector<float>& sums, float scale, int64_t rows, float* to, int64_t stride,
           bool is_first) const;
  void BackwardBlock(int64_t b, int64_t head, int64_t first, const float* out_gradient,
                     const float* q, const float* k, const float* v, const float* out,
                     const float* logsumexp, const Gradients& gradients);

  Attention s_;
  const Loops& loops_;
  MatmulIsa isa_;
  std::vector<float> weights_, gradients_;  // [queries of a block, keys]
  std::vector<float> sums_;                 // [queries or keys, head_dim]
};

}  // namespace strata
