#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/suggest.h"
#include "passes/pipeline/schedule/schedule.h"

namespace strata {
namespace {

constexpr ActionType kF = ActionType::kForward, kB = ActionType::kBackward,
                     kI = ActionType::kBackwardInput, kW = ActionType::kBackwardWeight;

/// The actions of one rank. Each kind of action of a stage takes the microbatches in order.
class RankActions {
 public:
  void Idle(int64_t count = 1) {
    for (int64_t i = 0; i < count; ++i)
      actions_.push_back(std::nullopt);
  }
  /// The next microbatch of the stage.
  void Add(int64_t stage, ActionType type) { actions_.emplace_back(Take(stage, type)); }
  void AddAt(int64_t stage, ActionType type, int64_t microbatch) {
    actions_.emplace_back(Action{.stage = stage, .type = type, .microbatch = microbatch});
  }
  void AddOverlap(int64_t forward, int64_t backward) {
    Action first = Take(forward, kF);
    Action second = Take(backward, kB);
    actions_.emplace_back(
        Action{.stage = -1, .type = ActionType::kOverlap, .parts = {first, second}});
  }
  /// Actions of the stage so far; B counts as I and W.
  int64_t count(int64_t stage, ActionType type) const {
    const auto found = counts_.find({stage, type});
    return found == counts_.end() ? 0 : found->second;
  }
  void SetCount(int64_t stage, ActionType type, int64_t count) { counts_[{stage, type}] = count; }

  std::vector<std::optional<Action>> Release() { return std::move(actions_); }

 private:
  Action Take(int64_t stage, ActionType type) {
    const ActionType counted = type == kB ? kI : type;
    const int64_t microbatch = counts_[{stage, counted}]++;
    if (type == kB) ++counts_[{stage, kW}];
    return {.stage = stage, .type = type, .microbatch = microbatch};
  }

  std::vector<std::optional<Action>> actions_;
  std::map<std::pair<int64_t, ActionType>, int64_t> counts_;
};

void GPipe(const PipelineSize& size, int64_t rank, RankActions& out) {
  out.Idle(rank);
  for (int64_t i = 0; i < size.microbatches; ++i)
    out.Add(rank, kF);
  out.Idle(3 * (size.ranks - 1 - rank));
  for (int64_t i = 0; i < size.microbatches; ++i)
    out.Add(rank, kB);
}

void OneForwardOneBackward(const PipelineSize& size, int64_t rank, RankActions& out) {
  const int64_t warmup = size.ranks - 1 - rank;
  out.Idle(rank);
  for (int64_t i = 0; i < warmup; ++i)
    out.Add(rank, kF);
  out.Idle(2 * warmup);
  while (out.count(rank, kF) < size.microbatches) {
    out.Add(rank, kF);
    out.Add(rank, kB);
  }
  while (out.count(rank, kI) < size.microbatches) {
    out.Idle();
    out.Add(rank, kB);
  }
}

/// Breadth first: backward of the last microbatch comes first.
void LoopedBfs(const PipelineSize& size, int64_t rank, RankActions& out) {
  out.Idle(rank);
  for (int64_t i = 0; i < size.stages_per_rank; ++i)
    for (int64_t m = 0; m < size.microbatches; ++m)
      out.Add(rank + i * size.ranks, kF);
  out.Idle(2 * (size.ranks - 1 - rank));
  for (int64_t i = size.stages_per_rank - 1; i >= 0; --i)
    for (int64_t m = size.microbatches - 1; m >= 0; --m)
      out.AddAt(rank + i * size.ranks, kB, m);
}

/// Rounds of interleaved schedules: a rank takes a round's microbatches through one stage, then
/// through the next.
struct Rounds {
  Rounds(const PipelineSize& size, int64_t rank, int64_t hops)
      : size(size),
        rank(rank),
        per_round(size.microbatches / std::max<int64_t>(1, size.microbatches / size.ranks)),
        total(size.microbatches * size.stages_per_rank),
        warmup(std::min((size.stages_per_rank - 1) * per_round + hops * (size.ranks - 1 - rank),
                        total)) {}

  int64_t ForwardStage(int64_t step) const {
    return step / per_round % size.stages_per_rank * size.ranks + rank;
  }
  /// Of the `number`-th backward.
  int64_t BackwardStage(int64_t number) const {
    const int64_t local = size.stages_per_rank - 1 - number / per_round % size.stages_per_rank;
    return local * size.ranks + rank;
  }

