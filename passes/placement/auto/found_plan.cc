#include "passes/placement/auto/found_plan.h"

#include <algorithm>
#include <optional>

#include "passes/memory/tag_memory.h"
#include "passes/placement/auto/auto_plan.h"
#include "passes/placement/auto/plan_text.h"
#include "passes/placement/costs/topology.h"

namespace strata {
namespace {

std::optional<GraphId> StepOf(const Module& module) {
  for (const GraphId id : module.programs()) {
    const Graph& graph = module.graph(id);
    if (std::ranges::any_of(
            graph.nodes(), [&](NodeId node) { return graph.node(node).phase == Phase::kBackward; }))
      return id;
  }
  return std::nullopt;
}

}  // namespace

Result<PlacementPlan> FoundPlan(Module& module, const Mesh& mesh, const FoundPlanOptions& options) {
  const std::optional<GraphId> step = StepOf(module);
  if (!step) {
    return Error(
        "no graph has a backward: place{{plan=auto}}: name a plan, or place the graph of a step");
  }
  STRATA_TRY(const Topology topology, Topology::Load(options.topology));
  AutoOptions search;
  search.space.reshard = options.reshard;
  search.memory_bytes = 0.9 * topology.device.memory_bytes;
  const std::optional<TagMemory::Policy> policy = MemoryPolicyNamed(options.memory_policy);
  if (!policy) {
    return Error("no such memory policy: place{{memory_policy={}}}: choose {}",
                 options.memory_policy, MemoryPolicyNames());
  }
  search.memory_policy = *policy;
  STRATA_TRY(const CostModel model, CostModel::Make(topology, mesh));
  Graph& graph = module.graph(*step);
  STRATA_TRY(const AutoPlacement found,
             PlaceAutomatically(graph, PlacementPlan(mesh), model, search));
  return PlacementPlan::Parse(PlanText(graph, found, mesh, ""), "auto", mesh, {});
}

}  // namespace strata
