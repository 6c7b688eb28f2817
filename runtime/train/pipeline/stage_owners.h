#pragma once
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/module.h"
#include "passes/pipeline/schedule/schedule.h"
#include "runtime/config/parallelism_config.h"
#include "runtime/train/programs/programs.h"

namespace strata {

/// Which rank of the axis `pp` has which parameters and buffers.
struct StageOwners {
  std::vector<int64_t> parameters, buffers;  ///< in the order of TrainSpec::model
  int64_t loss = 0;                          ///< the rank of the last stage

  /// Of a module that `split-stages` cut. Errors: it did not.
  static Result<StageOwners> Make(const Module& module, const TrainSpec& spec,
                                  const PipelineSchedule& schedule);
};

/// The schedule that a configuration asks for. Errors: a file that is not one, or that does not run
/// to its end; a schedule for another pipeline.
Result<PipelineSchedule> ScheduleOf(const PipelineConfig& pipeline);
/// Whether it has actions I and W.
bool SplitsBackward(const PipelineSchedule& schedule);
/// Stages of the forward and the backward of its OVERLAP_F_B, each pair once, ascending.
std::set<std::pair<int64_t, int64_t>> OverlapsOf(const PipelineSchedule& schedule);

}  // namespace strata
