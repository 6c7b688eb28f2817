#pragma once
#include <chrono>
#include <cstdint>
#include <functional>

#include "base/result.h"
#include "refs/recording/recording.h"
#include "runtime/train/trainer.h"

namespace strata::cli {

/// Records the step with the graphs that it executed. Without a trace nothing happens, as in the
/// functions below.
Status RecordStep(Recording& recording, const StepReport& report);

/// Records what the profiled steps after `first_step` took, and with `has_values` what their nodes
/// gave. `is_profiled` says which steps they are.
Status RecordProfiles(Recording& recording, const Trainer& trainer, int64_t first_step,
                      bool has_values, const std::function<bool(int64_t step)>& is_profiled);

/// Records what the ranks of a pipeline did in the last step, if that was measured: events of kind
/// kActionEvent (refs/pipeline_actions.h). `start`: of the run.
Status RecordActions(Recording& recording, const Trainer& trainer,
                     std::chrono::steady_clock::time_point start);

/// Records which nodes of device graphs are of which module.
Status RecordKernels(Recording& recording, const Trainer& trainer);

}  // namespace strata::cli
