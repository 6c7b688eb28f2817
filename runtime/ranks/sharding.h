#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/symbol_sizes.h"
#include "passes/placement/mesh.h"
#include "passes/placement/shard_cuts.h"

namespace strata {

/// How the ranks of a mesh hold a tensor. Every rank holds a tensor of the same size: a dimension
/// that ranks do not divide evenly is continued by zeros.
class Sharding {
 public:
  Sharding() = default;  ///< of a number
  explicit Sharding(ShardCuts cuts) : cuts_(std::move(cuts)) {}
  /// Of a type with placements. Errors: those of ParseShardCuts.
  static Result<Sharding> Parse(std::string_view type, const Mesh& mesh,
                                const SymbolSizes& symbols = {});

  /// Of the whole tensor.
  const std::vector<int64_t>& sizes() const { return cuts_.sizes; }
  bool is_replicated() const { return cuts_.cuts.empty(); }

  /// Which of the different parts `rank` holds, from 0.
  int64_t PartOf(int64_t rank) const;
  /// What `rank` holds of `whole`, in memory of its own. REQUIRES: the sizes of the whole.
  at::Tensor Shard(const at::Tensor& whole, int64_t rank) const;
  /// The whole, in memory of its own, from what each rank holds. Of equal copies the first rank's
  /// counts. REQUIRES: a tensor per rank, of the size that `Shard` gives.
  at::Tensor Gather(std::span<const at::Tensor> parts) const;

  friend bool operator==(const Sharding&, const Sharding&) = default;

 private:
  at::Tensor GatherFrom(size_t cut, int64_t rank, std::span<const at::Tensor> parts) const;

  ShardCuts cuts_;
};

/// The shardings of a lowered graph's inputs, in the order of its placeholders, or of its outputs,
/// none for an output None (passes/placement/shard_cuts.h). Symbols are their hints.
/// Errors: those of InputCuts.
Result<std::vector<Sharding>> InputShardings(const Graph& graph, const Mesh& mesh);
Result<std::vector<std::optional<Sharding>>> OutputShardings(const Graph& graph, const Mesh& mesh);

}  // namespace strata
