#include "runtime/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ir/result.h"
#include "runtime/attention/rows.h"

namespace strata {
namespace {

namespace rows = attention_rows;

/// How libraries cut an inner dimension into chains (Matmul::block).
int64_t ChainOf(int64_t inner) {
  constexpr int64_t kChain = 192;
  if (inner <= kChain) return inner;
  return inner < 2 * kChain ? (inner + 1) / 2 : kChain;
}

/// A matrix of floats; an operand of a product.
struct Matrix {
  const float* data;
  int64_t row, column;
  Matrix Transposed() const { return {data, column, row}; }
};

/// c [rows, columns] = a · b, or added to c.
struct Product {
  int64_t rows, columns, inner;
  int64_t chain;  ///< of what the library would multiply, zeros included
  bool adds = false;

  void Run(const Matrix& a, const Matrix& b, float* c, int64_t c_row) const {
    RunMatmul({.rows = rows,
               .columns = columns,
               .inner = inner,
               .block = chain,
               .a = a.data,
               .a_row = a.row,
               .a_column = a.column,
               .b = b.data,
               .b_row = b.row,
               .b_column = b.column,
               .c = c,
               .c_row = c_row,
               .adds = adds},
              MatmulIsa::kAvx512);
  }
};

constexpr int64_t kScores = kMaxQueries * kMaxKeys;  // of a block

/// A thread's memory, which only grows.
float* Scratch(size_t floats) {
  thread_local std::vector<float> memory;
  if (memory.size() < floats) memory.resize(floats);
  return memory.data();
}

/// Queries [first, first + count) against keys [key, key + size), of which any query sees `seen`.
struct Block {
  int64_t first, count, key, size, seen;

  /// Keys of the block that its i-th query sees.
  int64_t SeenBy(int64_t i, bool is_causal) const {
    return is_causal ? std::min(first + i + 1 - key, seen) : seen;
  }
};

template <class Fn>
void ForEachKeyBlock(const FlashAttention& a, int64_t first, int64_t count, Fn&& fn) {
  const int64_t last = a.is_causal ? std::min(first + count, a.keys) : a.keys;
  for (int64_t key = 0; key < last; key += kMaxKeys) {
    const int64_t size = std::min(kMaxKeys, a.keys - key);
    fn(Block{.first = first,
             .count = count,
             .key = key,
             .size = size,
             .seen = std::min(size, last - key)});
  }
}

Matrix At(const HeadRows& rows, const float* head, int64_t row) {
  return {head + row * rows.row_stride, rows.row_stride, 1};
}

/// What the heads of a group share.
struct KeyHead {
  const float *scaled_k, *v;  ///< the former [keys, width]
  float *grad_k, *grad_v;
};

/// Writes grad_q of a head, adds to the gradients of its keys and values. Scratch: two blocks of
/// scores, and a block of queries behind them.
void AddGradients(const FlashAttention& a, int64_t batch, int64_t head, const KeyHead& keys,
                  float* scores, float* scaled_q) {
  const int64_t width = a.width;
  const float *q = a.q.Head(batch, head), *out = a.out.Head(batch, head),
              *grad_out = a.grad_out.Head(batch, head), *log_sum = a.log_sum.Head(batch, head);
  float *const grad_q = a.grad_q.Head(batch, head), *const grad_scores = scores + kScores;
  float mean[kMaxQueries];
  for (int64_t first = 0; first < a.queries; first += a.query_block) {
    const int64_t count = std::min(a.query_block, a.queries - first);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t query = first + i;
      mean[i] = rows::Dot(grad_out + query * a.grad_out.row_stride, out + query * a.out.row_stride,
                          width);
      rows::Multiply(q + query * a.q.row_stride, width, a.scale, scaled_q + i * width);
      std::fill_n(grad_q + query * a.grad_q.row_stride, width, 0.0F);
    }
    ForEachKeyBlock(a, first, count, [&](const Block& block) {
      const int64_t key = block.key, seen = block.seen;
      const Matrix block_k{keys.scaled_k + key * width, width, 1}, block_v = At(a.v, keys.v, key);
      const Matrix block_grad = At(a.grad_out, grad_out, first);
      const Matrix p{scores, seen, 1}, grad_p{grad_scores, seen, 1};
      const Product score{count, seen, width, ChainOf(width)};
      score.Run(At(a.q, q, first), block_k.Transposed(), scores, seen);
      score.Run(block_grad, block_v.Transposed(), grad_scores, seen);
      for (int64_t i = 0; i < count; ++i) {
        rows::SoftmaxGradient(scores + i * seen, grad_scores + i * seen,
                              block.SeenBy(i, a.is_causal), seen,
                              log_sum[(first + i) * a.log_sum.row_stride], mean[i]);
      }
      const Product to_keys{seen, width, count, ChainOf(count), true};
      to_keys.Run(p.Transposed(), block_grad, keys.grad_v + key * a.grad_v.row_stride,
                  a.grad_v.row_stride);
      const Product to_queries{count, width, seen, ChainOf(block.size), true};
      to_queries.Run(grad_p, block_k, grad_q + first * a.grad_q.row_stride, a.grad_q.row_stride);
      to_keys.Run(grad_p.Transposed(), {scaled_q, width, 1},
                  keys.grad_k + key * a.grad_k.row_stride, a.grad_k.row_stride);
    });
  }
}

}  // namespace

