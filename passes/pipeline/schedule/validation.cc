#include "passes/pipeline/schedule/validation.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "passes/pipeline/schedule/schedule_text.h"

namespace strata {
namespace {

/// An action in the list of a rank.
struct Position {
  size_t rank = 0, index = 0;
  friend auto operator<=>(const Position&, const Position&) = default;
};

class Validator {
 public:
  explicit Validator(const PipelineSchedule& schedule)
      : schedule_(schedule), sends_(HasCommunication(schedule)) {}

  Status Run(std::optional<int64_t> most_in_flight) {
    STRATA_RETURN_IF_ERROR(FindActions());
    STRATA_RETURN_IF_ERROR(CheckComplete());
    STRATA_RETURN_IF_ERROR(CheckOrder());
    return most_in_flight ? CheckMemory(*most_in_flight) : Status(Ok());
  }

 private:
  const Action& At(const Position& at) const { return *schedule_.ranks[at.rank][at.index]; }
  std::string Describe(const Position& at) const {
    return fmt::format("rank {}: action {}, {}", at.rank, at.index, ToString(At(at)));
  }
  int64_t RankOf(int64_t stage) const {
    return schedule_.rank_of_stage[static_cast<size_t>(stage)];
  }

  template <class Fn>
  Status ForEachAction(Fn fn) {
    for (size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      for (size_t i = 0; i < schedule_.ranks[rank].size(); ++i) {
        if (!schedule_.ranks[rank][i]) continue;
        Status status = Ok();
        ForEachPart(*schedule_.ranks[rank][i], [&](const Action& part) {
          if (status) status = fn(Position{rank, i}, part);
        });
        if (!status) return status;
      }
    }
    return Ok();
  }

  Status FindActions() {
    return ForEachAction([&](const Position& at, const Action& part) -> Status {
      if (part.stage < 0 || part.stage >= schedule_.num_stages())
        return Error("{}: there is no stage {}", Describe(at), part.stage);
      if (RankOf(part.stage) != static_cast<int64_t>(at.rank)) {
        return Error("{}: stage {} is on rank {}", Describe(at), part.stage, RankOf(part.stage));
      }
      if (!HasMicrobatch(part.type)) return Ok();
      if (part.microbatch < 0 || part.microbatch >= schedule_.microbatches) {
        return Error("{}: there are {} microbatches", Describe(at), schedule_.microbatches);
      }
      const auto [known, is_new] =
          where_.try_emplace(ActionKey{part.stage, part.type, part.microbatch}, at);
      if (is_new) return Ok();
      return Error("{}: it runs before, as action {}", Describe(at), known->second.index);
    });
  }

  const Position* Find(int64_t stage, ActionType type, int64_t microbatch) const {
    const auto found = where_.find({stage, type, microbatch});
    return found == where_.end() ? nullptr : &found->second;
  }

  Status CheckComplete() const {
    for (int64_t stage = 0; stage < schedule_.num_stages(); ++stage) {
      for (int64_t m = 0; m < schedule_.microbatches; ++m) {
        const auto missing = [&](std::string_view what) {
          return Error("rank {}: {}{}{} is missing", RankOf(stage), stage, what, m);
        };
        const bool whole = Find(stage, ActionType::kBackward, m) != nullptr;
        const bool input = Find(stage, ActionType::kBackwardInput, m) != nullptr;
        const bool weight = Find(stage, ActionType::kBackwardWeight, m) != nullptr;
        if (Find(stage, ActionType::kForward, m) == nullptr) return missing("F");
        if (whole && (input || weight)) {
          const Position* extra =
              Find(stage, input ? ActionType::kBackwardInput : ActionType::kBackwardWeight, m);
          return Error("{}: the gradient is computed twice, by {}B{} too", Describe(*extra), stage,
                       m);
        }
        if (!whole && !input) return missing(weight ? "I" : "B");
        if (!whole && !weight) return missing("W");
        if (sends_) STRATA_RETURN_IF_ERROR(CheckSent(stage, m));
      }
    }
    return Ok();
  }

  /// What the stage sends is received, and nothing else is.
  Status CheckSent(int64_t stage, int64_t m) const {
    struct Route {
      ActionType send, receive;
      int64_t to;
    };
    for (const Route& route :
         {Route{ActionType::kSendForward, ActionType::kReceiveForward, stage + 1},
          Route{ActionType::kSendBackward, ActionType::kReceiveBackward, stage - 1}}) {
      const bool has_neighbour = route.to >= 0 && route.to < schedule_.num_stages();
      const bool crosses = has_neighbour && RankOf(route.to) != RankOf(stage);
      const Position* send = Find(stage, route.send, m);
      const Position* receive = has_neighbour ? Find(route.to, route.receive, m) : nullptr;
      if (!crosses && (send != nullptr || receive != nullptr)) {
        return Error("{}: the stages are on one rank, or there is no other",
                     Describe(send != nullptr ? *send : *receive));
      }
      if (!crosses) continue;
      if (send == nullptr)
        return Error("rank {}: {}{}{} is missing", RankOf(stage), stage, ToString(route.send), m);
      if (receive == nullptr) {
        return Error("rank {}: {}{}{} is missing", RankOf(route.to), route.to,
                     ToString(route.receive), m);
      }
    }
    return Ok();
  }

