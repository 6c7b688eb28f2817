#pragma once
#include <cstdint>

#include "base/result.h"
#include "ir/graph.h"
#include "runtime/plan/plan.h"
#include "runtime/trace/tracer.h"

namespace strata {

/// The memory that a run of the graph needs on a CPU beside its inputs, in bytes: what an executor
/// of a plan with these options reports as PlannedMemory (held, constants and transient), for the
/// sizes that the graph was traced for. Makes the program without compiling its kernels, and
/// allocates nothing for it. Errors: those of Lower and Executor::Bind.
Result<int64_t> PredictPeak(const Graph& graph, const PlanOptions& options,
                            const Constants& constants);

}  // namespace strata