bool CanRunAttention(const FlashAttention& a) {
  return BestMatmulIsa() == MatmulIsa::kAvx512 && a.batches > 0 && a.heads > 0 && a.keys > 0 &&
         a.width > 0 && a.width <= kMaxMatmulBlock && a.width % rows::kLanes == 0 &&
         a.keys % rows::kLanes == 0 && a.queries > 0 && a.query_block > 0 &&
         a.query_block <= kMaxQueries && kMaxKeys % a.query_block == 0 &&
         a.query_block % rows::kLanes == 0 && (!a.is_causal || a.queries == a.keys) &&
         a.kv_heads > 0 && a.heads % a.kv_heads == 0;
}

void RunAttention(const FlashAttention& a, int64_t batch, int64_t head) {
  STRATA_CHECK(CanRunAttention(a));
  const int64_t kv_head = head / (a.heads / a.kv_heads);
  const float *q = a.q.Head(batch, head), *k = a.k.Head(batch, kv_head),
              *v = a.v.Head(batch, kv_head);
  float *const out = a.out.Head(batch, head), *const log_sum = a.log_sum.Head(batch, head);
  float* const scores = Scratch(static_cast<size_t>(kScores + kMaxQueries * a.width));
  float* const sums = scores + kScores;  // of values, [query_block, width]
  float max[kMaxQueries], sum[kMaxQueries];
  for (int64_t first = 0; first < a.queries; first += a.query_block) {
    const int64_t count = std::min(a.query_block, a.queries - first);
    std::fill_n(max, count, -std::numeric_limits<float>::infinity());
    std::fill_n(sum, count, 0.0F);
    ForEachKeyBlock(a, first, count, [&](const Block& block) {
      const Product score{count, block.seen, a.width, ChainOf(a.width)};
      score.Run(At(a.q, q, first), At(a.k, k, block.key).Transposed(), scores, block.seen);
      for (int64_t i = 0; i < count; ++i) {
        float* const row = scores + i * block.seen;
        const int64_t seen = block.SeenBy(i, a.is_causal);
        const float next = std::max(max[i], rows::ScaleAndMax(row, seen, a.scale));
        const float shrink = std::exp(max[i] - next);
        // One rounding: so LibTorch's compiler made it of a product and a sum.
        sum[i] = std::fma(shrink, sum[i], rows::ExpAndSum(row, seen, block.seen, next));
        max[i] = next;
        if (block.key > 0) rows::Multiply(sums + i * a.width, a.width, shrink, sums + i * a.width);
      }
      const Product value{count, a.width, block.seen, ChainOf(block.size), block.key > 0};
      value.Run({scores, block.seen, 1}, At(a.v, v, block.key), sums, a.width);
    });
    for (int64_t i = 0; i < count; ++i) {
      const int64_t query = first + i;
      rows::Multiply(sums + i * a.width, a.width, 1 / sum[i], out + query * a.out.row_stride);
      log_sum[query * a.log_sum.row_stride] = max[i] + std::log(sum[i]);
    }
  }
}

void RunAttentionBackward(const FlashAttention& a, int64_t batch, int64_t kv_head) {
  STRATA_CHECK(CanRunAttention(a));
  const int64_t width = a.width, group = a.heads / a.kv_heads;
  const float *const k = a.k.Head(batch, kv_head), *const v = a.v.Head(batch, kv_head);
  float *const grad_k = a.grad_k.Head(batch, kv_head), *const grad_v =
                                                           a.grad_v.Head(batch, kv_head);
  // The library multiplies an operand by the scale, not the product.
  float* const scratch = Scratch(static_cast<size_t>(2 * kScores + (a.keys + kMaxQueries) * width));
  float* const scaled_k = scratch + 2 * kScores;
  for (int64_t key = 0; key < a.keys; ++key) {
    rows::Multiply(k + key * a.k.row_stride, width, a.scale, scaled_k + key * width);
    std::fill_n(grad_k + key * a.grad_k.row_stride, width, 0.0F);
    std::fill_n(grad_v + key * a.grad_v.row_stride, width, 0.0F);
  }
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head)
    AddGradients(a, batch, head, {scaled_k, v, grad_k, grad_v}, scratch, scaled_k + a.keys * width);
}

}  // namespace strata
