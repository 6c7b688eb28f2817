#include "runtime/trace/meta_kernels.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <tuple>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

namespace strata {
namespace {

using at::Scalar;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

Tensor IndexSelect(const Tensor& self, int64_t dim, const Tensor& index) {
  std::vector<int64_t> sizes = self.sizes().vec();
  if (self.dim() > 0) sizes[static_cast<size_t>(dim < 0 ? dim + self.dim() : dim)] = index.numel();
  return at::empty(sizes, self.options());
}

Tensor EmbeddingDenseBackward(const Tensor& grad, const Tensor& /*indices*/,
                              c10::SymInt num_weights, c10::SymInt /*padding_idx*/,
                              bool /*scale_grad_by_freq*/) {
  return at::empty({num_weights.expect_int(), grad.size(-1)}, grad.options());
}

/// Results of elementwise operators lie as their operands do, where these agree.
void LayOutAs(Tensor& out, std::initializer_list<const Tensor*> operands) {
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false).add_output(out);
  bool has_shape = false;
  for (const Tensor* operand : operands) {
    if (operand->dim() == 0) continue;  // a number, which may be the CPU's
    config.add_const_input(*operand);
    has_shape = true;
  }
  if (has_shape) {
    (void)config.build();
  } else {
    out.resize_({});
  }
}

Tensor& WhereOut(const Tensor& condition, const Tensor& self, const Tensor& other, Tensor& out) {
  LayOutAs(out, {&condition, &self, &other});
  return out;
}

Tensor Where(const Tensor& condition, const Tensor& self, const Tensor& other) {
  Tensor out = at::empty({0}, self.options().dtype(at::result_type(self, other)));
  return WhereOut(condition, self, other, out);
}

Tensor FloorDivide(const Tensor& self, const Tensor& other) {
  Tensor out = at::empty({0}, self.options().dtype(at::result_type(self, other)));
  LayOutAs(out, {&self, &other});
  return out;
}

Tensor Histc(const Tensor& self, int64_t bins, const Scalar& /*min*/, const Scalar& /*max*/) {
  return at::empty({bins}, self.options());
}

Tensor Bincount(const Tensor& self, const OptionalTensor& weights, c10::SymInt minlength) {
  TORCH_CHECK(minlength.expect_int() > 0, "bincount needs a minlength: its size depends on data");
  return at::empty({minlength.expect_int()},
                   weights ? weights->options() : self.options().dtype(at::kLong));
}

Tensor& PolarOut(const Tensor& abs, const Tensor& /*angle*/, Tensor& out) {
  out.resize_(abs.sizes());
  return out;
}

/// A buffer `[batch, seq, heads, head_dim]`, seen as `[batch, heads, seq, head_dim]`.
Tensor HeadsInside(const Tensor& like) {
  return at::empty({like.size(0), like.size(2), like.size(1), like.size(3)}, like.options())
      .transpose(1, 2);
}

std::tuple<Tensor, Tensor> FlashAttention(const Tensor& query, const Tensor& /*key*/,
                                          const Tensor& /*value*/, double /*dropout_p*/,
                                          bool /*is_causal*/, const OptionalTensor& /*attn_mask*/,
                                          std::optional<double> /*scale*/) {
  const auto statistics = query.options().dtype(at::toOpMathType(query.scalar_type()));
  Tensor logsumexp =
      at::empty({query.size(0), query.size(2), query.size(1)}, statistics).transpose(1, 2);
  return {at::empty_like(query), std::move(logsumexp)};
}

std::tuple<Tensor, Tensor, Tensor> FlashAttentionBackward(
    const Tensor& /*grad_out*/, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& /*out*/, const Tensor& /*logsumexp*/, double /*dropout_p*/, bool /*is_causal*/,
    const OptionalTensor& /*attn_mask*/, std::optional<double> /*scale*/) {
  return {HeadsInside(query), HeadsInside(key), HeadsInside(value)};
}

Tensor Statistics(const Tensor& query, at::IntArrayRef sizes) {
  return at::empty(sizes, query.options().dtype(at::toOpMathType(query.scalar_type())));
}

Tensor Seed(const Tensor& query, at::IntArrayRef sizes, at::ScalarType dtype) {
  return at::empty(sizes, query.options().dtype(dtype));
}

using NineResults =
    std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;

NineResults CudaFlashAttention(const Tensor& query, const Tensor& key, const Tensor& /*value*/,
                               double /*dropout_p*/, bool /*is_causal*/, bool /*debug_mask*/,
                               std::optional<double> /*scale*/) {
  return {at::empty_like(query),
          Statistics(query, {query.size(0), query.size(1), query.size(2)}),
          Tensor(),
          Tensor(),
          query.size(2),
          key.size(2),
          Seed(query, {2}, at::kUInt64),
          Seed(query, {}, at::kUInt64),
          at::empty({0}, query.options())};
}

std::tuple<Tensor, Tensor, Tensor> CudaFlashAttentionBackward(
    const Tensor& /*grad_out*/, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& /*out*/, const Tensor& /*logsumexp*/, const Tensor& /*cum_seq_q*/,
    const Tensor& /*cum_seq_k*/, c10::SymInt /*max_q*/, c10::SymInt /*max_k*/, double /*dropout_p*/,
    bool /*is_causal*/, const Tensor& /*philox_seed*/, const Tensor& /*philox_offset*/,
    std::optional<double> /*scale*/) {
  return {at::empty_like(query), at::empty_like(key), at::empty_like(value)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> EfficientAttention(
    const Tensor& query, const Tensor& /*key*/, const Tensor& value,
    const OptionalTensor& /*attn_bias*/, bool /*compute_log_sumexp*/, double /*dropout_p*/,
    bool /*is_causal*/, std::optional<double> /*scale*/) {
  const Tensor out =
      at::empty({query.size(0), query.size(2), query.size(1), value.size(3)}, query.options());
  return {out.transpose(1, 2),
          Statistics(query, {query.size(0), query.size(1), (query.size(2) + 31) / 32 * 32}),
          Seed(query, {}, at::kLong), Seed(query, {}, at::kLong)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> EfficientAttentionBackward(
    const Tensor& /*grad_out*/, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& /*attn_bias*/, const Tensor& /*out*/, const Tensor& /*logsumexp*/,
    const Tensor& /*philox_seed*/, const Tensor& /*philox_offset*/, double /*dropout_p*/,
    std::array<bool, 4> /*grad_input_mask*/, bool /*is_causal*/, std::optional<double> /*scale*/) {
  return {HeadsInside(query), HeadsInside(key), HeadsInside(value), Tensor()};
}

NineResults CudnnAttention(const Tensor& query, const Tensor& key, const Tensor& /*value*/,
                           const OptionalTensor& /*attn_bias*/, bool /*compute_log_sumexp*/,
                           double /*dropout_p*/, bool /*is_causal*/, bool /*debug_mask*/,
                           std::optional<double> /*scale*/) {
  return {at::empty_like(query),
          Statistics(query, {query.size(0), query.size(1), query.size(2), 1}),
          Tensor(),
          Tensor(),
          query.size(2),
          key.size(2),
          Seed(query, {}, at::kLong),
          Seed(query, {}, at::kLong),
          Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> CudnnAttentionBackward(
    const Tensor& /*grad_out*/, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& /*out*/, const Tensor& /*logsumexp*/, const Tensor& /*philox_seed*/,
    const Tensor& /*philox_offset*/, const Tensor& /*attn_bias*/, const Tensor& /*cum_seq_q*/,
    const Tensor& /*cum_seq_k*/, c10::SymInt /*max_q*/, c10::SymInt /*max_k*/, double /*dropout_p*/,
    bool /*is_causal*/, std::optional<double> /*scale*/) {
  return {at::empty_like(query), at::empty_like(key), at::empty_like(value)};
}

std::tuple<Tensor, Tensor> FusedRmsNorm(const Tensor& input, at::IntArrayRef normalized_shape,
                                        const OptionalTensor& /*weight*/,
                                        std::optional<double> /*eps*/) {
  std::vector<int64_t> rows = input.sizes().vec();
  std::fill(rows.end() - std::ssize(normalized_shape), rows.end(), 1);
  const at::ScalarType type = at::toOpMathType(input.scalar_type());
  return {at::empty(input.sizes(), input.options()), at::empty(rows, input.options().dtype(type))};
}

std::tuple<Tensor, Tensor> FusedRmsNormBackward(const Tensor& /*grad_out*/, const Tensor& input,
                                                at::IntArrayRef /*normalized_shape*/,
                                                const Tensor& /*rstd*/,
                                                const OptionalTensor& weight,
                                                std::array<bool, 2> output_mask) {
  return {output_mask[0] ? at::empty(input.sizes(), input.options()) : Tensor(),
          output_mask[1] && weight ? at::empty(weight->sizes(), weight->options()) : Tensor()};
}

/// Groups are rows of the 2-d operands, ended by `offs`.
Tensor GroupedMm(const Tensor& self, const Tensor& mat2, const OptionalTensor& offs,
                 const OptionalTensor& /*bias*/, std::optional<at::ScalarType> out_dtype) {
  const int64_t columns = mat2.size(-1);
  std::vector<int64_t> sizes = {self.size(-2), columns};
  if (self.dim() == 2 && mat2.dim() == 2) sizes.insert(sizes.begin(), offs->size(0));
  if (self.dim() == 3 && mat2.dim() == 3) sizes.insert(sizes.begin(), self.size(0));
  return at::empty(sizes, self.options().dtype(out_dtype.value_or(self.scalar_type())));
}

void FusedAdamW(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                at::TensorList, double, double, double, double, double, bool, bool,
                const OptionalTensor&, const OptionalTensor&) {}

void FusedAdamWTensorLr(at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                        at::TensorList, at::TensorList, const Tensor&, double, double, double,
                        double, bool, bool, const OptionalTensor&, const OptionalTensor&) {}

}  // namespace

void RegisterMetaKernels() {
  static const torch::Library library = [] {
    torch::Library aten(torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__, __LINE__);
    aten.impl("index_select", IndexSelect);
    aten.impl("embedding_dense_backward", EmbeddingDenseBackward);
    aten.impl("where.self", Where);
    aten.impl("where.self_out", WhereOut);
    aten.impl("floor_divide", FloorDivide);
    aten.impl("histc", Histc);
    aten.impl("bincount", Bincount);
    aten.impl("polar.out", PolarOut);
    aten.impl("_scaled_dot_product_flash_attention_for_cpu", FlashAttention);
    aten.impl("_scaled_dot_product_flash_attention_for_cpu_backward", FlashAttentionBackward);
    aten.impl("_grouped_mm", GroupedMm);
    aten.impl("_fused_adamw_", FusedAdamW);
    // Of GPUs.
    aten.impl("_scaled_dot_product_flash_attention", CudaFlashAttention);
    aten.impl("_scaled_dot_product_flash_attention_backward", CudaFlashAttentionBackward);
    aten.impl("_scaled_dot_product_efficient_attention", EfficientAttention);
    aten.impl("_scaled_dot_product_efficient_attention_backward", EfficientAttentionBackward);
    aten.impl("_scaled_dot_product_cudnn_attention", CudnnAttention);
    aten.impl("_scaled_dot_product_cudnn_attention_backward", CudnnAttentionBackward);
    aten.impl("_fused_rms_norm", FusedRmsNorm);
    aten.impl("_fused_rms_norm_backward", FusedRmsNormBackward);
    aten.impl("_fused_adamw_.tensor_lr", FusedAdamWTensorLr);
    return aten;
  }();
}

}  // namespace strata
