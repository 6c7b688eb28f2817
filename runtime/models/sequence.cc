#include "runtime/models/sequence.h"

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "passes/flex/flex_body.h"
#include "passes/flex/flex_mods.h"
#include "runtime/trace/scope.h"

namespace strata {

using at::Tensor;

namespace {

/// 1, 2, …: the document of each position. `[batch, seq]`
Tensor DocumentsOf(const Tensor& positions) {
  return positions.eq(0).cumsum(1);
}

/// The buffers that a body asks for, in its order.
std::vector<Tensor> BuffersOf(std::string_view text, FlexRole role, const Tensor& positions,
                              const Tensor& documents) {
  const auto names = FlexBufferNames(text, role, ToString(role));
  TORCH_CHECK(names.has_value(), names.has_value() ? "" : names.error().message());
  std::vector<Tensor> buffers;
  for (const std::string& name : *names)
    buffers.push_back(name == kDocumentIds ? documents : positions);
  return buffers;
}

/// The block mask is computed once for all layers.
FlexMask MakeFlexMask(const TrainConfig& config, const Tensor& tokens, const Tensor& positions) {
  const Tensor documents = positions.defined() ? DocumentsOf(positions) : Tensor();
  const FlexConfig& flex = config.flex;
  FlexMask mask{
      .score_mod = flex.score_mod_text,
      .mask_mod = flex.mask_mod_text,
      .score_buffers = BuffersOf(flex.score_mod_text, FlexRole::kScore, positions, documents),
      .mask_buffers = BuffersOf(flex.mask_mod_text, FlexRole::kMask, positions, documents),
      .block_size = flex.block_size,
      .blocks = {}};
  mask.blocks =
      MakeBlockMask(mask, tokens.size(0), config.n_heads, tokens.size(1), tokens.device());
  return mask;
}

}  // namespace

Sequence MakeSequence(const TrainConfig& config, const Tensor& tokens, const Tensor& positions,
                      const Tensor& rope_table, std::source_location location) {
  Sequence sequence{.rope = rope_table, .mask = {}};
  sequence.is_cut = config.parallelism.context > 1;
  const bool is_flex = config.attn_type == AttentionType::kFlex;
  if (!positions.defined() && !is_flex) return sequence;
  const int64_t batch = tokens.size(0), seq = tokens.size(1);
  if (positions.defined()) {
    ModuleScope scope("rope", location);
    sequence.rope = rope_table.index_select(0, positions.flatten()).unflatten(0, {batch, seq});
  }
  ModuleScope scope("attention_mask", location);
  if (is_flex) {
    sequence.flex = MakeFlexMask(config, tokens, positions);
    return sequence;
  }
  const Tensor document = DocumentsOf(positions);
  const Tensor is_same = document.unsqueeze(2).eq(document.unsqueeze(1));
  const Tensor is_before = at::ones({seq, seq}, positions.options().dtype(at::kBool)).tril();
  sequence.mask = at::zeros({batch, seq, seq}, positions.options().dtype(at::kFloat))
                      .masked_fill(~(is_same & is_before), -std::numeric_limits<double>::infinity())
                      .unsqueeze(1);
  return sequence;
}

}  // namespace strata
