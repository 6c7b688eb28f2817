#pragma once
#include <string>

#include "base/result.h"
#include "ir/module.h"
#include "passes/placement/mesh.h"
#include "passes/placement/plan.h"
#include "passes/placement/reshard.h"

namespace strata {

struct FoundPlanOptions {
  std::string topology = "h100";
  std::string memory_policy = "none";  ///< what forward saves for backward
  Reshard reshard = Reshard::kBlocks;
};

/// The plan that `strata place` finds for the step of `module`, its first program with a backward.
/// It fits 90 % of the memory of the topology. The same module gives the same plan in each process.
///
/// Errors: no program has a backward; an unknown topology or memory policy; those of
/// PlaceAutomatically.
Result<PlacementPlan> FoundPlan(Module& module, const Mesh& mesh, const FoundPlanOptions& options);

}  // namespace strata
