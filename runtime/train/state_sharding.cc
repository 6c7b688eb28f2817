#include "runtime/train/state_sharding.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/ranks/gather.h"
#include "runtime/train/programs/joint_program.h"
#include "runtime/train/programs/param_groups.h"

namespace strata {
namespace {

using at::Tensor;
using Shardings = std::vector<Sharding>;

/// The next `count` of a list of inputs or outputs.
class Reader {
 public:
  explicit Reader(Shardings shardings) : shardings_(std::move(shardings)) {}

  Shardings Take(size_t count) {
    const auto begin =
        shardings_.begin() + static_cast<std::ptrdiff_t>(std::exchange(at_, at_ + count));
    STRATA_CHECK(at_ <= shardings_.size());
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
  }
  Shardings TakeRest() { return Take(shardings_.size() - at_); }

 private:
  Shardings shardings_;
  size_t at_ = 0;
};

Result<Reader> InputsOf(const TracedTraining& traced, std::string_view graph, const Mesh& mesh) {
  STRATA_TRY(Shardings shardings, InputShardings(*traced.module->FindGraph(graph), mesh));
  return Reader(std::move(shardings));
}

Result<Reader> OutputsOf(const TracedTraining& traced, std::string_view graph, const Mesh& mesh) {
  STRATA_TRY(const std::vector<std::optional<Sharding>> outputs,
             OutputShardings(*traced.module->FindGraph(graph), mesh));
  Shardings shardings;
  for (const std::optional<Sharding>& output : outputs)
    shardings.push_back(output.value_or(Sharding()));
  return Reader(std::move(shardings));
}

Status CheckEqual(const Shardings& ours, const Shardings& theirs, std::string_view what,
                  std::string_view graph) {
  if (ours == theirs) return Ok();
  return Error(ErrorCode::kInternal, "graphs place {} differently: {} and {}", what, kStepGraph,
               graph);
}

size_t NumRopeTables(const TrainSpec& spec) {
  return HasRopeTable(spec.config) ? 1 : 0;
}

size_t NumConstants(const TrainSpec& spec) {
  return spec.program ? spec.program->constants().size() : 0;
}

void Append(Shardings& all, const Shardings& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

Result<StateSharding> StateSharding::Make(const TracedTraining& traced, const TrainSpec& spec,
                                          const Mesh& mesh, const StageOwners* owners) {
  StateSharding made = Whole(spec);
  if (mesh.num_ranks() > 1) {
    STRATA_TRY(made, OfGraphs(traced, spec, mesh));
  }
  made.stage_ranks_ = mesh.num_ranks();
  made.state_owners_.assign(made.state_.size(), kAll);
  made.gradient_owners_.assign(made.gradients_.size(), kAll);
  if (owners == nullptr) return made;
  // Parameters, buffers, rope table, exp_avg, exp_avg_sq, others.
  const size_t parameters = owners->parameters.size(), buffers = owners->buffers.size();
  const auto own = [&](const std::vector<int64_t>& of, size_t at) {
    std::ranges::copy(of, made.state_owners_.begin() + static_cast<std::ptrdiff_t>(at));
  };
  own(owners->parameters, 0);
  own(owners->buffers, parameters);
  own(owners->parameters, parameters + buffers + 1);
  own(owners->parameters, 2 * parameters + buffers + 1);
  made.gradient_owners_ = owners->parameters;
  return made;
}

/// Every rank has everything.
StateSharding StateSharding::Whole(const TrainSpec& spec) {
  const size_t parameters = spec.model.parameters.size(), buffers = spec.model.buffers.size();
  const size_t rates = GroupLearningRates(spec.config.optimizer).size();
  StateSharding whole;
  whole.state_.resize(3 * parameters + buffers + NumRopeTables(spec) + NumConstants(spec) + 2 +
                      rates);
  whole.gradients_.resize(parameters);
  whole.batch_.resize(2 + (HasPositions(spec.config) ? 1 : 0) +
                      (HasLabelCount(spec.config) ? 1 : 0));
  return whole;
}

Result<StateSharding> StateSharding::OfGraphs(const TracedTraining& traced, const TrainSpec& spec,
                                              const Mesh& mesh) {
  const size_t parameters = spec.model.parameters.size(), buffers = spec.model.buffers.size();
  StateSharding made;
  STRATA_TRY(Reader step, InputsOf(traced, kStepGraph, mesh));
  const Shardings model = step.Take(parameters + buffers);
  const Shardings others = step.Take(NumRopeTables(spec) + NumConstants(spec));
  made.batch_ = step.TakeRest();
  STRATA_TRY(Reader outputs, OutputsOf(traced, kStepGraph, mesh));
  if (const Shardings loss = outputs.Take(1); !loss[0].is_replicated()) {
    return Error(ErrorCode::kInternal, "the loss is not on every rank: {}", kStepGraph);
  }
  made.gradients_ = outputs.Take(parameters);
  const Shardings counts = outputs.Take(buffers);

  STRATA_TRY(Reader optimizer, InputsOf(traced, kOptimizerGraph, mesh));
  Shardings updated = optimizer.Take(parameters);
  const Shardings gradients = optimizer.Take(parameters);
  const Shardings moments = optimizer.Take(2 * parameters);
  Append(updated, optimizer.Take(buffers));
  const Shardings read_counts = optimizer.Take(buffers);
  STRATA_RETURN_IF_ERROR(CheckEqual(model, updated, "parameters", kOptimizerGraph));
  STRATA_RETURN_IF_ERROR(CheckEqual(made.gradients_, gradients, "gradients", kOptimizerGraph));
  STRATA_RETURN_IF_ERROR(CheckEqual(counts, read_counts, "tokens per expert", kOptimizerGraph));
  if (spec.config.accumulation_steps > 1) {
    STRATA_TRY(Reader sums, InputsOf(traced, kAccumulateGraph, mesh));
    for (int list = 0; list < 2; ++list) {
      STRATA_RETURN_IF_ERROR(
          CheckEqual(made.gradients_, sums.Take(parameters), "gradients", kAccumulateGraph));
      STRATA_RETURN_IF_ERROR(
          CheckEqual(counts, sums.Take(buffers), "tokens per expert", kAccumulateGraph));
    }
  }
  if (spec.config.validator.enable) {
    STRATA_TRY(Reader validate, InputsOf(traced, kValidateGraph, mesh));
    STRATA_RETURN_IF_ERROR(
        CheckEqual(model, validate.Take(parameters + buffers), "parameters", kValidateGraph));
  }
  for (const Shardings& group : {model, others, moments, optimizer.TakeRest()})
    Append(made.state_, group);
  return made;
}

TrainingState StateSharding::Shard(const TrainingState& whole, int64_t rank) const {
  TrainingState part = whole;
  const std::vector<Tensor*> tensors = part.Tensors();
  STRATA_CHECK(tensors.size() == state_.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool is_own = IsOwn(state_owners_[i], rank / stage_ranks_);
    *tensors[i] = is_own ? state_[i].Shard(*tensors[i], rank % stage_ranks_) : Tensor();
  }
  return part;
}

/// From the ranks of the stage that has it.
Tensor StateSharding::Gather(const Sharding& sharding, int64_t owner,
                             std::span<const Tensor> of_ranks) const {
  const auto first = static_cast<size_t>(std::max<int64_t>(owner, 0) * stage_ranks_);
  return sharding.Gather(of_ranks.subspan(first, static_cast<size_t>(stage_ranks_)));
}

TrainingState StateSharding::Gather(std::span<TrainingState* const> parts) const {
  TrainingState whole = *parts[0];
  std::vector<std::vector<Tensor*>> tensors;
  for (TrainingState* part : parts)
    tensors.push_back(part->Tensors());
  const std::vector<Tensor*> gathered = whole.Tensors();
  for (size_t i = 0; i < gathered.size(); ++i) {
    std::vector<Tensor> of_ranks;
    for (const std::vector<Tensor*>& part : tensors)
      of_ranks.push_back(*part[i]);
    *gathered[i] = Gather(state_[i], state_owners_[i], of_ranks);
  }
  return whole;
}

std::vector<Tensor> StateSharding::GatherGradients(
    std::span<const std::vector<Tensor>* const> parts) const {
  std::vector<Tensor> gathered;
  for (size_t i = 0; i < gradients_.size(); ++i) {
    std::vector<Tensor> of_ranks;
    for (const std::vector<Tensor>* part : parts)
      of_ranks.push_back((*part)[i]);
    gathered.push_back(Gather(gradients_[i], gradient_owners_[i], of_ranks));
  }
  return gathered;
}

RankRange StateSharding::RanksOf(int64_t owner) const {
  return {.first = static_cast<size_t>(std::max<int64_t>(owner, 0) * stage_ranks_),
          .count = static_cast<size_t>(stage_ranks_)};
}

TrainingState StateSharding::GatherOnFirst(TrainingState& part) const {
  TrainingState whole = part;
  const std::vector<Tensor*> parts = part.Tensors(), gathered = whole.Tensors();
  for (size_t i = 0; i < gathered.size(); ++i) {
    *gathered[i] = strata::GatherOnFirst(
        state_[i], *parts[i], fmt::format("tensor {} of the state", i), RanksOf(state_owners_[i]));
  }
  return whole;
}

std::vector<Tensor> StateSharding::GatherGradientsOnFirst(const std::vector<Tensor>& part) const {
  std::vector<Tensor> gathered;
  for (size_t i = 0; i < gradients_.size(); ++i) {
    gathered.push_back(strata::GatherOnFirst(gradients_[i], part[i], fmt::format("gradient {}", i),
                                             RanksOf(gradient_owners_[i])));
  }
  return gathered;
}

Result<std::vector<Tensor>> StateSharding::ShardBatch(const BatchTensors& batch,
                                                      int64_t rank) const {
  std::vector<Tensor> parts;
  const std::vector<Tensor> inputs = batch.Inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<int64_t>& placed = batch_[i].sizes();
    if (!batch_[i].is_replicated() && inputs[i].sizes() != placed) {
      return Error(ErrorCode::kInvalid,
                   "a batch of [{}] cannot run on ranks that were placed for [{}]: dynamic sizes "
                   "need one rank",
                   fmt::join(inputs[i].sizes(), ", "), fmt::join(placed, ", "));
    }
    parts.push_back(batch_[i].Shard(inputs[i], rank % stage_ranks_));
  }
  return parts;
}

}  // namespace strata
