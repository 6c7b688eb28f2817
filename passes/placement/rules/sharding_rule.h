#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/module.h"

namespace strata {

/// A loop of an operator, as in einsum notation: the dimensions that it runs over belong together.
/// `mm` has three: `m` and `n` of its result, and `k`, which it sums over.
struct Factor {
  enum class Kind : uint8_t {
    kFree,    ///< iterations are independent: any operand and result that has it can be sharded
    kReduce,  ///< results combine its iterations by `reduce`: sharded operands give partial results
    kWhole,   ///< a rank needs all iterations: softmax over its dimension, a sort
  };
  DimId size;
  Kind kind = Kind::kFree;
  StrId reduce = {};  ///< kReduce: "sum", "avg", "max", "min", "norm2"
};

/// The factors of each dimension of a tensor, the slowest one first: `[[b, s], [d]]` for a tensor
/// of shape [b·s, d]. Empty for numbers.
using FactorDims = std::vector<std::vector<int>>;

/// Rows that ranks hold in an order of their own (ir/row_placement.h): by token, or by expert.
struct RowOrder {
  int tokens = -1;  ///< factor that stays as it is and is cut with the rows; -1: there is none
  int rows = -1;    ///< factor of tensors in that order; -1: the operator knows no such rows
  int groups = -1;  ///< factor of the experts: with it cut, rows are by expert
  std::vector<int> totals = {};  ///< operands that count rows: each rank counts its own, P(sum)
  StrId sum = {};                ///< "sum"
  /// How the tokens are cut whose rows these are, on each mesh axis: placements of what the
  /// dispatch sorted. Empty: not known, or this is the sort.
  std::vector<Placement> cut = {};
};

/// How the dimensions of the tensors of one node depend on each other, which is everything that
/// placement, lowering and a search for placements need to know of an operator.
/// Source: sharding rules of Shardy (openxla.org/shardy), operator strategies of
/// torch.distributed.tensor.
struct ShardingRule {
  std::vector<Factor> factors;
  std::vector<FactorDims> operands;  ///< as Graph::operands: flattened, with repetitions
  std::vector<FactorDims> results;
  /// Operands that may be partial together while the others are replicated: the results are then
  /// partial, too. `[[0, 1]]` for add, `[[0], [1]]` for mul.
  std::vector<std::vector<int>> linear = {};
  /// The results keep every partial placement of operand 0, since elements only move.
  bool moves_elements = false;
  /// The results keep this partial placement of operand 0: "norm2" where norms are taken of norms.
  StrId kept_reduce = {};
  std::vector<int> ignored = {};  ///< operands whose value has no effect: any placement is right
  /// Positional arguments that are the sizes of result 0, whole or element `dim` of it: they become
  /// local sizes.
  std::vector<int> size_lists = {};
  std::vector<std::pair<int, int>> size_args = {};  ///< (position, dim of result 0)
  std::vector<int> written = {};  ///< operands that change in place: they keep their placements
  /// Operands of a sum end with zeros on ranks that have fewer elements than others: their sums are
  /// right.
  bool ends_with_zeros = false;
  RowOrder order = {};
  /// A factor whose sums ranks exchange inside the operator when it is cut: the classes of a
  /// softmax (passes/placement/lowering/lower_loss.h). -1: there is none.
  int joint = -1;

  /// Whether the results of a partial operand 0 are partial in the same way.
  bool KeepsPartial(const Placement& partial) const {
    return moves_elements || (kept_reduce.valid() && partial.reduce == kept_reduce);
  }
};

/// The rule of a call. Errors: no rule is known for the operator; they name node, module and line.
Result<ShardingRule> ShardingRuleOf(Graph& graph, NodeId node);

}  // namespace strata
