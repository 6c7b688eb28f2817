#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "ir/rewriter.h"
#include "passes/placement/placement.h"

namespace strata {

/// Rows of one dispatch on their way between the ranks of their tokens and those of their experts,
/// in a lowered graph. `n` ranks share `E` experts, e = E / n of them each; a rank's tokens have
/// `t` rows, its experts `r`, which depends on data.
///
///   sent     = counts as [n, e]             received = all_to_all(counts) as [n, e]
///   r        = Σ received, read on the host, as are the rows for and from each rank
///   T → E    rows = all_to_all(x)           by rank, then by expert; `order` sorts them by expert
///   E → T    all_to_all(rows in the order that they came in)
///   ends     = cumsum(Σ received over ranks), int32: of the groups of a product over the rows
///
/// Source: token dispatchers of Megatron-LM and torchtitan (expert parallelism by all-to-all).
class DispatchLowering {
 public:
  /// Nodes for `counts`, int64 `[E]`, this rank's rows of each expert, stand at the cursor and are
  /// made from `ancestor`. `group`: the axis, or axes, of the ranks. `rows`: an unbacked symbol.
  /// REQUIRES: `ranks` divide the experts.
  DispatchLowering(Rewriter& rewriter, ValueId counts, std::string group, int64_t ranks, DimId rows,
                   NodeId ancestor);

  /// `[t, …]` in the order of experts → `[r, …]`, ordered by expert, then by the rank that sent.
  ValueId ToExperts(ValueId rows, NodeId ancestor);
  /// The way back, to `[t, …]`.
  ValueId ToTokens(ValueId rows, DimId t, NodeId ancestor);
  /// int32 `[e]`.
  ValueId ends() const { return ends_; }
  /// The number r.
  ValueId num_rows() const { return num_rows_; }

 private:
  ValueId Call(std::string_view op, std::initializer_list<Arg> args, const Type& type);
  Type TypeOf(ValueId value) const;
  Type Dense(ValueId value) const;
  ValueId AsDense(ValueId value, const Type& dense);
  static Type WithRows(Type type, DimId rows);
  ValueId Root(ValueId value) const;
  Type Of(DType dtype, std::initializer_list<DimId> sizes) const;
  ValueId Exchanged(ValueId value, const Arg& received, const Arg& sent, const Type& type);
  /// The sums of `counts` `[n, e]` per rank, as numbers of the host.
  std::vector<ValueId> Splits(ValueId counts);
  ValueId Number(ValueId tensor, DimId dim);
  void SortReceived(ValueId received);
  void EndGroups(ValueId received);
  Arg List(const std::vector<ValueId>& numbers);

  Rewriter& rewriter_;
  Module& module_;
  const std::string group_;
  const int64_t ranks_;
  const DimId rows_;  ///< r
  NodeId ancestor_;
  int64_t experts_ = 0;  ///< of all ranks
  Type index_;           ///< int64, contiguous
  std::vector<ValueId> sent_, received_;
  ValueId num_rows_, order_, back_, ends_;
};

/// A symbol that no type of the module mentions: a size that is known at run time.
DimId NewUnbackedSymbol(Module& module);

}  // namespace strata
