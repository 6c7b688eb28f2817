#include "call.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/scalar_tensor.h>

namespace {

Arg Fit(const Arg& arg, const c10::TypePtr& type);

// The elements of a list as the schema wants them.
Arg FitList(const Arg& arg, const c10::TypePtr& element) {
  c10::impl::GenericList list(element);
  for (const c10::IValue& item : arg.toListRef())
    list.push_back(Fit(item, element));
  return list;
}

// An argument as the schema wants it: a number as a floating-point number, or as a tensor that promotes as a number.
Arg Fit(const Arg& arg, const c10::TypePtr& type) {
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

torch::jit::Stack Run(const char* name, const char* overload, const std::vector<Arg>& args,
                      const std::vector<NamedArg>& named) {
  const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  torch::jit::Stack stack;
  for (const c10::Argument& argument : op.schema().arguments()) {
    const Arg* given = stack.size() < args.size() ? &args[stack.size()] : nullptr;
    for (const auto& [key, value] : named)
      if (argument.name() == key) given = &value;
    TORCH_CHECK(given != nullptr || argument.default_value(), name, " needs ", argument.name());
    stack.push_back(given != nullptr ? Fit(*given, argument.real_type()) : *argument.default_value());
  }
  op.callBoxed(&stack);
  return stack;
}

}  // namespace

Arg List(std::initializer_list<Arg> elements) {
  c10::impl::GenericList list(c10::AnyType::get());
  for (const Arg& element : elements)
    list.push_back(element);
  return list;
}

Tensor Call(const char* name, const char* overload, std::vector<Arg> args, std::vector<NamedArg> named) {
  const torch::jit::Stack results = Run(name, overload, args, named);
  return results.empty() ? Tensor() : results[0].toTensor();
}

std::vector<Tensor> CallAll(const char* name, const char* overload, std::vector<Arg> args,
                            std::vector<NamedArg> named) {
  const torch::jit::Stack results = Run(name, overload, args, named);
  if (results.size() == 1 && results[0].isTensorList()) return results[0].toTensorVector();
  std::vector<Tensor> tensors;
  for (const c10::IValue& result : results)
    tensors.push_back(result.isTensor() ? result.toTensor() : Tensor());
  return tensors;
}

int64_t CallInt(const char* name, const char* overload, std::vector<Arg> args, std::vector<NamedArg> named) {
  return Run(name, overload, args, named).at(0).toInt();
}
