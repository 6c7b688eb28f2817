#include "passes/pipeline/schedule/search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace strata {
namespace {

/// What a greedy schedule is made of.
struct GreedyShape {
  PipelineSize size;
  StageStyle style = StageStyle::kLoop;
  bool splits = false;  ///< I and W instead of B
  int64_t cap = 1;      ///< microbatches of its stages that a rank holds
};

class GreedyScheduler {
 public:
  GreedyScheduler(const GreedyShape& shape, const ActionTimes& times)
      : shape_(shape),
        times_(times),
        now_(Count(shape.size.ranks)),
        held_(Count(shape.size.ranks)) {
    schedule_.microbatches = shape.size.microbatches;
    schedule_.rank_of_stage =
        RanksOfStages(shape.size.ranks * shape.size.stages_per_rank, shape.size.ranks, shape.style);
    schedule_.ranks.resize(Count(shape.size.ranks));
  }

  /// None: activations do not fit.
  std::optional<PipelineSchedule> Run() {
    const int64_t per_microbatch = shape_.splits ? 3 : 2;
    const int64_t total = schedule_.num_stages() * schedule_.microbatches * per_microbatch;
    for (int64_t i = 0; i < total; ++i) {
      const std::optional<Choice> choice = Best();
      if (!choice) return std::nullopt;
      Start(*choice);
    }
    return std::move(schedule_);
  }

 private:
  struct Choice {
    double begin = 0.0;
    int priority = 0;  ///< smaller first
    int64_t rank = 0;
    Action action;
  };

  static size_t Count(int64_t number) { return static_cast<size_t>(number); }
  int64_t RankOf(int64_t stage) const { return schedule_.rank_of_stage[Count(stage)]; }
  ActionType Backward() const {
    return shape_.splits ? ActionType::kBackwardInput : ActionType::kBackward;
  }

  /// When the values of another stage are on the reader's rank; infinite: it did not run.
  double ReadyAt(int64_t stage, ActionType type, int64_t microbatch, int64_t reader) const {
    const auto done = done_.find({stage, type, microbatch});
    if (done == done_.end()) return std::numeric_limits<double>::infinity();
    return done->second + (RankOf(stage) == RankOf(reader) ? 0.0 : times_.transfer);
  }

  /// The next microbatch of a stage for a kind of action, and when it can start.
  void Consider(int64_t stage, ActionType type, std::optional<Choice>& best) const {
    const auto counted = next_.find({stage, type});
    const int64_t m = counted == next_.end() ? 0 : counted->second;
    const int64_t rank = RankOf(stage);
    if (m == schedule_.microbatches) return;
    double ready = 0.0;
    int priority = 0;
    if (type == ActionType::kForward) {
      if (held_[Count(rank)] >= shape_.cap) return;
      if (stage > 0) ready = ReadyAt(stage - 1, type, m, stage);
      priority = 1;
    } else if (type == ActionType::kBackwardWeight) {
      ready = ReadyAt(stage, ActionType::kBackwardInput, m, stage);
      priority = 2;
    } else {
      ready = ReadyAt(stage, ActionType::kForward, m, stage);
      if (stage + 1 < schedule_.num_stages())
        ready = std::max(ready, ReadyAt(stage + 1, type, m, stage));
    }
    if (ready == std::numeric_limits<double>::infinity()) return;
    const Choice choice = {.begin = std::max(ready, now_[Count(rank)]),
                           .priority = priority,
                           .rank = rank,
                           .action = {.stage = stage, .type = type, .microbatch = m}};
    const auto key = [](const Choice& of) {
      return std::tuple(of.begin, of.priority, of.action.microbatch, -of.action.stage, of.rank);
    };
    if (!best || key(choice) < key(*best)) best = choice;
  }

  std::optional<Choice> Best() const {
    std::optional<Choice> best;
    for (int64_t stage = 0; stage < schedule_.num_stages(); ++stage) {
      Consider(stage, ActionType::kForward, best);
      Consider(stage, Backward(), best);
      if (shape_.splits) Consider(stage, ActionType::kBackwardWeight, best);
    }
    return best;
  }

