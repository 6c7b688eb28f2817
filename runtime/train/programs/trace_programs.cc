#include "runtime/train/programs/trace_programs.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <ATen/ops/empty.h>

#include <fmt/format.h>

#include "passes/expert/eager_chunks.h"
#include "runtime/config/parameters.h"
#include "runtime/trace/sampled_trace.h"
#include "runtime/trace/scope.h"
#include "runtime/train/programs/joint_program.h"
#include "runtime/train/programs/param_groups.h"
#include "runtime/train/programs/schedule.h"

namespace strata {
namespace {

using at::Tensor;

Tensor MetaTensor(at::IntArrayRef shape, at::ScalarType dtype) {
  return at::empty(shape, at::TensorOptions().device(at::kMeta).dtype(dtype));
}

/// Adds an input for each spec; `format` makes its name of the spec's.
void AddInputs(TraceRequest& request, const std::vector<ParameterSpec>& specs, InputKind kind,
               at::ScalarType type, std::string_view format = "{}") {
  for (const ParameterSpec& spec : specs) {
    request.inputs.push_back({.name = fmt::format(fmt::runtime(format), spec.name),
                              .kind = kind,
                              .module = ModuleOfTensor(spec.name),
                              .example = MetaTensor(spec.shape, type)});
  }
}

/// How many tokens each expert got, for the biases of `specs`.
void AddCounts(TraceRequest& request, const std::vector<ParameterSpec>& specs,
               std::string_view format = "{}.tokens_per_expert") {
  for (const ParameterSpec& spec : specs) {
    request.inputs.push_back({.name = fmt::format(fmt::runtime(format), ModuleOfTensor(spec.name)),
                              .kind = InputKind::kBatch,
                              .module = ModuleOfTensor(spec.name),
                              .example = MetaTensor(spec.shape, at::kLong)});
  }
}

void AddInput(TraceRequest& request, std::string name, InputKind kind, std::string module,
              Tensor example) {
  request.inputs.push_back({.name = std::move(name),
                            .kind = kind,
                            .module = std::move(module),
                            .example = std::move(example)});
}

/// Takes groups of inputs in the order in which they were added.
class InputReader {
 public:
  explicit InputReader(std::span<const Tensor> inputs) : rest_(inputs) {}
  std::span<const Tensor> Next(size_t count) {
    const std::span<const Tensor> group = rest_.first(count);
    rest_ = rest_.subspan(count);
    return group;
  }
  Tensor Next() { return Next(1)[0]; }

