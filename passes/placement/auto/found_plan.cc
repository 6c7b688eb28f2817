#include "passes/placement/auto/found_plan.h"

#include <algorithm>
#include <optional>

#include "passes/placement/auto/auto_plan.h"
#include "passes/placement/costs/recomputation.h"
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

Result<TagMemory::Policy> PolicyNamed(const std::string& name) {
  constexpr TagMemory::Policy kPolicies[] = {TagMemory::Policy::kDefault, TagMemory::Policy::kEager,
                                             TagMemory::Policy::kFull, TagMemory::Policy::kMinCut,
                                             TagMemory::Policy::kNone};
  for (const TagMemory::Policy policy : kPolicies)
    if (ToString(policy) == name) return policy;
  return Error(
      "no such memory policy: place{{memory_policy={}}}: choose default, eager, full, min_cut or "
      "none",
      name);
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
  STRATA_TRY(search.memory_policy, PolicyNamed(options.memory_policy));
  STRATA_TRY(const CostModel model, CostModel::Make(topology, mesh));
  Graph& graph = module.graph(*step);
  STRATA_TRY(const AutoPlacement found,
             PlaceAutomatically(graph, PlacementPlan(mesh), model, search));
  return PlacementPlan::Parse(PlanText(graph, found, mesh, ""), "auto", mesh, {});
}

}  // namespace strata
