#include "call.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/scalar_tensor.h>

namespace {

c10::IValue Fit(const c10::IValue& arg, const c10::TypePtr& type);

// The elements of a list as the schema wants them.
c10::IValue FitList(const c10::IValue& arg, const c10::TypePtr& element) {
  c10::impl::GenericList list(element);
  for (const c10::IValue& item : arg.toListRef())
    list.push_back(Fit(item, element));
  return list;
}

// An argument as the schema wants it: a number as a floating-point number, or as a tensor that promotes as a number.
c10::IValue Fit(const c10::IValue& arg, const c10::TypePtr& type) {
  if (const auto optional = type->cast<c10::OptionalType>())
    return arg.isNone() ? arg : Fit(arg, optional->getElementType());
  if (const auto list = type->cast<c10::ListType>()) {
    if (arg.isList()) return FitList(arg, list->getElementType());
    return arg;
  }
  if (type->kind() == c10::TypeKind::FloatType && arg.isInt()) return static_cast<double>(arg.toInt());
  if (type->kind() == c10::TypeKind::TensorType && arg.isScalar()) {
    const at::ScalarType dtype = arg.isDouble() ? at::kDouble : arg.isComplexDouble() ? at::kComplexDouble : at::kLong;
    Tensor number = at::scalar_tensor(arg.toScalar(), at::TensorOptions(dtype));
    number.unsafeGetTensorImpl()->set_wrapped_number(true);
    return number;
  }
  return arg;
}

torch::jit::Stack Run(const char* name, const char* overload, std::initializer_list<Arg> args,
                      std::initializer_list<NamedArg> named) {
  const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  torch::jit::Stack stack;
  for (const c10::Argument& argument : op.schema().arguments()) {
    const Arg* given = stack.size() < args.size() ? args.begin() + stack.size() : nullptr;
    for (const auto& [key, arg] : named)
      if (argument.name() == key) given = &arg;
    TORCH_CHECK(given != nullptr || argument.default_value(), name, " needs ", argument.name());
    stack.push_back(given != nullptr ? Fit(given->value(), argument.real_type()) : *argument.default_value());
  }
  op.callBoxed(&stack);
  return stack;
}

}  // namespace

Arg::Arg(const c10::IValue& value) : value_(std::make_shared<const c10::IValue>(value)) {}
Arg::Arg(const Tensor& value) : Arg(c10::IValue(value)) {}
Arg::Arg(int64_t value) : Arg(c10::IValue(value)) {}
Arg::Arg(double value) : Arg(c10::IValue(value)) {}
Arg::Arg(bool value) : Arg(c10::IValue(value)) {}
Arg::Arg(const std::string& value) : Arg(c10::IValue(value)) {}
Arg::Arg(const std::vector<int64_t>& value) : Arg(c10::IValue(value)) {}
Arg::Arg(c10::complex<double> value) : Arg(c10::IValue(value)) {}
Arg::Arg(at::ScalarType value) : Arg(c10::IValue(value)) {}
Arg::Arg(at::Device value) : Arg(c10::IValue(value)) {}
Arg::Arg(at::Layout value) : Arg(c10::IValue(value)) {}
Arg::Arg(at::MemoryFormat value) : Arg(c10::IValue(value)) {}

const c10::IValue& Arg::value() const {
  static const c10::IValue none;
  return value_ != nullptr ? *value_ : none;
}

Arg List(std::initializer_list<Arg> elements) {
  c10::impl::GenericList list(c10::AnyType::get());
  for (const Arg& element : elements)
    list.push_back(element.value());
  return Arg(c10::IValue(list));
}

Tensor Call(const char* name, const char* overload, std::initializer_list<Arg> args, std::initializer_list<NamedArg> named) {
  const torch::jit::Stack results = Run(name, overload, args, named);
  return results.empty() ? Tensor() : results[0].toTensor();
}

std::vector<Tensor> CallAll(const char* name, const char* overload, std::initializer_list<Arg> args,
                            std::initializer_list<NamedArg> named) {
  const torch::jit::Stack results = Run(name, overload, args, named);
  if (results.size() == 1 && results[0].isTensorList()) return results[0].toTensorVector();
  std::vector<Tensor> tensors;
  for (const c10::IValue& result : results)
    tensors.push_back(result.isTensor() ? result.toTensor() : Tensor());
  return tensors;
}

int64_t CallInt(const char* name, const char* overload, std::initializer_list<Arg> args, std::initializer_list<NamedArg> named) {
  return Run(name, overload, args, named).at(0).toInt();
}
