#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "passes/placement/mesh.h"
#include "runtime/ranks/gather.h"
#include "runtime/ranks/sharding.h"
#include "runtime/train/pipeline/stage_owners.h"
#include "runtime/train/programs/programs.h"
#include "runtime/train/programs/training_graphs.h"
#include "runtime/train/training_state.h"

namespace strata {

/// How the ranks hold the tensors of a training, as the lowered graphs say.
class StateSharding {
 public:
  /// `mesh`: of the ranks of a stage. With `owners` each of these has a stage of a pipeline, and
  /// tensors of other stages are undefined there; null: there is one stage.
  /// Errors: a graph that is not lowered, graphs that hold one tensor differently.
  static Result<StateSharding> Make(const TracedTraining& traced, const TrainSpec& spec,
                                    const Mesh& mesh, const StageOwners* owners = nullptr);

  /// What `rank` has of the whole state.
  TrainingState Shard(const TrainingState& whole, int64_t rank) const;
  /// The whole state, from each rank's.
  TrainingState Gather(std::span<TrainingState* const> parts) const;
  /// The whole gradient of each parameter, from each rank's gradients.
  std::vector<at::Tensor> GatherGradients(
      std::span<const std::vector<at::Tensor>* const> parts) const;
  /// The same where ranks are processes: on rank 0, elsewhere without tensors. Every rank calls it
  /// on its thread. Throws as strata::GatherOnFirst.
  TrainingState GatherOnFirst(TrainingState& part) const;
  std::vector<at::Tensor> GatherGradientsOnFirst(const std::vector<at::Tensor>& part) const;
  /// What `rank` reads of a batch, in the order of BatchTensors::Inputs.
  /// Errors: a batch of another size than the one that was placed.
  Result<std::vector<at::Tensor>> ShardBatch(const BatchTensors& batch, int64_t rank) const;

 private:
  static StateSharding Whole(const TrainSpec& spec);
  static Result<StateSharding> OfGraphs(const TracedTraining& traced, const TrainSpec& spec,
                                        const Mesh& mesh);
  static bool IsOwn(int64_t owner, int64_t pipeline_rank) {
    return owner == kAll || owner == pipeline_rank;
  }
  /// Those of the stage that `owner`, or every stage, has.
  RankRange RanksOf(int64_t owner) const;
  at::Tensor Gather(const Sharding& sharding, int64_t owner,
                    std::span<const at::Tensor> of_ranks) const;

  static constexpr int64_t kAll = -1;
  int64_t stage_ranks_ = 1;  ///< consecutive ranks have one stage
  std::vector<int64_t> state_owners_, gradient_owners_;
  std::vector<Sharding> state_;  ///< in the order of TrainingState::Tensors
  std::vector<Sharding> gradients_, batch_;
};

}  // namespace strata
