#include "passes/placement/costs/recomputation.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "ir/module.h"
#include "passes/memory/activations.h"
#include "passes/memory/recompute.h"
#include "passes/memory/tags.h"
#include "passes/placement/costs/twins.h"

namespace strata {
namespace {

int64_t LayerOf(const Graph& graph, NodeId node) {
  int64_t layer = -1;
  if (graph.node(node).module.valid())
    WithoutLayer(graph.module().str(graph.node(node).module), layer);
  return layer;
}

/// Storages of `activations` of which `holds`, each once.
template <class Holds>
void AddStorages(const std::vector<Activation>& activations, const Holds& holds,
                 std::vector<ValueId>& storages) {
  for (const Activation& activation : activations) {
    if (holds(activation.owner) && std::ranges::count(storages, activation.owner) == 0)
      storages.push_back(activation.owner);
  }
}

}  // namespace

Result<Recomputation> RecomputationOf(const Graph& graph, TagMemory::Policy policy) {
  Recomputation found;
  const std::unique_ptr<Module> module = graph.module().Clone();
  if (policy != TagMemory::Policy::kNone) {
    STRATA_RETURN_IF_ERROR(TagMemory({.policy = policy}).Run(*module));
    STRATA_RETURN_IF_ERROR(Recompute().Run(*module));
  }
  const Graph& after = module->graph(graph.id());
  std::map<std::string, NodeId, std::less<>> nodes;
  int64_t last = -1;
  for (const NodeId node : graph.nodes()) {
    nodes.emplace(graph.name(node), node);
    last = std::max(last, LayerOf(graph, node));
  }
  for (const NodeId node : after.nodes()) {
    const std::string_view from = after.attribute(node, kRecomputedFromAttribute);
    if (!from.empty()) found.recomputed.insert(nodes.find(from)->second);
  }
  AddStorages(ListActivations(after), [](ValueId) { return true; }, found.saved);
  const auto is_of_last_layer = [&](ValueId value) {
    const NodeId def = graph.value(value).def;
    return found.recomputed.contains(def) && LayerOf(graph, def) == last &&
           std::ranges::count(found.saved, value) == 0;
  };
  AddStorages(ListActivations(graph), is_of_last_layer, found.again);
  return found;
}

}  // namespace strata
