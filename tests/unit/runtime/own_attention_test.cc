#include "runtime/torch/own_attention.h"

#include <optional>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <doctest/doctest.h>

namespace strata {
namespace {

using at::Tensor;

struct Case {
  int64_t batches, heads, kv_heads, queries, keys, width;
  bool is_causal = true;
  std::optional<double> scale = std::nullopt;
};

// Blocks of 32, 64 and 256 queries, whole and not; one and several blocks of keys; scales that are
// powers of two and others; fewer key heads than heads.
constexpr Case kCases[] = {
    {2, 3, 3, 16, 16, 16},         {1, 2, 2, 96, 96, 48},
    {2, 4, 2, 48, 48, 16},         {2, 4, 4, 256, 256, 16},
    {1, 2, 2, 272, 272, 64},       {1, 2, 1, 320, 320, 32},
    {1, 1, 1, 528, 528, 128},      {1, 2, 2, 832, 832, 32},
    {1, 1, 1, 1104, 1104, 16},     {1, 2, 2, 256, 256, 64, false},
    {1, 2, 2, 64, 160, 32, false}, {1, 2, 2, 128, 128, 192, true, 0.11},
};

/// A view of [batch, row, head, width].
Tensor Rows(int64_t batches, int64_t heads, int64_t rows, int64_t width) {
  return at::randn({batches, rows, heads, width}).transpose(1, 2);
}

AttentionTensors Drawn(const Case& c) {
  AttentionTensors t;
  t.q = Rows(c.batches, c.heads, c.queries, c.width);
  t.k = Rows(c.batches, c.kv_heads, c.keys, c.width);
  t.v = Rows(c.batches, c.kv_heads, c.keys, c.width);
  t.is_causal = c.is_causal;
  t.scale = c.scale;
  return t;
}

void CheckEqual(const Tensor& actual, const Tensor& expected) {
  CHECK(at::equal(actual, expected));
}

TEST_CASE("where attention is said to have ATen's bits, other operands have them, too") {
  at::manual_seed(5);
  int num_compared = 0;
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    for (const Case& c : kCases) {
      INFO(c.heads, " heads, ", c.kv_heads, " of keys, ", c.queries, " x ", c.keys, " x ", c.width);
      AttentionTensors t = Drawn(c);
      const auto [out, log_sum] = at::_scaled_dot_product_flash_attention_for_cpu(
          t.q, t.k, t.v, 0.0, t.is_causal, std::nullopt, t.scale);
      t.out = at::empty_like(out);
      t.log_sum = at::empty_like(log_sum);
      if (const std::optional<FlashAttention> attention = AttentionWithAtensBits(t)) {
        RunAttentionInParallel(*attention, /*is_backward=*/false);
        CheckEqual(t.out, out);
        CheckEqual(t.log_sum, log_sum);
        ++num_compared;
      }
      t.out = out;
      t.log_sum = log_sum;
      t.grad_out = Rows(c.batches, c.heads, c.queries, c.width);
      const auto [grad_q, grad_k, grad_v] =
          at::_scaled_dot_product_flash_attention_for_cpu_backward(
              t.grad_out, t.q, t.k, t.v, out, log_sum, 0.0, t.is_causal, std::nullopt, t.scale);
      t.grad_q = at::empty_like(grad_q);
      t.grad_k = at::empty_like(grad_k);
      t.grad_v = at::empty_like(grad_v);
      if (const std::optional<FlashAttention> attention = AttentionWithAtensBits(t)) {
        RunAttentionInParallel(*attention, /*is_backward=*/true);
        CheckEqual(t.grad_q, grad_q);
        CheckEqual(t.grad_k, grad_k);
        CheckEqual(t.grad_v, grad_v);
        ++num_compared;
      }
    }
  }
  at::set_num_threads(1);
  // What it computes is compared with numbers of its own in tests/unit/attention.
  if (num_compared == 0)
    MESSAGE("skipped: attention has ATen's bits for no layout on this processor");
}

TEST_CASE("attention of other layouts and types is left to ATen") {
  const auto refused = [](const auto& change) {
    AttentionTensors t = Drawn({1, 2, 2, 32, 32, 16});
    t.out = at::empty_like(t.q);
    t.log_sum = at::empty({1, 2, 32});
    change(t);
    return !AttentionWithAtensBits(t);
  };
  CHECK(refused([](AttentionTensors& t) { t.q = t.q.to(at::kDouble); }));
  CHECK(refused([](AttentionTensors& t) { t.k = t.k.to(at::kBFloat16); }));
  CHECK(refused([](AttentionTensors& t) { t.q = t.q.narrow(3, 0, 8); }));
  CHECK(
      refused([](AttentionTensors& t) { t.v = t.v.transpose(2, 3).contiguous().transpose(2, 3); }));
  CHECK(refused([](AttentionTensors& t) { t.q = t.q.narrow(2, 0, 16); }));
}

}  // namespace
}  // namespace strata