  const PipelineSize& size;
  int64_t rank, per_round, total, warmup;
};

void Interleaved(const PipelineSize& size, int64_t rank, RankActions& out) {
  const Rounds rounds(size, rank, /*hops=*/2);
  out.Idle(rank);
  for (int64_t step = 0; step < rounds.warmup; ++step)
    out.Add(rounds.ForwardStage(step), kF);
  if (rounds.warmup > 0) {
    out.Idle(size.stages_per_rank * size.ranks + 2 * (size.ranks - 1 - rank) - rounds.warmup -
             rank);
  }
  for (int64_t number = 0; number < rounds.total; ++number) {
    if (const int64_t step = rounds.warmup + number; step < rounds.total) {
      out.Add(rounds.ForwardStage(step), kF);
    } else {
      out.Idle();
    }
    out.Add(rounds.BackwardStage(number), kB);
  }
}

/// ZB1P: weight gradients follow `rank` backwards behind, those that are left come at the end.
void InterleavedZeroBubble(const PipelineSize& size, int64_t rank, RankActions& out) {
  const Rounds rounds(size, rank, /*hops=*/1);
  out.Idle(rank);
  for (int64_t step = 0; step < rounds.warmup; ++step)
    out.Add(rounds.ForwardStage(step), kF);
  if (rounds.warmup > 0) out.Idle(size.ranks - rank - 1);
  int64_t weights = 0;
  for (int64_t number = 0; number < rounds.total; ++number) {
    const int64_t step = rounds.warmup + number;
    if (step < rounds.total) out.Add(rounds.ForwardStage(step), kF);
    out.Add(rounds.BackwardStage(number), kI);
    if (number >= rank) out.Add(rounds.BackwardStage(weights++), kW);
  }
  while (weights < rounds.total)
    out.Add(rounds.BackwardStage(weights++), kW);
}

/// Made for at least 2P - 1 microbatches; those that there are not are left out.
void ZeroBubbleV(const PipelineSize& size, int64_t rank, RankActions& out) {
  const int64_t p = size.ranks, count = std::max(2 * p - 1, size.microbatches);
  const int64_t down = rank, up = 2 * p - 1 - rank;
  const auto backward = [&](int64_t stage) {
    out.Add(stage, kI);
    out.Add(stage, kW);
  };
  out.Idle(rank);
  for (int64_t i = 0; i < 2 * (p - rank) - 1; ++i)
    out.Add(down, kF);
  for (int64_t i = 0; i < rank; ++i) {
    out.Add(up, kF);
    out.Add(down, kF);
  }
  for (int64_t i = 0; i < p - rank; ++i) {
    out.Add(up, kF);
    backward(up);
  }
  while (out.count(up, kF) < out.count(down, kF) || out.count(down, kF) < count) {
    if (out.count(down, kF) < count) out.Add(down, kF);
    backward(down);
    out.Add(up, kF);
    backward(up);
  }
  for (int64_t i = 0; i < rank; ++i) {
    out.Add(down, kI);
    out.Add(up, kI);
  }
  for (int64_t i = 0; i < p - rank; ++i)
    backward(down);
  for (const int64_t stage : {up, down})
    while (out.count(stage, kW) < out.count(stage, kI))
      out.Add(stage, kW);
}

/// Source: deepseek-ai/DualPipe, dualpipev.py.
class DualPipeV {
 public:
  DualPipeV(const PipelineSize& size, int64_t rank, RankActions& out)
      : p_(size.ranks),
        microbatches_(size.microbatches),
        rank_(rank),
        down_(rank),
        up_(2 * size.ranks - 1 - rank),
        out_(out) {}

  void Run() {
    const int64_t after = p_ - rank_ - 1;  // ranks
    for (int64_t i = 0; i < 2 * after; ++i)
      out_.Add(down_, kF);
    for (int64_t i = 0; i < rank_ + 1; ++i) {
      out_.Add(down_, kF);
      out_.Add(up_, kF);
    }
    for (int64_t i = 0; i < after; ++i) {
      Backward(up_, /*split=*/true);
      Weight();
      out_.Add(up_, kF);
    }
    for (int64_t i = 0; i < microbatches_ - 2 * p_ + rank_ + 1; ++i) {
      if (i == 0 && rank_ == p_ - 1) {
        out_.Add(down_, kF);
        Backward(up_, /*split=*/false);
      } else {
        out_.AddOverlap(down_, up_);
      }
      out_.AddOverlap(up_, down_);
    }
    for (int64_t i = 0; i < after; ++i) {
      Backward(up_, /*split=*/false);
      out_.AddOverlap(up_, down_);
    }
    Cooldown(after);
  }

 private:
  void Cooldown(int64_t after) {
    bool split = false;
    const int64_t middle = (rank_ + 1) / 2;
    for (int64_t i = 0; i < rank_ + 1; ++i) {
      if (i == middle && rank_ % 2 == 1) split = true;
      Backward(up_, split);
      if (i == middle && rank_ % 2 == 0) split = true;
      Backward(down_, split);
    }
    for (int64_t i = 0; i < after; ++i) {
      Weight();
      Backward(down_, split);
    }
    for (int64_t i = 0; i < rank_ + 1; ++i)
      Weight();
  }

  void Backward(int64_t stage, bool split) {
    if (split) waiting_.emplace_back(stage, out_.count(stage, kI));
    out_.Add(stage, split ? kI : kB);
  }

