#pragma once
#include <optional>

#include <ATen/core/Tensor.h>

#include "runtime/attention/attention.h"

namespace strata {

/// Operands of aten::_scaled_dot_product_flash_attention_for_cpu and of its backward operator,
/// [batch, head, row, width]; log_sum is [batch, head, row]. Layouts alone: memory is not needed.
struct AttentionTensors {
  at::Tensor q, k, v, out, log_sum;
  at::Tensor grad_out, grad_q, grad_k, grad_v;  ///< undefined: the forward operator
  bool is_causal = false;
  std::optional<double> scale;  ///< none: 1 / sqrt(width)

  bool is_backward() const { return grad_out.defined(); }
};

/// The operator as RunAttention or RunAttentionBackward computes it, if that gives ATen's bits: on
/// this machine and with the threads that ATen has now. Both are run on drawn operands of these
/// sizes and compared, once in a process. Pointers are null.
std::optional<FlashAttention> AttentionWithAtensBits(const AttentionTensors& tensors);

/// Heads are shared between ATen's threads.
void RunAttentionInParallel(const FlashAttention& attention, bool is_backward);

}  // namespace strata
