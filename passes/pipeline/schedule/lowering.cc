#include "passes/pipeline/schedule/lowering.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "passes/pipeline/schedule/schedule_text.h"

namespace strata {
namespace {

/// The next `count` different stages that actions from `begin` on use.
std::vector<int64_t> NextStages(const std::vector<Action>& actions, size_t begin, int64_t count) {
  std::vector<int64_t> stages;
  for (size_t i = begin; i < actions.size() && std::ssize(stages) < count; ++i) {
    ForEachPart(actions[i], [&](const Action& part) {
      if (std::ranges::find(stages, part.stage) == stages.end()) stages.push_back(part.stage);
    });
  }
  return stages;
}

std::vector<Action> AddUnshards(const std::vector<Action>& actions, int64_t max_unsharded) {
  std::vector<Action> result;
  std::vector<int64_t> active;
  for (size_t i = 0; i < actions.size(); ++i) {
    const std::vector<int64_t> next = NextStages(actions, i, max_unsharded);
    for (const int64_t stage : std::vector<int64_t>(active)) {
      if (std::ranges::find(next, stage) != next.end()) continue;
      std::erase(active, stage);
      result.push_back({.stage = stage, .type = ActionType::kReshard});
    }
    for (const int64_t stage : next) {
      if (std::ranges::find(active, stage) != active.end()) continue;
      active.push_back(stage);
      result.push_back({.stage = stage, .type = ActionType::kUnshard});
    }
    result.push_back(actions[i]);
  }
  for (const int64_t stage : active)
    result.push_back({.stage = stage, .type = ActionType::kReshard});
  return result;
}

std::vector<Action> AddReductions(const std::vector<Action>& actions, int64_t microbatches) {
  std::vector<Action> result;
  std::map<int64_t, int64_t> gradients;  // by stage
  for (const Action& action : actions) {
    result.push_back(action);
    ForEachPart(action, [&](const Action& part) {
      const bool has_gradient =
          part.type == ActionType::kBackward || part.type == ActionType::kBackwardWeight;
      if (has_gradient && ++gradients[part.stage] == microbatches)
        result.push_back({.stage = part.stage, .type = ActionType::kReduceGradient});
    });
  }
  return result;
}

/// Merges the ranks' actions in an order in which all can run.
class CommunicationAdder {
 public:
  CommunicationAdder(const PipelineSchedule& schedule, RankPrograms programs)
      : schedule_(schedule),
        left_(std::move(programs)),
        next_(left_.size()),
        done_(left_.size()),
        result_(left_.size()) {}

  Result<RankPrograms> Run() {
    while (true) {
      bool progressed = false, is_left = false;
      for (size_t rank = 0; rank < left_.size(); ++rank) {
        if (next_[rank] == left_[rank].size()) continue;
        is_left = true;
        const Action& action = left_[rank][next_[rank]];
        if (WaitsFor(rank, action)) continue;
        Take(rank, action);
        ++next_[rank];
        progressed = true;
      }
      if (!is_left) return std::move(result_);
      if (!progressed) return Stuck();
    }
  }

 private:
  bool IsLocal(int64_t stage, int64_t neighbour) const {
    return schedule_.rank_of_stage[static_cast<size_t>(stage)] ==
           schedule_.rank_of_stage[static_cast<size_t>(neighbour)];
  }

  /// What must have run on this rank before: an action of the neighbour stage, or its reception.
  std::optional<Action> WaitsFor(size_t rank, const Action& action) const {
    std::optional<Action> missing;
    ForEachPart(action, [&](const Action& part) {
      const auto has = [&](int64_t stage, ActionType type) {
        return done_[rank].contains(ActionKey{stage, type, part.microbatch});
      };
      if (part.type == ActionType::kForward && part.stage > 0) {
        if (!has(part.stage, ActionType::kReceiveForward) &&
            !has(part.stage - 1, ActionType::kForward))
          missing = {
              .stage = part.stage - 1, .type = ActionType::kForward, .microbatch = part.microbatch};
      }
      const bool is_backward =
          part.type == ActionType::kBackward || part.type == ActionType::kBackwardInput;
      if (is_backward && part.stage + 1 < schedule_.num_stages()) {
        if (!has(part.stage, ActionType::kReceiveBackward) &&
            !has(part.stage + 1, ActionType::kBackwardInput) &&
            !has(part.stage + 1, ActionType::kBackward))
          missing = {.stage = part.stage + 1,
                     .type = ActionType::kBackward,
                     .microbatch = part.microbatch};
      }
    });
    return missing;
  }

