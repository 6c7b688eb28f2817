#include "runtime/torch/executor.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/InferenceMode.h>

#include <fmt/format.h>

#include "runtime/torch/literals.h"
#include "runtime/torch/static_program.h"
#include "runtime/torch/step_binder.h"

namespace strata {
namespace {

bool Fits(const at::Tensor& tensor, const Plan::Input& wanted) {
  return tensor.defined() && ToDType(tensor.scalar_type()) == wanted.dtype &&
         tensor.sizes() == at::IntArrayRef(wanted.sizes) &&
         (!wanted.strides || tensor.strides() == at::IntArrayRef(*wanted.strides));
}

/// As types are printed: `f32[4, 32][32, 1]cpu`.
std::string DescribeTensor(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  return fmt::format("{}{}{}{}", ShortName(ToDType(tensor.scalar_type())), c10::str(tensor.sizes()),
                     c10::str(tensor.strides()), tensor.device().str());
}

}  // namespace

struct Executor::State {
  Plan plan;
  std::unique_ptr<KernelLibrary> kernels;
  std::unique_ptr<StaticProgram> program;  // of a static plan; the rest is for a plain one
  std::vector<BoundStep> steps;
  std::vector<c10::IValue> values;  // by slot; between runs only constants
  torch::jit::Stack stack;

  c10::IValue& Value(int32_t slot) { return values[static_cast<size_t>(slot)]; }

  Status CheckInputs(std::span<const at::Tensor> inputs) const {
    if (inputs.size() != plan.inputs.size()) {
      return Error(ErrorCode::kInternal, "graph {} has {} inputs, not {}", plan.graph,
                   plan.inputs.size(), inputs.size());
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Plan::Input& wanted = plan.inputs[i];
      const PlanSlot& slot = plan.slots[static_cast<size_t>(wanted.slot)];
      if (!Fits(inputs[i], wanted)) {
        return Error(ErrorCode::kInternal, "input {} of graph {} is {}, not {}", slot.name,
                     plan.graph, DescribeTensor(inputs[i]), slot.type);
      }
    }
    return Ok();
  }

  void FillStack(const BoundStep& step) {
    stack.assign(step.stack.begin(), step.stack.end());
    for (const TensorSlot& tensor : step.tensors) {
      if (tensor.is_last_use) {
        stack[tensor.arg] = std::move(Value(tensor.slot));
      } else {
        stack[tensor.arg] = Value(tensor.slot);
      }
    }
    for (const ListSlots& list : step.lists)
      stack[list.arg] = list.Collect([&](int32_t slot) { return Value(slot).toTensor(); });
  }

  void TakeResults(const PlanStep& step) {
    if (stack.size() == 1 && stack[0].isTensorList()) {
      const c10::List<at::Tensor> tensors = std::move(stack[0]).toTensorList();
      for (size_t i = 0; i < tensors.size() && i < step.results.size(); ++i) {
        if (step.results[i] >= 0) Value(step.results[i]) = tensors.get(i);
      }
      return;
    }
    for (size_t i = 0; i < stack.size() && i < step.results.size(); ++i) {
      if (step.results[i] >= 0) Value(step.results[i]) = std::move(stack[i]);
    }
  }

  void Show(const PlanStep& step, ExecutionObserver& observer) const {
    std::vector<at::Tensor> results;
    for (const c10::IValue& result : stack) {
      if (result.isTensorList()) {
        for (const at::Tensor& element : result.toTensorVector())
          results.push_back(element);
      } else {
        results.push_back(result.isTensor() ? result.toTensor() : at::Tensor());
      }
    }
    observer.OnStep(step, results);
  }

  void RunStep(size_t index, ExecutionObserver* observer) {
    const BoundStep& step = steps[index];
    FillStack(step);
    step.op.callBoxed(&stack);
    if (observer != nullptr) Show(plan.steps[index], *observer);
    TakeResults(plan.steps[index]);
    for (const int32_t slot : step.kills)
      Value(slot) = c10::IValue();
  }

  std::vector<at::Tensor> TakeOutputs() {
    std::vector<at::Tensor> outputs;
    for (const int32_t slot : plan.outputs)
      outputs.push_back(slot < 0 ? at::Tensor() : Value(slot).toTensor());
    return outputs;
  }

