#pragma once
#include <string>
#include <string_view>

#include "ir/graph.h"
#include "passes/placement/auto/auto_plan.h"
#include "passes/placement/mesh.h"

namespace strata {

/// The plan file that makes `place` place `graph` so: each parameter and call, layers that are
/// alike in one entry. `comment`: lines before it, without '#'.
std::string PlanText(const Graph& graph, const AutoPlacement& placement, const Mesh& mesh,
                     std::string_view comment);

}  // namespace strata
