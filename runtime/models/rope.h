#pragma once
#include <cstdint>
#include <source_location>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "runtime/config/model_config.h"

namespace strata {

/// Rotary position embedding (arXiv 2104.09864): angle of pair j at position p is p · inv_freq[j].

/// inv_freq[j] = theta^(-2j / head_dim), rescaled as the configuration says: fp32 `[head_dim / 2]`.
at::Tensor RopeFrequencies(const RopeConfig& config, int64_t head_dim);

/// The table that `ApplyRope` reads, one row per position:
///   complex  exp(i · angle), complex64 `[max_seq_len, head_dim / 2]`
///   cos_sin  cos(angle, angle), then sin(angle, angle), fp32 `[max_seq_len, 2 · head_dim]`
at::Tensor RopeTable(const RopeConfig& config, int64_t head_dim);

/// Rotates `x` `[batch, seq, heads, head_dim]`, in fp32, by the first seq rows of a table, or by
/// rows `[batch, seq, …]` of it. Pairs are (x[2j], x[2j+1]) for `complex`, (x[j], x[j +
/// head_dim/2]) for `cos_sin`.
at::Tensor ApplyRope(std::string_view name, RopeBackend backend, const at::Tensor& table,
                     const at::Tensor& x,
                     std::source_location location = std::source_location::current());

}  // namespace strata
