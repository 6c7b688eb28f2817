#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "passes/pipeline/schedule/lowering.h"
#include "passes/pipeline/schedule/schedule.h"
#include "passes/pipeline/slots.h"
#include "runtime/train/pipeline/pipeline_stages.h"
#include "runtime/train/programs/training_graphs.h"

namespace strata {

/// What one rank of a pipeline does in a step: the actions of its schedule, which run the graphs of
/// its stages (passes/pipeline/split_backward.h) and send values to the ranks of other stages.
class PipelineRank {
 public:
  /// `rank` of the axis `pp`, whose ranks are `stride` apart in the team. REQUIRES: `graphs`
  /// outlive this.
  PipelineRank(TrainingGraphs& graphs, const PipelineSchedule& schedule,
               std::vector<Action> program, int64_t rank, int64_t stride);

  /// Finds out what the graphs of its stages read and return. Call once.
  /// Errors: a module that the passes of pipelines did not cut.
  Status Bind(const TracedTraining& traced);
  /// Measures the actions of the runs that follow, or does not.
  void Measure(bool measures) { measures_ = measures; }
  /// When an action of a measured run began and ended, ns of std::chrono::steady_clock.
  struct Span {
    int64_t begin_ns = 0, end_ns = 0;
  };
  /// Of the last run, if it was measured: one for each action of the program.
  const std::vector<Span>& spans() const { return spans_; }

  /// The graphs that a step runs, without those of the update.
  std::vector<std::string> GraphNames() const;

  /// Sums over the microbatches that ran since `Clear`, in the order in which the schedule has
  /// them.
  struct Sums {
    std::vector<at::Tensor> losses;     ///< by microbatch; of the last stage, else undefined
    std::vector<at::Tensor> gradients;  ///< by parameter; undefined: of other ranks
    std::vector<at::Tensor> extras;     ///< further outputs of the step; the same
  };
  /// Of parameters that stages of several ranks read: sends those that this rank has, and puts what
  /// others have into `inputs`, those of the step's graph. Call on all ranks before `Run` and
  /// `Validate`. Throws as RankTeam::Receive.
  void ShareParameters(std::vector<at::Tensor>& inputs) const;
  /// Runs the schedule once. `inputs`: of the step's graph, for each microbatch; tensors of other
  /// ranks' stages are undefined. Gradients are reduced in the step's last run, `is_last`. Errors:
  /// those of the graphs. Throws as RankTeam::Receive. REQUIRES: bound; as many microbatches as the
  /// schedule has.
  Status Run(std::span<const std::vector<at::Tensor>> inputs, Sums& sums, bool is_last);

  /// Runs the stages' graphs `validate` on batches; `inputs` as of `Run`. What the graph returns
  /// for each batch; empty on ranks without the last stage. Errors and exceptions as of `Run`.
  Result<std::vector<std::vector<at::Tensor>>> Validate(
      std::span<const std::vector<at::Tensor>> inputs);

 private:
  using Tensors = std::vector<at::Tensor>;
  using Key = std::pair<int64_t, int64_t>;  // stage, microbatch

  void Begin(std::span<const Tensors> inputs);
  Status RunAction(const Action& action);
  Status Unshard(int64_t stage);
  /// What is left to reduce, of the microbatches of all runs.
  Status Reduce(int64_t stage);
  Status Forward(const Action& action);
  /// Action B; of a stage whose backward is not split also W.
  Status Backward(const Action& action);
  /// Of OVERLAP_F_B: one graph, where the passes made it.
  Status Overlap(const Action& forward, const Action& backward);
  Status FinishForward(const Action& action, Tensors results);
  Status FinishBackward(const Action& action, Tensors results);
  Status BackwardInput(const Action& action);
  Status BackwardWeight(const Action& action);
  Status AddUp(StageGraphs& stage, const Action& action, Tensors gradients);
  /// Drops the values of a microbatch that the graph does not read.
  void KeepFor(const StageGraph& graph, const Action& action);
  std::map<Key, Tensors>& ValuesOf(StageSlot::Kind kind);
  Result<Tensors> Arguments(const StageGraph& graph, const Action& action);
  Status Accumulate(StageGraphs& stage, const Tensors& gradients, const Tensors& extras);
  bool IsLocal(int64_t stage) const;
  /// Gives values to a neighbour stage on this rank, or keeps them until they are sent.
  void HandOver(const Action& action, StageSlot::Kind kind, Tensors values);
  Status Send(const Action& action);
  Status Receive(const Action& action);

  TrainingGraphs& graphs_;
  std::vector<int64_t> rank_of_stage_;
  std::vector<Action> program_;
  int64_t rank_, stride_, team_rank_ = 0;
  BoundStages bound_;

  // Of the step that runs.
  std::span<const Tensors> inputs_;
  Sums* sums_ = nullptr;
  std::map<Key, Tensors> activations_, gradients_, saved_, kept_, extras_;
  std::map<int64_t, Tensors> whole_;  // parameters, by stage
  std::set<int64_t> reduced_;         // stages
  bool is_last_ = true, measures_ = false;
  std::vector<Span> spans_;
  std::map<Key, Tensors> to_next_, to_previous_;  // until they are sent, by the sender's stage
};

}  // namespace strata
