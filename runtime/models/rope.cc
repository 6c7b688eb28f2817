#include "runtime/models/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>

#include "runtime/models/wide_type.h"
#include "runtime/trace/scope.h"

namespace strata {
namespace {

using at::Tensor;

/// Llama 3.1: long wavelengths are stretched by `scaling_factor`, short ones kept, and those in
/// between interpolated. Source: torchtitan models/common/rope.py.
Tensor ScaleAsLlama(const Tensor& inv_freq, const RopeConfig& config) {
  const auto context = static_cast<double>(config.original_max_position_embeddings);
  const double longest_kept = context / config.high_freq_factor;
  const double shortest_stretched = context / config.low_freq_factor;

  const Tensor wavelength = 2.0 * std::numbers::pi / inv_freq;
  const Tensor is_long = wavelength > shortest_stretched;
  const Tensor is_short = wavelength < longest_kept;
  const Tensor stretched = at::where(is_long, inv_freq / config.scaling_factor, inv_freq);

  const Tensor smooth = (context / wavelength - config.low_freq_factor) /
                        (config.high_freq_factor - config.low_freq_factor);
  const Tensor between = (1.0 - smooth) * stretched / config.scaling_factor + smooth * stretched;
  return at::where(~is_short * ~is_long, between, stretched);
}

/// YaRN (arXiv 2309.00071): pairs that turn less than beta_slow times within the original context
/// are stretched by rope_factor, those that turn more than beta_fast times kept, and those in
/// between interpolated. Source: torchtitan models/common/rope.py.
Tensor ScaleAsYarn(const Tensor& inv_freq, const RopeConfig& config, int64_t head_dim) {
  const auto dim = static_cast<double>(head_dim);
  const auto pair_that_turns = [&](double times) {
    const auto context = static_cast<double>(config.original_seq_len);
    return dim * std::log(context / (times * 2.0 * std::numbers::pi)) /
           (2.0 * std::log(config.theta));
  };
  const double low = std::max(std::floor(pair_that_turns(config.beta_fast)), 0.0);
  double high = std::min(std::ceil(pair_that_turns(config.beta_slow)), dim - 1.0);
  if (low == high) high += 0.001;
  const Tensor pair = at::arange(head_dim / 2, at::kFloat);
  const Tensor ramp = at::clamp((pair - low) / (high - low), 0.0, 1.0);
  return inv_freq / config.rope_factor * ramp + inv_freq * (1.0 - ramp);
}

/// (x[..., :half], x[..., half:]) -> (-x2, x1).
Tensor RotateHalf(const Tensor& x) {
  const int64_t half = x.size(-1) / 2;
  return at::cat({-x.slice(-1, half), x.slice(-1, 0, half)}, -1);
}

/// Complex numbers start at even offsets. A part of a wider head may begin or repeat at odd ones.
Tensor PairsOf(const Tensor& x) {
  bool is_even = x.storage_offset() % 2 == 0;
  for (int64_t dim = 0; dim + 1 < x.dim(); ++dim)
    is_even = is_even && x.stride(dim) % 2 == 0;
  return at::view_as_complex(
      (is_even ? x : x.clone(at::MemoryFormat::Contiguous)).unflatten(-1, {-1, 2}));
}

}  // namespace

Tensor RopeFrequencies(const RopeConfig& config, int64_t head_dim) {
  const Tensor exponent = at::arange(0, head_dim, 2, at::kFloat) / static_cast<double>(head_dim);
  const Tensor inv_freq = 1.0 / at::pow(config.theta, exponent);
  switch (config.scaling) {
    case RopeScaling::kLlama:
      return ScaleAsLlama(inv_freq, config);
    case RopeScaling::kYarn:
      // Stretched by 1 is not stretched, to the last bit.
      return config.rope_factor > 1.0 ? ScaleAsYarn(inv_freq, config, head_dim) : inv_freq;
    case RopeScaling::kNone:
      break;
  }
  return inv_freq;
}

Tensor RopeTable(const RopeConfig& config, int64_t head_dim) {
  const Tensor position = at::arange(config.max_seq_len, at::kFloat);
  const Tensor angle = at::outer(position, RopeFrequencies(config, head_dim));
  if (config.backend == RopeBackend::kComplex) return at::polar(at::ones_like(angle), angle);
  const Tensor both = at::cat({angle, angle}, -1);
  return at::cat({both.cos(), both.sin()}, -1);
}

Tensor ApplyRope(std::string_view name, RopeBackend backend, const Tensor& table, const Tensor& x,
                 std::source_location location) {
  ModuleScope scope(name, location);
  const int64_t seq = x.size(1);
  const int64_t head_dim = x.size(3);
  const bool is_table = table.dim() == 2;
  const Tensor rows = is_table ? table.slice(0, 0, seq) : table;
  const int64_t batch = is_table ? 1 : x.size(0);

  if (backend == RopeBackend::kComplex) {
    const Tensor pairs = PairsOf(x.to(WideType(x)));
    const Tensor rotated = pairs * rows.view({batch, seq, 1, head_dim / 2});
    return at::view_as_real(rotated).flatten(3).to(x.scalar_type());
  }
  const Tensor broadcast = rows.view({batch, seq, 1, 2 * head_dim});
  const Tensor cos = broadcast.slice(-1, 0, head_dim).to(x.scalar_type());
  const Tensor sin = broadcast.slice(-1, head_dim).to(x.scalar_type());
  return x * cos + RotateHalf(x) * sin;
}

}  // namespace strata
