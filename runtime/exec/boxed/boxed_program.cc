#include "runtime/exec/boxed/boxed_program.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <ATen/core/ivalue.h>
#include <c10/core/InferenceMode.h>

#include <fmt/format.h>

#include "runtime/aten/out_variants.h"
#include "runtime/exec/boxed/device_kernels.h"
#include "runtime/exec/boxed/plan_pieces.h"
#include "runtime/exec/boxed/program_capture.h"
#include "runtime/exec/boxed/step_streams.h"
#include "runtime/exec/step/measured_workspace.h"
#include "runtime/exec/step/observer.h"
#include "runtime/exec/step/step_binder.h"
#include "runtime/plan/memory/buffer_assignment.h"
#include "runtime/plan/memory/transient.h"

namespace strata {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

}  // namespace

struct BoxedProgram::State {
  State(const Plan& p, Device* d, const BodyPrograms* b)
      : plan(p),
        device(d),
        bodies(b),
        values(p.slots.size()),
        numbers(p.slots.size()),
        steps(p.steps.size()) {}

  struct Step {
    std::optional<BoundStep> call;  // of an operator
    std::optional<BodyCall> body_call;
    DeviceFunction* kernel = nullptr;
    std::vector<SlotId> releases;
  };

  /// Neighbouring steps, and their device graph.
  struct Piece {
    PlanPiece steps;
    std::unique_ptr<ProgramCapture> captured;  // null: they run as they are
  };

  const Plan& plan;
  Device* device;
  const BodyPrograms* bodies;
  IdVector<SlotId, c10::IValue> values;  // between runs only constants
  SlotSizes numbers;                     // sizes that the last run read from data
  TransientMemory transient, transient_outputs;
  IdVector<StepId, Step> steps;
  torch::jit::Stack stack;
  StepId current_step{0};
  std::optional<StepStreams> streams;      // on a device
  std::optional<ProgramCapture> captured;  // of a plan that can be captured whole, on a device
  std::vector<Piece> pieces;               // of one that can be captured in pieces

  c10::IValue& Value(SlotId slot) { return values[slot]; }
  const PlanSlot& Slot(SlotId slot) const { return plan.slots[slot]; }

  Status BindAll(const Constants& constants) {
    if (device != nullptr) streams.emplace(plan, *device);
    STRATA_TRY(const DeviceKernels kernels, LoadDeviceKernels(plan, device));
    for (const StepId id : IdsOf(plan.steps)) {
      const PlanStep& step = plan.steps[id];
      if (!step.kernel.valid() && !step.runs_bodies) {
        const Result<c10::OperatorHandle> op = FindOp(step.op);
        if (!op) {
          return Error(op.error().code(), "graph {} cannot be executed: {}: {}", plan.graph,
                       step.where, op.error().message());
        }
      }
      auto bound = BindOne(id, kernels);
      if (!bound) {
        return std::move(bound).error().In(fmt::format(
            "graph {} cannot be executed: {}: {}", plan.graph, step.where, Describe(plan, step)));
      }
    }
    for (const Plan::Constant& constant : plan.constants) {
      const auto known = std::ranges::find(constants, constant.path, &Constants::value_type::first);
      if (known == constants.end()) {
        return Error(ErrorCode::kNotFound, "graph {} cannot be executed: no constant {}",
                     plan.graph, constant.path);
      }
      Value(constant.slot) = device == nullptr ? known->second : OnDevice(known->second);
    }
    if (device != nullptr && plan.capture == Capture::kWhole) {
      captured.emplace(
          plan.graph, CaptureInputsOf(plan), *device,
          [this](std::span<const Tensor> inputs) { return RunSteps(inputs, nullptr); });
    }
    return device != nullptr && plan.capture == Capture::kPieces ? BindPieces() : Ok();
  }

