#include "passes/placement/dispatch.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/placement/rules/sharding_rule.h"

namespace strata {
namespace {

std::string_view BaseOf(const Graph& graph, NodeId node) {
  return graph.node(node).kind == NodeKind::kCall ? BaseName(graph.op(node)) : std::string_view();
}

bool IsList(const Graph& graph, ValueId indices) {
  const TypeId id = graph.value(indices).type;
  return id.valid() && graph.module().types()[id].sizes.size() == 1;
}

/// The dimension with just these factors; none: there is none.
std::optional<int32_t> DimWith(const FactorDims& tensor, const std::vector<int>& factors) {
  const auto found = std::ranges::find(tensor, factors);
  if (factors.empty() || found == tensor.end()) return std::nullopt;
  return static_cast<int32_t>(found - tensor.begin());
}

}  // namespace

Dispatches::Dispatches(Graph& graph) {
  for (const NodeId node : graph.nodes()) {
    if (BaseOf(graph, node) != "sort") continue;
    const std::vector<Rows> rows = RowsOf(graph, node);
    const Product product = ProductOver(graph, rows);
    if (!product.counts.valid()) continue;
    weights_.emplace(product.counts, product.weight);
    AddSorted(graph, node, product.weight);
    AddCounted(graph, product.counts, product.weight);
    for (const Rows& of : rows) {
      products_.emplace(of.value, product);
      dims_.emplace(of.value, of.dim);
    }
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

bool Dispatches::IsRowDim(ValueId value, int32_t dim) const {
  const auto found = dims_.find(value);
  return found != dims_.end() && found->second == dim;
}

ValueId Dispatches::WeightCountedBy(ValueId counts) const {
  const auto found = weights_.find(counts);
  return found == weights_.end() ? ValueId{} : found->second;
}

ValueId Dispatches::WeightChosenBy(ValueId experts) const {
  const auto found = chosen_.find(experts);
  return found == chosen_.end() ? ValueId{} : found->second;
}

void Dispatches::AddSorted(const Graph& graph, NodeId sort, ValueId weight) {
  ValueId value = graph.operands(sort)[0];
  chosen_.emplace(value, weight);
  while (graph.value(value).alias_of.valid() &&
         graph.operands(graph.value(value).def).size() == 1) {
    value = graph.operands(graph.value(value).def)[0];
    chosen_.emplace(value, weight);
  }
}

bool Dispatches::AddCounted(const Graph& graph, ValueId value, ValueId weight, int depth) {
  constexpr int kMaxDepth = 8;
  if (chosen_.contains(value)) return true;
  const NodeId def = graph.value(value).def;
  if (graph.node(def).kind != NodeKind::kCall || depth > kMaxDepth) return false;
  bool is_made_of_them = false;
  for (const ValueId operand : graph.operands(def))
    is_made_of_them = AddCounted(graph, operand, weight, depth + 1) || is_made_of_them;
  if (is_made_of_them) chosen_.emplace(value, weight);
  return is_made_of_them;
}

/// Everything that follows from the order of `sort` and has its rows in a dimension.
std::vector<Dispatches::Rows> Dispatches::RowsOf(Graph& graph, NodeId sort) {
  std::vector<Rows> rows = {{.value = graph.result(sort, 1), .dim = 0}};
  if (!IsList(graph, rows[0].value)) return {};
  std::unordered_set<ValueId> known = {rows[0].value};
  for (size_t next = 0; next < rows.size(); ++next) {
    const auto [value, dim] = rows[next];
    for (const Use use : graph.uses(value)) {
      const std::string_view base = BaseOf(graph, use.user);
      // Rows lend their type.
      if (base.empty() || base.starts_with("new_")) continue;
      const auto rule = ShardingRuleOf(graph, use.user);
      if (!rule) continue;  // who places the node says so
      const std::vector<ValueId> operands = graph.operands(use.user);
      const auto operand =
          static_cast<size_t>(std::ranges::find(operands, value) - operands.begin());
      const std::vector<int>& factors = rule->operands[operand][static_cast<size_t>(dim)];
      for (size_t i = 0; i < rule->results.size(); ++i) {
        const std::optional<int32_t> in = DimWith(rule->results[i], factors);
        const ValueId result = graph.result(use.user, i);
        if (in && known.insert(result).second) rows.push_back({.value = result, .dim = *in});
      }
    }
  }
  return rows;
}

Dispatches::Product Dispatches::ProductOver(const Graph& graph, const std::vector<Rows>& rows) {
  for (const auto& [value, dim] : rows) {
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
