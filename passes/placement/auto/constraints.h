#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/module.h"
#include "passes/placement/auto/call_strategies.h"
#include "passes/placement/plan.h"

namespace strata {

/// What `plan` decides of a parameter or of a call and its results, as a text; `key`: of a call,
/// or null where the plan decides no calls.
std::string DecidedText(Graph& graph, const PlacementPlan& plan, NodeId node, const NodeKey* key);

/// False where `plan` holds the parameter otherwise.
bool IsHeldAs(Module& module, const PlacementPlan& plan, std::string_view parameter,
              const Placements& placements);

/// Drops the strategies of a call that `plan` decides otherwise. Errors: none is left.
Status KeepDecided(Module& module, const PlacementPlan& plan, const NodeKey& key,
                   const ShardingRule& rule, std::vector<CallStrategy>& strategies);

}  // namespace strata