  /// The actions that must run before an action of a microbatch.
  std::vector<Position> Needs(const Action& part) const {
    std::vector<Position> needs;
    const auto need = [&](int64_t stage, std::initializer_list<ActionType> types) {
      for (const ActionType type : types)
        if (const Position* at = Find(stage, type, part.microbatch)) needs.push_back(*at);
    };
    const auto neighbour = [&](int64_t stage, ActionType receive,
                               std::initializer_list<ActionType> made) {
      if (stage < 0 || stage >= schedule_.num_stages()) return;
      if (sends_ && RankOf(stage) != RankOf(part.stage)) return need(part.stage, {receive});
      need(stage, made);
    };
    constexpr auto kB = ActionType::kBackward, kI = ActionType::kBackwardInput;
    switch (part.type) {
      case ActionType::kForward:
        neighbour(part.stage - 1, ActionType::kReceiveForward, {ActionType::kForward});
        break;
      case kB:
      case kI:
        need(part.stage, {ActionType::kForward});
        neighbour(part.stage + 1, ActionType::kReceiveBackward, {kB, kI});
        break;
      case ActionType::kBackwardWeight:
        need(part.stage, {kI});
        break;
      case ActionType::kSendForward:
        need(part.stage, {ActionType::kForward});
        break;
      case ActionType::kSendBackward:
        need(part.stage, {kB, kI});
        break;
      case ActionType::kReceiveForward:
        need(part.stage - 1, {ActionType::kSendForward});
        break;
      case ActionType::kReceiveBackward:
        need(part.stage + 1, {ActionType::kSendBackward});
        break;
      default:
        break;
    }
    return needs;
  }

  /// A topological order of the actions, by what they need and by their places in the lists.
  Status CheckOrder() {
    std::map<Position, std::vector<Position>> users;
    std::map<Position, size_t> open;  // what an action still waits for
    std::map<size_t, Position> last;  // by rank
    STRATA_RETURN_IF_ERROR(ForEachAction([&](const Position& at, const Action& part) {
      const auto connect = [&](const Position& before) {
        users[before].push_back(at);
        ++open[at];
      };
      open.try_emplace(at, 0);
      for (const Position& before : Needs(part))
        if (before != at || At(at).type != ActionType::kOverlap) connect(before);
      if (const auto before = last.find(at.rank); before != last.end() && before->second != at)
        connect(before->second);
      last[at.rank] = at;
      return Ok();
    }));
    std::vector<Position> ready;
    for (const auto& [at, count] : open)
      if (count == 0) ready.push_back(at);
    while (!ready.empty()) {
      const Position at = ready.back();
      ready.pop_back();
      open.erase(at);
      for (const Position& user : users[at])
        if (--open[user] == 0) ready.push_back(user);
    }
    return open.empty() ? Status(Ok()) : Status(Circle(open));
  }

  /// Follows the first stuck action of a rank to what it needs, until a rank comes again.
  Error Circle(const std::map<Position, size_t>& stuck) const {
    const auto head = [&](size_t rank) { return stuck.lower_bound({rank, 0})->first; };
    const auto needed = [&](const Position& at) {
      Position open = at;
      ForEachPart(At(at), [&](const Action& part) {
        for (const Position& need : Needs(part))
          if (stuck.contains(need) && need != at) open = need;
      });
      return open;
    };
    std::string text;
    std::set<size_t> seen;
    Position at = stuck.begin()->first;
    while (seen.insert(at.rank).second) {
      const Position need = needed(at);
      text += fmt::format("{}{} waits for {}", text.empty() ? "" : "; ", Describe(at),
                          ToString(At(need)));
      at = head(need.rank);
    }
    return Error("the schedule deadlocks: {}", text);
  }

  Status CheckMemory(int64_t most) {
    std::vector<int64_t> held(schedule_.ranks.size());
    return ForEachAction([&](const Position& at, const Action& part) -> Status {
      if (part.type == ActionType::kForward && ++held[at.rank] > most) {
        return Error("{}: {} microbatches are in flight, the limit is {}", Describe(at),
                     held[at.rank], most);
      }
      if (part.type == ActionType::kBackward || part.type == ActionType::kBackwardWeight)
        --held[at.rank];
      return Ok();
    });
  }

  const PipelineSchedule& schedule_;
  const bool sends_;
  std::map<ActionKey, Position> where_;
};

}  // namespace

Status ValidateSchedule(const PipelineSchedule& schedule, std::optional<int64_t> most_in_flight) {
  return Validator(schedule).Run(most_in_flight);
}

}  // namespace strata