 private:
  std::span<const Tensor> rest_;
};

/// A program over the model and a batch.
using BatchProgram = std::vector<Tensor> (*)(const TrainSpec&, const ModelTensors&,
                                             const BatchTensors&);

/// What to trace for a batch of `spec`.
TraceRequest BatchRequest(std::string_view graph, BatchProgram program, const TrainSpec& spec) {
  const TrainConfig& config = spec.config;
  const ModelSpecs& specs = spec.model;
  const bool is_step = graph == kStepGraph;
  TraceRequest request{
      .graph = std::string(graph), .inputs = {}, .program = {}, .device = CurrentTarget().name};
  AddInputs(request, specs.parameters, InputKind::kParameter, ParameterType(spec.config));
  for (TraceInput& parameter : request.inputs)
    parameter.example.requires_grad_(is_step);
  AddInputs(request, specs.buffers, InputKind::kBuffer, ParameterType(spec.config));
  const bool has_rope_table = HasRopeTable(config);
  if (has_rope_table) {
    const Tensor rope_table = RopeTable(config);
    AddInput(request, "rope.cache", InputKind::kBuffer, "rope",
             MetaTensor(rope_table.sizes(), rope_table.scalar_type()));
  }
  if (spec.program) {
    const std::vector<Tensor> constants = spec.program->MetaConstants();
    for (size_t i = 0; i < constants.size(); ++i) {
      const std::string stored = spec.program->constants()[i].name;
      const std::string name = stored.substr(0, stored.find('#'));
      AddInput(request, name, InputKind::kBuffer, ModuleOfTensor(name), constants[i]);
    }
  }
  std::vector<const char*> ids = {"tokens", "labels"};
  if (HasPositions(config)) ids.push_back("positions");
  for (const char* name : ids) {
    AddInput(request, name, InputKind::kBatch, {},
             MetaTensor({config.batch_size, config.seq_len}, at::kLong));
  }
  const bool has_count = is_step && HasLabelCount(config);
  if (has_count) {
    AddInput(request, "valid_labels", InputKind::kBatch, {}, MetaTensor({}, at::kFloat));
  }
  const size_t num_constants = spec.program ? spec.program->constants().size() : 0;
  request.program = [=](std::span<const Tensor> inputs) {
    InputReader reader(inputs);
    const ModelTensors model{.parameters = reader.Next(spec.model.parameters.size()),
                             .buffers = reader.Next(spec.model.buffers.size()),
                             .rope_table = has_rope_table ? reader.Next() : Tensor(),
                             .constants = reader.Next(num_constants)};
    BatchTensors batch;
    batch.tokens = reader.Next();
    batch.labels = reader.Next();
    if (HasPositions(spec.config)) batch.positions = reader.Next();
    if (has_count) batch.valid_labels = reader.Next();
    return program(spec, model, batch);
  };
  return request;
}

/// The first numbers from `least` on that are prime.
std::vector<int64_t> Primes(int64_t least, size_t count) {
  std::vector<int64_t> primes;
  for (int64_t number = std::max<int64_t>(least, 3); primes.size() < count; ++number) {
    bool is_prime = number % 2 == 1;
    for (int64_t divisor = 3; is_prime && divisor * divisor <= number; divisor += 2)
      is_prime = number % divisor != 0;
    if (is_prime) primes.push_back(number);
  }
  return primes;
}

/// Four traces fix an expression and check it; the fifth checks it once more.
constexpr size_t kSamples = 5;

/// Batch, sequence, and rows of the rope table, which must hold the sequence of each sample. The
/// batch and the sequence count in units that they must be multiples of. What is not open is
/// sampled as it is, since operators may pad it, or take another way at 1; but for a batch with too
/// few tokens.
std::vector<TracedSize> StepSizes(const TrainConfig& config, int64_t batch_unit, int64_t unit) {
  const CompileConfig& open = config.compile;
  // Experts one by one: enough tokens for a different number of rows in each.
  const int64_t tokens = ReadsSizes(config) ? 64 * config.moe->num_experts / config.moe->top_k : 0;
  std::vector<int64_t> seq(kSamples, config.seq_len / unit);
  if (open.TracesSeq()) seq = Primes(std::max<int64_t>(17, tokens / (3 * unit)), kSamples);
  const int64_t least_seq = unit * seq[0];
  std::vector<int64_t> batch(kSamples, config.batch_size / batch_unit);
  if (open.TracesBatch() || config.batch_size * least_seq < tokens)
    batch = Primes(std::max<int64_t>(3, tokens / (batch_unit * least_seq)), kSamples);
  // Beyond the primes of the others: equal samples would be one size.
  const std::vector<int64_t> rows =
      Primes(std::max<int64_t>(unit * seq.back(), 2 * batch.back() + 16) + 1, kSamples);
  return {{.name = batch_unit == 1 ? "batch" : fmt::format("1/{} of batch", batch_unit),
           .symbol = open.TracesBatch() ? "s0" : "",
           .value = config.batch_size / batch_unit,
           .samples = batch},
          {.name = unit == 1 ? "seq" : fmt::format("1/{} of seq", unit),
           .symbol = open.TracesSeq() ? "s1" : "",
           .value = config.seq_len / unit,
           .max = config.rope.max_seq_len / unit,
           .samples = seq},
          {.name = "rope rows", .symbol = "", .value = config.rope.max_seq_len, .samples = rows}};
}

Status TraceBatch(std::string_view graph, BatchProgram program, const TrainSpec& spec,
                  Module& module, Constants& constants) {
  const TrainConfig& config = spec.config;
  const CompileConfig& open = config.compile;
  if (!open.TracesBatch() && !open.TracesSeq() && !ReadsSizes(config)) {
    return Trace(module, BatchRequest(graph, program, spec), constants);
  }
  int64_t unit =
      config.loss.name == LossFunction::kChunkedCrossEntropy ? config.loss.num_chunks : 1;
  // Ranks have equal parts of the batch: lowering must be able to divide it.
  int64_t batch_unit = open.TracesBatch() ? config.parallelism.data_ranks() : 1;
  // So must a program be that cuts its inputs itself.
  const ExpertOverlapConfig& chunks = open.ep_overlap;
  const int64_t cut = chunks.along_seq ? config.seq_len : config.batch_size;
  if (chunks.InProgram() && cut % (chunks.num_chunks * (chunks.along_seq ? unit : 1)) == 0)
    (chunks.along_seq ? unit : batch_unit) *= chunks.num_chunks;
  const auto request = [&](std::span<const int64_t> sizes) {
    TrainSpec sample = spec;
    sample.config.batch_size = batch_unit * sizes[0];
    sample.config.seq_len = unit * sizes[1];
    sample.config.rope.max_seq_len = sizes[2];
    return BatchRequest(graph, program, sample);
  };
  return TraceSampled(module, StepSizes(config, batch_unit, unit), request, constants);
}

Status TraceAccumulate(const TrainSpec& spec, Module& module, Constants& constants) {
  const ModelSpecs& specs = spec.model;
  TraceRequest request{.graph = std::string(kAccumulateGraph),
                       .inputs = {},
                       .program = {},
                       .device = CurrentTarget().name};
  AddInputs(request, specs.parameters, InputKind::kGradient, ParameterType(spec.config), "{}.grad");
  AddCounts(request, specs.buffers);
  const size_t count = request.inputs.size();
  AddInputs(request, specs.parameters, InputKind::kGradient, ParameterType(spec.config),
            "{}.batch_grad");
  AddCounts(request, specs.buffers, "{}.batch_tokens_per_expert");
  request.program = [&](std::span<const Tensor> inputs) {
    return Accumulate(spec, inputs.first(count), inputs.subspan(count));
  };
  return Trace(module, request, constants);
}

Status TraceOptimizer(const TrainSpec& spec, Module& module, Constants& constants) {
  const ModelSpecs& specs = spec.model;
  TraceRequest request{.graph = std::string(kOptimizerGraph),
                       .inputs = {},
                       .program = {},
                       .device = CurrentTarget().name};
  AddInputs(request, specs.parameters, InputKind::kParameter, ParameterType(spec.config));
  AddInputs(request, specs.parameters, InputKind::kGradient, ParameterType(spec.config), "{}.grad");
  AddInputs(request, specs.parameters, InputKind::kState, ParameterType(spec.config), "{}.exp_avg");
  AddInputs(request, specs.parameters, InputKind::kState, ParameterType(spec.config),
            "{}.exp_avg_sq");
  AddInputs(request, specs.buffers, InputKind::kBuffer, ParameterType(spec.config));
  AddCounts(request, specs.buffers);
  AddInput(request, "step", InputKind::kState, "adamw", MetaTensor({}, at::kFloat));
  AddInput(request, "lr", InputKind::kState, "adamw", MetaTensor({}, at::kDouble));
  const size_t num_group_lr = GroupLearningRates(spec.config.optimizer).size();
  for (size_t i = 0; i < num_group_lr; ++i) {
    AddInput(request, fmt::format("lr.{}", i), InputKind::kState, "adamw",
             MetaTensor({}, at::kDouble));
  }
  request.program = [&](std::span<const Tensor> inputs) {
    InputReader reader(inputs);
    const auto next = [&] { return reader.Next(specs.parameters.size()); };
    ModelTensors model{.parameters = next(), .buffers = {}, .rope_table = {}};
    const std::span<const Tensor> gradients = next();
    const std::span<const Tensor> exp_avg = next();
    const std::span<const Tensor> exp_avg_sq = next();
    model.buffers = reader.Next(specs.buffers.size());
    const std::span<const Tensor> tokens_per_expert = reader.Next(specs.buffers.size());
    OptimizerState state{.exp_avg = {exp_avg.begin(), exp_avg.end()},
                         .exp_avg_sq = {exp_avg_sq.begin(), exp_avg_sq.end()},
                         .step = reader.Next(),
                         .lr = reader.Next()};
    const std::span<const Tensor> group_lr = reader.Next(num_group_lr);
    state.group_lr.assign(group_lr.begin(), group_lr.end());
    return OptimizerStep(spec, model, gradients, tokens_per_expert, state);
  };
  return Trace(module, request, constants);
}

}  // namespace

Status TraceTraining(const TrainSpec& spec, Module& module, Constants& constants) {
  if (auto groups = AdamWOfParameters(spec.config.optimizer, spec.model.parameters); !groups) {
    return std::move(groups).error();
  }
  STRATA_RETURN_IF_ERROR(TraceBatch(kStepGraph, LossAndGradients, spec, module, constants));
  if (spec.program) spec.program->CopyPlaces(*module.FindGraph(kStepGraph));
  LabelChunkSums(*module.FindGraph(kStepGraph));
  if (spec.config.accumulation_steps > 1) {
    STRATA_RETURN_IF_ERROR(TraceAccumulate(spec, module, constants));
  }
  STRATA_RETURN_IF_ERROR(TraceOptimizer(spec, module, constants));
  if (!spec.config.validator.enable) return Ok();
  return TraceBatch(kValidateGraph, ValidationLoss, spec, module, constants);
}

}  // namespace strata
