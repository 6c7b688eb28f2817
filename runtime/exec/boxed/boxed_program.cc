#include "runtime/exec/boxed/boxed_program.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/InferenceMode.h>

#include <fmt/format.h>

#include "runtime/aten/literals.h"
#include "runtime/aten/out_variants.h"
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

bool LiesAs(const Tensor& tensor, const PlanLayout& layout) {
  return tensor.sizes() == at::IntArrayRef(layout.sizes) &&
         tensor.strides() == at::IntArrayRef(layout.strides);
}

/// A tensor of its own in that layout.
Tensor NewTensor(const PlanLayout& layout, const c10::Device& device) {
  return at::empty_strided(layout.sizes, layout.strides,
                           at::TensorOptions().dtype(ToScalarType(layout.dtype)).device(device));
}

/// The same values where the plan expects them.
Tensor LaidOutAs(const Tensor& tensor, const PlanLayout& layout) {
  if (LiesAs(tensor, layout) || tensor.sizes() != at::IntArrayRef(layout.sizes)) return tensor;
  Tensor copy = NewTensor(layout, tensor.device());
  copy.copy_(tensor);
  return copy;
}

}  // namespace

struct BoxedProgram::State {
  State(const Plan& p, Device* d)
      : plan(p),
        device(d),
        values(p.slots.size()),
        numbers(p.slots.size()),
        steps(p.steps.size()) {}

  struct Step {
    std::optional<BoundStep> call;  // of an operator
    DeviceFunction* kernel = nullptr;
    std::vector<SlotId> releases;
  };

  const Plan& plan;
  Device* device;
  IdVector<SlotId, c10::IValue> values;  // between runs only constants
  SlotSizes numbers;                     // sizes that the last run read from data
  TransientMemory transient, transient_outputs;
  IdVector<StepId, Step> steps;
  torch::jit::Stack stack;
  StepId current_step{0};
  std::optional<StepStreams> streams;      // on a device
  std::optional<ProgramCapture> captured;  // of a plan that can be captured, on a device

  c10::IValue& Value(SlotId slot) { return values[slot]; }
  const PlanSlot& Slot(SlotId slot) const { return plan.slots[slot]; }

