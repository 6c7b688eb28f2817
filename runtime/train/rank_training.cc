#include "runtime/train/rank_training.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "runtime/train/pipeline/pipeline_stages.h"
#include "runtime/train/programs/joint_program.h"

namespace strata {
namespace {

using at::Tensor;

/// Adds in the type of the loss, as the graph would.
double AddLoss(double sum, const Tensor& loss) {
  if (loss.scalar_type() == at::kDouble) return sum + loss.item<double>();
  return static_cast<float>(sum) + loss.item<float>();
}

}  // namespace

Status RankTraining::BindPipeline(const TracedTraining& traced, const PipelineSchedule& schedule,
                                  std::vector<Action> program, int64_t rank, int64_t stride) {
  pipeline_.emplace(graphs_, schedule, std::move(program), rank, stride);
  STRATA_RETURN_IF_ERROR(pipeline_->Bind(traced));
  optimizer_graph_ = fmt::format("{}.rank{}", kOptimizerGraph, rank);
  const Graph* part = traced.module->FindGraph(optimizer_graph_);
  if (part == nullptr)
    return Error("no graph '{}': pipeline: run split-optimizer", optimizer_graph_);
  const std::map<std::string, size_t> positions =
      InputPositions(*traced.module->FindGraph(kOptimizerGraph));
  for (const auto& [name, position] : InputPositions(*part)) {
    optimizer_inputs_.resize(std::max(optimizer_inputs_.size(), position + 1));
    optimizer_inputs_[position] = positions.at(name);
  }
  std::vector<std::string> names = pipeline_->GraphNames();
  names.push_back(optimizer_graph_);
  return graphs_.BindAll(traced, names);
}

/// Of each batch; parameters of other ranks that this one reads are there.
std::vector<std::vector<Tensor>> RankTraining::PipelineArguments(
    std::span<const BatchInputs> batches) const {
  std::vector<std::vector<Tensor>> arguments;
  for (const BatchInputs& batch : batches)
    arguments.push_back(StepArguments(batch));
  if (arguments.empty()) return arguments;
  pipeline_->ShareParameters(arguments[0]);
  for (size_t i = 1; i < arguments.size(); ++i)
    std::copy_n(arguments[0].begin(), state().parameters.size(), arguments[i].begin());
  return arguments;
}

/// The schedule takes its number of microbatches at a time.
Result<double> RankTraining::RunPipeline(std::span<const BatchInputs> batches) {
  gradients_.clear();
  tokens_per_expert_.clear();
  kept_gradients_.clear();
  state().ReleaseViews();
  const std::vector<std::vector<Tensor>> inputs = PipelineArguments(batches);
  PipelineRank::Sums sums;
  double loss = 0.0;
  const auto count = static_cast<size_t>(spec_.config.parallelism.pipeline.microbatches);
  for (size_t first = 0; first < inputs.size(); first += count) {
    STRATA_RETURN_IF_ERROR(pipeline_->Run(std::span(inputs).subspan(first, count), sums,
                                          first + count == inputs.size()));
    for (const Tensor& of_microbatch : sums.losses)
      if (of_microbatch.defined()) loss = AddLoss(loss, of_microbatch);
  }
  gradients_ = std::move(sums.gradients);
  tokens_per_expert_ = std::move(sums.extras);
  if (keep_gradients_) CopyGradients();
  return loss;
}

std::vector<Tensor> RankTraining::StepArguments(const BatchInputs& batch) const {
  std::vector<Tensor> arguments = state().parameters;
  arguments.insert(arguments.end(), state().buffers.begin(), state().buffers.end());
  if (state().rope_table.defined()) arguments.push_back(state().rope_table);
  arguments.insert(arguments.end(), state().constants.begin(), state().constants.end());
  arguments.insert(arguments.end(), batch.begin(), batch.end());
  return arguments;
}

std::vector<Tensor> RankTraining::Sums() const {
  std::vector<Tensor> sums = gradients_;
  sums.insert(sums.end(), tokens_per_expert_.begin(), tokens_per_expert_.end());
  return sums;
}

/// `run` gives loss and gradients of a batch, `add` adds the second list to the first.
template <class Batch, class RunBatch, class AddUp>
Result<double> RankTraining::SumUp(std::span<const Batch> batches, RunBatch run, AddUp add) {
  // Their memory serves this step's.
  gradients_.clear();
  tokens_per_expert_.clear();
  kept_gradients_.clear();
  state().ReleaseViews();
  double loss = 0.0;
  for (size_t i = 0; i < batches.size(); ++i) {
    STRATA_TRY(const std::vector<Tensor> outputs, run(batches[i]));
    loss = AddLoss(loss, outputs[0]);
    // Memory that the next batch wants cannot hold sums.
    const bool is_lent = i == 0 && batches.size() > 1 && graphs_.LendsOutputs(kStepGraph);
    const auto take = [&](const Tensor& tensor) {
      return AsGraphInput(is_lent ? tensor.clone(at::MemoryFormat::Contiguous) : tensor);
    };
    std::vector<Tensor> batch_gradients, batch_counts;
    for (size_t p = 1; p <= state().parameters.size(); ++p)
      batch_gradients.push_back(take(outputs[p]));
    for (size_t p = outputs.size() - state().buffers.size(); p < outputs.size(); ++p)
      batch_counts.push_back(take(outputs[p]));
    if (i == 0) {
      gradients_ = std::move(batch_gradients);
      tokens_per_expert_ = std::move(batch_counts);
      continue;
    }
    batch_gradients.insert(batch_gradients.end(), batch_counts.begin(), batch_counts.end());
    STRATA_RETURN_IF_ERROR(add(Sums(), batch_gradients));
  }
  if (keep_gradients_) CopyGradients();
  return loss;
}

void RankTraining::CopyGradients() {
  for (const Tensor& gradient : gradients_) {
    const bool is_here = gradient.defined();  // a stage has those of its own parameters
    kept_gradients_.push_back(!is_here ? Tensor()
                                       : gradient.to(at::kCPU, gradient.scalar_type(),
                                                     /*non_blocking=*/false, /*copy=*/true));
  }
}

Result<double> RankTraining::RunStep(std::span<const BatchInputs> batches) {
  if (pipeline_) return RunPipeline(batches);
  return SumUp(
      batches,
      [&](const BatchInputs& batch) { return graphs_.Run(kStepGraph, StepArguments(batch)); },
      [&](std::span<const Tensor> sums, std::span<const Tensor> more) -> Status {
        std::vector<Tensor> arguments(sums.begin(), sums.end());
        arguments.insert(arguments.end(), more.begin(), more.end());
        STRATA_TRY(const std::vector<Tensor> ignored, graphs_.Run(kAccumulateGraph, arguments));
        return Ok();
      });
}

void RankTraining::SetRates(const UpdateRates& rates) {
  state().optimizer.lr.fill_(rates.lr);
  for (size_t i = 0; i < rates.groups.size(); ++i)
    state().optimizer.group_lr[i].fill_(rates.groups[i]);
}

Result<double> RankTraining::Update(const UpdateRates& rates) {
  SetRates(rates);
  OptimizerState& optimizer = state().optimizer;
  std::vector<Tensor> arguments = state().parameters;
  for (const std::vector<Tensor>* group : {&gradients_, &optimizer.exp_avg, &optimizer.exp_avg_sq,
                                           &state().buffers, &tokens_per_expert_}) {
    arguments.insert(arguments.end(), group->begin(), group->end());
  }
  arguments.insert(arguments.end(), {optimizer.step, optimizer.lr});
  arguments.insert(arguments.end(), optimizer.group_lr.begin(), optimizer.group_lr.end());
  if (pipeline_) {
    std::vector<Tensor> own;
    for (const size_t input : optimizer_inputs_)
      own.push_back(arguments[input]);
    arguments = std::move(own);
  }
  const std::string_view graph = pipeline_ ? std::string_view(optimizer_graph_) : kOptimizerGraph;
  STRATA_TRY(const std::vector<Tensor> outputs, graphs_.Run(graph, arguments));
  return outputs[0].item<double>();
}

Result<double> RankTraining::RunStepEagerly(std::span<const BatchTensors> batches) {
  std::vector<Tensor> trained;
  for (const Tensor& parameter : state().parameters)
    trained.push_back(parameter.detach().requires_grad_(true));
  const ModelTensors model{
      .parameters = trained, .buffers = state().buffers, .rope_table = state().rope_table};
  return SumUp(
      batches,
      [&](const BatchTensors& batch) -> Result<std::vector<Tensor>> {
        return LossAndGradients(spec_, model, batch);
      },
      [&](std::span<const Tensor> sums, std::span<const Tensor> more) -> Status {
        Accumulate(spec_, sums, more);
        return Ok();
      });
}

Result<double> RankTraining::UpdateEagerly(const UpdateRates& rates) {
  SetRates(rates);
  return OptimizerStep(spec_, state().model(), gradients_, tokens_per_expert_, state().optimizer)[0]
      .item<double>();
}

Result<std::vector<RankTraining::ValidationSums>> RankTraining::Validate(
    std::span<const BatchInputs> batches) {
  std::vector<std::vector<Tensor>> outputs;
  if (pipeline_) {
    STRATA_TRY(outputs, pipeline_->Validate(PipelineArguments(batches)));
  } else {
    for (const BatchInputs& batch : batches) {
      STRATA_TRY(outputs.emplace_back(), graphs_.Run(kValidateGraph, StepArguments(batch)));
    }
  }
  std::vector<ValidationSums> sums;
  for (const std::vector<Tensor>& of_batch : outputs)
    sums.emplace_back(of_batch[0].item<double>(), of_batch[1].item<double>());
  return sums;
}

}  // namespace strata
