#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "ir/module.h"
#include "passes/core/pass.h"
#include "runtime/control/breakpoint.h"
#include "runtime/control/describe_tensor.h"
#include "runtime/train/programs/training_graphs.h"
#include "runtime/train/trainer.h"

namespace strata {

/// The answer to a command.
struct ControlAnswer {
  bool ok = true;
  std::string text;         ///< lines for people; of an error the message
  std::string json = "{}";  ///< an object
};

/// Stops a training between passes, steps and nodes, shows its values and goes back, by commands
/// that come from other threads. Results of the training do not depend on it: going back returns
/// to a copy of the state and computes the same again.
///
/// A training on several ranks stops between passes and steps only.
class Debugger final : public PassInstrumentation, public TrainingObserver {
 public:
  using Reply = std::function<void(ControlAnswer)>;

  struct Options {
    /// The training waits for a command before its first pass, and commands wait for that.
    bool starts_stopped = false;
    /// Whether the program was asked to end: a stopped training then goes on to its end.
    std::function<bool()> interrupted = [] { return false; };
    /// Writes a checkpoint of a training between two steps; returns its path.
    std::function<Result<std::string>(Trainer&)> save = [](Trainer&) -> Result<std::string> {
      return Error("this training writes no checkpoints");
    };
  };
  explicit Debugger(Options options)
      : options_(std::move(options)), awaits_first_stop_(options_.starts_stopped) {
    if (options_.starts_stopped) goal_ = Goal{.kind = Goal::Kind::kPasses, .count = 1};
  }

  // Called by the thread that trains.

  Status BeforePass(const PassRun& run, const Module& module) override;
  void BeginGraph(const Graph& graph) override;
  void OnStep(const PlanStep& step, std::span<const at::Tensor> results) override;

  /// Trainer::Step, with its stops: the next step that was not reported yet, however often the
  /// steps before were repeated. None: a command ends the training here.
  Result<std::optional<StepReport>> Step(Trainer& trainer);
  /// A command ended the training.
  bool ends() const;
  /// A checkpoint was written: this is how far commands can go back.
  void SetOrigin(const Trainer& trainer);
  /// The training ended; commands that wait for a stop are answered.
  void Finish();
  /// Learning rates that commands set since the last call: the step from which they apply, the
  /// rate before and after.
  struct RateChange {
    int64_t step = 0;
    double before = 0.0, after = 0.0;
  };
  std::vector<RateChange> TakeRateChanges();

  // --- Called by any thread

  /// Carries out a line of docs/control.md. `reply` is called once: now, or when the training
  /// stops next. It must not call the debugger.
  void Execute(std::string_view command, Reply reply);
  /// The last client has gone: breakpoints are removed, a stopped training continues.
  void Detach();

 private:
  /// Where a training is: after `steps_done` steps and `nodes` nodes of the next one.
  struct Position {
    int64_t steps_done = 0, nodes = 0;
    friend auto operator<=>(const Position&, const Position&) = default;
  };
  /// What ends the next run.
  struct Goal {
    enum class Kind : uint8_t { kBreakpoint, kPasses, kNodes, kSteps };
    Kind kind = Kind::kBreakpoint;
    int64_t count = 0;
  };
  enum class Phase : uint8_t { kPasses, kBetweenSteps, kNodes, kFinished };
  struct Executed {
    const Graph* graph = nullptr;
    NodeId node;
    std::vector<int32_t> node_results;  ///< as PlanStep's
    /// Where the step has this result of the node; none: another step of it has.
    std::optional<size_t> PlaceOf(size_t result) const;
  };
  /// A value that a run back looks at on its way.
  struct Wanted {
    Position at;
    size_t result = 0;
    TensorQuestion question;
    Reply reply;
    ControlAnswer answer;
  };
  using Lock = std::unique_lock<std::mutex>;
  using Words = std::span<const std::string_view>;

  // Commands; the lock is held.
  Result<ControlAnswer> Run(std::string_view command, Reply& reply);
  Result<ControlAnswer> RunBreak(std::string_view place);
  Result<ControlAnswer> RunDelete(Words words);
  Result<ControlAnswer> ListBreakpoints() const;
  Result<ControlAnswer> RunStep(Words words, Reply& reply);
  Result<ControlAnswer> RunBack(Words words, Reply& reply);
  Result<ControlAnswer> RunPrint(std::string_view rest, Reply& reply);
  Result<ControlAnswer> RunSet(Words words);
  Result<ControlAnswer> RunSave(Reply& reply);
  Result<ControlAnswer> RunStop(Reply& reply);
  Status RequireStopped() const;
  Status RequireTrainer() const;
  /// Lets the training run; `reply` is called when it stops.
  ControlAnswer Resume(Goal goal, Reply& reply);
  Status GoTo(const Position& position);
  Result<at::Tensor> NamedTensor(std::string_view name) const;
  ControlAnswer Where() const;

  // Of the training's thread; the lock is held.
  void Stop(Lock& lock, std::string reason);
  void SaveIfAsked(Lock& lock);
  void EndAwaiting();
  void AnswerWaiting();
  std::optional<std::string> ReasonAtNode(std::span<const at::Tensor> results);
  void CheckWanted(std::span<const at::Tensor> results);
  void ApplyRate(Trainer& trainer) const;
  Status ReturnTo(Trainer& trainer, const Position& position);
  bool NeedsNodes() const;
  std::optional<std::string> ReasonBetweenSteps();
  bool IsOnItsWay();
  NodeSite SiteOf(const Executed& executed) const;
  Position position() const { return {.steps_done = steps_done_, .nodes = NumExecuted()}; }
  int64_t NumExecuted() const { return std::ssize(executed_); }

  Options options_;
  mutable std::mutex mutex_;
  std::condition_variable resumed_, first_stop_;
  bool awaits_first_stop_;

  // What commands set.
  std::vector<Breakpoint> breakpoints_;
  int64_t last_breakpoint_ = 0;
  bool pause_ = false, ends_ = false;
  std::vector<Reply> saves_;  // clients that wait for a checkpoint
  std::optional<Goal> goal_;
  std::optional<Position> target_;  // of a run back: no stop before it
  std::optional<Wanted> wanted_;
  std::vector<Reply> waiting_;
  std::vector<RateChange> rate_changes_;
  size_t reported_changes_ = 0;

  // Where the training is.
  bool stopped_ = false, rewinds_ = false;
  Phase phase_ = Phase::kPasses;
  std::string reason_, pass_;
  Trainer* trainer_ = nullptr;
  int64_t steps_done_ = 0, newest_ = 0;  // reported
  std::optional<double> loss_;
  const Graph* graph_ = nullptr;
  std::vector<Executed> executed_;   // nodes of the running step, if it is observed
  std::string where_;                // of the last of them: module and source line
  std::vector<at::Tensor> results_;  // of the last of them, while stopped
  std::string last_module_;
  std::shared_ptr<const TrainingCopy> origin_, step_begin_;
};

}  // namespace strata
