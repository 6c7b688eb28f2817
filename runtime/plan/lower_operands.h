#pragma once
#include <functional>
#include <string_view>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/symbol_sizes.h"
#include "runtime/plan/plan.h"

// What the steps of a plan read: inputs and arguments.

namespace strata {

/// A graph that no plan executes.
Error UnsupportedInPlan(std::string_view why);

/// The input of a placeholder, without its slot. Sizes that an earlier graph read from data are
/// kAnySize. Errors: an input of another type than a tensor; `sizes` lacks a symbol of its type.
Result<Plan::Input> LowerInput(const Graph& graph, NodeId placeholder, const SymbolSizes& sizes);

/// The plan's form of an argument: a literal as it is, sizes as numbers, values as `lower_value`
/// says. Errors: an argument that no operator of a plan takes.
Result<PlanArg> LowerArg(const Graph& graph, const Arg& arg, const SymbolSizes& sizes,
                         const std::function<PlanArg(ValueId)>& lower_value);

}  // namespace strata