  Status BindPieces() {
    std::set<SlotId> fixed;  // the same memory in every run
    for (const Plan::Input& input : plan.inputs)
      if (input.is_static) fixed.insert(input.slot);
    for (const Plan::Constant& constant : plan.constants)
      fixed.insert(constant.slot);
    STRATA_TRY(const std::vector<PlanPiece> found, PiecesOf(plan));
    for (const PlanPiece& piece : found) {
      pieces.push_back({.steps = piece, .captured = nullptr});
      if (!piece.is_captured) continue;
      std::vector<CaptureInput> inputs;
      for (const SlotId slot : piece.inputs)
        inputs.push_back({.name = Slot(slot).name, .is_static = fixed.contains(slot)});
      pieces.back().captured = std::make_unique<ProgramCapture>(
          plan.graph, std::move(inputs), *device,
          [this, at = pieces.size() - 1](std::span<const Tensor> given) {
            return RunPieceSteps(pieces[at], given);
          });
    }
    return Ok();
  }

  Tensor OnDevice(const Tensor& tensor) const {
    return tensor.to(c10::Device(device->traits().name));
  }

  Status BindOne(StepId index, const DeviceKernels& kernels) {
    PlanStep step = plan.steps[index];
    Step& bound = steps[index];
    if (streams) step.kills = streams->schedule().releases[index];
    if (step.runs_bodies) return BindBodies(step, bound);
    if (bound.kernel = kernels.Of(step); bound.kernel != nullptr) {
      bound.releases = step.kills;
      return step.kernel.valid() ? CheckKernel(step) : Ok();
    }
    STRATA_TRY(const c10::OperatorHandle op, FindOp(step.op));
    STRATA_TRY(BoundStep call, BindStep(step, op));
    bound.releases = call.kills;
    bound.call.emplace(std::move(call));
    return Ok();
  }

  Status BindBodies(const PlanStep& step, Step& bound) const {
    if (device != nullptr) return Error(ErrorCode::kUnsupported, "runs bodies, on CPUs only");
    STRATA_TRY(BodyCall call, BodyCall::Bind(step, *bodies));
    bound.body_call.emplace(std::move(call));
    bound.releases = step.kills;
    return Ok();
  }

  Status CheckKernel(const PlanStep& step) const {
    const auto has_layout = [&](SlotId slot) { return slot.valid() && Slot(slot).layout; };
    for (const PlanArg& arg : step.args) {
      if (!has_layout(arg.slot)) return Error(ErrorCode::kUnsupported, "reads an unknown layout");
    }
    return Ok();
  }

  void CountTransient() {
    const BufferAssignment places(plan);
    for (const StepId id : IdsOf(plan.steps)) {
      const PlanStep& step = plan.steps[id];
      transient.Add({.constant = MeasuredWorkspaceBytes(plan, step) + step.unread_bytes}, id.index,
                    id.index);
      for (const SlotId slot : step.results) {
        if (!slot.valid() || Slot(slot).storage != slot) continue;
        SizeForm size;
        if (Slot(slot).layout) size.constant = Slot(slot).layout->storage_bytes();
        if (Slot(slot).dynamic_layout) size = Slot(slot).dynamic_layout->bytes;
        const StepId last = std::clamp(places.last_use(slot), id, plan.steps.end_id());
        transient.Add(size, id.index, last.index);
        if (places.is_output(slot)) transient_outputs.Add(size, 0, 0);
      }
    }
  }

  // --- One run -----------------------------------------------------------------------------------

  std::vector<Tensor> RunSteps(std::span<const Tensor> inputs, ExecutionObserver* observer) {
    for (size_t i = 0; i < inputs.size(); ++i)
      Value(plan.inputs[i].slot) = inputs[i];
    if (streams) streams->Begin();
    if (pieces.empty() || observer != nullptr) {
      for (const StepId id : IdsOf(steps))
        RunStep(id, observer);
    } else {
      for (Piece& piece : pieces)
        RunPiece(piece);
    }
    if (streams) streams->Join();
    std::vector<Tensor> outputs;
    for (const SlotId slot : plan.outputs)
      outputs.push_back(!slot.valid() ? Tensor() : Value(slot).toTensor());
    Clear();
    return outputs;
  }

  void RunStep(StepId index, ExecutionObserver* observer) {
    if (streams) streams->Enter(index, plan.steps[index]);
    Execute(index, observer);
    Release(index);
    if (streams) streams->Leave(index);
    if (captured) captured->AfterStep(plan.steps[index]);
  }

