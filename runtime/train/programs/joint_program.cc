#include "runtime/train/programs/joint_program.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/view_as_complex.h>

#include <fmt/format.h>

#include "ir/rewriter.h"
#include "runtime/aten/literals.h"
#include "runtime/aten/out_variants.h"
#include "runtime/exec/step/body_call.h"
#include "runtime/exec/step/step_binder.h"
#include "runtime/files/tensor_io.h"
#include "runtime/plan/higher_order.h"

namespace strata {
namespace {

using at::Tensor;
using Role = ProgramForm::Role;

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

/// Runs the steps of a plan one after the other.
class Interpreter {
 public:
  explicit Interpreter(const Plan& plan) : plan_(plan), values_(plan.slots.size()) {}

  std::vector<Tensor> Run(const std::vector<Tensor>& inputs,
                          const std::vector<Tensor>& attributes) {
    for (size_t i = 0; i < inputs.size(); ++i)
      Value(plan_.inputs[i].slot) = inputs[i];
    for (size_t i = 0; i < attributes.size(); ++i)
      Value(plan_.constants[i].slot) = attributes[i];
    for (const PlanStep& step : plan_.steps)
      RunStep(step);
    std::vector<Tensor> outputs;
    for (const SlotId slot : plan_.outputs)
      outputs.push_back(slot.valid() ? Value(slot) : Tensor());
    return outputs;
  }

 private:
  Tensor& Value(SlotId slot) { return values_[slot]; }

  void RunStep(const PlanStep& step) {
    try {
      Call(step);
    } catch (const std::exception&) {
      std::throw_with_nested(CallError(step.op, step.where));
    }
    for (const SlotId slot : step.kills)
      Value(slot) = Tensor();
  }

  /// A body is traced at each call, as a part of the program.
  class InterpretedBody final : public BodyProgram {
   public:
    explicit InterpretedBody(const Plan& plan) : plan_(plan) {}
    std::vector<Tensor> Run(std::span<const Tensor> operands) override {
      std::vector<Tensor> inputs;
      for (const Plan::Input& input : plan_.inputs)
        inputs.push_back(operands[input.placeholder]);
      return Interpreter(plan_).Run(inputs, {});
    }

   private:
    const Plan& plan_;
  };

  void CallBodies(const PlanStep& step) {
    BodyPrograms bodies;
    for (const Plan& body : plan_.bodies)
      bodies.Add(std::make_unique<InterpretedBody>(body));
    const Result<BodyCall> call = BodyCall::Bind(step, bodies);
    TORCH_CHECK(call.has_value(), step.where, ": ", call ? "" : call.error().message());
    std::vector<Tensor> results = call->Run([this](SlotId slot) { return Value(slot); });
    Keep(step, torch::jit::Stack(results.begin(), results.end()));
  }

