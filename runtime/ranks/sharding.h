#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/symbol_sizes.h"
#include "passes/placement/mesh.h"

namespace strata {

/// How the ranks of a mesh hold a tensor. Every rank holds a tensor of the same size: a dimension
/// that ranks do not divide evenly is continued by zeros.
class Sharding {
 public:
  /// Of a type with placements, as it is printed: `DTensor(f32[256, 64][64, 1]cpu, S(0)R)`, one
  /// placement per axis of `mesh`. A plain type is on every rank.
  /// Errors: another number of placements, partial values, symbols that are not in `symbols`.
  static Result<Sharding> Parse(std::string_view type, const Mesh& mesh,
                                const SymbolSizes& symbols = {});

  /// Of the whole tensor.
  const std::vector<int64_t>& sizes() const { return sizes_; }
  bool is_replicated() const { return cuts_.empty(); }

  /// Which of the different parts `rank` holds, from 0.
  int64_t PartOf(int64_t rank) const;
  /// What `rank` holds of `whole`, in memory of its own. REQUIRES: the sizes of the whole.
  at::Tensor Shard(const at::Tensor& whole, int64_t rank) const;
  /// The whole, in memory of its own, from what each rank holds. Of equal copies the first rank's
  /// counts. REQUIRES: a tensor per rank, of the size that `Shard` gives.
  at::Tensor Gather(std::span<const at::Tensor> parts) const;

  friend bool operator==(const Sharding&, const Sharding&) = default;

 private:
  /// An axis cuts a dimension into as many parts as it has ranks.
  struct Cut {
    MeshAxis axis;
    int64_t dim = 0;
    int64_t size = 0;   ///< of the dimension before
    int64_t chunk = 0;  ///< and after, the last chunks continued by zeros
    friend bool operator==(const Cut&, const Cut&) = default;
  };
  at::Tensor GatherFrom(size_t cut, int64_t rank, std::span<const at::Tensor> parts) const;

  std::vector<int64_t> sizes_;
  std::vector<Cut> cuts_;  ///< in the order in which they are made
};

/// The shardings of a lowered graph's inputs, in the order of its placeholders, or of its outputs,
/// none for an output None: from the attribute `global` of the nodes. Symbols are their hints.
/// Errors: a graph that is not lowered; those of Sharding::Parse.
Result<std::vector<Sharding>> InputShardings(const Graph& graph, const Mesh& mesh);
Result<std::vector<std::optional<Sharding>>> OutputShardings(const Graph& graph, const Mesh& mesh);

}  // namespace strata
