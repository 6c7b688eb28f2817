#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "passes/core/pass.h"
#include "passes/pipeline/schedule/lowering.h"
#include "passes/pipeline/schedule/measured.h"
#include "passes/pipeline/schedule/schedule.h"
#include "runtime/config/config.h"
#include "runtime/plan/device/device.h"
#include "runtime/plan/plan.h"
#include "runtime/ranks/rank_team.h"
#include "runtime/train/batch_feed.h"
#include "runtime/train/data/data.h"
#include "runtime/train/pipeline/pipeline.h"
#include "runtime/train/pipeline/pipeline_rank.h"
#include "runtime/train/programs/initial_weights.h"
#include "runtime/train/programs/programs.h"
#include "runtime/train/programs/training_graphs.h"
#include "runtime/train/rank_training.h"
#include "runtime/train/trainer.h"
#include "runtime/train/training_ranks.h"

namespace strata {

struct TrainingCopy {
  int64_t steps_done = 0, tokens_seen = 0, first_scheduled_step = 0;
  double rate = 0.0;
  std::string data_position;
  std::vector<std::vector<at::Tensor>> tensors;  // of each rank's state; undefined: other stages
};

/// What a trainer owns, and how one step runs on all its ranks. `Trainer` is its interface.
struct TrainerState {
  /// Errors: as Trainer::Create. All of them are reported before an initial value is computed.
  static Result<std::unique_ptr<TrainerState>> Make(TrainSetup setup);

  TrainerState(TrainSetup setup, TrainSpec train_spec,
               std::vector<std::unique_ptr<Pass>> pipeline_passes,
               std::optional<InitialWeights> given);

  /// Makes the graphs, gives each rank its part of the state, and binds its plans.
  Status Compile(const CompileWatch& watch);

  /// The batches of the next step.
  Result<std::vector<BatchTensors>> TakeBatches();
  /// The loss of the next step.
  Result<double> RunGraphs();
  /// The gradient norm of the step whose graphs ran.
  Result<double> RunOptimizer();
  /// Sum of the losses and number of the labels of each batch, one after the other.
  Result<std::vector<double>> ValidateOn(std::span<const BatchTensors> batches);
  /// The next batches of the validation data that run together, `most` or fewer at their end.
  Result<std::vector<BatchTensors>> TakeForValidation(int64_t most);

  /// A step: the loss, which must be finite before anything is updated, then the update.
  Result<StepReport> RunAndReport(const std::function<Result<double>()>& loss,
                                  const std::function<Result<double>()>& update);

  UpdateRates Rates() const;
  RankTraining& first() const { return ranks.first(); }
  /// Those that run graphs of their own: all of a pipeline, otherwise one for all.
  std::span<const std::unique_ptr<RankTraining>> programs() const {
    return std::span(ranks.all()).first(schedule ? ranks.all().size() : 1);
  }
  c10::Device place() const;
  c10::Device state_place() const;
  DeviceTraits Target() const { return device ? device->traits() : DeviceTraits(); }

  TrainSpec spec;
  const TrainConfig& config = spec.config;
  std::unique_ptr<Device> device;  // before what may hold its memory and graphs
  BatchFeed feed;
  std::unique_ptr<DataSource> validation;
  int threads;
  PlanOptions plan;
  std::vector<std::unique_ptr<Pass>> passes;  // until they ran
  std::string pipeline;                       // their text
  TracedTraining traced;
  std::vector<std::string> warnings;    // of making the graphs
  std::unique_ptr<RankTeam> processes;  // of this one and others, until the ranks have their parts
  int64_t process_rank = 0;
  std::optional<PipelineSchedule> schedule;  // of a pipeline
  RankPrograms actions;                      // the same
  int64_t loss_rank = 0;
  bool measures = false;  // the actions of the next step
  std::vector<MeasuredAction> measured;
  TrainingRanks ranks;  // after what their threads use

  bool draws_random = false;  // numbers in its steps
  int64_t num_runs = 0;       // steps of this run
  int64_t steps_done = 0;
  int64_t tokens_seen = 0;
  int64_t step_tokens = 0;  // of the last step
  int64_t first_scheduled_step = 0;

 private:
  Status MakeGraphs(const CompileWatch& watch);
  Status Distribute();
  Status BindPipeline(int64_t rank, RankTraining& training);
  bool IsTaken(int64_t rank, int64_t one) const;
  double Rate(double lr) const;
  void CollectSpans(int64_t rank, const PipelineRank& pipeline,
                    std::vector<at::Tensor>& spans) const;
  void KeepMeasured(const std::vector<at::Tensor>& spans);
  std::vector<double> FromLossRank(int64_t rank, std::vector<double> of_rank) const;
  Status CheckFinite(std::string_view what, double value) const;
};

}  // namespace strata
