#include "passes/pipeline/schedule/measured.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace strata {
namespace {

bool Communicates(ActionType type) {
  return type >= ActionType::kSendForward && type <= ActionType::kReceiveBackward;
}

/// Ranks in order, stages on one rank each, microbatches without a gap.
Status PlaceActions(const std::vector<MeasuredAction>& actions, PipelineSchedule& schedule) {
  std::map<int64_t, int64_t> rank_of_stage;
  for (const MeasuredAction& measured : actions) {
    const auto rank = static_cast<size_t>(measured.rank);
    if (schedule.ranks.size() <= rank) schedule.ranks.resize(rank + 1);
    schedule.ranks[rank].emplace_back(measured.action);
    ForEachPart(measured.action, [&](const Action& part) {
      if (IsCompute(part.type)) rank_of_stage.emplace(part.stage, measured.rank);
      schedule.microbatches = std::max(schedule.microbatches, part.microbatch + 1);
    });
  }
  for (const auto& [stage, rank] : rank_of_stage) {
    if (stage != schedule.num_stages())
      return Error("no action of stage {}: measured actions: profile a whole step",
                   schedule.num_stages());
    schedule.rank_of_stage.push_back(rank);
  }
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    if (schedule.ranks[rank].empty())
      return Error("no action of rank {}: measured actions: profile a whole step", rank);
  }
  if (rank_of_stage.empty())
    return Error(
        "no measured actions: profile a step of a pipeline, as with strata train "
        "--profile 1");
  return Ok();
}

/// What receptions lasted after the values were sent, in the mean.
double TransferTime(const std::vector<MeasuredAction>& actions) {
  std::map<ActionKey, double> sent;
  for (const MeasuredAction& measured : actions)
    if (Communicates(measured.action.type)) sent.emplace(KeyOf(measured.action), measured.begin);
  double sum = 0.0;
  int64_t count = 0;
  for (const MeasuredAction& measured : actions) {
    const bool is_forward = measured.action.type == ActionType::kReceiveForward;
    if (!is_forward && measured.action.type != ActionType::kReceiveBackward) continue;
    const auto send = sent.find({measured.action.stage + (is_forward ? -1 : 1),
                                 is_forward ? ActionType::kSendForward : ActionType::kSendBackward,
                                 measured.action.microbatch});
    if (send == sent.end()) continue;
    sum += std::max(0.0, measured.end - std::max(measured.begin, send->second));
    ++count;
  }
  return count == 0 ? 0.0 : sum / static_cast<double>(count);
}

}  // namespace

Result<MeasuredSchedule> ScheduleOfMeasured(const std::vector<MeasuredAction>& actions) {
  MeasuredSchedule made;
  STRATA_RETURN_IF_ERROR(PlaceActions(actions, made.schedule));
  double first = std::numeric_limits<double>::max();
  for (const MeasuredAction& measured : actions)
    first = std::min(first, measured.begin);
  Simulation& simulation = made.measured;
  simulation.busy.resize(made.schedule.ranks.size());
  simulation.peak_in_flight.resize(made.schedule.ranks.size());
  std::vector<size_t> next(made.schedule.ranks.size());
  std::vector<int64_t> in_flight(made.schedule.ranks.size());
  std::map<std::string, std::pair<double, int64_t>> sums;
  for (const MeasuredAction& measured : actions) {
    const auto rank = static_cast<size_t>(measured.rank);
    simulation.spans.push_back({.rank = measured.rank,
                                .index = next[rank]++,
                                .begin = measured.begin - first,
                                .end = measured.end - first});
    simulation.makespan = std::max(simulation.makespan, measured.end - first);
    ForEachPart(measured.action, [&](const Action& part) {
      if (part.type == ActionType::kForward) ++in_flight[rank];
      simulation.peak_in_flight[rank] = std::max(simulation.peak_in_flight[rank], in_flight[rank]);
      if (part.type == ActionType::kBackward || part.type == ActionType::kBackwardWeight)
        --in_flight[rank];
    });
    if (Communicates(measured.action.type)) continue;
    simulation.busy[rank] += measured.end - measured.begin;
    auto& [sum, count] = sums[TextWithoutMicrobatch(measured.action)];
    sum += measured.end - measured.begin;
    ++count;
  }
  std::ranges::stable_sort(simulation.spans, {}, &ActionSpan::begin);
  for (const auto& [text, sum] : sums)
    made.times.of_action.emplace(text, sum.first / static_cast<double>(sum.second));
  made.times.transfer = TransferTime(actions);
  return made;
}

}  // namespace strata
