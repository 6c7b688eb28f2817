#include "runtime/train/pipeline/pipeline_rank.h"

#include <chrono>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "passes/pipeline/multiplex_overlaps.h"
#include "runtime/ranks/rank_team.h"

namespace strata {
namespace {

using at::Tensor;

/// Puts a value at its place in a list.
void PutAt(std::vector<Tensor>& list, size_t index, Tensor value) {
  if (list.size() <= index) list.resize(index + 1);
  list[index] = std::move(value);
}

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool IsForward(ActionType type) {
  return type == ActionType::kSendForward || type == ActionType::kReceiveForward;
}

/// What another rank sent, where this one computes: what GPUs send passes through the memory of the
/// CPU. Throws as RankTeam::Receive.
std::vector<Tensor> ReceiveHere(int64_t from, const std::string& key) {
  std::vector<Tensor> tensors = RankTeam::Receive(from, key);
  for (Tensor& tensor : tensors)
    if (tensor.defined()) tensor = tensor.to(RankTeam::CurrentPlace());
  return tensors;
}

}  // namespace

PipelineRank::PipelineRank(TrainingGraphs& graphs, const PipelineSchedule& schedule,
                           std::vector<Action> program, int64_t rank, int64_t stride)
    : graphs_(graphs),
      rank_of_stage_(schedule.rank_of_stage),
      program_(std::move(program)),
      rank_(rank),
      stride_(stride) {}

Status PipelineRank::Bind(const TracedTraining& traced) {
  STRATA_TRY(bound_, BindStages(traced, rank_of_stage_, rank_, program_));
  return Ok();
}

void PipelineRank::ShareParameters(Tensors& inputs) const {
  const int64_t team_rank = RankTeam::CurrentRank();
  const auto place_of = [&](int64_t rank) { return team_rank + (rank - rank_) * stride_; };
  for (const SharedParameter& shared : bound_.shared) {
    if (shared.owner == rank_) {
      for (const int64_t reader : shared.readers)
        RankTeam::Send(place_of(reader), shared.name, {inputs[shared.input]});
    } else if (shared.readers.contains(rank_)) {
      inputs[shared.input] = ReceiveHere(place_of(shared.owner), shared.name)[0];
    }
  }
}

std::vector<std::string> PipelineRank::GraphNames() const {
  std::vector<std::string> names;
  for (const auto& [number, stage] : bound_.stages) {
    for (const StageGraph* graph :
         {&stage.unshard, &stage.forward, &stage.backward, &stage.input, &stage.weight,
          &stage.accumulate, &stage.reduce, &stage.validate})
      if (!graph->name.empty()) names.push_back(graph->name);
  }
  names.insert(names.end(), bound_.overlaps.begin(), bound_.overlaps.end());
  return names;
}

void PipelineRank::Begin(std::span<const Tensors> inputs) {
  inputs_ = inputs;
  team_rank_ = RankTeam::CurrentRank();
  for (auto* values :
       {&activations_, &gradients_, &saved_, &kept_, &extras_, &to_next_, &to_previous_})
    values->clear();
  whole_.clear();
  reduced_.clear();
}

Status PipelineRank::Run(std::span<const Tensors> inputs, Sums& sums, bool is_last) {
  Begin(inputs);
  sums_ = &sums;
  is_last_ = is_last;
  sums.losses.resize(inputs.size());
  sums.gradients.resize(bound_.gradient_index.size());
  sums.extras.resize(bound_.num_extras);
  spans_.clear();
  for (const Action& action : program_) {
    const int64_t begin = measures_ ? NowNs() : 0;
    if (auto done = RunAction(action); !done)
      return std::move(done).error().In(fmt::format("action {}", ToString(action)));
    if (measures_) spans_.push_back({.begin_ns = begin, .end_ns = NowNs()});
  }
  // A schedule that says what it sends need not say this.
  for (const auto& [stage, graphs] : bound_.stages)
    STRATA_RETURN_IF_ERROR(Reduce(stage));
  whole_.clear();
  return Ok();
}

Status PipelineRank::Unshard(int64_t stage) {
  const StageGraph& graph = bound_.stages.at(stage).unshard;
  if (graph.name.empty() || whole_.contains(stage)) return Ok();
  STRATA_TRY(const Tensors arguments, Arguments(graph, {.stage = stage, .microbatch = 0}));
  STRATA_TRY(whole_[stage], graphs_.Run(graph.name, arguments));
  return Ok();
}

Status PipelineRank::Reduce(int64_t stage) {
  const StageGraph& graph = bound_.stages.at(stage).reduce;
  if (graph.name.empty() || !is_last_ || !reduced_.insert(stage).second) return Ok();
  Tensors arguments;
  for (const auto& [kind, number] : graph.inputs)
    arguments.push_back(AsGraphInput(std::exchange(sums_->gradients[number], {})));
  STRATA_TRY(const Tensors reduced, graphs_.Run(graph.name, arguments));
  for (size_t i = 0; i < reduced.size(); ++i)
    sums_->gradients[graph.outputs[i].second] = reduced[i];
  return Ok();
}

Status PipelineRank::RunAction(const Action& action) {
  switch (action.type) {
    case ActionType::kForward:
      return Forward(action);
    case ActionType::kBackward:
      return Backward(action);
    case ActionType::kBackwardInput:
      return BackwardInput(action);
    case ActionType::kBackwardWeight:
      return BackwardWeight(action);
    case ActionType::kUnshard:
      return Unshard(action.stage);
    case ActionType::kReshard:
      whole_.erase(action.stage);
      return Ok();
    case ActionType::kReduceGradient:
      return Reduce(action.stage);
    case ActionType::kSendForward:
    case ActionType::kSendBackward:
      return Send(action);
    case ActionType::kReceiveForward:
    case ActionType::kReceiveBackward:
      return Receive(action);
    case ActionType::kOverlap:
      return Overlap(action.parts.at(0), action.parts.at(1));
  }
  return Ok();
}

/// A stage runs all batches before the rank's next stage begins.
Result<std::vector<PipelineRank::Tensors>> PipelineRank::Validate(std::span<const Tensors> inputs) {
  Begin(inputs);
  const auto last = static_cast<int64_t>(rank_of_stage_.size()) - 1;
  std::vector<Tensors> results(IsLocal(last) ? inputs.size() : 0);
  for (const auto& [number, stage] : bound_.stages) {
    for (size_t batch = 0; batch < inputs.size(); ++batch) {
      const auto action = [&](ActionType type) {
        return Action{.stage = number, .type = type, .microbatch = static_cast<int64_t>(batch)};
      };
      if (number > 0 && !IsLocal(number - 1))
        STRATA_RETURN_IF_ERROR(Receive(action(ActionType::kReceiveForward)));
      const Action forward = action(ActionType::kForward);
      STRATA_TRY(const Tensors arguments, Arguments(stage.validate, forward));
      STRATA_TRY(Tensors outputs, graphs_.Run(stage.validate.name, arguments));
      activations_.erase({number, forward.microbatch});
      Tensors activations;
      for (size_t i = 0; i < outputs.size(); ++i) {
        const auto [kind, position] = stage.validate.outputs[i];
        PutAt(kind == StageSlot::Kind::kActivation ? activations : results[batch], position,
              std::move(outputs[i]));
      }
      HandOver(forward, StageSlot::Kind::kActivation, std::move(activations));
      if (number < last && !IsLocal(number + 1))
        STRATA_RETURN_IF_ERROR(Send(action(ActionType::kSendForward)));
    }
  }
  return results;
}

std::map<PipelineRank::Key, PipelineRank::Tensors>& PipelineRank::ValuesOf(StageSlot::Kind kind) {
  if (kind == StageSlot::Kind::kActivation) return activations_;
  if (kind == StageSlot::Kind::kGradient) return gradients_;
  return kind == StageSlot::Kind::kKept ? kept_ : saved_;
}

Result<PipelineRank::Tensors> PipelineRank::Arguments(const StageGraph& graph,
                                                      const Action& action) {
  Tensors arguments;
  for (const auto& [kind, number] : graph.inputs) {
    if (kind == StageSlot::Kind::kInput) {
      arguments.push_back(inputs_[static_cast<size_t>(action.microbatch)][number]);
    } else if (kind == StageSlot::Kind::kWhole) {
      STRATA_RETURN_IF_ERROR(Unshard(action.stage));
      arguments.push_back(whole_.at(action.stage).at(number));
    } else {
      arguments.push_back(ValuesOf(kind).at({action.stage, action.microbatch}).at(number));
    }
  }
  return arguments;
}

Status PipelineRank::Forward(const Action& action) {
  const StageGraph& graph = bound_.stages.at(action.stage).forward;
  STRATA_TRY(const Tensors arguments, Arguments(graph, action));
  STRATA_TRY(Tensors results, graphs_.Run(graph.name, arguments));
  return FinishForward(action, std::move(results));
}

Status PipelineRank::FinishForward(const Action& action, Tensors results) {
  const StageGraph& graph = bound_.stages.at(action.stage).forward;
  const Key key = {action.stage, action.microbatch};
  Tensors activations;
  for (size_t i = 0; i < results.size(); ++i) {
    const auto [kind, number] = graph.outputs[i];
    if (kind == StageSlot::Kind::kLoss) {
      sums_->losses[static_cast<size_t>(action.microbatch)] = results[i].clone();
    } else if (kind == StageSlot::Kind::kExtra) {
      PutAt(extras_[key], number, std::move(results[i]));
    } else if (kind == StageSlot::Kind::kActivation) {
      PutAt(activations, number, std::move(results[i]));
    } else {
      PutAt(saved_[key], number, std::move(results[i]));
    }
  }
  HandOver(action, StageSlot::Kind::kActivation, std::move(activations));
  return Ok();
}

Status PipelineRank::Backward(const Action& action) {
  const StageGraph& graph = bound_.stages.at(action.stage).backward;
  STRATA_TRY(Tensors arguments, Arguments(graph, action));
  // Their memory is free as soon as the graph has read them.
  KeepFor({}, action);
  STRATA_TRY(Tensors results, graphs_.Run(graph.name, arguments));
  arguments.clear();
  return FinishBackward(action, std::move(results));
}

Status PipelineRank::FinishBackward(const Action& action, Tensors results) {
  StageGraphs& stage = bound_.stages.at(action.stage);
  Tensors gradients, to_previous;
  for (size_t i = 0; i < results.size(); ++i) {
    const auto [kind, number] = stage.backward.outputs[i];
    PutAt(kind == StageSlot::Kind::kGradient ? to_previous : gradients, number,
          std::move(results[i]));
  }
  HandOver(action, StageSlot::Kind::kGradient, std::move(to_previous));
  return AddUp(stage, action, std::move(gradients));
}

Status PipelineRank::Overlap(const Action& forward, const Action& backward) {
  const std::string name = OverlapGraphName(forward.stage, backward.stage);
  if (!bound_.overlaps.contains(name)) {
    STRATA_RETURN_IF_ERROR(Forward(forward));
    return Backward(backward);
  }
  const StageGraph& graph = bound_.stages.at(backward.stage).backward;
  STRATA_TRY(Tensors arguments, Arguments(graph, backward));
  STRATA_TRY(const Tensors more, Arguments(bound_.stages.at(forward.stage).forward, forward));
  arguments.insert(arguments.end(), more.begin(), more.end());
  KeepFor({}, backward);
  STRATA_TRY(Tensors results, graphs_.Run(name, arguments));
  const auto of_forward = results.begin() + static_cast<std::ptrdiff_t>(graph.outputs.size());
  STRATA_RETURN_IF_ERROR(FinishForward(
      forward, {std::make_move_iterator(of_forward), std::make_move_iterator(results.end())}));
  results.erase(of_forward, results.end());
  return FinishBackward(backward, std::move(results));
}

Status PipelineRank::BackwardInput(const Action& action) {
  StageGraphs& stage = bound_.stages.at(action.stage);
  if (stage.input.name.empty()) return Ok();  // W does all
  STRATA_TRY(const Tensors arguments, Arguments(stage.input, action));
  STRATA_TRY(Tensors results, graphs_.Run(stage.input.name, arguments));
  Tensors to_previous;
  for (size_t i = 0; i < results.size(); ++i) {
    const auto [kind, number] = stage.input.outputs[i];
    PutAt(
        kind == StageSlot::Kind::kGradient ? to_previous : kept_[{action.stage, action.microbatch}],
        number, std::move(results[i]));
  }
  HandOver(action, StageSlot::Kind::kGradient, std::move(to_previous));
  KeepFor(stage.weight, action);
  return Ok();
}

Status PipelineRank::BackwardWeight(const Action& action) {
  StageGraphs& stage = bound_.stages.at(action.stage);
  if (stage.weight.name.empty()) return Backward(action);
  STRATA_TRY(Tensors arguments, Arguments(stage.weight, action));
  KeepFor({}, action);
  STRATA_TRY(Tensors results, graphs_.Run(stage.weight.name, arguments));
  arguments.clear();
  Tensors gradients;
  for (size_t i = 0; i < results.size(); ++i)
    PutAt(gradients, stage.weight.outputs[i].second, std::move(results[i]));
  return AddUp(stage, action, std::move(gradients));
}

void PipelineRank::KeepFor(const StageGraph& graph, const Action& action) {
  for (const StageSlot::Kind kind : {StageSlot::Kind::kActivation, StageSlot::Kind::kGradient,
                                     StageSlot::Kind::kSaved, StageSlot::Kind::kKept}) {
    const auto values = ValuesOf(kind).find({action.stage, action.microbatch});
    if (values == ValuesOf(kind).end()) continue;
    Tensors kept;
    for (const auto& [read, number] : graph.inputs)
      if (read == kind) PutAt(kept, number, values->second.at(number));
    if (kept.empty()) {
      ValuesOf(kind).erase(values);
    } else {
      values->second = std::move(kept);
    }
  }
}

bool PipelineRank::IsLocal(int64_t stage) const {
  return rank_of_stage_[static_cast<size_t>(stage)] == rank_;
}

void PipelineRank::HandOver(const Action& action, StageSlot::Kind kind, Tensors values) {
  if (values.empty()) return;
  const bool is_forward = kind == StageSlot::Kind::kActivation;
  const int64_t neighbour = action.stage + (is_forward ? 1 : -1);
  if (IsLocal(neighbour)) {
    (is_forward ? activations_ : gradients_)[{neighbour, action.microbatch}] = std::move(values);
  } else {
    (is_forward ? to_next_ : to_previous_)[{action.stage, action.microbatch}] = std::move(values);
  }
}

Status PipelineRank::Send(const Action& action) {
  const bool is_forward = IsForward(action.type);
  auto& outbox = is_forward ? to_next_ : to_previous_;
  const Key key = {action.stage, action.microbatch};
  const int64_t neighbour = action.stage + (is_forward ? 1 : -1);
  const int64_t peer = rank_of_stage_[static_cast<size_t>(neighbour)];
  const Action received = {
      .stage = neighbour,
      .type = is_forward ? ActionType::kReceiveForward : ActionType::kReceiveBackward,
      .microbatch = action.microbatch};
  RankTeam::Send(team_rank_ + (peer - rank_) * stride_, ToString(received),
                 std::move(outbox.at(key)));
  outbox.erase(key);
  return Ok();
}

Status PipelineRank::Receive(const Action& action) {
  const bool is_forward = IsForward(action.type);
  const int64_t neighbour = action.stage + (is_forward ? -1 : 1);
  const int64_t peer = rank_of_stage_[static_cast<size_t>(neighbour)];
  (is_forward ? activations_ : gradients_)[{action.stage, action.microbatch}] =
      ReceiveHere(team_rank_ + (peer - rank_) * stride_, ToString(action));
  return Ok();
}

}  // namespace strata