  Status BindAll(const Constants& constants) {
    if (device != nullptr) streams.emplace(plan, *device);
    IdVector<KernelId, DeviceFunction*> kernels;
    if (!plan.kernels.empty()) {
      if (device == nullptr) return Error(ErrorCode::kInternal, "kernels need a device");
      STRATA_TRY(kernels.values(), device->Load(plan.kernels.values()));
    }
    IdVector<FlexKernelId, DeviceFunction*> flex_kernels;
    if (!plan.flex_kernels.empty()) {
      if (device == nullptr) return Error(ErrorCode::kInternal, "kernels need a device");
      STRATA_TRY(flex_kernels.values(), device->LoadFlex(plan.flex_kernels.values()));
    }
    for (const StepId id : IdsOf(plan.steps)) {
      const PlanStep& step = plan.steps[id];
      if (!step.kernel.valid()) {
        const Result<c10::OperatorHandle> op = FindOp(step.op);
        if (!op) {
          return Error(op.error().code(), "graph {} cannot be executed: {}: {}", plan.graph,
                       step.where, op.error().message());
        }
      }
      if (step.flex_kernel.valid()) {
        steps[id].kernel = flex_kernels[step.flex_kernel];
        steps[id].releases = streams->schedule().releases[id];
        continue;
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
    if (device != nullptr && plan.captures) {
      captured.emplace(plan, *device, [this](std::span<const Tensor> inputs) {
        return RunSteps(inputs, nullptr);
      });
    }
    return Ok();
  }

  Tensor OnDevice(const Tensor& tensor) const {
    return tensor.to(c10::Device(device->traits().name));
  }

  Status BindOne(StepId index, const IdVector<KernelId, DeviceFunction*>& kernels) {
    PlanStep step = plan.steps[index];
    Step& bound = steps[index];
    if (streams) step.kills = streams->schedule().releases[index];
    if (step.kernel.valid()) {
      bound.kernel = kernels[step.kernel];
      bound.releases = step.kills;
      return CheckKernel(step);
    }
    STRATA_TRY(const c10::OperatorHandle op, FindOp(step.op));
    STRATA_TRY(BoundStep call, BindStep(step, op));
    bound.releases = call.kills;
    bound.call.emplace(std::move(call));
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
    for (const StepId id : IdsOf(steps)) {
      current_step = id;
      RunStep(id, observer);
    }
    if (streams) streams->Join();
    std::vector<Tensor> outputs;
    for (const SlotId slot : plan.outputs)
      outputs.push_back(!slot.valid() ? Tensor() : Value(slot).toTensor());
    Clear();
    return outputs;
  }

  void RunStep(StepId index, ExecutionObserver* observer) {
    const PlanStep& planned = plan.steps[index];
    const Step& step = steps[index];
    if (streams) streams->Enter(index, planned);
    if (step.kernel != nullptr) {
      planned.flex_kernel.valid() ? RunFlexKernel(planned, step.kernel)
                                  : RunKernel(planned, step.kernel);
      if (observer != nullptr) ShowKernel(planned, *observer);
    } else {
      FillStack(*step.call);
      step.call->op.callBoxed(&stack);
      if (device != nullptr) LayOutResults(planned);
      if (observer != nullptr) Show(planned, *observer);
      TakeResults(planned);
    }
    for (const SlotId slot : step.releases)
      Value(slot) = c10::IValue();
    if (streams) streams->Leave(index);
    if (captured) captured->AfterStep(planned);
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

  void LayOutResults(const PlanStep& step) {
    if (step.is_view || step.mutates) return;
    for (size_t i = 0; i < stack.size() && i < step.results.size(); ++i) {
      if (!step.results[i].valid() || !stack[i].isTensor() || !stack[i].toTensor().defined())
        continue;
      const std::optional<PlanLayout>& layout = Slot(step.results[i]).layout;
      if (layout && Slot(step.results[i]).storage == step.results[i]) {
        stack[i] = LaidOutAs(stack[i].toTensor(), *layout);
      }
    }
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

  void RunKernel(const PlanStep& step, DeviceFunction* function) {
    const Kernel& kernel = plan.kernels[step.kernel];
    std::vector<Tensor> tensors(static_cast<size_t>(kernel.num_arguments));
    for (size_t i = 0; i < step.args.size(); ++i) {
      const SlotId slot = step.args[i].slot;
      const Tensor& given = Value(slot).toTensor();
      tensors[i] = LaidOutAs(given, *Slot(slot).layout);
      const bool is_written =
          std::ranges::binary_search(kernel.written_inputs, static_cast<int32_t>(i));
      TORCH_CHECK(!is_written || tensors[i].is_same(given),
                  "a kernel writes to a tensor of another layout than was traced");
    }
    const c10::Device where =
        step.args.empty() ? c10::Device(device->traits().name) : tensors[0].device();
    for (size_t i = 0; i < step.results.size(); ++i) {
      const auto argument = static_cast<size_t>(kernel.result_arguments[i]);
      if (!tensors[argument].defined()) {
        TORCH_CHECK(step.results[i].valid() && Slot(step.results[i]).layout,
                    "a kernel has a result of unknown layout");
        tensors[argument] = NewTensor(*Slot(step.results[i]).layout, where);
      }
      if (step.results[i].valid()) Value(step.results[i]) = tensors[argument];
    }
    std::vector<void*> addresses;
    for (const Tensor& tensor : tensors)
      addresses.push_back(tensor.mutable_data_ptr());
    ThrowUnlessOk(device->Launch(function, addresses));
  }

  /// REQUIRES: results have a known layout, which all steps with such a kernel have.
  void RunFlexKernel(const PlanStep& step, DeviceFunction* function) {
    std::vector<Tensor> tensors;
    step.ForEachOperand([&](SlotId slot) {
      tensors.push_back(LaidOutAs(Value(slot).toTensor(), *Slot(slot).layout));
    });
    const c10::Device where(device->traits().name);
    for (const SlotId slot : step.results) {
      tensors.push_back(NewTensor(*Slot(slot).layout, where));
      Value(slot) = tensors.back();
    }
    std::vector<void*> addresses;
    for (const Tensor& tensor : tensors)
      addresses.push_back(tensor.mutable_data_ptr());
    ThrowUnlessOk(device->Launch(function, addresses));
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
                                                         const Constants& constants,
                                                         Device* device) {
  auto state = std::make_unique<State>(plan, device);
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
  return state_->captured && state_->captured->is_captured();
}

const std::vector<KernelAnnotation>& BoxedProgram::annotations() const {
  static const std::vector<KernelAnnotation> kNone;
  return state_->captured ? state_->captured->annotations() : kNone;
}

}  // namespace strata
