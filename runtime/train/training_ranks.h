#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "runtime/plan/device/device.h"
#include "runtime/plan/plan.h"
#include "runtime/ranks/rank_team.h"
#include "runtime/train/programs/programs.h"
#include "runtime/train/programs/training_graphs.h"
#include "runtime/train/rank_training.h"
#include "runtime/train/state_sharding.h"
#include "runtime/train/training_state.h"

namespace strata {

/// The ranks of a training that this process has: one with the whole state until `Distribute`.
class TrainingRanks {
 public:
  using Work = std::function<Status(int64_t rank, RankTraining& training)>;
  using BatchInputs = RankTraining::BatchInputs;

  explicit TrainingRanks(std::unique_ptr<RankTraining> whole) {
    trainings_.push_back(std::move(whole));
  }

  /// Makes `plan` the plan of each rank of `team` and gives it its part of the state, on `device`
  /// (null: the CPU).
  /// REQUIRES: `spec` and `device` outlive this. Errors: the ranks of other processes have other
  /// graphs, or are at another step.
  Status Distribute(const TracedTraining& traced, const TrainSpec& spec, StateSharding sharding,
                    const PlanOptions& plan, Device* device, std::unique_ptr<RankTeam> team,
                    int64_t steps_done);

  /// Those of this process, in the order of the ranks.
  const std::vector<std::unique_ptr<RankTraining>>& all() const { return trainings_; }
  /// The first of this process.
  RankTraining& first() const { return *trainings_.front(); }
  /// False: a training on one rank.
  bool is_distributed() const { return team_ != nullptr; }
  /// Whether this process has rank 0, on which results are gathered.
  bool has_first_rank() const;
  /// Whether this process has all ranks.
  bool is_one_process() const { return !team_ || trainings_.size() > 1; }
  /// Null: not distributed.
  RankTeam* team() const { return team_.get(); }

  /// Calls `work` for each rank of this process, on its thread.
  Status ForEach(const Work& work);
  /// What a rank reads of a batch. Errors: those of StateSharding::ShardBatch.
  Result<BatchInputs> PartOf(const BatchTensors& batch, int64_t rank) const;

  /// Brings what the ranks hold to rank 0, for `state` and `gradients`, until `DropGathered`. With
  /// ranks in several processes all of them call it, after the same step.
  Status GatherState();
  Status GatherGradients();
  /// As RankTraining::KeepGradients, on all ranks of this process.
  void KeepGradients(bool keep);
  void DropGathered();
  /// The whole, gathered now if it was not and the ranks are of one process.
  /// REQUIRES: has_first_rank().
  const TrainingState& state();
  const std::vector<at::Tensor>& gradients();

  /// Whether it is true in any process; the same in all.
  Result<bool> IsTrueInAnyProcess(bool mine, const char* what);

 private:
  std::vector<std::unique_ptr<RankTraining>> trainings_;
  std::optional<StateSharding> sharding_;
  std::optional<TrainingState> gathered_;
  std::vector<at::Tensor> gathered_gradients_;
  std::unique_ptr<RankTeam> team_;  // after what its threads use
};

}  // namespace strata
