#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/rewriter.h"
#include "ir/substitution.h"
#include "passes/core/viewed_operands.h"
#include "passes/expert/chunk_regions.h"
#include "passes/expert/chunk_symbols.h"

namespace strata {

/// What the lowering of the regions of one graph shares.
class ChunkContext {
 public:
  ChunkContext(Graph& graph, const ChunkSymbols& symbols, const ChunkOptions& options);

  Graph& graph;
  Module& module;
  const ChunkSymbols& symbols;
  const ChunkOptions& options;
  Rewriter rewriter;
  ViewedOperands views;
  /// Of values that forward regions leave to backward regions.
  ChunkCopies copies;

  /// What sizes become in a chunk of a root, in forward and backward alike.
  Substitution& SizesIn(StrId root, int64_t chunk);
  /// Gives each chunk of `root` symbols of its own for those that `node` reads from data.
  void RenewSymbols(NodeId node, StrId root);

  /// The name `base`, or `base_1`, … where that is taken.
  void Rename(NodeId node, std::string_view base);
  void RenameElement(ValueId value, std::string_view base);

  /// A node of no chunk's body before `anchor`, in the module around the region's.
  NodeId CreateBefore(NodeId anchor, const NodeSpec& spec, std::span<const NodeId> ancestors,
                      const ChunkRegion& region, std::string_view role);
  void SetChunk(NodeId node, int64_t chunk);
  /// States where a new node stands.
  void PlaceAfter(NodeId node, NodeId anchor);
  /// Whether `a` runs before `b`.
  bool IsBefore(NodeId a, NodeId b) const;
  Arg Number(DimId dim) const;

 private:
  std::string FreeName(std::string_view base);
  /// Marks a name as used. Returns whether it was free.
  bool Take(StrId name);
  void SetPlace(NodeId node, int64_t place);
  void FindSymbolsReadFromData();

  IdVector<NodeId, int64_t> place_;  // new nodes share that of their anchor
  std::vector<bool> is_taken_;       // by name
  std::map<StrId, std::vector<Substitution>> sizes_;
  std::map<NodeId, std::vector<DimId>> reads_;  // symbols by the node that reads them
  int64_t next_symbol_ = 0;
};

}  // namespace strata
