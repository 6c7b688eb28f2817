#include "runtime/torch/executor.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/InferenceMode.h>

#include <fmt/format.h>

#include "runtime/torch/literals.h"

namespace strata {
namespace {

/// A tensor argument of a step.
struct TensorSlot {
  uint32_t arg = 0;
  int32_t slot = -1;
  bool is_last_use = false;  ///< the reference moves onto the stack
};

/// A list of tensors; slot -1 is None.
struct ListSlots {
  uint32_t arg = 0;
  std::vector<int32_t> slots;
  bool is_optional = false;
};

struct BoundStep {
  c10::OperatorHandle op;
  torch::jit::Stack stack;  ///< all arguments, empty where a slot is filled in
  std::vector<TensorSlot> tensors;
  std::vector<ListSlots> lists;
  std::vector<int32_t> kills;  ///< what is left to kill after the moves
};

bool HoldsSlot(const PlanArg& arg) {
  return arg.kind == ArgKind::kValue || std::ranges::any_of(arg.elements, HoldsSlot);
}

size_t CountSlot(const PlanArg& arg, int32_t slot) {
  size_t count = arg.kind == ArgKind::kValue && arg.slot == slot ? 1 : 0;
  for (const PlanArg& element : arg.elements)
    count += CountSlot(element, slot);
  return count;
}

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

/// Fills a step's stack from its arguments and the operator's schema.
class Binder {
 public:
  Binder(const PlanStep& step, BoundStep& bound) : step_(step), bound_(bound) {}

  Status Run() {
    const std::vector<c10::Argument>& arguments = bound_.op.schema().arguments();
    if (step_.args.size() > arguments.size()) {
      return Error(ErrorCode::kUnsupported, "takes {} arguments, not {}", arguments.size(),
                   step_.args.size());
    }
    size_t used_kwargs = 0;
    for (uint32_t i = 0; i < arguments.size(); ++i) {
      const PlanArg* given = i < step_.args.size() ? &step_.args[i] : nullptr;
      for (const auto& [name, arg] : step_.kwargs) {
        if (name != arguments[i].name()) continue;
        given = &arg;
        ++used_kwargs;
      }
      auto filled =
          given != nullptr ? Fill(i, *given, *arguments[i].type()) : FillDefault(arguments[i]);
      if (!filled) return std::move(filled).error().In(arguments[i].name());
    }
    if (used_kwargs != step_.kwargs.size()) {
      return Error(ErrorCode::kUnsupported, "has no keyword argument of a name given");
    }
    SplitKills();
    return Ok();
  }

 private:
  Status FillDefault(const c10::Argument& argument) {
    if (!argument.default_value()) return Error(ErrorCode::kUnsupported, "needs a value");
    bound_.stack.push_back(*argument.default_value());
    return Ok();
  }

  Status Fill(uint32_t index, const PlanArg& arg, const c10::Type& type) {
    if (type.kind() == c10::TypeKind::OptionalType) {
      if (arg.kind != ArgKind::kNone) return Fill(index, arg, *type.containedType(0));
      bound_.stack.emplace_back();
      return Ok();
    }
    if (arg.kind == ArgKind::kValue) {
      bound_.tensors.push_back({.arg = index, .slot = arg.slot});
      bound_.stack.emplace_back();
      return Ok();
    }
    if (type.kind() == c10::TypeKind::ListType) return FillList(index, arg, *type.containedType(0));
    STRATA_TRY(c10::IValue literal, Literal(arg, type));
    bound_.stack.push_back(std::move(literal));
    return Ok();
  }

  Status FillList(uint32_t index, const PlanArg& arg, const c10::Type& element_type) {
    // ATen takes a number where a list of numbers of fixed length is asked for.
    const std::span<const PlanArg> elements =
        arg.kind == ArgKind::kList || arg.kind == ArgKind::kTuple
            ? std::span<const PlanArg>(arg.elements)
            : std::span<const PlanArg>(&arg, 1);
    const bool is_optional = element_type.kind() == c10::TypeKind::OptionalType;
    const c10::Type& type = is_optional ? *element_type.containedType(0) : element_type;
    if (type.kind() == c10::TypeKind::TensorType) {
      ListSlots list{.arg = index, .slots = {}, .is_optional = is_optional};
      for (const PlanArg& element : elements) {
        if (element.kind != ArgKind::kValue && !(is_optional && element.kind == ArgKind::kNone)) {
          return Error(ErrorCode::kUnsupported, "is a list of something else than tensors");
        }
        list.slots.push_back(element.slot);
      }
      bound_.lists.push_back(std::move(list));
      bound_.stack.emplace_back();
      return Ok();
    }
    if (std::ranges::any_of(elements, HoldsSlot)) {
      return Error(ErrorCode::kUnsupported, "has sizes that are values");
    }
    switch (type.kind()) {
      case c10::TypeKind::IntType:
      case c10::TypeKind::SymIntType:
        return FillNumbers<int64_t>(elements);
      case c10::TypeKind::FloatType:
        return FillNumbers<double>(elements);
      case c10::TypeKind::BoolType:
        return FillNumbers<bool>(elements);
      default:
        return Error(ErrorCode::kUnsupported, "is a list of type {}", type.str());
    }
  }

