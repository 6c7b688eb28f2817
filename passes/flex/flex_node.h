#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace strata {

// The higher-order operators of flex attention, as PyTorch's tracer writes them, and the operators
// of runtime/flex that execute them. Source: torch/_higher_order_ops/flex_attention.py.
inline constexpr std::string_view kFlexOp = "higher_order.flex_attention";
inline constexpr std::string_view kFlexBackwardOp = "higher_order.flex_attention_backward";
/// Computes a block mask. PyTorch has a function of that name, which graphs do not show.
inline constexpr std::string_view kBlockMaskOp = "strata.create_block_mask.default";
bool IsFlexOp(std::string_view op);

/// What a block mask holds: for rows of blocks the columns that have any score ("partial") or all
/// scores ("full"), and the same for columns; counts and indices of each, int32.
inline constexpr size_t kNumBlockTensors = 8;

/// The arguments of a node of flex attention, by meaning.
struct FlexNode {
  bool is_backward = false;
  std::vector<Arg> tensors;  ///< query, key, value; backward: also out, logsumexp, gradient of out
  GraphId score_mod, mask_mod;
  GraphId joint_graph;                           ///< backward
  std::array<Arg, 2> lengths;                    ///< queries and keys of a row
  std::array<Arg, kNumBlockTensors> block_mask;  ///< values, or None
  std::array<Arg, 2> block_sizes;                ///< queries and keys of a block
  double scale = 1.0;
  std::vector<Arg> score_buffers, mask_buffers;
};

/// REQUIRES: the node calls kFlexOp or kFlexBackwardOp. Errors (kUnsupported): arguments of another
/// form than PyTorch 2.11 writes; a gradient of the logsumexp.
Result<FlexNode> ReadFlexNode(const Graph& graph, NodeId node);

/// The body that the value names; none: it names none.
std::optional<GraphId> BodyNamedBy(const Graph& graph, const Arg& arg);

}  // namespace strata
