#pragma once
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "passes/pipeline/schedule/schedule.h"

namespace strata {

/// Proves that a schedule runs to its end: each stage has its actions on its rank; each microbatch
/// has one F, and one B or one I and one W, in each stage; with SEND and RECV, each value that
/// crosses ranks is sent once and received once; no actions wait for each other in a circle.
/// `most_in_flight`: microbatches of its stages that a rank may hold activations of.
///
/// Errors name the rank and the action: `rank 1: action 3, 1B0: …`. Cost is linear in actions.
Status ValidateSchedule(const PipelineSchedule& schedule,
                        std::optional<int64_t> most_in_flight = std::nullopt);

}  // namespace strata
