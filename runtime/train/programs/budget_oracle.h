#pragma once
#include <memory>
#include <span>

#include "passes/core/pass.h"
#include "runtime/plan/plan.h"
#include "runtime/trace/tracer.h"

namespace strata {

/// Lets each pass `budget` ask for the peak that the plan of the final graph has: after the passes
/// that follow it, on a CPU. REQUIRES: `constants`, those of the traced graphs, outlive the passes.
void AskPlannerForPeaks(std::span<const std::unique_ptr<Pass>> passes, const PlanOptions& options,
                        const Constants& constants);

}  // namespace strata
