#include "runtime/torch/own_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <tuple>

#include <ATen/Parallel.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/InferenceMode.h>

#include "runtime/torch/parallel.h"

namespace strata {
namespace {

using at::Tensor;

bool IsHeadRows(const Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat && tensor.device().is_cpu() && tensor.dim() == 4 &&
         tensor.stride(3) == 1;
}

HeadRows RowsOf(const Tensor& tensor) {
  HeadRows rows{.data = nullptr,
                .batch_stride = tensor.stride(0),
                .head_stride = tensor.stride(1),
                .row_stride = tensor.stride(2)};
  if (tensor.has_storage() && tensor.storage().data() != nullptr)
    rows.data = tensor.mutable_data_ptr<float>();
  return rows;
}

/// Queries that ATen's kernel works on at a time.
int64_t QueryBlockOf(int64_t queries) {
  return queries >= 768 ? 256 : queries >= 192 ? 64 : 32;
}

FlashAttention AttentionOf(const AttentionTensors& t) {
  const int64_t width = t.q.size(3);
  FlashAttention attention{
      .batches = t.q.size(0),
      .heads = t.q.size(1),
      .kv_heads = t.k.size(1),
      .queries = t.q.size(2),
      .keys = t.k.size(2),
      .width = width,
      .is_causal = t.is_causal,
      .scale = static_cast<float>(t.scale ? *t.scale : 1.0 / std::sqrt(static_cast<double>(width))),
      .query_block = QueryBlockOf(t.q.size(2)),
      .q = RowsOf(t.q),
      .k = RowsOf(t.k),
      .v = RowsOf(t.v),
      .out = RowsOf(t.out),
      .log_sum = RowsOf(t.log_sum),
      .grad_out = {},
      .grad_q = {},
      .grad_k = {},
      .grad_v = {}};
  if (t.is_backward()) {
    attention.grad_out = RowsOf(t.grad_out);
    attention.grad_q = RowsOf(t.grad_q);
    attention.grad_k = RowsOf(t.grad_k);
    attention.grad_v = RowsOf(t.grad_v);
  }
  return attention;
}

/// [1, heads, rows, width], rows as far apart as those of `like`; numbers between -3 and 3, with
/// ATen's generator left alone.
Tensor Drawn(const Tensor& like, int64_t heads, std::minstd_rand& random) {
  const int64_t rows = like.size(2), width = like.size(3);
  const int64_t neighbours = std::max(heads, like.stride(2) / width);
  const Tensor memory = at::empty({1, rows, neighbours, width}, at::kFloat);
  auto* const numbers = memory.mutable_data_ptr<float>();
  for (int64_t i = 0; i < memory.numel(); ++i)
    numbers[i] = 3 * (static_cast<float>(random()) / 1073741824.0F - 1.0F);
  return memory.narrow(2, 0, heads).transpose(1, 2);
}

bool IsEqual(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

/// Whether the heads of one key head have ATen's bits for drawn operands.
bool IsEqualFor(const AttentionTensors& like, std::minstd_rand& random) {
  const int64_t group = like.q.size(1) / like.k.size(1);
  AttentionTensors t{.q = Drawn(like.q, group, random),
                     .k = Drawn(like.k, 1, random),
                     .v = Drawn(like.v, 1, random),
                     .out = {},
                     .log_sum = {},
                     .grad_out = {},
                     .grad_q = {},
                     .grad_k = {},
                     .grad_v = {},
                     .is_causal = like.is_causal,
                     .scale = like.scale};
  const auto [out, log_sum] = at::_scaled_dot_product_flash_attention_for_cpu(
      t.q, t.k, t.v, 0.0, t.is_causal, std::nullopt, t.scale);
  if (!like.is_backward()) {
    t.out = at::empty_like(out);
    t.log_sum = at::empty_like(log_sum);
    RunAttentionInParallel(AttentionOf(t), /*is_backward=*/false);
    return IsEqual(t.out, out) && IsEqual(t.log_sum, log_sum);
  }
  t.out = out;
  t.log_sum = log_sum;
  t.grad_out = Drawn(like.q, group, random);
  const auto [grad_q, grad_k, grad_v] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      t.grad_out, t.q, t.k, t.v, out, log_sum, 0.0, t.is_causal, std::nullopt, t.scale);
  t.grad_q = at::empty_like(grad_q);
  t.grad_k = at::empty_like(grad_k);
  t.grad_v = at::empty_like(grad_v);
  RunAttentionInParallel(AttentionOf(t), /*is_backward=*/true);
  return IsEqual(t.grad_q, grad_q) && IsEqual(t.grad_k, grad_k) && IsEqual(t.grad_v, grad_v);
}

/// Few numbers prove little.
bool HasAtensBits(const AttentionTensors& like) {
  const c10::InferenceMode no_autograd;
  constexpr int64_t kNumbers = 4096;
  const int64_t numbers = like.q.size(1) / like.k.size(1) * like.q.size(2) * like.q.size(3);
  std::minstd_rand random(1);
  for (int64_t drawn = 0; drawn < kNumbers; drawn += std::max<int64_t>(1, numbers)) {
    if (!IsEqualFor(like, random)) return false;
  }
  return true;
}

}  // namespace

std::optional<FlashAttention> AttentionWithAtensBits(const AttentionTensors& t) {
  for (const Tensor& tensor : {t.q, t.k, t.v, t.out, t.grad_out, t.grad_q, t.grad_k, t.grad_v}) {
    if (tensor.defined() && !IsHeadRows(tensor)) return std::nullopt;
  }
  if (t.log_sum.dim() != 3 || t.k.sizes() != t.v.sizes() || t.q.size(3) != t.k.size(3) ||
      t.k.size(1) == 0) {
    return std::nullopt;
  }
  const FlashAttention attention = AttentionOf(t);
  if (!CanRunAttention(attention)) return std::nullopt;
  using Key = std::tuple<bool, bool, std::array<int64_t, 4>, float, int>;
  static std::mutex mutex;
  static std::map<Key, bool> known;
  const std::scoped_lock lock(mutex);
  const Key key{
      t.is_backward(),
      t.is_causal,
      {attention.heads / attention.kv_heads, attention.queries, attention.keys, attention.width},
      attention.scale,
      at::get_num_threads()};
  const auto [entry, is_new] = known.try_emplace(key, false);
  if (is_new) entry->second = HasAtensBits(t);
  return entry->second ? std::optional(attention) : std::nullopt;
}

void RunAttentionInParallel(const FlashAttention& attention, bool is_backward) {
  const int64_t heads = is_backward ? attention.kv_heads : attention.heads;
  ParallelFor(attention.batches * heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      (is_backward ? RunAttentionBackward : RunAttention)(attention, i / heads, i % heads);
  });
}

}  // namespace strata
