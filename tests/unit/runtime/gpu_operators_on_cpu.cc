#include "tests/unit/runtime/gpu_operators_on_cpu.h"

#include <array>
#include <cstdint>
#include <optional>
#include <tuple>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/library.h>

#include <doctest/doctest.h>

namespace strata::testing {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using Nine =
    std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

/// Kernels of GPUs load 16 bytes at a time.
void RequireAligned(const Tensor& q, const Tensor& k, const Tensor& v) {
  for (const Tensor& x : {q, k, v}) {
    const int64_t unit = 16 / static_cast<int64_t>(x.element_size());
    REQUIRE_EQ(x.storage_offset() % unit, 0);
    for (const int64_t dim : {0, 1, 2})
      REQUIRE_EQ(x.stride(dim) % unit, 0);
    REQUIRE_EQ(x.stride(3), 1);
  }
}

Nine Forward(const Tensor& q, const Tensor& k, const Tensor& v, bool is_causal, double scale) {
  RequireAligned(q, k, v);
  const auto [out, logsumexp] =
      at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, is_causal, std::nullopt, scale);
  return {out,       logsumexp,      Tensor(),      Tensor(), q.size(2),
          k.size(2), at::zeros({2}), at::zeros({}), Tensor()};
}

Nine Flash(const Tensor& q, const Tensor& k, const Tensor& v, double /*dropout*/, bool is_causal,
           bool /*debug*/, std::optional<double> scale) {
  return Forward(q, k, v, is_causal, *scale);
}

Three FlashBackward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                    const Tensor& out, const Tensor& logsumexp, const Tensor&, const Tensor&,
                    c10::SymInt max_q, c10::SymInt max_k, double, bool is_causal, const Tensor&,
                    const Tensor&, std::optional<double> scale) {
  REQUIRE_EQ(max_q.expect_int(), q.size(2));
  REQUIRE_EQ(max_k.expect_int(), k.size(2));
  return at::_scaled_dot_product_flash_attention_for_cpu_backward(
      grad, q, k, v, out, logsumexp, 0.0, is_causal, std::nullopt, scale);
}

Nine Cudnn(const Tensor& q, const Tensor& k, const Tensor& v, const OptionalTensor& bias, bool,
           double, bool is_causal, bool, std::optional<double> scale) {
  REQUIRE(!bias);
  REQUIRE_EQ(q.size(1), k.size(1));
  return Forward(q, k, v, is_causal, *scale);
}

Three CudnnBackward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                    const Tensor& out, const Tensor& logsumexp, const Tensor&, const Tensor&,
                    const Tensor&, const Tensor&, const Tensor&, c10::SymInt, c10::SymInt, double,
                    bool is_causal, std::optional<double> scale) {
  return at::_scaled_dot_product_flash_attention_for_cpu_backward(
      grad, q, k, v, out, logsumexp, 0.0, is_causal, std::nullopt, scale);
}

/// The mask as the kernel reads it: for every head, rows at multiples of 16 elements.
OptionalTensor CheckedMask(const OptionalTensor& mask, const Tensor& q) {
  if (!mask || !mask->defined()) return std::nullopt;
  REQUIRE_EQ(mask->sizes(), at::IntArrayRef({q.size(0), q.size(1), q.size(2), q.size(2)}));
  REQUIRE_EQ(mask->stride(2) % 16, 0);
  const bool is_typed = mask->scalar_type() == q.scalar_type();
  REQUIRE(is_typed);
  return mask->contiguous();
}

std::tuple<Tensor, Tensor, Tensor, Tensor> Efficient(const Tensor& q, const Tensor& k,
                                                     const Tensor& v, const OptionalTensor& mask,
                                                     bool, double, bool is_causal,
                                                     std::optional<double> scale) {
  REQUIRE_EQ(q.size(1), k.size(1));
  REQUIRE_EQ(q.size(3) % 8, 0);
  RequireAligned(q, k, v);
  const auto [out, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
      q, k, v, 0.0, is_causal, CheckedMask(mask, q), scale);
  return {out, logsumexp, at::zeros({}, at::kLong), at::zeros({}, at::kLong)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> EfficientBackward(
    const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
    const Tensor& out, const Tensor& logsumexp, const Tensor&, const Tensor&, double,
    std::array<bool, 4> wanted, bool is_causal, std::optional<double> scale) {
  REQUIRE(!wanted[3]);
  const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      grad, q, k, v, out, logsumexp, 0.0, is_causal,
      CheckedMask(mask.defined() ? OptionalTensor(mask) : std::nullopt, q), scale);
  return {dq, dk, dv, Tensor()};
}

std::tuple<Tensor, Tensor> Norm(const Tensor& x, at::IntArrayRef, const OptionalTensor& weight,
                                std::optional<double> eps) {
  const Tensor wide = x.to(at::kFloat);
  const Tensor rstd = (wide.square().mean(-1, /*keepdim=*/true) + *eps).rsqrt();
  return {(wide * rstd * weight->to(at::kFloat)).to(x.scalar_type()), rstd};
}

std::tuple<Tensor, Tensor> NormBackward(const Tensor& grad, const Tensor& x, at::IntArrayRef,
                                        const Tensor& rstd, const OptionalTensor& weight,
                                        std::array<bool, 2>) {
  const Tensor g = grad.to(at::kFloat), wide = x.to(at::kFloat), normal = wide * rstd;
  const Tensor scaled = g * weight->to(at::kFloat);
  const Tensor dx = rstd * (scaled - normal * (scaled * normal).mean(-1, /*keepdim=*/true));
  const Tensor dw = (g * normal).flatten(0, -2).sum(0);
  return {dx.to(x.scalar_type()), dw.to(weight->scalar_type())};
}

}  // namespace

void RegisterGpuOperatorsOnCpu() {
  static const torch::Library library = [] {
    torch::Library aten(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
    aten.impl("_scaled_dot_product_flash_attention", Flash);
    aten.impl("_scaled_dot_product_flash_attention_backward", FlashBackward);
    aten.impl("_scaled_dot_product_cudnn_attention", Cudnn);
    aten.impl("_scaled_dot_product_cudnn_attention_backward", CudnnBackward);
    aten.impl("_scaled_dot_product_efficient_attention", Efficient);
    aten.impl("_scaled_dot_product_efficient_attention_backward", EfficientBackward);
    aten.impl("_fused_rms_norm", Norm);
    aten.impl("_fused_rms_norm_backward", NormBackward);
    return aten;
  }();
}

}  // namespace strata::testing
