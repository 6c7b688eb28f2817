#include "prove/evaluation/shared_calls.h"

#include <algorithm>
#include <set>
#include <variant>

#include "ir/module.h"
#include "ir/ops.h"
#include "ir/taken_elements.h"
#include "prove/evaluation/storage_sets.h"

namespace strata::prove {
namespace {

/// Whether an argument is a size that only a run knows, or a body, or has one.
bool DependsOnRun(const Graph& graph, const Arg& arg) {
  if (arg.kind() == ArgKind::kDim) return !graph.module().dims().Hint(arg.dim());
  if (arg.kind() == ArgKind::kGraph) return true;
  if (!arg.is_span()) return false;
  return std::ranges::any_of(graph.elements(arg),
                             [&](const Arg& element) { return DependsOnRun(graph, element); });
}

bool DependsOnOperandsAlone(const Graph& graph, NodeId node) {
  const Node& n = graph.node(node);
  const std::string_view op = graph.op(node);
  if (n.kind == NodeKind::kGetAttr) return true;
  if (n.kind != NodeKind::kCall || TraitsOf(op).random || ElementTakenBy(graph, node)) return false;
  for (size_t i = 0; i < n.num_kwargs; ++i)
    if (DependsOnRun(graph, graph.kwarg(node, i).value)) return false;
  return std::ranges::none_of(graph.args(node),
                              [&](const Arg& arg) { return DependsOnRun(graph, arg); });
}

}  // namespace

SharedCalls::SharedCalls(const Graph& graph)
    : can_share_(static_cast<size_t>(graph.node_bound()), false), is_written_(can_share_) {
  StorageSets storages(graph);
  std::set<int32_t> written;
  for (const NodeId node : graph.nodes())
    for (const ValueId value : WrittenBy(graph, node))
      written.insert(storages.Find(value));
  for (const NodeId node : graph.nodes()) {
    const auto at = static_cast<size_t>(node.index);
    for (size_t i = 0; i < graph.node(node).num_results; ++i)
      if (written.contains(storages.Find(graph.result(node, i)))) is_written_[at] = true;
    can_share_[at] =
        !is_written_[at] && WrittenBy(graph, node).empty() && DependsOnOperandsAlone(graph, node);
  }
}

bool IsSameMemory(const Tensor& a, const Tensor& b) {
  return a.storage() == b.storage() && a.offset() == b.offset() && a.sizes() == b.sizes() &&
         a.strides() == b.strides() && a.domain() == b.domain() && a.laws() == b.laws();
}

bool IsSameMemory(const Value& a, const Value& b) {
  const auto *x = std::get_if<Tensor>(&a), *y = std::get_if<Tensor>(&b);
  if (x != nullptr && y != nullptr) return IsSameMemory(*x, *y);
  const auto *n = std::get_if<int64_t>(&a), *m = std::get_if<int64_t>(&b);
  return n != nullptr && m != nullptr && *n == *m;
}

}  // namespace strata::prove
