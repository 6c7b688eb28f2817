#pragma once
#include <map>
#include <string>

#include "ir/attention.h"
#include "ir/rewriter.h"
#include "passes/placement/placement.h"

namespace strata {

/// Causal attention of ranks that have some positions of the queries, and all keys and values: the
/// flag `is_causal`, which counts positions from the first query that the rank has, becomes a mask
/// that counts from the first of all.
///
///   mask[i, j] = −∞ where j > i + index of the rank · queries, else 0
///
/// Kernels of GPUs read one for each head, whose rows begin at multiples of 16 elements.
///
/// Source: context parallelism with gathered keys and values (arXiv 2407.21783, section 3.3.2).
class AttentionLowering {
 public:
  explicit AttentionLowering(Rewriter& rewriter) : rewriter_(rewriter) {}
  /// `node`: a call of `op`. `query`: placements of its query. Types of the graph are local.
  void Lower(NodeId node, const AttentionOp& op, const Placements& query, const Mesh& mesh);

 private:
  /// `[queries, keys]`
  ValueId Mask(NodeId node, const Type& query, DimId keys, const Placements& placements,
               const Mesh& mesh);
  /// `[batch, heads, queries, keys]`, of a mask `[queries, keys]`.
  ValueId OfHeads(NodeId node, ValueId mask, const Type& query);

  Rewriter& rewriter_;
  std::map<std::string, ValueId> masks_;  // by what they are made of
};

}  // namespace strata
