#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "passes/pipeline/schedule/schedule.h"

namespace strata {

/// A schedule as comma-separated values: a line per rank, an action per field, an empty field for
/// an idle slot, as PyTorch's schedules are written. With SEND and RECV it is a whole program,
/// without it is lowered before it runs.
///
///     0F0,0F1,,0B0,,0B1
///     ,1F0,1B0,1F1,1B1,
std::string ScheduleCsv(const PipelineSchedule& schedule);

/// What `ScheduleCsv` writes, and what PyTorch writes. Stages, ranks of stages and microbatches
/// follow from the actions F. Errors, `file:line:column: what`: a word that is not an action, a
/// stage on two ranks, stages or microbatches that are left out.
/// Format: torch.distributed.pipelining.schedules, _PipelineScheduleRuntime._load_csv.
Result<PipelineSchedule> ParseScheduleCsv(std::string_view text, std::string_view file);

/// One action, as ToString writes it. Errors: what is wrong with it.
Result<Action> ParseAction(std::string_view text);

/// Whether ranks send and receive: there is nothing to lower.
bool HasCommunication(const PipelineSchedule& schedule);

}  // namespace strata