  void Take(size_t rank, const Action& action) {
    result_[rank].push_back(action);
    ForEachPart(action, [&](const Action& part) {
      done_[rank].insert(KeyOf(part));
      if (part.type == ActionType::kForward) {
        Send(rank, part, part.stage + 1, ActionType::kSendForward, ActionType::kReceiveForward);
      } else if (part.type == ActionType::kBackward || part.type == ActionType::kBackwardInput) {
        Send(rank, part, part.stage - 1, ActionType::kSendBackward, ActionType::kReceiveBackward);
      }
    });
  }

  void Send(size_t rank, const Action& part, int64_t neighbour, ActionType send,
            ActionType receive) {
    if (neighbour < 0 || neighbour >= schedule_.num_stages() || IsLocal(part.stage, neighbour))
      return;
    result_[rank].push_back({.stage = part.stage, .type = send, .microbatch = part.microbatch});
    const auto peer = static_cast<size_t>(schedule_.rank_of_stage[static_cast<size_t>(neighbour)]);
    const Action received = {.stage = neighbour, .type = receive, .microbatch = part.microbatch};
    result_[peer].push_back(received);
    done_[peer].insert(KeyOf(received));
  }

  Error Stuck() const {
    std::vector<std::string> waits;
    for (size_t rank = 0; rank < left_.size(); ++rank) {
      if (next_[rank] == left_[rank].size()) continue;
      const Action& action = left_[rank][next_[rank]];
      waits.push_back(fmt::format("rank {}: {} waits for {}", rank, ToString(action),
                                  ToString(*WaitsFor(rank, action))));
    }
    return Error("the schedule deadlocks: {}: move or add what is waited for",
                 fmt::join(waits, "; "));
  }

  const PipelineSchedule& schedule_;
  RankPrograms left_;
  std::vector<size_t> next_;
  std::vector<std::set<ActionKey>> done_;  // by rank
  RankPrograms result_;
};

/// The reception whose value an action F, B or I reads, if it reads one.
std::optional<ActionKey> ReceptionFor(const Action& action) {
  switch (action.type) {
    case ActionType::kForward:
      return ActionKey{action.stage, ActionType::kReceiveForward, action.microbatch};
    case ActionType::kBackward:
    case ActionType::kBackwardInput:
      return ActionKey{action.stage, ActionType::kReceiveBackward, action.microbatch};
    default:
      return std::nullopt;
  }
}

/// One that nothing after it reads stays where it is.
std::vector<Action> WithLateReceptions(const std::vector<Action>& actions) {
  std::map<ActionKey, size_t> readers;
  for (size_t i = 0; i < actions.size(); ++i)
    ForEachPart(actions[i], [&](const Action& part) {
      if (const auto reception = ReceptionFor(part)) readers.emplace(*reception, i);
    });
  std::vector<Action> result;
  std::map<size_t, std::vector<Action>> delayed;  // by the position of the reader
  for (size_t i = 0; i < actions.size(); ++i) {
    const auto reader = readers.find(KeyOf(actions[i]));
    if (reader != readers.end() && reader->second > i) {
      delayed[reader->second].push_back(actions[i]);
      continue;
    }
    const std::vector<Action>& before = delayed[i];
    result.insert(result.end(), before.begin(), before.end());
    result.push_back(actions[i]);
  }
  return result;
}

}  // namespace

void DelayReceptions(RankPrograms& programs) {
  for (std::vector<Action>& actions : programs)
    actions = WithLateReceptions(actions);
}

Result<RankPrograms> LowerSchedule(const PipelineSchedule& schedule, int64_t max_unsharded) {
  const bool is_whole = HasCommunication(schedule);
  RankPrograms programs;
  for (const std::vector<std::optional<Action>>& slots : schedule.ranks) {
    std::vector<Action> actions;
    for (const std::optional<Action>& slot : slots)
      if (slot) actions.push_back(*slot);
    if (is_whole) {
      programs.push_back(std::move(actions));
      continue;
    }
    programs.push_back(AddReductions(AddUnshards(actions, max_unsharded), schedule.microbatches));
  }
  if (is_whole) return programs;
  return CommunicationAdder(schedule, std::move(programs)).Run();
}

}  // namespace strata
