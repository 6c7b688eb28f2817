#include "runtime/train/programs/joint_program.h"

#include <algorithm>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_complex.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/rewriter.h"
#include "runtime/aten/literals.h"
#include "runtime/exec/step/step_binder.h"
#include "runtime/files/tensor_io.h"

namespace strata {
namespace {

using at::Tensor;

constexpr std::string_view kComplexEnd = "#complex";

bool IsRealFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16 ||
         dtype == DType::kF64;
}

/// Of a value with constant sizes; none: another type.
std::optional<PlanLayout> LayoutOf(const Plan& plan, SlotId slot) {
  return slot.valid() ? plan.slots[slot].layout : std::nullopt;
}

/// Literal devices become Meta devices, on which programs are traced.
void MoveToMeta(Graph& graph) {
  Rewriter rewriter(graph);
  const Arg meta = Arg::Device(graph.module().Intern("meta"));
  for (const NodeId node : graph.nodes().Snapshot()) {
    const Node& n = graph.node(node);
    const uint32_t count = n.num_args + 2U * n.num_kwargs;
    for (uint32_t slot = n.args_begin; slot < n.args_begin + count; ++slot)
      if (graph.slot(slot).kind() == ArgKind::kDevice) rewriter.SetSlot(node, slot, meta);
  }
}

Error NoProgram(const Graph& graph, std::string_view what) {
  return Error(ErrorCode::kUnsupported,
               "not the joint graph of a training step: {}: {}; strata train --help shows the form",
               graph.name_text(), what);
}

/// Runs the steps of a plan one after the other.
class Interpreter {
 public:
  explicit Interpreter(const Plan& plan) : plan_(plan), values_(plan.slots.size()) {}

  std::vector<Tensor> Run(const std::vector<Tensor>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i)
      Value(plan_.inputs[i].slot) = inputs[i];
    for (const PlanStep& step : plan_.steps)
      RunStep(step);
    std::vector<Tensor> outputs;
    for (const SlotId slot : plan_.outputs)
      outputs.push_back(Value(slot));
    return outputs;
  }

 private:
  Tensor& Value(SlotId slot) { return values_[slot]; }

  void RunStep(const PlanStep& step) {
    const auto op = c10::Dispatcher::singleton().findSchema(SchemaName(step.op));
    TORCH_CHECK(op.has_value(), step.where, ": no operator ", step.op);
    Result<BoundStep> bound = BindStep(step, *op);
    TORCH_CHECK(bound.has_value(), step.where, ": ", bound ? "" : bound.error().message());
    torch::jit::Stack& stack = bound->stack;
    for (const TensorSlot& tensor : bound->tensors)
      stack[tensor.arg] = Value(tensor.slot);
    for (const ListSlots& list : bound->lists)
      stack[list.arg] = list.Collect([&](SlotId slot) { return Value(slot); });
    op->callBoxed(&stack);
    Keep(step, stack);
    for (const SlotId slot : step.kills)
      Value(slot) = Tensor();
  }

  void Keep(const PlanStep& step, const torch::jit::Stack& stack) {
    std::vector<c10::IValue> results(stack.begin(), stack.end());
    if (results.size() == 1 && results[0].isTensorList()) {
      const std::vector<Tensor> tensors = results[0].toTensorVector();
      results.assign(tensors.begin(), tensors.end());
    }
    for (size_t i = 0; i < std::min(results.size(), step.results.size()); ++i) {
      if (step.results[i].valid() && results[i].isTensor())
        Value(step.results[i]) = results[i].toTensor();
    }
  }

  const Plan& plan_;
  IdVector<SlotId, Tensor> values_;
};

}  // namespace

Result<std::shared_ptr<JointProgram>> JointProgram::Make(const Module& module, GraphId graph,
                                                         const TrainConfig& config) {
  std::shared_ptr<JointProgram> program(new JointProgram());
  program->module_ = module.Clone();
  program->graph_ = graph;
  Graph& own = program->module_->graph(graph);
  MoveToMeta(own);
  STRATA_TRY(program->plan_, Lower(own));
  for (const PlanStep& step : program->plan_.steps) {
    if (!c10::Dispatcher::singleton().findSchema(SchemaName(step.op))) {
      return Error(ErrorCode::kUnsupported, "graph {} cannot be executed: {}: no operator {}",
                   own.name_text(), step.where, step.op);
    }
  }
  if (!program->plan_.constants.empty()) {
    return NoProgram(own, fmt::format("{} is an attribute of a module, make it an input",
                                      program->plan_.constants.front().path));
  }
  STRATA_RETURN_IF_ERROR(program->FindInputs(config));
  return program;
}

