#include "runtime/exec/step/step_binder.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/ScalarOps.h>

#include "ir/complex_literal.h"
#include "runtime/aten/generator.h"
#include "runtime/aten/literals.h"

namespace strata {
namespace {

/// A tensor that has the type promotion of a number, as in Python.
at::Tensor Wrapped(const at::Scalar& number) {
  at::Tensor wrapped = at::scalar_to_tensor(number);
  wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
  return wrapped;
}

/// Of an optional generator; graphs name none.
bool IsGenerator(const c10::Type& type) {
  return type.kind() == c10::TypeKind::OptionalType &&
         type.containedType(0)->kind() == c10::TypeKind::GeneratorType;
}

bool HoldsSlot(const PlanArg& arg) {
  return arg.kind == ArgKind::kValue || std::ranges::any_of(arg.elements, HoldsSlot);
}

size_t CountSlot(const PlanArg& arg, SlotId slot) {
  size_t count = arg.kind == ArgKind::kValue && arg.slot == slot ? 1 : 0;
  for (const PlanArg& element : arg.elements)
    count += CountSlot(element, slot);
  return count;
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
      if (OwnGenerator() && IsGenerator(*arguments[i].type())) {
        bound_.stack.emplace_back(*OwnGenerator());
        continue;
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
    if (std::ranges::any_of(elements, HoldsSlot)) return FillSizes(index, elements, type);
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

  Status FillSizes(uint32_t index, std::span<const PlanArg> elements, const c10::Type& type) {
    NumberSlots numbers{.arg = index, .elements = {}};
    for (const PlanArg& element : elements) {
      const bool is_number = element.kind == ArgKind::kValue || element.kind == ArgKind::kInt;
      const bool fits =
          type.kind() == c10::TypeKind::IntType || type.kind() == c10::TypeKind::SymIntType;
      if (!is_number || !fits) {
        return Error(ErrorCode::kUnsupported, "is a list of something else than whole numbers");
      }
      numbers.elements.push_back({.slot = element.slot, .number = element.integer});
    }
    bound_.numbers.push_back(std::move(numbers));
    bound_.stack.emplace_back();
    return Ok();
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
        if (const auto number = ParseComplex(arg.text)) {
          return Number(c10::complex<double>(number->real(), number->imag()), type);
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
    return c10::IValue(Wrapped(at::Scalar(number)));
  }

  void SplitKills() {
    for (const SlotId slot : step_.kills) {
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

void WrapNumber(c10::IValue& value, const c10::Argument& argument) {
  if (value.isScalar() && argument.type()->kind() == c10::TypeKind::TensorType)
    value = Wrapped(value.toScalar());
}

Result<BoundStep> BindStep(const PlanStep& step, const c10::OperatorHandle& op) {
  BoundStep bound{.op = op, .stack = {}, .tensors = {}, .lists = {}, .numbers = {}, .kills = {}};
  STRATA_RETURN_IF_ERROR(Binder(step, bound).Run());
  return bound;
}

}  // namespace strata
