#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/symbol_sizes.h"
#include "passes/placement/mesh.h"

namespace strata {

/// An axis cuts a dimension into as many parts as it has ranks.
struct ShardCut {
  MeshAxis axis;
  int64_t dim = 0;
  int64_t size = 0;   ///< of the dimension before
  int64_t chunk = 0;  ///< and after, the last chunks continued by zeros
  friend bool operator==(const ShardCut&, const ShardCut&) = default;
};

/// How the ranks of a mesh cut a tensor.
struct ShardCuts {
  std::vector<int64_t> sizes;  ///< of the whole
  std::vector<ShardCut> cuts;  ///< in the order in which they are made
  friend bool operator==(const ShardCuts&, const ShardCuts&) = default;
};

/// Of a type with placements, as it is printed: `DTensor(f32[256, 64][64, 1]cpu, S(0)R)`, one
/// placement per axis of `mesh`. A plain type is on every rank.
/// Errors: another number of placements, partial values, symbols that are not in `symbols`.
Result<ShardCuts> ParseShardCuts(std::string_view type, const Mesh& mesh,
                                 const SymbolSizes& symbols = {});

/// Of a lowered graph's inputs, in the order of its placeholders, or of its outputs, none for an
/// output None: from the attribute `global` of the nodes.
/// Errors: a graph that is not lowered; those of ParseShardCuts.
Result<std::vector<ShardCuts>> InputCuts(const Graph& graph, const Mesh& mesh,
                                         const SymbolSizes& symbols = {});
Result<std::vector<std::optional<ShardCuts>>> OutputCuts(const Graph& graph, const Mesh& mesh,
                                                         const SymbolSizes& symbols = {});

}  // namespace strata
