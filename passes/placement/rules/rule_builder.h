#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/module.h"
#include "passes/placement/rules/sharding_rule.h"

namespace strata {

/// Builds the rule of one call. Operands and results begin with a free factor per dimension that
/// nothing else has; an operator's function replaces them by those that belong together.
class RuleBuilder {
 public:
  /// Errors: an operand or result is a tensor of unknown shape.
  static Result<RuleBuilder> Create(Graph& graph, NodeId node);

  const Graph& graph() const { return *graph_; }
  Module& module() { return graph_->module(); }
  std::string_view op() const { return graph_->op(node_); }
  std::string_view base() const;  ///< "mm" of "aten.mm.default"
  NodeId node() const { return node_; }
  size_t num_operands() const { return rule_.operands.size(); }
  size_t num_results() const { return rule_.results.size(); }

  std::span<const DimId> operand_sizes(size_t operand) const { return operand_sizes_[operand]; }
  std::span<const DimId> result_sizes(size_t result) const { return result_sizes_[result]; }
  bool AreEqual(std::span<const DimId> sizes, std::span<const DimId> others) const;
  DType dtype(size_t operand) const;
  bool is_float(size_t operand) const;

  /// The argument at a position or of a name; null: absent.
  const Arg* FindArg(size_t position, std::string_view name) const;
  /// Index among the operands of the tensor at positional argument `position`; none: not a tensor.
  std::optional<size_t> OperandOf(size_t position) const;
  /// How many operands the arguments before `position` hold.
  size_t NumOperandsBefore(size_t position) const;
  /// Argument `position` as a dimension of a tensor of `rank` dimensions, made positive.
  std::optional<size_t> DimArg(size_t position, std::string_view name, size_t rank) const;
  /// The dimensions in a list argument; empty list or absent: all of them.
  std::vector<size_t> DimsArg(size_t position, std::string_view name, size_t rank) const;
  bool FlagArg(size_t position, std::string_view name, bool otherwise) const;
  std::optional<int64_t> IntArg(size_t position, std::string_view name) const;

  int NewFactor(DimId size, Factor::Kind kind = Factor::Kind::kFree, std::string_view reduce = {});
  /// Factors of query heads, of which equally many share each of `key_heads`: those of keys first.
  std::vector<int> NewHeads(DimId query_heads, DimId key_heads);
  Factor& factor(int index) { return rule_.factors[static_cast<size_t>(index)]; }
  /// The first factor of a dimension.
  int operand_factor(size_t operand, size_t dim) const { return rule_.operands[operand][dim][0]; }
  int result_factor(size_t result, size_t dim) const { return rule_.results[result][dim][0]; }
  void SetOperand(size_t operand, size_t dim, int factor) {
    rule_.operands[operand][dim] = {factor};
  }
  void SetResult(size_t result, size_t dim, int factor) { rule_.results[result][dim] = {factor}; }
  void MakeWhole(int index) { factor(index).kind = Factor::Kind::kWhole; }
  void MakeReduce(int index, std::string_view reduce);
  /// Every factor of the tensor is needed whole.
  void MakeOperandWhole(size_t operand);
  void MakeResultWhole(size_t result);
  void MakeAllWhole();  ///< every rank has all of every tensor

  /// True when the operand has zeros where it goes on beyond its whole, on ranks that have less of
  /// an uneven dimension than others.
  bool EndsWithZeros(size_t operand) const;
  /// Rows of `rows` may be in the order of experts, while `tokens`, or -1, stays in that of tokens.
  RowOrder& OrderRows(int tokens, int rows);
  /// True when the indices `operand` say which of `size` tokens rows belong to, each of them with
  /// equally many rows: they come from the sort of a dispatch.
  bool IsRowOfToken(size_t operand, DimId size) const;
  /// Of such indices: how the tokens are cut.
  std::vector<Placement> CutOfTokens(size_t operand) const;
  /// True for a sort of which only the order is read, as indices of tokens.
  bool IsDispatch() const;

  ShardingRule& rule() { return rule_; }
  ShardingRule Take() { return std::move(rule_); }

 private:
  RuleBuilder(Graph& graph, NodeId node) : graph_(&graph), node_(node) {}
  /// Where indices come from, by divisions, and how many rows a token has by them.
  std::pair<ValueId, int64_t> OrderOf(ValueId indices) const;
  bool HasRows(std::span<const DimId> rows, DimId tokens, int64_t per_token) const;

  Graph* graph_;
  NodeId node_;
  ShardingRule rule_;
  std::vector<std::vector<DimId>> operand_sizes_, result_sizes_;
};

/// Fills in the rule of one family of operators.
using RuleFunction = Status (*)(RuleBuilder& builder);

struct RuleEntry {
  std::string_view op;  ///< without namespace and overload: "mm"
  RuleFunction fill;
};

// The rules by family, each in the file of its name.
std::span<const RuleEntry> PointwiseRules();
std::span<const RuleEntry> ViewRules();
std::span<const RuleEntry> ProductRules();
std::span<const RuleEntry> ReductionRules();
std::span<const RuleEntry> AttentionRules();
std::span<const RuleEntry> FlexRules();
std::span<const RuleEntry> ImageRules();
std::span<const RuleEntry> LossRules();
std::span<const RuleEntry> IndexRules();
std::span<const RuleEntry> CreationRules();
std::span<const RuleEntry> OptimizerRules();

}  // namespace strata
