#include "passes/pipeline/schedule/simulation.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "passes/pipeline/schedule/schedule_text.h"

namespace strata {
namespace {

class Simulator {
 public:
  Simulator(const PipelineSchedule& schedule, const ActionTimes& times)
      : schedule_(schedule),
        times_(times),
        sends_(HasCommunication(schedule)),
        next_(schedule.ranks.size()),
        now_(schedule.ranks.size()),
        in_flight_(schedule.ranks.size()) {
    result_.busy.resize(schedule.ranks.size());
    result_.peak_in_flight.resize(schedule.ranks.size());
  }

  Simulation Run() {
    bool progressed = true;
    while (progressed) {
      progressed = false;
      for (size_t rank = 0; rank < next_.size(); ++rank)
        while (Advance(rank))
          progressed = true;
    }
    result_.makespan = now_.empty() ? 0.0 : *std::ranges::max_element(now_);
    std::ranges::stable_sort(result_.spans, {}, &ActionSpan::begin);
    ReportDeadlock();
    if (!result_.deadlock && !result_.lost) ReportMissing();
    return std::move(result_);
  }

 private:
  /// Runs the next action of a rank; false: it must wait, or there is none.
  bool Advance(size_t rank) {
    const auto& actions = schedule_.ranks[rank];
    if (next_[rank] == actions.size()) return false;
    const std::optional<Action>& action = actions[next_[rank]];
    if (action) {
      double begin = now_[rank];
      if (Waits(*action, begin)) return false;
      const double duration = times_.Of(*action);
      ForEachPart(*action, [&](const Action& part) { Finish(rank, part, begin + duration); });
      now_[rank] = begin + duration;
      result_.busy[rank] += duration;
      result_.spans.push_back({.rank = static_cast<int64_t>(rank),
                               .index = next_[rank],
                               .begin = begin,
                               .end = begin + duration});
    }
    ++next_[rank];
    return true;
  }

  /// What an action reads and nothing has made yet; moves `begin` behind what was made.
  std::optional<Action> Waits(const Action& action, double& begin) const {
    std::optional<Action> missing;
    ForEachPart(action, [&](const Action& part) {
      for (const std::vector<Action>& choices : Reads(part)) {
        const double ready = ReadyAt(choices, part.stage);
        if (ready < 0.0 && !missing) missing = choices.front();
        begin = std::max(begin, ready);
      }
    });
    return missing;
  }

  int64_t RankOf(int64_t stage) const {
    return schedule_.rank_of_stage[static_cast<size_t>(stage)];
  }
  bool HasStage(int64_t stage) const { return stage >= 0 && stage < schedule_.num_stages(); }

  /// When the first of several actions was done and its values are on the reader's rank; -1: none.
  double ReadyAt(const std::vector<Action>& choices, int64_t reader) const {
    for (const Action& choice : choices) {
      const auto done = done_.find(KeyOf(choice));
      if (done == done_.end()) continue;
      return done->second + (RankOf(choice.stage) == RankOf(reader) ? 0.0 : times_.transfer);
    }
    return -1.0;
  }

  /// For each value that an action reads: the actions that may make it.
  std::vector<std::vector<Action>> Reads(const Action& part) const {
    const auto at = [&](int64_t stage, ActionType type) {
      return Action{.stage = stage, .type = type, .microbatch = part.microbatch};
    };
    const auto neighbour = [&](int64_t stage, ActionType receive,
                               std::vector<Action> made) -> std::vector<Action> {
      if (sends_ && RankOf(stage) != RankOf(part.stage)) return {at(part.stage, receive)};
      return made;
    };
    std::vector<std::vector<Action>> reads;
    const int64_t previous = part.stage - 1, next = part.stage + 1;
    const std::vector<Action> gradient = {at(next, ActionType::kBackward),
                                          at(next, ActionType::kBackwardInput)};
    switch (part.type) {
      case ActionType::kForward:
        if (HasStage(previous))
          reads.push_back(neighbour(previous, ActionType::kReceiveForward,
                                    {at(previous, ActionType::kForward)}));
        break;
      case ActionType::kBackward:
      case ActionType::kBackwardInput:
        reads.push_back({at(part.stage, ActionType::kForward)});
        if (HasStage(next))
          reads.push_back(neighbour(next, ActionType::kReceiveBackward, gradient));
        break;
      case ActionType::kBackwardWeight:
        reads.push_back({at(part.stage, ActionType::kBackwardInput)});
        break;
      case ActionType::kSendForward:
        reads.push_back({at(part.stage, ActionType::kForward)});
        break;
      case ActionType::kSendBackward:
        reads.push_back(
            {at(part.stage, ActionType::kBackward), at(part.stage, ActionType::kBackwardInput)});
        break;
      case ActionType::kReceiveForward:
        reads.push_back({at(previous, ActionType::kSendForward)});
        break;
      case ActionType::kReceiveBackward:
        reads.push_back({at(next, ActionType::kSendBackward)});
        break;
      default:
        break;
    }
    return reads;
  }

