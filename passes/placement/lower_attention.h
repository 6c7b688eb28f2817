#pragma once
#include <map>
#include <string>

#include "ir/rewriter.h"
#include "passes/placement/placement.h"

namespace strata {

/// True for an attention that `AttentionLowering` knows, forward or backward.
bool IsAttention(std::string_view base);

/// Causal attention of ranks that have some positions of the queries, and all keys and values: the
/// flag `is_causal`, which counts positions from the first query that the rank has, becomes a mask
/// that counts from the first of all.
///
///   mask[i, j] = −∞ where j > i + index of the rank · queries, else 0
///
/// Source: context parallelism with gathered keys and values (arXiv 2407.21783, section 3.3.2).
class AttentionLowering {
 public:
  explicit AttentionLowering(Rewriter& rewriter) : rewriter_(rewriter) {}
  /// `query`: its placements. Types of the graph are local.
  void Lower(NodeId node, const Placements& query, const Mesh& mesh);

 private:
  ValueId Mask(NodeId node, const Type& query, DimId keys, const Placements& placements,
               const Mesh& mesh);

  Rewriter& rewriter_;
  std::map<std::string, ValueId> masks_;  // by what they are made of
};

/// The query of an attention.
ValueId QueryOf(const Graph& graph, NodeId node);

}  // namespace strata
