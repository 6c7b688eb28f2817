#include "runtime/control/debugger.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include <fmt/format.h>

#include "base/json.h"
#include "runtime/train/programs/programs.h"

namespace strata {
namespace {

using at::Tensor;

/// Ends the run of a graph from inside: the step begins anew.
struct Rewind final : std::exception {
  const char* what() const noexcept override { return "the debugger goes back"; }
};

}  // namespace

// --- Passes --------------------------------------------------------------------------------------

Status Debugger::BeforePass(const PassRun& run, const Module&) {
  Lock lock(mutex_);
  const auto ended = [&] {
    return Error("stopped by a client of --control: before pass {} '{}'", run.index, run.name);
  };
  if (ends_) return ended();
  pass_ = run.name;
  std::optional<std::string> reason;
  if (pause_) reason = "paused";
  if (goal_ && goal_->kind == Goal::Kind::kPasses && --goal_->count == 0) {
    reason = "before the pass";
    goal_.reset();
  }
  for (const Breakpoint& breakpoint : breakpoints_) {
    if (breakpoint.kind == Breakpoint::Kind::kPass && breakpoint.name == run.name)
      reason = fmt::format("breakpoint {}: {}", breakpoint.id, breakpoint.text);
  }
  if (reason) Stop(lock, *std::move(reason));
  return ends_ ? Status(ended()) : Ok();
}

// --- Steps ---------------------------------------------------------------------------------------

bool Debugger::NeedsNodes() const {
  if (trainer_->config().parallelism.mesh.num_ranks() > 1) return false;
  if (target_ && target_->steps_done == steps_done_ && target_->nodes > 0) return true;
  if (wanted_ && wanted_->at.steps_done == steps_done_) return true;
  if (goal_ && goal_->kind == Goal::Kind::kNodes) return true;
  return std::ranges::any_of(breakpoints_, &Breakpoint::IsOfNodes);
}

bool Debugger::IsOnItsWay() {
  if (!target_) return false;
  if (position() < *target_) return true;
  target_.reset();
  return false;
}

std::optional<std::string> Debugger::ReasonBetweenSteps() {
  const bool has_target = target_.has_value();
  if (IsOnItsWay()) return std::nullopt;
  if (has_target) return "went back";
  if (pause_) return "paused";
  if (goal_ && goal_->kind == Goal::Kind::kPasses) {
    goal_.reset();  // of a stop before the first pass, or no pass is left
    return "passes are done";
  }
  if (goal_ && goal_->kind == Goal::Kind::kSteps && --goal_->count == 0) {
    goal_.reset();
    return "before the step";
  }
  for (const Breakpoint& breakpoint : breakpoints_) {
    if (breakpoint.kind == Breakpoint::Kind::kStep && breakpoint.step == steps_done_ + 1)
      return fmt::format("breakpoint {}: {}", breakpoint.id, breakpoint.text);
  }
  return std::nullopt;
}

void Debugger::ApplyRate(Trainer& trainer) const {
  for (const RateChange& change : rate_changes_) {
    if (change.step <= steps_done_ + 1) trainer.SetLearningRate(change.after);
  }
}

Status Debugger::ReturnTo(Trainer& trainer, const Position& to) {
  const bool is_in_step = step_begin_ && trainer.steps_done() == to.steps_done;
  STRATA_RETURN_IF_ERROR(trainer.Return(is_in_step ? *step_begin_ : *origin_));
  if (!is_in_step) step_begin_.reset();
  if (!rate_changes_.empty()) trainer.SetLearningRate(rate_changes_.front().before);
  return Ok();
}

Result<std::optional<StepReport>> Debugger::Step(Trainer& trainer) {
  Lock lock(mutex_);
  trainer_ = &trainer;
  newest_ = trainer.steps_done();
  if (!origin_) origin_ = trainer.Copy();
  while (true) {
    if (std::exchange(rewinds_, false)) STRATA_RETURN_IF_ERROR(ReturnTo(trainer, *target_));
    executed_.clear();
    last_module_.clear();
    steps_done_ = trainer.steps_done();
    phase_ = Phase::kBetweenSteps;
    SaveIfAsked(lock);
    if (auto reason = ReasonBetweenSteps()) Stop(lock, *std::move(reason));
    if (rewinds_) continue;
    // Steps that were taken back are computed again: what is kept of the run has them.
    if (ends_ && steps_done_ == newest_) return std::optional<StepReport>();
    const bool observes = NeedsNodes();
    if (observes && !step_begin_) step_begin_ = trainer.Copy();
    ApplyRate(trainer);
    trainer.KeepGradients();
    phase_ = Phase::kNodes;
    lock.unlock();
    auto report = trainer.Step(observes ? this : nullptr);
    lock.lock();
    if (rewinds_) continue;
    step_begin_.reset();
    STRATA_RETURN_IF_ERROR(report);
    loss_ = report->metrics.loss;
    if (trainer.steps_done() <= newest_) continue;  // it was reported before
    steps_done_ = newest_ = trainer.steps_done();
    executed_.clear();
    phase_ = Phase::kBetweenSteps;
    return std::optional(*std::move(report));
  }
}

void Debugger::SetOrigin(const Trainer& trainer) {
  const Lock lock(mutex_);
  origin_ = trainer.Copy();
}

void Debugger::Finish() {
  const Lock lock(mutex_);
  EndAwaiting();
  phase_ = Phase::kFinished;
  reason_ = ends_ ? "a client ended the training" : "the training has ended";
  trainer_ = nullptr;
  AnswerWaiting();
  for (const Reply& reply : std::exchange(saves_, {}))
    reply({.ok = false, .text = "the training has ended", .json = "{}"});
}

std::vector<Debugger::RateChange> Debugger::TakeRateChanges() {
  const Lock lock(mutex_);
  std::vector<RateChange> changes(
      rate_changes_.begin() + static_cast<std::ptrdiff_t>(reported_changes_), rate_changes_.end());
  reported_changes_ = rate_changes_.size();
  return changes;
}

// --- Nodes ---------------------------------------------------------------------------------------

void Debugger::BeginGraph(const Graph& graph) {
  const Lock lock(mutex_);
  graph_ = &graph;
}

std::optional<size_t> Debugger::Executed::PlaceOf(size_t result) const {
  if (node_results.empty()) return result;
  const auto found = std::ranges::find(node_results, static_cast<int32_t>(result));
  if (found == node_results.end()) return std::nullopt;
  return static_cast<size_t>(found - node_results.begin());
}

NodeSite Debugger::SiteOf(const Executed& executed) const {
  const Graph& graph = *executed.graph;
  const Node& node = graph.node(executed.node);
  return {.graph = graph.name_text(),
          .name = graph.name(executed.node),
          .op = graph.op(executed.node),
          .module = node.module.valid() ? graph.module().str(node.module) : std::string_view()};
}

void Debugger::CheckWanted(std::span<const Tensor> results) {
  if (!wanted_ || wanted_->at != position()) return;
  if (wanted_->result >= results.size() || !results[wanted_->result].defined()) {
    wanted_->answer = {.ok = false, .text = "no tensor: the node returns none", .json = "{}"};
    return;
  }
  auto described = DescribeTensor(results[wanted_->result], wanted_->question);
  wanted_->answer = described ? ControlAnswer{.text = described->text, .json = described->json}
                              : ControlAnswer{.ok = false, .text = described.error().message()};
}

std::optional<std::string> Debugger::ReasonAtNode(std::span<const Tensor> results) {
  const bool has_target = target_.has_value();
  if (IsOnItsWay()) return std::nullopt;
  if (has_target) return wanted_ ? reason_ : "went back";
  if (pause_) return "paused";
  if (goal_ && goal_->kind == Goal::Kind::kNodes && --goal_->count == 0) {
    goal_.reset();
    return "after the node";
  }
  const NodeSite site = SiteOf(executed_.back());
  for (const Breakpoint& breakpoint : breakpoints_) {
    if (!breakpoint.Matches(site, last_module_)) continue;
    const bool holds =
        !breakpoint.predicate || std::ranges::any_of(results, [&](const Tensor& result) {
          return result.defined() && breakpoint.predicate->Holds(Measure(result));
        });
    if (holds) return fmt::format("breakpoint {}: {}", breakpoint.id, breakpoint.text);
  }
  return std::nullopt;
}

void Debugger::OnStep(const PlanStep& step, std::span<const Tensor> results) {
  Lock lock(mutex_);
  executed_.push_back({.graph = graph_, .node = step.node, .node_results = step.node_results});
  CheckWanted(results);
  auto reason = ReasonAtNode(results);
  last_module_ = SiteOf(executed_.back()).module;
  if (!reason) return;
  where_ = step.where;
  results_.assign(results.begin(), results.end());
  Stop(lock, *std::move(reason));
  results_.clear();
  if (rewinds_) throw Rewind();
}

// --- Saving and ending ---------------------------------------------------------------------------

Result<ControlAnswer> Debugger::RunSave(Reply& reply) {
  if (phase_ == Phase::kFinished) return Error("the training has ended");
  if (trainer_ == nullptr) return Error("no step has begun: passes run before the first step");
  if (steps_done_ < newest_) {
    return Error("step {} was taken back: continue to step {} first", newest_, newest_);
  }
  if (stopped_ && phase_ == Phase::kNodes) {  // a client that waited could not continue
    saves_.emplace_back([](const ControlAnswer&) {});
    return ControlAnswer{.text = "a checkpoint is written when this step has ended"};
  }
  saves_.push_back(std::exchange(reply, nullptr));
  resumed_.notify_all();
  return ControlAnswer();
}

void Debugger::SaveIfAsked(Lock& lock) {
  if (saves_.empty() || phase_ != Phase::kBetweenSteps || steps_done_ < newest_) return;
  const std::vector<Reply> replies = std::exchange(saves_, {});
  lock.unlock();
  const Result<std::string> path = options_.save(*trainer_);
  lock.lock();
  ControlAnswer answer{.ok = path.has_value(),
                       .text = path ? fmt::format("checkpoint of step {}: {}", steps_done_, *path)
                                    : path.error().message(),
                       .json = "{}"};
  if (path) {
    answer.json.clear();
    JsonWriter(answer.json)
        .BeginObject()
        .Field("checkpoint", *path)
        .Field("step", steps_done_)
        .EndObject();
  }
  for (const Reply& reply : replies)
    reply(answer);
}

Result<ControlAnswer> Debugger::RunStop(Reply& reply) {
  if (phase_ == Phase::kFinished) return Where();
  ends_ = true;
  breakpoints_.clear();
  goal_.reset();
  pause_ = stopped_ = false;
  waiting_.push_back(std::exchange(reply, nullptr));
  resumed_.notify_all();
  return ControlAnswer();
}

bool Debugger::ends() const {
  const Lock lock(mutex_);
  return ends_;
}

// --- Stopping ------------------------------------------------------------------------------------

void Debugger::EndAwaiting() {
  awaits_first_stop_ = false;
  first_stop_.notify_all();
}

void Debugger::AnswerWaiting() {
  if (wanted_) {
    wanted_->reply(std::move(wanted_->answer));
    wanted_.reset();
  }
  const ControlAnswer where = Where();
  for (const Reply& reply : std::exchange(waiting_, {}))
    reply(where);
}

void Debugger::Stop(Lock& lock, std::string reason) {
  if (ends_) return;
  stopped_ = true;
  pause_ = false;
  EndAwaiting();
  reason_ = std::move(reason);
  AnswerWaiting();
  while (stopped_ && !ends_ && !options_.interrupted()) {
    SaveIfAsked(lock);
    if (stopped_) resumed_.wait_for(lock, std::chrono::milliseconds(50));
  }
  if (std::exchange(stopped_, false)) {  // the program ends: no stop keeps it
    breakpoints_.clear();
    goal_.reset();
    reason_ = "interrupted";
  }
}

void Debugger::Detach() {
  const Lock lock(mutex_);
  breakpoints_.clear();
  goal_.reset();
  waiting_.clear();
  pause_ = false;
  stopped_ = false;
  resumed_.notify_all();
}

}  // namespace strata
