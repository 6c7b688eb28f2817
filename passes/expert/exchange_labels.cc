#include "passes/expert/exchange_labels.h"

#include <algorithm>
#include <span>
#include <vector>

#include "ir/module.h"
#include "passes/expert/chunk_roots.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

bool HasDataDependentParts(const Graph& graph, NodeId node) {
  const std::span<const Arg> args = graph.args(node);
  return std::ranges::any_of(args.subspan(std::min<size_t>(1, args.size())), [&](const Arg& arg) {
    return arg.is_span() && std::ranges::any_of(graph.elements(arg), &Arg::is_value);
  });
}

/// Rows that arrive are as many as tokens chose experts here: a data-dependent number.
bool GoesToExperts(const Graph& graph, NodeId node) {
  const TypeId type = graph.value(graph.result(node)).type;
  if (!type.valid() || graph.module().types()[type].sizes.empty()) return true;
  const DimTable& dims = graph.module().dims();
  const DimId rows = graph.module().types()[type].sizes[0];
  if (dims.kind(rows) != DimKind::kSymbol) return false;
  const Symbol* symbol = dims.FindSymbol(graph.module().strings().Find(dims.name(rows)));
  return symbol != nullptr && !symbol->backed;
}

}  // namespace

void LabelTokenExchanges(Rewriter& rewriter) {
  const Graph& graph = rewriter.graph();
  for (const NodeId node : graph.nodes()) {
    if (!IsTokenExchange(graph, node) || !graph.attribute(node, kExchangeAttribute).empty() ||
        !HasDataDependentParts(graph, node)) {
      continue;
    }
    const bool is_forward =
        !IsBackward(graph, node) || !graph.attribute(node, kRecomputedFromAttribute).empty();
    const bool is_dispatch = GoesToExperts(graph, node) == is_forward;
    rewriter.SetAttribute(node, kExchangeAttribute, is_dispatch ? "dispatch" : "combine");
  }
}

}  // namespace strata