Status JointProgram::FindInputs(const TrainConfig& config) {
  const Graph& graph = module_->graph(graph_);
  const std::vector<SlotId>& outputs = plan_.outputs;
  const auto loss = outputs.empty() ? std::nullopt : LayoutOf(plan_, outputs[0]);
  if (!loss || !loss->sizes.empty() || !IsRealFloat(loss->dtype)) {
    return NoProgram(graph, "the first output must be the loss, a scalar of a float type");
  }
  size_t next_gradient = 1, num_batch = 0;
  const std::vector<NodeId> placeholders = graph.placeholders();
  for (size_t i = 0; i < placeholders.size(); ++i) {
    const Plan::Input& input = plan_.inputs[i];
    const std::string name = InputName(graph, placeholders[i]);
    const bool is_complex = input.dtype == DType::kC64;
    if (input.dtype == DType::kI64) {
      if (input.sizes != std::vector<int64_t>{config.batch_size, config.seq_len}) {
        return NoProgram(graph, fmt::format("{} is [{}], not [batch_size, seq_len] of the "
                                            "configuration, [{}, {}]",
                                            name, fmt::join(input.sizes, ", "), config.batch_size,
                                            config.seq_len));
      }
      inputs_.push_back({.role = Role::kBatch, .index = num_batch++, .dtype = input.dtype});
      continue;
    }
    if (!is_complex && !IsRealFloat(input.dtype))
      return NoProgram(graph, fmt::format("{} is neither of a float type nor int64", name));
    const auto gradient =
        next_gradient < outputs.size() ? LayoutOf(plan_, outputs[next_gradient]) : std::nullopt;
    ParameterSpec spec{.name = name, .shape = input.sizes, .init = {}};
    if (!is_complex && gradient && gradient->sizes == input.sizes) {
      inputs_.push_back(
          {.role = Role::kParameter, .index = parameters_.size(), .dtype = input.dtype});
      parameters_.push_back(std::move(spec));
      ++next_gradient;
      continue;
    }
    if (is_complex) {
      spec.name += kComplexEnd;
      spec.shape.push_back(2);
    }
    inputs_.push_back({.role = Role::kConstant, .index = constants_.size(), .dtype = input.dtype});
    constants_.push_back(std::move(spec));
  }
  if (next_gradient < outputs.size()) {
    return NoProgram(graph, fmt::format("output {} is the gradient of no input that follows those "
                                        "of the outputs before it",
                                        next_gradient));
  }
  if (parameters_.empty()) return NoProgram(graph, "it has no gradients");
  if (num_batch != 2 && num_batch != 3) {
    return NoProgram(graph, fmt::format("{} inputs of int64 are not tokens, labels and perhaps "
                                        "positions",
                                        num_batch));
  }
  has_positions_ = num_batch == 3;
  if (has_positions_ != (config.attn_mask_type == AttentionMask::kBlockCausal)) {
    return NoProgram(graph, has_positions_ ? "it reads positions, take attn_mask_type = "
                                             "'block_causal'"
                                           : "it reads no positions, take attn_mask_type = "
                                             "'causal'");
  }
  return Ok();
}

void JointProgram::SetConstants(const InitialWeights& given) {
  for (const ParameterSpec& spec : constants_) {
    Tensor tensor = at::empty(spec.shape, at::kFloat);
    given.Read(spec, {tensor.mutable_data_ptr<float>(), static_cast<size_t>(tensor.numel())});
    const bool is_complex = spec.name.ends_with(kComplexEnd);
    constant_values_.push_back(is_complex ? at::view_as_complex(tensor) : tensor);
  }
  for (const Input& input : inputs_) {
    if (input.role != Role::kConstant) continue;
    Tensor& value = constant_values_[input.index];
    value = value.to(ToScalarType(input.dtype));
  }
}

std::vector<Tensor> JointProgram::MetaConstants() const {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].role != Role::kConstant) continue;
    tensors.push_back(at::empty(plan_.inputs[i].sizes, at::TensorOptions().device(at::kMeta).dtype(
                                                           ToScalarType(plan_.inputs[i].dtype))));
  }
  return tensors;
}

std::vector<Tensor> JointProgram::Run(std::span<const Tensor> parameters,
                                      std::span<const Tensor> constants,
                                      std::span<const Tensor> batch) const {
  const at::NoGradGuard no_grad;
  std::vector<Tensor> inputs;
  for (const Input& input : inputs_) {
    const std::span<const Tensor> tensors = input.role == Role::kParameter ? parameters
                                            : input.role == Role::kBatch   ? batch
                                                                           : constants;
    const Tensor& tensor = tensors[input.index];
    inputs.push_back(input.role == Role::kParameter ? tensor.to(ToScalarType(input.dtype))
                                                    : tensor);
  }
  std::vector<Tensor> outputs = Interpreter(plan_).Run(inputs);
  for (Tensor& output : outputs)
    output = output.to(at::kFloat);
  return outputs;
}

/// The trace has the program's calls in their order, and a few more: casts, and the parts of
/// operators that ATen composes of others.
void JointProgram::CopyPlaces(Graph& traced) const {
  const Graph& program = module_->graph(graph_);
  std::vector<NodeId> calls;
  for (const NodeId node : program.nodes())
    if (program.node(node).kind == NodeKind::kCall) calls.push_back(node);
  constexpr size_t kAhead = 16;
  Rewriter rewriter(traced);
  size_t next = 0;
  for (const NodeId node : traced.nodes().Snapshot()) {
    if (traced.node(node).kind != NodeKind::kCall) continue;
    const std::string_view op = traced.op(node);
    for (size_t i = next; i < std::min(calls.size(), next + kAhead); ++i) {
      if (program.op(calls[i]) != op) continue;
      const Node& from = program.node(calls[i]);
      rewriter.SetModule(node, module_->str(from.module));
      rewriter.SetPhase(node, from.phase == Phase::kUnknown ? Phase::kForward : from.phase);
      rewriter.SetSeqNr(node, from.seq_nr);
      if (from.loc.valid()) {
        SourceLoc loc = module_->loc(from.loc);
        for (StrId* text : {&loc.file, &loc.function, &loc.code})
          *text = text->valid() ? traced.module().Intern(module_->str(*text)) : *text;
        rewriter.SetLoc(node, traced.module().InternLoc(loc));
      }
      next = i + 1;
      break;
    }
  }
}

}  // namespace strata