  void Call(const PlanStep& step) {
    if (step.runs_bodies) return CallBodies(step);
    const Result<c10::OperatorHandle> op = FindOp(step.op);
    TORCH_CHECK(op.has_value(), step.where, ": ", op ? "" : op.error().message());
    Result<BoundStep> bound = BindStep(step, *op);
    TORCH_CHECK(bound.has_value(), step.where, ": ", bound ? "" : bound.error().message());
    torch::jit::Stack& stack = bound->stack;
    for (const TensorSlot& tensor : bound->tensors)
      stack[tensor.arg] = Value(tensor.slot);
    for (const ListSlots& list : bound->lists)
      stack[list.arg] = list.Collect([&](SlotId slot) { return Value(slot); });
    op->callBoxed(&stack);
    Keep(step, stack);
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

/// The call that makes the loss, before it is cast to fp32; invalid: no call does.
NodeId LossOf(const Graph& graph) {
  NodeId node = graph.value(graph.operands(graph.output())[0]).def;
  while (graph.node(node).kind == NodeKind::kCall && graph.op(node) == "aten._to_copy.default")
    node = graph.value(graph.operands(node)[0]).def;
  return graph.node(node).kind == NodeKind::kCall ? node : NodeId();
}

/// Forward ends with the loss. Few texts of PyTorch name phases.
void SetPhases(Rewriter& rewriter) {
  const Graph& graph = rewriter.graph();
  const NodeId loss = LossOf(graph);
  Phase phase = Phase::kForward;
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind == NodeKind::kCall) rewriter.SetPhase(node, phase);
    if (node == loss) phase = Phase::kBackward;
  }
}

/// Why a training cannot trace a step, on tensors without data and of no device; empty: it can.
std::string_view WhyNotTraced(const PlanStep& step) {
  const HigherOrderOp* op = step.runs_bodies ? FindHigherOrderOp(step.op) : nullptr;
  if (op == nullptr || op->use == BodyUse::kInvoke || op->use == BodyUse::kScan ||
      op->use == BodyUse::kMap)
    return "";
  return op->use == BodyUse::kAutocast ? "casts as a device decides" : "runs what data decides";
}

/// Errors: a step that a training cannot trace.
Status CheckSteps(const Plan& plan, std::string_view graph) {
  const auto refuse = [&](const PlanStep& step, ErrorCode code, std::string_view why) {
    return Error(code, "graph {} cannot be executed: {}: {}", graph, step.where, why);
  };
  for (const PlanStep& step : plan.steps) {
    if (const std::string_view why = WhyNotTraced(step); !why.empty()) {
      return refuse(step, ErrorCode::kUnsupported,
                    fmt::format("{} {}, which a training cannot trace: strata run executes it",
                                step.op, why));
    }
    if (step.runs_bodies) continue;
    if (const Result<c10::OperatorHandle> op = FindOp(step.op); !op)
      return refuse(step, op.error().code(), op.error().message());
  }
  for (const Plan& body : plan.bodies) {
    if (!body.constants.empty()) {
      return Error(ErrorCode::kUnsupported, "graph {} cannot be executed: {} holds a constant, {}",
                   graph, body.graph, body.constants[0].path);
    }
    STRATA_RETURN_IF_ERROR(CheckSteps(body, graph));
  }
  return Ok();
}

}  // namespace

Result<std::shared_ptr<JointProgram>> JointProgram::Make(const Module& module, GraphId graph,
                                                         const TrainConfig& config) {
  std::shared_ptr<JointProgram> program(new JointProgram());
  program->module_ = module.Clone();
  program->graph_ = graph;
  Graph& own = program->module_->graph(graph);
  MoveToMeta(own);
  for (const GraphId id : Ids<GraphId>(program->module_->num_graphs())) {
    if (program->module_->graph(id).is_body()) MoveToMeta(program->module_->graph(id));
  }
  STRATA_TRY(program->form_, FormOf(own, config));
  STRATA_TRY(program->plan_, Lower(own));
  STRATA_RETURN_IF_ERROR(CheckSteps(program->plan_, own.name_text()));
  return program;
}

std::vector<Tensor> JointProgram::Constants(const InitialWeights& given) const {
  std::vector<Tensor> tensors(form_.constants.size());
  const auto set = [&](const ProgramForm::Input& input) {
    if (input.role != Role::kConstant) return;
    const ParameterSpec& spec = form_.constants[input.index];
    const TensorView* stored = given.Find(spec.name);
    STRATA_CHECK(stored != nullptr, "{} is not in the file", spec.name);
    Tensor tensor = CopyOf(*stored);
    if (spec.name.ends_with(kComplexEnd)) tensor = at::view_as_complex(tensor.to(at::kFloat));
    tensors[input.index] = tensor.to(ToScalarType(input.dtype));
  };
  std::ranges::for_each(form_.inputs, set);
  std::ranges::for_each(form_.attributes, set);
  return tensors;
}

std::vector<Tensor> JointProgram::MetaConstants() const {
  std::vector<Tensor> tensors(form_.constants.size());
  const auto set = [&](const ProgramForm::Input& input) {
    if (input.role != Role::kConstant) return;
    const auto type = at::TensorOptions().device(at::kMeta).dtype(ToScalarType(input.dtype));
    tensors[input.index] = at::empty(input.sizes, type);
  };
  std::ranges::for_each(form_.inputs, set);
  std::ranges::for_each(form_.attributes, set);
  return tensors;
}

std::vector<Tensor> JointProgram::Run(std::span<const Tensor> parameters,
                                      std::span<const Tensor> constants,
                                      std::span<const Tensor> batch) const {
  const at::NoGradGuard no_grad;
  const auto value_of = [&](const ProgramForm::Input& input) {
    switch (input.role) {
      case Role::kParameter:
        return parameters[input.index].to(ToScalarType(input.dtype));
      case Role::kConstant:
        return constants[input.index];
      case Role::kBatch:
        return batch[input.index];
      case Role::kTangent:
        break;
    }
    return at::ones({}, batch[0].options().dtype(ToScalarType(input.dtype)));
  };
  std::vector<Tensor> inputs, attributes;
  std::ranges::transform(form_.inputs, std::back_inserter(inputs), value_of);
  std::ranges::transform(form_.attributes, std::back_inserter(attributes), value_of);
  const std::vector<Tensor> outputs = Interpreter(plan_).Run(inputs, attributes);
  for (size_t i = 0; i < form_.updated.size(); ++i)
    constants[form_.updated[i]].copy_(outputs[i]);
  std::vector<Tensor> results = {outputs[form_.loss].to(at::kFloat)};
  for (const size_t gradient : form_.gradients)
    results.push_back(outputs[gradient].to(at::kFloat));
  return results;
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
  SetPhases(rewriter);
}

}  // namespace strata