  void Release(StepId index) {
    for (const SlotId slot : steps[index].releases)
      Value(slot) = c10::IValue();
  }

  void RunPiece(Piece& piece) {
    const auto for_each_step = [&](auto&& fn) {
      for (StepId id = piece.steps.first; id < piece.steps.end; ++id.index)
        fn(id);
    };
    if (piece.captured == nullptr) return for_each_step([&](StepId id) { RunStep(id, nullptr); });
    // A device graph knows no events of others: it begins after all that its steps wait for.
    for_each_step([&](StepId id) { streams->Enter(id, plan.steps[id]); });
    current_step = piece.steps.first;
    std::vector<Tensor> inputs;
    for (const SlotId slot : piece.steps.inputs) {
      const Tensor& given = Value(slot).toTensor();
      inputs.push_back(given.is_non_overlapping_and_dense() ? given : given.contiguous());
    }
    auto outputs = piece.captured->Run(inputs);
    TORCH_CHECK(outputs.has_value(), outputs.has_value() ? "" : outputs.error().message());
    for (size_t i = 0; i < outputs->size(); ++i)
      Value(piece.steps.outputs[i]) = (*outputs)[i];
    for_each_step([&](StepId id) {
      Release(id);
      streams->Leave(id);
    });
  }

  /// What a piece's device graph records.
  std::vector<Tensor> RunPieceSteps(Piece& piece, std::span<const Tensor> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i)
      Value(piece.steps.inputs[i]) = inputs[i];
    for (StepId id = piece.steps.first; id < piece.steps.end; ++id.index) {
      Execute(id, nullptr);
      Release(id);
      piece.captured->AfterStep(plan.steps[id]);
    }
    std::vector<Tensor> outputs;
    for (const SlotId slot : piece.steps.outputs)
      outputs.push_back(Value(slot).toTensor());
    return outputs;
  }

  void Execute(StepId index, ExecutionObserver* observer) {
    const PlanStep& planned = plan.steps[index];
    const Step& step = steps[index];
    current_step = index;
    if (step.kernel != nullptr) {
      const auto run = planned.flex_kernel.valid() ? RunDeviceFlexKernel : RunDeviceKernel;
      run(plan, planned, *device, step.kernel, values);
      if (observer != nullptr) ShowKernel(planned, *observer);
    } else {
      if (step.body_call) {
        FillStack(*step.body_call);
      } else {
        FillStack(*step.call);
        step.call->op.callBoxed(&stack);
      }
      if (device != nullptr) LayOutResults(plan, planned, stack);
      if (observer != nullptr) Show(planned, *observer);
      TakeResults(planned);
    }
  }

  // --- Operators and kernels ---------------------------------------------------------------------

  void FillStack(const BoundStep& step) {
    stack.assign(step.stack.begin(), step.stack.end());
    for (const TensorSlot& tensor : step.tensors) {
      if (tensor.is_last_use) {
        stack[tensor.arg] = std::move(Value(tensor.slot));
      } else {
        stack[tensor.arg] = Value(tensor.slot);
      }
      WrapNumber(stack[tensor.arg], step.op.schema().arguments()[tensor.arg]);
    }
    for (const ListSlots& list : step.lists)
      stack[list.arg] = list.Collect([&](SlotId slot) { return Value(slot).toTensor(); });
    for (const NumberSlots& numbers : step.numbers) {
      c10::List<int64_t> list;
      for (const NumberSlots::Element& element : numbers.elements)
        list.push_back(!element.slot.valid() ? element.number : Value(element.slot).toInt());
      stack[numbers.arg] = std::move(list);
    }
  }

  /// With the results of the bodies.
  void FillStack(const BodyCall& call) {
    Tensors results = call.Run([this](SlotId slot) { return Value(slot); });
    stack.clear();
    for (Tensor& result : results)
      stack.emplace_back(std::move(result));
  }

  void TakeResults(const PlanStep& step) {
    if (stack.size() == 1 && stack[0].isTensorList()) {
      const c10::List<Tensor> tensors = std::move(stack[0]).toTensorList();
      for (size_t i = 0; i < tensors.size() && i < step.results.size(); ++i) {
        if (step.results[i].valid()) Value(step.results[i]) = tensors.get(i);
      }
      return;
    }
    for (size_t i = 0; i < stack.size() && i < step.results.size(); ++i) {
      if (!step.results[i].valid()) continue;
      if (stack[i].isInt()) numbers[step.results[i]] = stack[i].toInt();
      Value(step.results[i]) = std::move(stack[i]);
    }
  }

  /// With an observer, waits for the device: a step's time includes its work there.
  void AwaitDevice() const {
    if (device != nullptr) ThrowUnlessOk(device->Synchronize());
  }

  void Show(const PlanStep& step, ExecutionObserver& observer) const {
    AwaitDevice();
    std::vector<Tensor> results;
    for (const c10::IValue& result : stack) {
      if (result.isTensorList()) {
        for (const Tensor& element : result.toTensorVector())
          results.push_back(element);
      } else {
        results.push_back(result.isTensor() ? result.toTensor() : Tensor());
      }
    }
    observer.OnStep(step, results);
  }

  void ShowKernel(const PlanStep& step, ExecutionObserver& observer) {
    AwaitDevice();
    std::vector<Tensor> results;
    for (const SlotId slot : step.results)
      results.push_back(!slot.valid() ? Tensor() : Value(slot).toTensor());
    observer.OnStep(step, results);
  }

  void Clear() {
    stack.clear();
    IdVector<SlotId, c10::IValue> kept(values.size());
    for (const Plan::Constant& constant : plan.constants)
      kept[constant.slot] = std::move(Value(constant.slot));
    values = std::move(kept);
  }
};

