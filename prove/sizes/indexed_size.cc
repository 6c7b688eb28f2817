#include "prove/sizes/indexed_size.h"

#include <set>
#include <string_view>
#include <vector>

#include "ir/module.h"
#include "ir/ops.h"
#include "prove/values/call.h"

namespace strata::prove {
namespace {

constexpr size_t kMaxNodes = 64;  // that make the indices of one node

/// Whether a node computes integers or truth values.
bool MakesIntegers(const Graph& graph, NodeId node) {
  if (graph.node(node).kind != NodeKind::kCall || graph.node(node).num_results != 1) return false;
  const TypeId type = graph.value(graph.result(node)).type;
  return type.valid() && DomainOf(graph.module().types()[type].dtype) == Domain::kInteger;
}

/// The size that `index` indexes in a call that reads it; none: it does not index
/// one.
std::optional<SizeId> SizeIndexedBy(const GraphSizes& sizes, NodeId node, ValueId index) {
  const Graph& graph = sizes.graph();
  const std::string_view op = BaseName(graph.op(node));
  const std::vector<ValueId> operands = graph.operands(node);
  const auto is_operand = [&](size_t i) { return i < operands.size() && operands[i] == index; };
  const auto size_at = [&](ValueId value, size_t dim) -> std::optional<SizeId> {
    const std::vector<SizeId>& dims = sizes.of(value);
    return dim < dims.size() ? std::optional(dims[dim]) : std::nullopt;
  };
  if (op == "embedding" && is_operand(1)) return size_at(operands[0], 0);
  if (op == "embedding_dense_backward" && is_operand(1)) return size_at(graph.result(node), 0);
  if (op == "nll_loss_forward" && is_operand(1)) return size_at(operands[0], 1);
  if (op == "nll_loss_backward" && is_operand(2)) return size_at(operands[1], 1);
  return std::nullopt;
}

}  // namespace

std::optional<SizeId> IndexedSize(const GraphSizes& sizes, NodeId node, int64_t number,
                                  const SizeConstraints& constraints) {
  const Graph& graph = sizes.graph();
  std::vector<NodeId> next = {node};
  std::set<NodeId> seen = {node};
  const auto visit = [&](NodeId other) {
    if (MakesIntegers(graph, other) && seen.size() < kMaxNodes && seen.insert(other).second)
      next.push_back(other);
  };
  if (!MakesIntegers(graph, node)) return std::nullopt;
  std::optional<SizeId> counted;  // positions, that others are compared with
  for (size_t i = 0; i < next.size(); ++i) {
    const ValueId value = graph.result(next[i]);
    const std::vector<SizeId>& dims = sizes.of(value);
    const bool counts = BaseName(graph.op(next[i])) == "arange" && dims.size() == 1;
    if (counts && !counted && constraints.number(dims[0]) == number) counted = dims[0];
    for (const Use use : graph.uses(value)) {
      const auto size = SizeIndexedBy(sizes, use.user, value);
      if (size && constraints.number(*size) == number) return size;
      visit(use.user);
    }
    for (const ValueId operand : graph.operands(next[i]))
      visit(graph.value(operand).def);
  }
  return counted;
}

}  // namespace strata::prove
