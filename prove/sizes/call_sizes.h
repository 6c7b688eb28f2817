#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/ops.h"
#include "passes/placement/rules/sharding_rule.h"
#include "prove/sizes/graph_sizes.h"
#include "prove/sizes/mesh_sizes.h"
#include "prove/sizes/size_constraints.h"

namespace strata::prove {

/// Whether an operator takes sizes and moves no element.
inline bool IsSizedView(std::string_view base) {
  return base.ends_with("view") || base.starts_with("reshape") || base == "_reshape_alias" ||
         base == "view_copy";
}

/// Adds what the calls of one graph demand of its sizes (AddCalls).
class CallSizes {
 public:
  CallSizes(GraphSizes& sizes, MeshSizes& mesh, SizeConstraints& constraints)
      : sizes_(sizes), graph_(sizes.graph()), mesh_(mesh), constraints_(constraints) {}

  Status Run();

 private:
  using Dims = std::vector<SizeId>;

  Status AddCall(NodeId node);

  std::string_view base() const { return BaseName(graph_.op(node_)); }
  int64_t number(SizeId size) const { return constraints_.number(size); }
  SizeId Constant(int64_t value) {
    const SizeId size = constraints_.New(value);
    constraints_.Keep(size);
    return size;
  }

  void JoinIfEqual(SizeId a, SizeId b) {
    if (number(a) == number(b)) constraints_.Join(a, b);
  }
  void JoinDims(const Dims& a, const Dims& b) {
    for (size_t dim = 0; dim < std::min(a.size(), b.size()); ++dim)
      JoinIfEqual(a[dim], b[dim]);
  }
  /// Sizes that are the same number are one.
  void JoinEqual(const Dims& sizes) {
    std::map<int64_t, SizeId> known;
    for (const SizeId size : sizes)
      constraints_.Join(known.emplace(number(size), size).first->second, size);
  }

  /// The integer argument at a position, or of a name.
  std::optional<int64_t> Integer(size_t position, std::string_view name) const;
  size_t DimArgument(size_t position, size_t rank) const;
  /// Ties a literal to a size, if it is that number.
  void TieSlot(uint32_t slot, SizeId size);
  void Tie(size_t position, SizeId size);
  void TieList(size_t position, const Dims& sizes);

  // Exchanges between ranks (exchange_sizes.cc).
  Result<bool> AddExchange();
  /// Lists have the rows for each rank of the group. If these are equally many, or the elements of
  /// a vector in their order, smaller groups have shorter lists.
  void AddAllToAll(const Dims& from, const Dims& to, SizeId count);
  /// The vector of which the numbers of a list are the elements in their order, one per rank; it
  /// has `count` elements. Invalid: there is no such vector.
  ValueId ElementsForEachRank(const Arg& list, SizeId count);
  /// All that is cut by one vector of counts has as many rows.
  void JoinRows(ValueId counts, const Dims& exchanged);
  /// Ranks whose parts follow each other in dimension 0 of a value; none: no ranks' parts do.
  SizeId RanksGathered(ValueId value) const;
  /// What is sent has a piece for each rank in dimension 0: it was joined of pieces, or has a
  /// dimension of ranks before a view joins it with others.
  void JoinPiecesSent(SizeId ranks);
  Result<SizeId> GroupAt(size_t position);
  /// `whole` is `part`, times the ranks of a group in one dimension.
  Result<bool> AddGathered(const Dims& whole, const Dims& part, size_t dim, size_t count,
                           size_t group);

  // Operators (call_sizes.cc).
  /// Dimensions are products of the operator's loops.
  void AddRule(const ShardingRule& rule);
  /// Dimensions of several values that are the same number are one size. Those of one value are
  /// not: the ranks of a group may be as many as the experts of each.
  void JoinAcross(const std::vector<Dims>& values);
  /// Tensors of one shape have one size in each place. Those of other shapes are compared by their
  /// numbers.
  void AddByShape();
  /// What factors do not say: sums, and numbers of operands or results.
  void AddStructure();
  /// Groups of query heads read one head of keys.
  void AddHeads();
  /// Spatial sizes and those of kernels stay: what ties them are the literals of strides, paddings
  /// and windows. Channels of a group are a part of all channels.
  void AddConvolution();
  /// Of pooling and its like: the last dimensions of all values stay.
  void KeepWindows();
  void AddGroupNorm();
  /// Elements that are positions in a dimension, as topk and sort make them, index dimensions of
  /// the same size.
  void AddPositions();
  /// `topk` chooses some of all elements.
  void AddChosen(SizeId all, SizeId chosen);
  /// What divides a position in two dimensions that a view joined is the size of the second, as the
  /// number of a token's experts, or of a rank's; the quotient is the position in the first.
  void AddQuotient();
  /// Literals that nothing ties to a dimension: by their numbers. One that no dimension of the call
  /// has may be an error of the program: it is a size of its own.
  void AddLiterals();

  // Parts of dimensions (part_sizes.cc).
  /// `whole`, which is dimension `dim`, is cut into `parts`: equally many of one size, or different
  /// ones.
  void AddParts(SizeId whole, const Dims& parts, size_t dim);
  /// What makes one tensor of all results in their order, and is their only reader: with fewer
  /// pieces it does the same. None: there is no such node.
  NodeId CatOfResults() const;
  void AddSplit(const Dims& from);
  /// A part of a dimension: what is before it, the part, and what is after it. Of `slice`,
  /// `slice_backward`, whose operand is the part, and `slice_scatter`, whose second operand is.
  void AddSlice();
  /// Pairs of widths, from the last dimension on; negative ones are cut off.
  void AddPadding(const Dims& from, const Dims& to);

  GraphSizes& sizes_;
  Graph& graph_;
  MeshSizes& mesh_;
  SizeConstraints& constraints_;
  NodeId node_;
  std::vector<Dims> operands_, results_;      // of the call
  std::map<ValueId, SizeId> gathered_;        // ranks whose parts follow each other in dimension 0
  std::map<ValueId, SizeId> rows_of_counts_;  // the rows that a vector of counts cuts
  std::map<ValueId, SizeId> positions_;       // the dimension that the elements of a value index
  std::map<SizeId, Dims> joined_;    // two dimensions, by the one that a view makes of them
  std::map<NodeId, SizeId> pieces_;  // how many equal ones are joined or cut in dimension 0
};

}  // namespace strata::prove
