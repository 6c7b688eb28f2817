#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "runtime/plan/device/device.h"
#include "runtime/plan/plan.h"
#include "runtime/train/pipeline/pipeline_rank.h"
#include "runtime/train/programs/programs.h"
#include "runtime/train/programs/training_graphs.h"
#include "runtime/train/training_state.h"

namespace strata {

/// Learning rates of the next update.
struct UpdateRates {
  double lr = 0.0;
  std::vector<double> groups;  ///< of the groups that have another
};

/// What one rank does in a training: it has its part of the state and runs the graphs on it. In a
/// training on one rank the part is everything.
class RankTraining {
 public:
  /// Inputs of a step's graph beyond the state, in their order: the rank's part of a batch.
  using BatchInputs = std::vector<at::Tensor>;

  /// REQUIRES: `spec` and `device` (null: the CPU) outlive this.
  RankTraining(const TrainSpec& spec, const PlanOptions& plan, Device* device, FutureState state)
      : spec_(spec), graphs_(plan, device), state_(std::move(state)) {}

  /// Lowers the graphs. Call once, on the thread that runs them.
  Status Bind(const TracedTraining& traced) { return graphs_.Bind(traced, spec_.config); }

  /// The same for a rank of a pipeline: `rank` of the axis `pp`, whose ranks are `stride` apart.
  Status BindPipeline(const TracedTraining& traced, const PipelineSchedule& schedule,
                      std::vector<Action> program, int64_t rank, int64_t stride);

  /// Loss and gradients of a step's batches; returns the loss: of a pipeline, on the rank of the
  /// last stage. REQUIRES: bound.
  Result<double> RunStep(std::span<const BatchInputs> batches);
  /// The update from these gradients; returns their norm. REQUIRES: bound, `RunStep` before.
  Result<double> Update(const UpdateRates& rates);
  /// The same by calling what the graphs were traced from. REQUIRES: the state is whole.
  Result<double> RunStepEagerly(std::span<const BatchTensors> batches);
  Result<double> UpdateEagerly(const UpdateRates& rates);
  /// Sum of the losses and number of the labels of a batch.
  using ValidationSums = std::pair<double, double>;
  /// Those of each batch; of a pipeline, empty but on the rank of the last stage. REQUIRES: bound
  /// with a validator.
  Result<std::vector<ValidationSums>> Validate(std::span<const BatchInputs> batches);

  /// Whether copies of the gradients of the steps from now on are kept for `gradients`: the
  /// optimizer uses the memory of gradients.
  void KeepGradients(bool keep) { keep_gradients_ = keep; }
  /// Of the last step, before clipping; empty if they were not kept.
  const std::vector<at::Tensor>& gradients() const { return kept_gradients_; }

  /// Of a rank of a pipeline; null: of another.
  PipelineRank* pipeline() { return pipeline_ ? &*pipeline_ : nullptr; }

  /// Waits until it is made.
  TrainingState& state() const { return *state_.get(); }
  TrainingGraphs& graphs() { return graphs_; }
  const TrainingGraphs& graphs() const { return graphs_; }

 private:
  Result<double> RunPipeline(std::span<const BatchInputs> batches);
  std::vector<std::vector<at::Tensor>> PipelineArguments(
      std::span<const BatchInputs> batches) const;
  std::vector<at::Tensor> StepArguments(const BatchInputs& batch) const;
  std::vector<at::Tensor> Sums() const;
  template <class Batch, class RunBatch, class AddUp>
  Result<double> SumUp(std::span<const Batch> batches, RunBatch run, AddUp add);
  void SetRates(const UpdateRates& rates);
  void CopyGradients();

  const TrainSpec& spec_;
  TrainingGraphs graphs_;
  FutureState state_;                                      // binding the graphs does not need it
  std::vector<at::Tensor> gradients_, tokens_per_expert_;  // of the last step
  std::optional<PipelineRank> pipeline_;
  std::string optimizer_graph_;
  std::vector<size_t> optimizer_inputs_;  // of the whole optimizer's
  bool keep_gradients_ = false;
  std::vector<at::Tensor> kept_gradients_;
};

}  // namespace strata
