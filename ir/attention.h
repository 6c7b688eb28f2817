#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "ir/graph.h"

namespace strata {

/// An attention kernel of LibTorch, and at which position each of its arguments stands.
/// Query, key and value follow each other: `[batch, heads, positions, width]`; forward gives the
/// output, then the logarithm of the sum of each row's powers, `[batch, heads, positions]`.
/// Source: schemas of PyTorch 2.11, native_functions.yaml.
struct AttentionOp {
  std::string_view base;  ///< "_scaled_dot_product_flash_attention_for_cpu"
  bool is_backward;       ///< argument 0 is the gradient of the output
  size_t query;
  size_t dropout, causal;
  /// What is added to the scores. Kernels of CPUs have it by name, flash attention not at all.
  enum class Mask : uint8_t { kNone, kByName, kByPosition } mask;
  size_t mask_position = 0;         ///< kByPosition
  size_t output = 0, log_sums = 0;  ///< backward
  int64_t rows_per_unit = 1;        ///< `log_sums` has a multiple of it as rows
  bool ends_with_one = false;       ///< `log_sums` has a last dimension of size 1
  static constexpr std::string_view kMaskName = "attn_mask";
};

/// All that are known.
std::span<const AttentionOp> AttentionOps();
/// The kernel that `op` calls: "aten._scaled_dot_product_flash_attention.default"; null: none.
const AttentionOp* FindAttentionOp(std::string_view op);

/// The mask of a call; null: it has none.
const Arg* FindMask(const Graph& graph, NodeId node, const AttentionOp& op);

}  // namespace strata
