#include <string>
#include <utility>

#include "passes/pipeline/graph_copier.h"
#include "passes/pipeline/slots.h"
#include "prove/mutations/edits.h"

namespace strata::prove {
namespace {

/// An input is bound to what another one of its type is: a payload of the next transfer, a value
/// that forward saved, a parameter of another layer.
bool ExchangeReceived(Graph& graph, NodeId node) {
  const std::string own(graph.attribute(node, kSlotAttribute));
  if (graph.node(node).kind != NodeKind::kPlaceholder || own.empty()) return false;
  if (graph.uses(graph.result(node)).empty()) return false;
  for (NodeId other = graph.node(node).next; other.valid(); other = graph.node(other).next) {
    if (graph.node(other).kind != NodeKind::kPlaceholder) return false;
    if (!SameType(graph, graph.result(node), graph.result(other))) continue;
    const std::string others(graph.attribute(other, kSlotAttribute));
    Rewriter rewriter(graph);
    rewriter.SetAttribute(node, kSlotAttribute, others);
    rewriter.SetAttribute(other, kSlotAttribute, own);
    return true;
  }
  return false;
}

/// Two values are sent, saved or returned as each other.
bool ExchangeSent(Graph& graph, NodeId node) {
  if (graph.output() == node || !graph.output().valid()) return false;
  auto slots = StageSlotsOf(graph);
  if (!slots) return false;
  const auto outputs = OutputsOf(graph);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i] || graph.value(*outputs[i]).def != node) continue;
    for (size_t j = i + 1; j < outputs.size(); ++j) {
      if (!outputs[j] || *outputs[j] == *outputs[i] || !SameType(graph, *outputs[i], *outputs[j]))
        continue;
      std::swap(slots->outputs[i], slots->outputs[j]);
      Rewriter rewriter(graph);
      SetOutputSlots(rewriter, slots->outputs);
      return true;
    }
  }
  return false;
}

// To add one: a function above and a line here.
constexpr Mutation kStageMutations[] = {
    {"exchange-received",
     "a stage takes one received, saved or own value for another",
     ExchangeReceived,
     {BugKind::kExchanged, BugKind::kMissingOperation, BugKind::kPermuted},
     true},
    {"exchange-sent",
     "a stage sends, saves or returns two values as each other",
     ExchangeSent,
     {BugKind::kExchanged, BugKind::kMissingOperation, BugKind::kPermuted},
     true},
};

}  // namespace

std::span<const Mutation> StageMutations() {
  return kStageMutations;
}

}  // namespace strata::prove
