#include "prove/evaluation/storage_sets.h"

#include <algorithm>
#include <numeric>

#include "ir/module.h"
#include "ir/ops.h"
#include "prove/ops/definitions.h"
#include "prove/values/call.h"

namespace strata::prove {
namespace {

/// Whether a body of the node writes to something.
bool HasBodyThatWrites(const Graph& graph, NodeId node) {
  return std::ranges::any_of(graph.args(node), [&](const Arg& arg) {
    if (arg.kind() != ArgKind::kGraph) return false;
    const Graph& body = graph.module().graph(arg.graph());
    return std::ranges::any_of(body.nodes().Snapshot(), [&](NodeId inner) {
      return TraitsOf(body, inner).mutates || HasBodyThatWrites(body, inner);
    });
  });
}

}  // namespace

StorageSets::StorageSets(const Graph& graph) : parents_(static_cast<size_t>(graph.value_bound())) {
  std::iota(parents_.begin(), parents_.end(), 0);
  for (const NodeId node : graph.nodes())
    JoinResults(graph, node);
}

int32_t StorageSets::Find(ValueId value) {
  int32_t at = value.index;
  while (parents_[static_cast<size_t>(at)] != at) {
    int32_t& parent = parents_[static_cast<size_t>(at)];
    parent = parents_[static_cast<size_t>(parent)];
    at = parent;
  }
  return at;
}

/// Results share the storage of the first operand where the operator moves data, or writes.
void StorageSets::JoinResults(const Graph& graph, NodeId node) {
  const std::vector<ValueId> operands = graph.operands(node);
  const std::string_view op = graph.op(node);
  const OpTraits traits = TraitsOf(op);
  const OpDefinition* definition = FindDefinition(op);
  const bool may_share = traits.view || traits.mutates || op.starts_with(kLaunchPrefix) ||
                         (definition != nullptr && definition->moves_data);
  for (size_t i = 0; i < graph.node(node).num_results; ++i) {
    const ValueId result = graph.result(node, i);
    if (graph.value(result).alias_of.valid()) Join(result, graph.value(result).alias_of);
    if (may_share && !operands.empty()) Join(result, operands[0]);
  }
}

std::vector<ValueId> WrittenBy(const Graph& graph, NodeId node) {
  const std::string_view op = graph.op(node);
  const std::vector<ValueId> operands = graph.operands(node);
  const std::string_view base = BaseName(op);
  const bool is_in_place = base.ends_with('_') && !base.ends_with("__") && !base.starts_with('_');
  std::vector<ValueId> written;
  if (const Arg* out = graph.FindKwarg(node, "out"); out != nullptr && out->is_value())
    written.push_back(out->value());
  if (is_in_place && !operands.empty()) {
    written.push_back(operands[0]);
  } else if ((TraitsOf(graph, node).mutates && written.empty()) || HasBodyThatWrites(graph, node)) {
    written = operands;
  }
  return written;
}

}  // namespace strata::prove