  void Finish(size_t rank, const Action& part, double time) {
    if (!HasMicrobatch(part.type)) return;
    if (!done_.emplace(KeyOf(part), time).second && !result_.lost)
      result_.lost = fmt::format("rank {}: {} runs twice", rank, ToString(part));
    if (part.type == ActionType::kForward) {
      ++in_flight_[rank];
      result_.peak_in_flight[rank] = std::max(result_.peak_in_flight[rank], in_flight_[rank]);
    }
    if (part.type == ActionType::kBackward || part.type == ActionType::kBackwardWeight)
      --in_flight_[rank];
  }

  void ReportDeadlock() {
    std::string waits;
    for (size_t rank = 0; rank < next_.size(); ++rank) {
      if (next_[rank] == schedule_.ranks[rank].size()) continue;
      const Action& action = *schedule_.ranks[rank][next_[rank]];
      double begin = 0.0;
      waits += fmt::format("{}rank {}: action {}, {}, waits for {}", waits.empty() ? "" : "; ",
                           rank, next_[rank], ToString(action), ToString(*Waits(action, begin)));
    }
    if (!waits.empty()) result_.deadlock = std::move(waits);
  }

  void ReportMissing() {
    for (int64_t stage = 0; stage < schedule_.num_stages(); ++stage) {
      for (int64_t m = 0; m < schedule_.microbatches; ++m) {
        const bool whole = done_.contains({stage, ActionType::kBackward, m});
        const bool split = done_.contains({stage, ActionType::kBackwardWeight, m});
        if (whole != split) continue;
        result_.lost = fmt::format("stage {}: gradient of microbatch {} is {}", stage, m,
                                   whole ? "computed twice" : "not computed");
        return;
      }
    }
  }

  const PipelineSchedule& schedule_;
  const ActionTimes& times_;
  const bool sends_;
  std::vector<size_t> next_;  // by rank
  std::vector<double> now_;
  std::vector<int64_t> in_flight_;
  std::map<ActionKey, double> done_;
  Simulation result_;
};

}  // namespace

std::string TextWithoutMicrobatch(Action action) {
  action.microbatch = -1;
  for (Action& part : action.parts)
    part.microbatch = -1;
  return ToString(action);
}

double ActionTimes::Of(const Action& action) const {
  if (!of_action.empty()) {
    const auto found = of_action.find(TextWithoutMicrobatch(action));
    if (found != of_action.end()) return found->second;
  }
  if (action.type == ActionType::kOverlap) {
    double sum = 0.0;
    for (const Action& part : action.parts)
      sum += Of(part);
    return sum;
  }
  const auto stage = static_cast<size_t>(action.stage);
  const double factor = stage < stages.size() ? stages[stage] : 1.0;
  switch (action.type) {
    case ActionType::kForward:
      return factor * forward;
    case ActionType::kBackward:
      return factor * backward;
    case ActionType::kBackwardInput:
      return factor * input;
    case ActionType::kBackwardWeight:
      return factor * weight;
    default:
      return 0.0;
  }
}

double Simulation::bubble() const {
  if (makespan <= 0.0) return 0.0;
  double sum = 0.0;
  for (const double of_rank : busy)
    sum += of_rank;
  return 1.0 - sum / (makespan * static_cast<double>(busy.size()));
}

Simulation Simulate(const PipelineSchedule& schedule, const ActionTimes& times) {
  return Simulator(schedule, times).Run();
}

}  // namespace strata
