#include "runtime/train/training_ranks.h"

#include <utility>

#include <fmt/format.h>

#include "ir/fingerprint.h"
#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "runtime/ranks/gather.h"

namespace strata {
namespace {

using at::Tensor;

/// What the graphs send and compute, in lines.
std::string GraphsOf(const TracedTraining& traced) {
  const Module& module = *traced.module;
  std::string calls, fingerprints;
  for (const GraphId id : module.programs()) {
    const Graph& graph = module.graph(id);
    for (const NodeId node : graph.nodes()) {
      if (!CollectiveOf(graph, node)) continue;
      calls += fmt::format("{}({}) over {} in {} of graph {}\n", BaseName(graph.op(node)),
                           module.types().ToString(graph.value(graph.operands(node)[0]).type),
                           GroupOf(graph, node), graph.name(node), graph.name_text());
    }
    fingerprints += fmt::format("graph {} {}\n", graph.name_text(), ToString(FingerprintOf(graph)));
  }
  return calls + fingerprints;
}

}  // namespace

Status TrainingRanks::Distribute(const TracedTraining& traced, const TrainSpec& spec,
                                 StateSharding sharding, const PlanOptions& plan, Device* device,
                                 std::unique_ptr<RankTeam> team, int64_t steps_done) {
  sharding_ = std::move(sharding);
  const TrainingState whole = first().state();
  trainings_.clear();
  for (const int64_t rank : team->local_ranks()) {
    TrainingState part = sharding_->Shard(whole, rank);
    if (device != nullptr) part.MoveTo(c10::Device(device->traits().name));
    trainings_.push_back(
        std::make_unique<RankTraining>(spec, plan, device, Ready(std::move(part))));
  }
  team_ = std::move(team);
  if (is_one_process()) return Ok();
  return team_->Run([&](int64_t) -> Status {
    CheckSameOnRanks("graphs", GraphsOf(traced));
    CheckSameOnRanks("steps to begin after", std::to_string(steps_done));
    return Ok();
  });
}

bool TrainingRanks::has_first_rank() const {
  return !team_ || team_->local_ranks().front() == 0;
}

Status TrainingRanks::ForEach(const Work& work) {
  if (!team_) return work(0, first());
  const int64_t begin = team_->local_ranks().front();
  return team_->Run(
      [&](int64_t rank) { return work(rank, *trainings_[static_cast<size_t>(rank - begin)]); });
}

Result<TrainingRanks::BatchInputs> TrainingRanks::PartOf(const BatchTensors& batch,
                                                         int64_t rank) const {
  if (!sharding_) return batch.Inputs();
  return sharding_->ShardBatch(batch, rank);
}

Status TrainingRanks::GatherState() {
  if (!team_ || gathered_) return Ok();
  if (!is_one_process()) {
    return team_->Run([&](int64_t) -> Status {
      gathered_ = sharding_->GatherOnFirst(first().state());
      return Ok();
    });
  }
  std::vector<TrainingState*> parts;
  for (const std::unique_ptr<RankTraining>& rank : trainings_)
    parts.push_back(&rank->state());
  gathered_ = sharding_->Gather(parts);
  return Ok();
}

Status TrainingRanks::GatherGradients() {
  if (!team_ || !gathered_gradients_.empty() || first().gradients().empty()) return Ok();
  if (!is_one_process()) {
    return team_->Run([&](int64_t) -> Status {
      gathered_gradients_ = sharding_->GatherGradientsOnFirst(first().gradients());
      return Ok();
    });
  }
  std::vector<const std::vector<Tensor>*> parts;
  for (const std::unique_ptr<RankTraining>& rank : trainings_)
    parts.push_back(&rank->gradients());
  gathered_gradients_ = sharding_->GatherGradients(parts);
  return Ok();
}

void TrainingRanks::KeepGradients(bool keep) {
  for (const std::unique_ptr<RankTraining>& rank : trainings_)
    rank->KeepGradients(keep);
}

void TrainingRanks::DropGathered() {
  gathered_.reset();
  gathered_gradients_.clear();
}

const TrainingState& TrainingRanks::state() {
  if (!team_) return first().state();
  STRATA_CHECK(has_first_rank() && (gathered_ || is_one_process()));
  const Status gathered = GatherState();
  STRATA_CHECK(gathered, "{}", gathered.error().message());
  return *gathered_;
}

const std::vector<Tensor>& TrainingRanks::gradients() {
  if (!team_ || first().gradients().empty()) return first().gradients();
  STRATA_CHECK(has_first_rank() && (!gathered_gradients_.empty() || is_one_process()));
  const Status gathered = GatherGradients();
  STRATA_CHECK(gathered, "{}", gathered.error().message());
  return gathered_gradients_;
}

Result<bool> TrainingRanks::IsTrueInAnyProcess(bool mine, const char* what) {
  if (is_one_process()) return mine;
  bool any = false;
  STRATA_RETURN_IF_ERROR(team_->Run([&](int64_t) -> Status {
    any = IsTrueOnAnyRank(mine, what);
    return Ok();
  }));
  return any;
}

}  // namespace strata