  /// Forgets everything but constants, also after a failure.
  void Clear() {
    stack.clear();
    std::vector<c10::IValue> kept(values.size());
    for (const Plan::Constant& constant : plan.constants)
      kept[static_cast<size_t>(constant.slot)] = std::move(Value(constant.slot));
    values = std::move(kept);
  }

  Error Failure(size_t index, const std::exception& failure) const {
    const PlanStep& step = plan.steps[index];
    const auto* torch_error = dynamic_cast<const c10::Error*>(&failure);
    std::string why = torch_error != nullptr ? torch_error->what_without_backtrace()
                                             : std::string(failure.what());
    why.resize(std::min(why.size(), why.find('\n')));
    return Error(ErrorCode::kInternal, "graph {} failed: {}: {}: {}", plan.graph, step.where,
                 Describe(plan, step), why);
  }
};

Executor::Executor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Executor::Executor(Executor&&) noexcept = default;
Executor& Executor::operator=(Executor&&) noexcept = default;
Executor::~Executor() = default;

const Plan& Executor::plan() const {
  return state_->plan;
}

void Executor::ReleaseInputs() {
  if (state_->program) state_->program->ReleaseInputs();
}

ScratchMemory Executor::scratch() const {
  return state_->program ? state_->program->scratch() : ScratchMemory();
}

PlannedMemory Executor::planned_memory() const {
  return state_->program ? state_->program->planned_memory() : PlannedMemory();
}

Result<Executor> Executor::Bind(Plan plan, const Constants& constants,
                                const ScratchMemory& scratch) {
  auto state = std::make_unique<State>();
  if (plan.options.is_static() || !plan.kernels.empty()) {
    if (!plan.kernels.empty()) {
      STRATA_TRY(state->kernels, KernelLibrary::Load(plan.kernels));
    }
    state->plan = std::move(plan);
    STRATA_TRY(state->program,
               StaticProgram::Bind(state->plan, constants, state->kernels.get(), scratch));
    return Executor(std::move(state));
  }
  for (const PlanStep& step : plan.steps) {
    const auto op = c10::Dispatcher::singleton().findSchema(SchemaName(step.op));
    if (!op) {
      return Error(ErrorCode::kUnsupported, "graph {} cannot be executed: {}: no operator {}",
                   plan.graph, step.where, step.op);
    }
    auto bound = BindStep(step, *op);
    if (!bound) {
      return std::move(bound).error().In(fmt::format("graph {} cannot be executed: {}: {}",
                                                     plan.graph, step.where, Describe(plan, step)));
    }
    state->steps.push_back(std::move(bound).value());
  }
  state->values.resize(plan.slots.size());
  for (const Plan::Constant& constant : plan.constants) {
    const auto known = std::ranges::find(constants, constant.path, &Constants::value_type::first);
    if (known == constants.end()) {
      return Error(ErrorCode::kNotFound, "graph {} cannot be executed: no constant {}", plan.graph,
                   constant.path);
    }
    state->values[static_cast<size_t>(constant.slot)] = known->second;
  }
  state->plan = std::move(plan);
  return Executor(std::move(state));
}

Result<std::vector<at::Tensor>> Executor::Run(std::span<const at::Tensor> inputs,
                                              ExecutionObserver* observer) {
  STRATA_RETURN_IF_ERROR(state_->CheckInputs(inputs));
  if (state_->program) {
    try {
      return state_->program->Run(inputs, observer);
    } catch (const std::exception& failure) {
      const Error error = state_->Failure(state_->program->failed_step(), failure);
      state_->program->Reset();
      return error;
    }
  }
  const c10::InferenceMode no_autograd;
  for (size_t i = 0; i < inputs.size(); ++i)
    state_->Value(state_->plan.inputs[i].slot) = inputs[i];
  for (size_t i = 0; i < state_->steps.size(); ++i) {
    try {
      state_->RunStep(i, observer);
    } catch (const std::exception& failure) {
      const Error error = state_->Failure(i, failure);
      state_->Clear();
      return error;
    }
  }
  std::vector<at::Tensor> outputs = state_->TakeOutputs();
  state_->Clear();
  return outputs;
}

}  // namespace strata
