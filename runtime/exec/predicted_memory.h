#pragma once
#include <cstdint>

#include "base/result.h"
#include "ir/graph.h"
#include "runtime/plan/memory/planned_memory.h"
#include "runtime/plan/plan.h"
#include "runtime/trace/tracer.h"

namespace strata {

/// The memory that a run of the graph needs on a CPU beside its inputs: what an executor of a plan
/// with these options reports, for the sizes that the graph was traced for. Makes the program
/// without compiling its kernels, and allocates nothing for it. Errors: those of Lower and
/// Executor::Bind.
Result<PlannedMemory> PredictMemory(const Graph& graph, const PlanOptions& options,
                                    const Constants& constants);

}  // namespace strata
