#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "passes/pipeline/schedule/action.h"
#include "passes/pipeline/schedule/stage_ranks.h"

namespace strata {

/// What each rank of a pipeline does in a step, in order.
struct PipelineSchedule {
  int64_t microbatches = 0;
  std::vector<int64_t> rank_of_stage;
  /// By rank. None is an idle slot: it shows how schedules align, and means nothing.
  std::vector<std::vector<std::optional<Action>>> ranks;

  int64_t num_ranks() const { return static_cast<int64_t>(ranks.size()); }
  int64_t num_stages() const { return static_cast<int64_t>(rank_of_stage.size()); }
};

/// A kind of schedule, by PyTorch's name.
struct ScheduleKind {
  std::string_view name;
  bool is_multi;  ///< a rank has two stages or more
  StageStyle style;
};
/// In the order of documentation.
const std::vector<ScheduleKind>& ScheduleKinds();
/// Ignores case. Errors: another name; lists what exists.
Result<ScheduleKind> FindScheduleKind(std::string_view name);

/// How large a pipeline is.
struct PipelineSize {
  int64_t ranks = 1;
  int64_t stages_per_rank = 1;
  int64_t microbatches = 1;
};

/// The schedule of a kind: only F, B, I, W, OVERLAP_F_B and idle slots.
/// Errors: sizes that the kind cannot have.
/// Source: torch.distributed.pipelining.schedules; papers: GPipe (1811.06965), PipeDream-Flush
/// (2006.09503), Megatron-LM (2104.04473), Breadth-First (2211.05953), Zero Bubble (2401.10241),
/// DualPipeV (deepseek-ai/DualPipe).
Result<PipelineSchedule> MakeSchedule(const ScheduleKind& kind, const PipelineSize& size);

}  // namespace strata