  void Weight() {
    if (waiting_.empty()) return;
    const auto [stage, microbatch] = waiting_.front();
    waiting_.pop_front();
    out_.AddAt(stage, kW, microbatch);
  }

  const int64_t p_, microbatches_, rank_, down_, up_;
  RankActions& out_;
  std::deque<std::pair<int64_t, int64_t>> waiting_;  // I without W
};

void MakeDualPipeV(const PipelineSize& size, int64_t rank, RankActions& out) {
  DualPipeV(size, rank, out).Run();
}

Status CheckRounds(const PipelineSize& size) {
  const int64_t rounds = std::max<int64_t>(1, size.microbatches / size.ranks);
  if (size.microbatches % rounds == 0) return Ok();
  return Error("{} microbatches on {} ranks: take a multiple of the {} rounds", size.microbatches,
               size.ranks, rounds);
}

Status CheckAtLeast(const PipelineSize& size, int64_t least) {
  if (size.microbatches >= least) return Ok();
  return Error("{} microbatches on {} ranks: take at least {}", size.microbatches, size.ranks,
               least);
}

using Generator = void (*)(const PipelineSize&, int64_t rank, RankActions&);
using Check = Status (*)(const PipelineSize&);

struct KindEntry {
  ScheduleKind kind;
  Generator generate;
  Check check;
};

const std::vector<KindEntry>& KindEntries() {
  constexpr bool kSingle = false, kMulti = true;
  const auto any = [](const PipelineSize&) { return Status(Ok()); };
  static const std::vector<KindEntry> entries = {
      {{"GPipe", kSingle, StageStyle::kLoop}, GPipe, any},
      {{"1F1B", kSingle, StageStyle::kLoop},
       OneForwardOneBackward,
       [](const PipelineSize& size) { return CheckAtLeast(size, size.ranks); }},
      {{"LoopedBFS", kMulti, StageStyle::kLoop}, LoopedBfs, any},
      {{"Interleaved1F1B", kMulti, StageStyle::kLoop}, Interleaved, CheckRounds},
      {{"InterleavedZeroBubble", kMulti, StageStyle::kLoop}, InterleavedZeroBubble, CheckRounds},
      {{"ZBVZeroBubble", kMulti, StageStyle::kV}, ZeroBubbleV, any},
      {{"DualPipeV", kMulti, StageStyle::kV},
       MakeDualPipeV,
       [](const PipelineSize& size) { return CheckAtLeast(size, 2 * size.ranks); }},
  };
  return entries;
}

std::string Lowered(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lowered;
}

}  // namespace

const std::vector<ScheduleKind>& ScheduleKinds() {
  static const std::vector<ScheduleKind> kinds = [] {
    std::vector<ScheduleKind> made;
    for (const KindEntry& entry : KindEntries())
      made.push_back(entry.kind);
    return made;
  }();
  return kinds;
}

Result<ScheduleKind> FindScheduleKind(std::string_view name) {
  std::vector<std::string> names;
  std::string list;
  for (const ScheduleKind& kind : ScheduleKinds()) {
    if (Lowered(kind.name) == Lowered(name)) return kind;
    names.emplace_back(kind.name);
    list += fmt::format("{}{}", list.empty() ? "" : ", ", kind.name);
  }
  return Error("no pipeline schedule '{}': take one of {}{}", name, list, DidYouMean(name, names));
}

Result<PipelineSchedule> MakeSchedule(const ScheduleKind& kind, const PipelineSize& size) {
  const auto entry = std::ranges::find_if(
      KindEntries(), [&](const KindEntry& of) { return of.kind.name == kind.name; });
  STRATA_CHECK(entry != KindEntries().end());
  const auto refuse = [&](std::string_view why) {
    return Error("{}: {} ranks, {} stages per rank, {} microbatches: {}", kind.name, size.ranks,
                 size.stages_per_rank, size.microbatches, why);
  };
  if (size.ranks < 1 || size.microbatches < 1 || size.stages_per_rank < 1)
    return refuse("take at least 1 of each");
  if (!kind.is_multi && size.stages_per_rank != 1) return refuse("a rank has one stage");
  if (kind.style == StageStyle::kV && size.stages_per_rank != 2)
    return refuse("a rank has two stages");
  if (auto checked = entry->check(size); !checked) return std::move(checked).error().In(kind.name);
  PipelineSchedule schedule{
      .microbatches = size.microbatches,
      .rank_of_stage = RanksOfStages(size.ranks * size.stages_per_rank, size.ranks, kind.style),
      .ranks = {}};
  for (int64_t rank = 0; rank < size.ranks; ++rank) {
    RankActions actions;
    entry->generate(size, rank, actions);
    schedule.ranks.push_back(actions.Release());
    for (std::optional<Action>& action : schedule.ranks.back())
      if (action && action->microbatch >= size.microbatches) action.reset();
  }
  return schedule;
}

}  // namespace strata
