#pragma once
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/module.h"
#include "passes/placement/auto/call_strategies.h"
#include "passes/placement/plan.h"

namespace strata {

/// False where `plan` holds the parameter otherwise.
bool IsHeldAs(Module& module, const PlacementPlan& plan, std::string_view parameter,
              const Placements& placements);

/// Drops the strategies of a call that `plan` decides otherwise. Errors: none is left.
Status KeepDecided(Module& module, const PlacementPlan& plan, const NodeKey& key,
                   const ShardingRule& rule, std::vector<CallStrategy>& strategies);

}  // namespace strata
