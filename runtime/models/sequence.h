#pragma once
#include <optional>
#include <source_location>

#include <ATen/core/Tensor.h>

#include "runtime/config/config.h"
#include "runtime/flex/flex_attention.h"

namespace strata {

/// What all layers of a pass know of the positions in its rows.
struct Sequence {
  /// Rows of the rope table, `[batch, seq, width]`, or the whole table `[positions, width]`, whose
  /// first rows are those of every sequence of the batch.
  at::Tensor rope;
  /// Added to the scores: fp32 `[batch, 1, seq, seq]`, 0 where a position may attend, else -inf.
  /// Undefined: to itself and all before it.
  at::Tensor mask;
  /// With attn_type = "flex": what takes the place of `mask`.
  std::optional<FlexMask> flex = std::nullopt;
  /// Ranks have some of the positions each: attention needs a kernel that takes masks.
  bool is_cut = false;
};

/// Without positions: causal. With them (int64 `[batch, seq]`, from 0 in each document): causal
/// within each document. With flex attention: what the configuration's bodies say. `tokens`
/// `[batch, seq]`.
Sequence MakeSequence(const TrainConfig& config, const at::Tensor& tokens,
                      const at::Tensor& positions, const at::Tensor& rope_table,
                      std::source_location location = std::source_location::current());

}  // namespace strata
