#pragma once
#include <cstdint>

#include "runtime/matmul/matmul.h"

namespace strata {

/// Rows of floats of each head of each batch; the floats of a row lie side by side. Strides count
/// elements.
struct HeadRows {
  float* data = nullptr;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0;

  float* Head(int64_t batch, int64_t head) const {
    return data + batch * batch_stride + head * head_stride;
  }
};

/// Scaled dot product attention of floats as LibTorch's flash kernel for CPUs computes it
/// (ATen/native/cpu/FlashAttentionKernel.cpp): in blocks of queries and of kMaxKeys keys, with that
/// kernel's exponential functions and orders of summation, so that finite results may have its
/// bits. What a causal mask hides is left out there: it would add zeros.
struct FlashAttention {
  int64_t batches = 0, heads = 0, kv_heads = 0;  ///< heads: a multiple of kv_heads
  int64_t queries = 0, keys = 0, width = 0;      ///< rows of a head, floats of a row
  bool is_causal = false;
  float scale = 1.0F;
  int64_t query_block = 0;  ///< queries that are worked on at a time, 1 to kMaxQueries
  HeadRows q, k, v, out;
  HeadRows log_sum;  ///< [batch, head, query, 1]: logarithms of the sums of exponentials
  HeadRows grad_out, grad_q, grad_k, grad_v;  ///< of the backward pass
};

inline constexpr int64_t kMaxQueries = 256, kMaxKeys = 512;

/// Whether RunAttention can compute it on this processor: with AVX-512, rows of whole vectors, and
/// as many queries as keys where it is causal.
bool CanRunAttention(const FlashAttention& attention);

/// Writes `out` and `log_sum` of one head. REQUIRES: CanRunAttention.
void RunAttention(const FlashAttention& attention, int64_t batch, int64_t head);

/// Writes `grad_k` and `grad_v` of a head of keys, and `grad_q` of its heads, from `grad_out`,
/// `out`, `log_sum`. REQUIRES: CanRunAttention.
void RunAttentionBackward(const FlashAttention& attention, int64_t batch, int64_t kv_head);

}  // namespace strata