  void Start(const Choice& choice) {
    const Action& action = choice.action;
    const double end = choice.begin + times_.Of(action);
    now_[Count(choice.rank)] = end;
    done_[{action.stage, action.type, action.microbatch}] = end;
    ++next_[{action.stage, action.type}];
    if (action.type == ActionType::kForward) ++held_[Count(choice.rank)];
    if (action.type == ActionType::kBackward || action.type == ActionType::kBackwardWeight)
      --held_[Count(choice.rank)];
    schedule_.ranks[Count(choice.rank)].emplace_back(action);
  }

  const GreedyShape& shape_;
  const ActionTimes& times_;
  PipelineSchedule schedule_;
  std::vector<double> now_;
  std::vector<int64_t> held_;
  std::map<ActionKey, double> done_;
  std::map<std::pair<int64_t, ActionType>, int64_t> next_;
};

class Searcher {
 public:
  explicit Searcher(const ScheduleSearch& search) : search_(search) {}

  Result<std::vector<FoundSchedule>> Run() {
    for (const ScheduleKind& kind : ScheduleKinds()) {
      for (int64_t per_rank = 1; per_rank <= search_.most_stages_per_rank; ++per_rank) {
        const PipelineSize size = {.ranks = search_.ranks,
                                   .stages_per_rank = per_rank,
                                   .microbatches = search_.microbatches};
        if (kind.is_multi != (per_rank > 1)) continue;
        auto made = MakeSchedule(kind, size);
        if (!made) continue;  // sizes that the kind does not have
        std::string name(kind.name);
        if (per_rank > 1) name += fmt::format(", {} stages per rank", per_rank);
        Add(std::move(name), *std::move(made), per_rank);
      }
    }
    for (int64_t per_rank = 1; per_rank <= search_.most_stages_per_rank; ++per_rank) {
      AddGreedy(per_rank, StageStyle::kLoop);
      if (per_rank == 2) AddGreedy(per_rank, StageStyle::kV);
    }
    if (found_.empty()) {
      return Error(
          "no schedule of {} microbatches on {} ranks keeps {} in flight: take more memory",
          search_.microbatches, search_.ranks, search_.memory.value_or(0));
    }
    std::ranges::stable_sort(found_, {}, [](const FoundSchedule& schedule) {
      return std::pair(schedule.simulation.makespan, schedule.memory);
    });
    return std::move(found_);
  }

 private:
  void AddGreedy(int64_t per_rank, StageStyle style) {
    const ActionTimes times = TimesOfStage(search_.times, per_rank);
    const int64_t most =
        per_rank * std::min(search_.memory.value_or(search_.microbatches), search_.microbatches);
    for (const bool splits : {false, true}) {
      for (int64_t cap = 1; cap <= most; ++cap) {
        const GreedyShape shape = {.size = {.ranks = search_.ranks,
                                            .stages_per_rank = per_rank,
                                            .microbatches = search_.microbatches},
                                   .style = style,
                                   .splits = splits,
                                   .cap = cap};
        auto schedule = GreedyScheduler(shape, times).Run();
        if (!schedule) continue;
        Add(fmt::format("greedy, {} stage{} per rank{}, {}, {} in flight", per_rank,
                        per_rank == 1 ? "" : "s", style == StageStyle::kV ? " as a V" : "",
                        splits ? "I and W" : "B", cap),
            *std::move(schedule), per_rank);
      }
    }
  }

  void Add(std::string name, PipelineSchedule schedule, int64_t per_rank) {
    Simulation simulation = Simulate(schedule, TimesOfStage(search_.times, per_rank));
    STRATA_CHECK(simulation.is_complete());
    const int64_t peak = *std::ranges::max_element(simulation.peak_in_flight);
    const double memory = static_cast<double>(peak) / static_cast<double>(per_rank);
    if (search_.memory && memory > static_cast<double>(*search_.memory)) return;
    found_.push_back({.name = std::move(name),
                      .schedule = std::move(schedule),
                      .simulation = std::move(simulation),
                      .memory = memory});
  }

  const ScheduleSearch& search_;
  std::vector<FoundSchedule> found_;
};

}  // namespace

ActionTimes TimesOfStage(const ActionTimes& times, int64_t stages_per_rank) {
  const double part = 1.0 / static_cast<double>(stages_per_rank);
  ActionTimes of_stage = times;
  for (double* time : {&of_stage.forward, &of_stage.backward, &of_stage.input, &of_stage.weight})
    *time *= part;
  return of_stage;
}

Result<std::vector<FoundSchedule>> SearchSchedules(const ScheduleSearch& search) {
  return Searcher(search).Run();
}

}  // namespace strata
