#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "passes/pipeline/schedule/schedule.h"

namespace strata {

/// By rank: what it executes. No idle slots.
using RankPrograms = std::vector<std::vector<Action>>;

/// Adds what a schedule of F, B, I, W and OVERLAP_F_B leaves out: UNSHARD before a stage is used
/// and RESHARD after, for at most `max_unsharded` stages at once; REDUCE_GRAD after the last
/// gradient of a stage; SEND and RECV of what stages on other ranks read. Sends and receives of two
/// ranks stand in an order in which no rank waits forever. Neighbouring stages of one rank send
/// nothing. A schedule that sends already is returned without its idle slots.
/// Errors: an action that can never run, `rank 1: 3F0 waits for 2F0`. Source:
/// torch.distributed.pipelining.schedules, _PipelineScheduleRuntime.
Result<RankPrograms> LowerSchedule(const PipelineSchedule& schedule, int64_t max_unsharded = 3);

/// Moves each reception to right before the action that reads what it receives. LowerSchedule puts
/// it beside the send, as PyTorch does, whose receptions do not block; ranks that wait in a
/// reception would wait for values that they do not need yet. REQUIRES: sends do not block.
void DelayReceptions(RankPrograms& programs);

}  // namespace strata
