#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "passes/pipeline/schedule/schedule.h"

namespace strata {

/// How long actions take, in any unit. Others take no time.
struct ActionTimes {
  double forward = 1.0;
  double backward = 2.0;            ///< B
  double input = 1.0;               ///< I
  double weight = 1.0;              ///< W
  double transfer = 0.0;            ///< from the end of an action until another rank has its values
  std::vector<double> stages = {};  ///< factors of the first four by stage; missing: 1
  /// Of actions that stand as text without their microbatch, `2F`, `0UNSHARD` or
  /// `(0F;3B)OVERLAP_F_B`, instead of the above.
  std::map<std::string, double, std::less<>> of_action = {};

  /// 0 of actions that are neither F, B, I, W, a pair of them, nor in `of_action`.
  double Of(const Action& action) const;
};

/// What happened to an action of a simulated schedule.
struct ActionSpan {
  int64_t rank = 0;
  size_t index = 0;  ///< in the rank's list, with idle slots
  double begin = 0.0, end = 0.0;
};

struct Simulation {
  std::vector<ActionSpan> spans;  ///< of what ran, by begin
  double makespan = 0.0;          ///< of the slowest rank
  std::vector<double> busy;       ///< by rank
  /// By rank: the most microbatches of its stages that were forwarded and have gradients left to
  /// compute.
  std::vector<int64_t> peak_in_flight;
  /// Where it ended: `rank 1: action 3, 1B0, waits for 2B0`; none: everything ran.
  std::optional<std::string> deadlock;
  /// `stage 1: gradient of microbatch 2 is not computed`, or is computed twice; none: complete.
  std::optional<std::string> lost;

  bool is_complete() const { return !deadlock && !lost; }
  /// Part of the ranks' time that nothing runs in.
  double bubble() const;
};

/// `2F`, `(0F;3B)OVERLAP_F_B`: the action of any microbatch.
std::string TextWithoutMicrobatch(Action action);

/// Executes a schedule in which each rank does one action after the other. Receptions wait for what
/// is sent; without SEND and RECV, actions wait for those of neighbour stages.
Simulation Simulate(const PipelineSchedule& schedule, const ActionTimes& times = {});

}  // namespace strata
