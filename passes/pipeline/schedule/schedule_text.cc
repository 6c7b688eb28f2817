#include "passes/pipeline/schedule/schedule_text.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/source_error.h"

namespace strata {
namespace {

constexpr int64_t kMostStages = 1 << 16;
constexpr ActionType kTypes[] = {
    ActionType::kForward,        ActionType::kBackward,       ActionType::kBackwardInput,
    ActionType::kBackwardWeight, ActionType::kUnshard,        ActionType::kReshard,
    ActionType::kReduceGradient, ActionType::kSendForward,    ActionType::kReceiveForward,
    ActionType::kSendBackward,   ActionType::kReceiveBackward};

/// Takes the number that `text` begins with.
std::optional<int64_t> TakeNumber(std::string_view& text) {
  int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || number < 0 || number >= kMostStages) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

Error NotAnAction(std::string_view text) {
  return Error(
      "'{}' is not an action: write a stage, F, B, I, W, UNSHARD, RESHARD, REDUCE_GRAD, "
      "SEND_F, RECV_F, SEND_B or RECV_B, and a microbatch, as in 2F0",
      text);
}

Result<Action> ParseOverlap(std::string_view text) {
  const size_t end = text.find(')'), middle = text.find(';');
  if (end == text.npos || middle == text.npos || middle > end ||
      text.substr(end + 1) != ToString(ActionType::kOverlap))
    return Error("'{}' is not an overlap: write (0F3;3B1)OVERLAP_F_B", text);
  STRATA_TRY(Action first, ParseAction(text.substr(1, middle - 1)));
  STRATA_TRY(Action second, ParseAction(text.substr(middle + 1, end - middle - 1)));
  if (first.type != ActionType::kForward)
    return Error("first sub-action must be F: '{}': write (0F3;3B1)OVERLAP_F_B", text);
  if (second.type == ActionType::kBackwardInput)
    return Error("BACKWARD_INPUT is not implemented in an overlap: '{}': take B", text);
  if (second.type != ActionType::kBackward)
    return Error("second sub-action must be FULL_BACKWARD: '{}': take B", text);
  return Action{.stage = -1, .type = ActionType::kOverlap, .parts = {first, second}};
}

/// Fills what follows from the actions; reports an offset in the text.
class Completer {
 public:
  Completer(PipelineSchedule& schedule, const std::vector<std::vector<size_t>>& offsets)
      : schedule_(schedule), offsets_(offsets) {}

  /// The first thing that is wrong, with its offset.
  std::optional<std::pair<size_t, std::string>> Run() {
    for (size_t rank = 0; rank < schedule_.ranks.size() && !problem_; ++rank) {
      for (size_t i = 0; i < schedule_.ranks[rank].size() && !problem_; ++i) {
        const std::optional<Action>& action = schedule_.ranks[rank][i];
        if (!action) continue;
        ForEachPart(*action, [&](const Action& part) { Note(part, rank, offsets_[rank][i]); });
      }
    }
    if (!problem_) CheckGaps();
    return problem_;
  }

 private:
  void Note(const Action& action, size_t rank, size_t offset) {
    const auto [place, is_new] =
        rank_of_.try_emplace(action.stage, static_cast<int64_t>(rank), offset);
    if (!is_new && place->second.first != static_cast<int64_t>(rank) && !problem_) {
      problem_.emplace(offset, fmt::format("stage {} is on rank {} and on rank {}", action.stage,
                                           place->second.first, rank));
    }
    if (action.type == ActionType::kForward)
      schedule_.microbatches = std::max(schedule_.microbatches, action.microbatch + 1);
  }

  void CheckGaps() {
    if (rank_of_.empty()) {
      problem_.emplace(0, "a schedule without actions: write F and B of each stage");
      return;
    }
    for (const auto& [stage, place] : rank_of_) {
      if (stage != schedule_.num_stages()) {
        problem_.emplace(place.second, fmt::format("stage {} has actions, stage {} has none", stage,
                                                   schedule_.num_stages()));
        return;
      }
      schedule_.rank_of_stage.push_back(place.first);
    }
  }

  PipelineSchedule& schedule_;
  const std::vector<std::vector<size_t>>& offsets_;
  std::map<int64_t, std::pair<int64_t, size_t>> rank_of_;  // by stage; and where it stands
  std::optional<std::pair<size_t, std::string>> problem_;
};

}  // namespace

Result<Action> ParseAction(std::string_view text) {
  if (text.starts_with('(')) return ParseOverlap(text);
  std::string_view rest = text;
  const std::optional<int64_t> stage = TakeNumber(rest);
  if (!stage) return NotAnAction(text);
  const size_t letters = std::min(rest.find_first_of("0123456789"), rest.size());
  for (const ActionType type : kTypes) {
    if (ToString(type) != rest.substr(0, letters)) continue;
    rest.remove_prefix(letters);
    Action action = {.stage = *stage, .type = type};
    if (HasMicrobatch(type)) {
      const std::optional<int64_t> microbatch = TakeNumber(rest);
      if (!microbatch) return Error("'{}' has no microbatch: write {}0", text, text);
      action.microbatch = *microbatch;
    }
    if (rest.empty()) return action;
  }
  return NotAnAction(text);
}

std::string ScheduleCsv(const PipelineSchedule& schedule) {
  std::string text;
  for (const auto& actions : schedule.ranks) {
    for (size_t i = 0; i < actions.size(); ++i)
      text += fmt::format("{}{}", i == 0 ? "" : ",", actions[i] ? ToString(*actions[i]) : "");
    text += '\n';
  }
  return text;
}

Result<PipelineSchedule> ParseScheduleCsv(std::string_view text, std::string_view file) {
  PipelineSchedule schedule;
  std::vector<std::vector<size_t>> offsets;  // of the actions in the text
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    schedule.ranks.emplace_back();
    offsets.emplace_back();
    for (size_t field = begin; field <= end;) {
      const size_t next = std::min(text.find(',', field), end);
      size_t first = field, last = next;
      while (first < last && (text[first] == ' ' || text[first] == '\t'))
        ++first;
      while (last > first && (text[last - 1] == ' ' || text[last - 1] == '\r'))
        --last;
      const std::string_view word = text.substr(first, last - first);
      offsets.back().push_back(first);
      if (word.empty()) {
        schedule.ranks.back().emplace_back();
      } else {
        auto action = ParseAction(word);
        if (!action) return ErrorAt(file, text, first, action.error().message());
        schedule.ranks.back().emplace_back(*std::move(action));
      }
      field = next + 1;
    }
    begin = end + 1;
  }
  if (const auto problem = Completer(schedule, offsets).Run())
    return ErrorAt(file, text, problem->first, problem->second);
  return schedule;
}

bool HasCommunication(const PipelineSchedule& schedule) {
  for (const auto& actions : schedule.ranks)
    for (const std::optional<Action>& action : actions)
      if (action && !IsCompute(action->type) && action->type != ActionType::kOverlap) return true;
  return false;
}

}  // namespace strata
