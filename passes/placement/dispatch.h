#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace strata {

/// The rows of a graph's dispatches: what a sort of tokens by their experts orders, up to where
/// rows become tokens again.
///
///   order = sort(experts)  rows = index_select(tokens, order // k)  …  index_add(out, …, rows)
///
/// What counts the rows of each expert is what the ends of a grouped product over them sum up.
class Dispatches {
 public:
  explicit Dispatches(Graph& graph);
  /// Integers `[experts]`: how many rows each has; none: `rows` are not those of a dispatch.
  ValueId CountsOf(ValueId rows) const;
  /// What the first of those products multiplies rows with, `[experts, in, out]`; none likewise.
  ValueId WeightOf(ValueId rows) const;
  /// Whether dimension `dim` of a value is that of the rows of a dispatch.
  bool IsRowDim(ValueId value, int32_t dim) const;
  /// The same of the value that counts them; none: it counts the rows of no dispatch.
  ValueId WeightCountedBy(ValueId counts) const;
  /// The same of the experts of each token, which the dispatch sorts and counts, and of what is
  /// made of them on the way to the sort and to the counts; none likewise.
  ValueId WeightChosenBy(ValueId experts) const;

 private:
  /// A value and its dimension of rows.
  struct Rows {
    ValueId value;
    int32_t dim = 0;
  };
  struct Product {
    ValueId counts, weight;
  };
  static std::vector<Rows> RowsOf(Graph& graph, NodeId sort);
  static Product ProductOver(const Graph& graph, const std::vector<Rows>& rows);
  /// What `sort` sorts, and what it is a view of.
  void AddSorted(const Graph& graph, NodeId sort, ValueId weight);
  /// Whether `value` is one of those, or made of them: then it is added.
  bool AddCounted(const Graph& graph, ValueId value, ValueId weight, int depth = 0);

  std::unordered_map<ValueId, Product> products_;
  std::unordered_map<ValueId, int32_t> dims_;
  std::unordered_map<ValueId, ValueId> weights_;  // by what counts the rows
  std::unordered_map<ValueId, ValueId> chosen_;   // by experts of tokens, weights likewise
};

}  // namespace strata
