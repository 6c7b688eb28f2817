#include "passes/placement/dispatch.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "ir/module.h"
#include "ir/ops.h"

namespace strata {
namespace {

std::string_view BaseOf(const Graph& graph, NodeId node) {
  return graph.node(node).kind == NodeKind::kCall ? BaseName(graph.op(node)) : std::string_view();
}

/// The number of rows of a list of indices.
std::optional<DimId> SizeOf(const Graph& graph, ValueId indices) {
  const TypeId id = graph.value(indices).type;
  if (!id.valid() || graph.module().types()[id].sizes.size() != 1) return std::nullopt;
  return graph.module().types()[id].sizes[0];
}

bool HasDim(const Graph& graph, ValueId value, DimId size) {
  const TypeId id = graph.value(value).type;
  if (!id.valid()) return false;
  return std::ranges::count(graph.module().types()[id].sizes, size) != 0;
}

}  // namespace

Dispatches::Dispatches(const Graph& graph) {
  for (const NodeId node : graph.nodes()) {
    if (BaseOf(graph, node) != "sort") continue;
    const std::vector<ValueId> rows = RowsOf(graph, node);
    Product product = ProductOver(graph, rows);
    if (!product.counts.valid()) continue;
    product.num_rows = *SizeOf(graph, rows[0]);
    weights_.emplace(product.counts, product.weight);
    for (const ValueId value : rows)
      products_.emplace(value, product);
  }
}

ValueId Dispatches::CountsOf(ValueId rows) const {
  const auto found = products_.find(rows);
  return found == products_.end() ? ValueId{} : found->second.counts;
}

ValueId Dispatches::WeightOf(ValueId rows) const {
  const auto found = products_.find(rows);
  return found == products_.end() ? ValueId{} : found->second.weight;
}

bool Dispatches::IsRowDim(const Graph& graph, ValueId value, int32_t dim) const {
  const auto found = products_.find(value);
  if (found == products_.end()) return false;
  const std::vector<DimId>& sizes = graph.module().types()[graph.value(value).type].sizes;
  return sizes[static_cast<size_t>(dim)] == found->second.num_rows;
}

ValueId Dispatches::WeightCountedBy(ValueId counts) const {
  const auto found = weights_.find(counts);
  return found == weights_.end() ? ValueId{} : found->second;
}

/// Everything that follows from the order of `sort` and has its number of rows.
std::vector<ValueId> Dispatches::RowsOf(const Graph& graph, NodeId sort) const {
  std::vector<ValueId> rows = {graph.result(sort, 1)};
  const auto size = SizeOf(graph, rows[0]);
  if (!size) return {};
  std::unordered_set<ValueId> known = {rows[0]};
  for (size_t next = 0; next < rows.size(); ++next) {
    for (const Use use : graph.uses(rows[next])) {
      const std::string_view base = BaseOf(graph, use.user);
      // Rows become tokens, or lend their type.
      if (base.empty() || base == "index_add" || base == "index_add_" || base.starts_with("new_"))
        continue;
      for (size_t i = 0; i < graph.node(use.user).num_results; ++i) {
        const ValueId result = graph.result(use.user, i);
        if (HasDim(graph, result, *size) && known.insert(result).second) rows.push_back(result);
      }
    }
  }
  return rows;
}

Dispatches::Product Dispatches::ProductOver(const Graph& graph, const std::vector<ValueId>& rows) {
  for (const ValueId value : rows) {
    for (const Use use : graph.uses(value)) {
      const auto args = graph.args(use.user);
      if (BaseOf(graph, use.user) != "_grouped_mm" || args.size() < 3 || !args[2].is_value() ||
          !args[1].is_value() || args[1].value() == value)
        continue;
      NodeId ends = graph.value(args[2].value()).def;
      while (BaseOf(graph, ends) == "_to_copy")
        ends = graph.value(graph.args(ends)[0].value()).def;
      if (BaseOf(graph, ends) == "cumsum") {
        return {.counts = graph.args(ends)[0].value(), .weight = args[1].value()};
      }
    }
  }
  return {};
}

}  // namespace strata
