#include "ir/attention.h"

#include <algorithm>

#include "ir/ops.h"

namespace strata {
namespace {

using Mask = AttentionOp::Mask;

constexpr int64_t kRowsOfEfficient = 32;

constexpr AttentionOp kAttentionOps[] = {
    {.base = "_scaled_dot_product_flash_attention_for_cpu",
     .is_backward = false,
     .query = 0,
     .dropout = 3,
     .causal = 4,
     .mask = Mask::kByName},
    {.base = "_scaled_dot_product_flash_attention_for_cpu_backward",
     .is_backward = true,
     .query = 1,
     .dropout = 6,
     .causal = 7,
     .mask = Mask::kByName,
     .output = 4,
     .log_sums = 5},
    {.base = "_scaled_dot_product_flash_attention",
     .is_backward = false,
     .query = 0,
     .dropout = 3,
     .causal = 4,
     .mask = Mask::kNone},
    {.base = "_scaled_dot_product_flash_attention_backward",
     .is_backward = true,
     .query = 1,
     .dropout = 10,
     .causal = 11,
     .mask = Mask::kNone,
     .output = 4,
     .log_sums = 5},
    {.base = "_scaled_dot_product_efficient_attention",
     .is_backward = false,
     .query = 0,
     .dropout = 5,
     .causal = 6,
     .mask = Mask::kByPosition,
     .mask_position = 3,
     .rows_per_unit = kRowsOfEfficient},
    {.base = "_scaled_dot_product_efficient_attention_backward",
     .is_backward = true,
     .query = 1,
     .dropout = 9,
     .causal = 11,
     .mask = Mask::kByPosition,
     .mask_position = 4,
     .output = 5,
     .log_sums = 6,
     .rows_per_unit = kRowsOfEfficient},
    {.base = "_scaled_dot_product_cudnn_attention",
     .is_backward = false,
     .query = 0,
     .dropout = 5,
     .causal = 6,
     .mask = Mask::kByPosition,
     .mask_position = 3,
     .ends_with_one = true},
    {.base = "_scaled_dot_product_cudnn_attention_backward",
     .is_backward = true,
     .query = 1,
     .dropout = 13,
     .causal = 14,
     .mask = Mask::kByPosition,
     .mask_position = 8,
     .output = 4,
     .log_sums = 5,
     .ends_with_one = true},
};

}  // namespace

std::span<const AttentionOp> AttentionOps() {
  return kAttentionOps;
}

const AttentionOp* FindAttentionOp(std::string_view op) {
  if (!op.starts_with("aten.")) return nullptr;
  const auto* found = std::ranges::find(kAttentionOps, BaseName(op), &AttentionOp::base);
  return found == std::end(kAttentionOps) ? nullptr : found;
}

const Arg* FindMask(const Graph& graph, NodeId node, const AttentionOp& op) {
  const auto args = graph.args(node);
  const Arg* mask = nullptr;
  if (op.mask == Mask::kByName) mask = graph.FindKwarg(node, AttentionOp::kMaskName);
  if (op.mask == Mask::kByPosition && op.mask_position < args.size())
    mask = &args[op.mask_position];
  return mask != nullptr && mask->is_value() ? mask : nullptr;
}

}  // namespace strata
