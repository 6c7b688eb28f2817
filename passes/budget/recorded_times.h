#pragma once
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/budget/memory_costs.h"

namespace strata {

/// Microseconds that nodes took in a step, by name.
using NodeTimes = std::map<std::string, double, std::less<>>;

/// Reads `strata.profile/1`, what `strata profile REF --json` prints. Errors: text of another form.
Result<NodeTimes> ParseProfile(std::string_view json);

/// Nodes with a recorded time cost that. Others cost what the model says, times the ratio of
/// recorded and modelled times over all nodes that have both, so that both kinds compare.
void UseTimes(const NodeTimes& times, const Graph& graph, MemoryCosts& costs);

}  // namespace strata