BoxedProgram::BoxedProgram(std::unique_ptr<State> state) : state_(std::move(state)) {}
BoxedProgram::~BoxedProgram() = default;

Result<std::unique_ptr<BoxedProgram>> BoxedProgram::Bind(const Plan& plan,
                                                         const Constants& constants, Device* device,
                                                         const BodyPrograms* bodies) {
  auto state = std::make_unique<State>(plan, device, bodies);
  STRATA_RETURN_IF_ERROR(state->BindAll(constants));
  if (device == nullptr) state->CountTransient();
  return std::unique_ptr<BoxedProgram>(new BoxedProgram(std::move(state)));
}

Result<std::vector<Tensor>> BoxedProgram::Run(std::span<const Tensor> inputs,
                                              ExecutionObserver* observer) {
  const c10::InferenceMode no_autograd;
  if (state_->captured && observer == nullptr) return state_->captured->Run(inputs);
  return state_->RunSteps(inputs, observer);
}

StepId BoxedProgram::failed_step() const {
  return state_->current_step;
}

void BoxedProgram::Reset() {
  if (Device* device = state_->device; device != nullptr) {
    // Side streams may still use memory that is released here and that stream 0 would reuse.
    (void)device->UseStream(0);
    (void)device->Synchronize();
  }
  state_->Clear();
}

PlannedMemory BoxedProgram::planned_memory() const {
  if (state_->device != nullptr) return {};
  const bool has_run =
      std::ranges::any_of(state_->numbers, [](const auto& number) { return number.has_value(); });
  PlannedMemory memory{.transient_at_most = state_->transient.AtMost(state_->plan.partitions),
                       .outputs = state_->transient_outputs.With(state_->numbers)};
  memory.transient = has_run || !memory.transient_at_most ? state_->transient.With(state_->numbers)
                                                          : *memory.transient_at_most;
  return memory;
}

bool BoxedProgram::reuses_outputs() const {
  return (state_->captured && state_->captured->is_captured()) ||
         std::ranges::any_of(state_->pieces, [](const State::Piece& piece) {
           return piece.captured != nullptr && piece.captured->is_captured();
         });
}

std::vector<KernelAnnotation> BoxedProgram::annotations() const {
  if (state_->captured) return state_->captured->annotations();
  std::vector<KernelAnnotation> all;
  int64_t num_captured = 0;
  for (const State::Piece& piece : state_->pieces) {
    if (piece.captured == nullptr) continue;
    for (KernelAnnotation kernels : piece.captured->annotations()) {
      kernels.piece = num_captured;
      all.push_back(std::move(kernels));
    }
    ++num_captured;
  }
  return all;
}

}  // namespace strata