  template <class T>
  Status FillNumbers(std::span<const PlanArg> elements) {
    c10::List<T> list;
    for (const PlanArg& element : elements) {
      switch (element.kind) {
        case ArgKind::kInt:
        case ArgKind::kBool:
          list.push_back(static_cast<T>(element.integer));
          break;
        case ArgKind::kFloat:
          list.push_back(static_cast<T>(element.real));
          break;
        default:
          return Error(ErrorCode::kUnsupported, "is a list of something else than numbers");
      }
    }
    bound_.stack.emplace_back(std::move(list));
    return Ok();
  }

  static Result<c10::IValue> Literal(const PlanArg& arg, const c10::Type& type) {
    switch (arg.kind) {
      case ArgKind::kNone:
        return c10::IValue(at::Tensor());
      case ArgKind::kInt:
        if (type.kind() == c10::TypeKind::FloatType) {
          return c10::IValue(static_cast<double>(arg.integer));
        }
        return Number(arg.integer, type);
      case ArgKind::kFloat:
        return Number(arg.real, type);
      case ArgKind::kBool:
        return Number(arg.integer != 0, type);
      case ArgKind::kDType:
        return c10::IValue(static_cast<int64_t>(ToScalarType(arg.dtype)));
      case ArgKind::kString:
        return c10::IValue(arg.text);
      case ArgKind::kDevice:
        return c10::IValue(c10::Device(arg.text));
      case ArgKind::kRaw:
        if (const auto layout = LayoutFromTorchName(arg.text)) {
          return c10::IValue(static_cast<int64_t>(*layout));
        }
        if (const auto format = MemoryFormatFromTorchName(arg.text)) {
          return c10::IValue(static_cast<int64_t>(*format));
        }
        return Error(ErrorCode::kUnsupported, "has the unknown value {}", arg.text);
      default:
        return Error(ErrorCode::kUnsupported, "is no {}", type.str());
    }
  }

  /// A number where a tensor is asked for has the type promotion of a number, as in Python.
  template <class T>
  static c10::IValue Number(T number, const c10::Type& type) {
    if (type.kind() != c10::TypeKind::TensorType) return c10::IValue(number);
    at::Tensor wrapped = at::scalar_to_tensor(at::Scalar(number));
    wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
    return c10::IValue(std::move(wrapped));
  }

  void SplitKills() {
    for (const int32_t slot : step_.kills) {
      size_t uses = 0;
      for (const PlanArg& arg : step_.args)
        uses += CountSlot(arg, slot);
      for (const auto& [name, arg] : step_.kwargs)
        uses += CountSlot(arg, slot);
      const auto direct = std::ranges::find(bound_.tensors, slot, &TensorSlot::slot);
      if (uses == 1 && direct != bound_.tensors.end()) {
        direct->is_last_use = true;
      } else {
        bound_.kills.push_back(slot);
      }
    }
  }

  const PlanStep& step_;
  BoundStep& bound_;
};

}  // namespace

struct Executor::State {
  Plan plan;
  std::vector<BoundStep> steps;
  std::vector<c10::IValue> values;  // by slot; between runs only constants
  torch::jit::Stack stack;

  c10::IValue& Value(int32_t slot) { return values[static_cast<size_t>(slot)]; }

  Status BindInputs(std::span<const at::Tensor> inputs) {
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
      Value(wanted.slot) = inputs[i];
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
    for (const ListSlots& list : step.lists) {
      if (list.is_optional) {
        c10::List<std::optional<at::Tensor>> tensors;
        for (const int32_t slot : list.slots)
          tensors.push_back(slot < 0 ? std::nullopt : std::optional(Value(slot).toTensor()));
        stack[list.arg] = std::move(tensors);
      } else {
        c10::List<at::Tensor> tensors;
        for (const int32_t slot : list.slots)
          tensors.push_back(Value(slot).toTensor());
        stack[list.arg] = std::move(tensors);
      }
    }
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

Result<Executor> Executor::Bind(Plan plan, const Constants& constants) {
  auto state = std::make_unique<State>();
  for (const PlanStep& step : plan.steps) {
    const auto op = c10::Dispatcher::singleton().findSchema(SchemaName(step.op));
    if (!op) {
      return Error(ErrorCode::kUnsupported, "graph {} cannot be executed: {}: no operator {}",
                   plan.graph, step.where, step.op);
    }
    BoundStep bound{.op = *op, .stack = {}, .tensors = {}, .lists = {}, .kills = {}};
    if (auto filled = Binder(step, bound).Run(); !filled) {
      return std::move(filled).error().In(fmt::format(
          "graph {} cannot be executed: {}: {}", plan.graph, step.where, Describe(plan, step)));
    }
    state->steps.push_back(std::move(bound));
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
  const c10::InferenceMode no_autograd;
  STRATA_RETURN_IF_ERROR(state_->BindInputs(inputs));
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
