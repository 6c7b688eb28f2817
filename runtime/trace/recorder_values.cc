// Which value of the graph a tensor is, and how operands, types and names are written.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/complex_literal.h"
#include "runtime/aten/literals.h"
#include "runtime/trace/recorder.h"

namespace strata {

Recorder::ViewKey Recorder::KeyOf(const at::Tensor& tensor) {
  const void* storage = tensor.has_storage()
                            ? static_cast<const void*>(tensor.storage().unsafeGetStorageImpl())
                            : tensor.unsafeGetTensorImpl();
  return {storage, tensor.sizes().vec(), tensor.strides().vec(), tensor.storage_offset(),
          tensor.scalar_type()};
}

ValueId Recorder::ValueOf(const at::Tensor& tensor) {
  if (const auto it = by_tensor_.find(tensor.unsafeGetTensorImpl()); it != by_tensor_.end()) {
    return it->second;
  }
  // Autograd hands saved tensors out as new objects over the same memory.
  if (const auto it = by_view_.find(KeyOf(tensor)); it != by_view_.end()) {
    alive_.push_back(tensor);
    by_tensor_[tensor.unsafeGetTensorImpl()] = it->second.value;
    it->second.tensors.push_back(tensor.unsafeGetTensorImpl());
    return it->second.value;
  }
  return AddConstant(tensor);
}

void Recorder::Define(const at::Tensor& tensor, ValueId value) {
  alive_.push_back(tensor);
  by_tensor_[tensor.unsafeGetTensorImpl()] = value;
  // The first definition of a view stays: a later one is a no-op on it.
  View& view =
      by_view_.try_emplace(KeyOf(tensor), View{.value = value, .tensors = {}}).first->second;
  view.tensors.push_back(tensor.unsafeGetTensorImpl());
}

void Recorder::Redefine(const at::Tensor& tensor, ValueId value) {
  Define(tensor, value);
  View& view = by_view_.at(KeyOf(tensor));
  view.value = value;
  for (const c10::TensorImpl* same : view.tensors)
    by_tensor_[same] = value;
}

void Recorder::LeaveView(const at::Tensor& tensor) {
  if (const auto it = by_view_.find(KeyOf(tensor)); it != by_view_.end())
    std::erase(it->second.tensors, tensor.unsafeGetTensorImpl());
}

ValueId Recorder::AddConstant(const at::Tensor& tensor) {
  if (tensor.is_meta()) {
    throw TraceError(Error(
        ErrorCode::kUnsupported,
        "reads a Meta tensor {} that is neither an input nor made by the program",
        fmt::format("{} [{}]", ShortName(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "))));
  }
  const std::string path = ConstantPath();
  constants_.emplace_back(path, tensor);
  const TypeId type = TypeOf(tensor);
  const NodeId node = rewriter_.Create(
      {.kind = NodeKind::kGetAttr, .op = path, .results = std::span(&type, 1), .name = path},
      From::Source());
  Define(tensor, graph_.result(node));
  return graph_.result(node);
}

Arg Recorder::ToArg(const c10::IValue& value, const c10::Type& type) {
  const auto list = [&](const auto& items, const auto& to_arg) {
    std::vector<Arg> elements;
    for (const auto& item : items)
      elements.push_back(to_arg(item));
    return rewriter_.MakeSpan(ArgKind::kList, elements);
  };
  if (value.isNone()) return Arg::None();
  if (value.isTensor()) return TensorArg(value.toTensor());
  if (value.isTensorList()) {
    return list(value.toTensorVector(), [&](const at::Tensor& t) { return TensorArg(t); });
  }
  if (value.isOptionalTensorList()) {
    return list(value.toOptionalTensorVector(), [&](const std::optional<at::Tensor>& t) {
      return t ? TensorArg(*t) : Arg::None();
    });
  }
  if (value.isBool()) return Arg::Bool(value.toBool());
  if (value.isInt()) {
    const int64_t number = value.toInt();
    switch (type.kind()) {
      case c10::TypeKind::ScalarTypeType:
        return Arg::DType(ToDType(static_cast<c10::ScalarType>(number)));
      case c10::TypeKind::LayoutType:
        return Arg::Raw(module_.Intern(TorchName(static_cast<c10::Layout>(number))));
      case c10::TypeKind::MemoryFormatType:
        return Arg::Raw(module_.Intern(TorchName(static_cast<c10::MemoryFormat>(number))));
      default:
        return Arg::Int(number);
    }
  }
  if (value.isDouble()) return Arg::Float(value.toDouble());
  if (value.isComplexDouble()) return ComplexArg(value.toComplexDouble());
  if (value.isString()) return Arg::String(module_.Intern(value.toStringView()));
  if (value.isDevice()) return DeviceArg(value.toDevice());
  if (value.isIntList()) {
    return list(value.toIntVector(), [](int64_t item) { return Arg::Int(item); });
  }
  if (value.isDoubleList()) {
    return list(value.toDoubleVector(), [](double item) { return Arg::Float(item); });
  }
  if (value.isBoolList()) {
    return list(value.toBoolList().vec(), [](bool item) { return Arg::Bool(item); });
  }
  throw TraceError(Error(ErrorCode::kUnsupported, "takes an argument of type {}", type.str()));
}

Arg Recorder::TensorArg(const at::Tensor& tensor) {
  if (!tensor.defined()) return Arg::None();
  // A number in the place of a tensor, as Python's `x * 2`, has the type promotion of a number.
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number() && tensor.is_cpu()) {
    const at::Scalar number = tensor.item();
    if (number.isBoolean()) return Arg::Bool(number.toBool());
    if (number.isIntegral(/*includeBool=*/false)) return Arg::Int(number.toLong());
    if (number.isFloatingPoint()) return Arg::Float(number.toDouble());
    if (number.isComplex()) return ComplexArg(number.toComplexDouble());
  }
  operands_.push_back(tensor);
  return ValueOf(tensor);
}

Arg Recorder::ComplexArg(c10::complex<double> number) {
  return Arg::Raw(module_.Intern(PrintComplex({number.real(), number.imag()})));
}

Arg Recorder::DeviceArg(c10::Device device) {
  return Arg::Device(module_.Intern(device.is_meta() ? device_ : device.str()));
}

TypeId Recorder::TypeOf(const at::Tensor& tensor) {
  Type type;
  type.dtype = ToDType(tensor.scalar_type());
  type.device = module_.Intern(tensor.is_meta() ? device_ : tensor.device().str());
  for (const int64_t size : tensor.sizes())
    type.sizes.push_back(module_.dims().Const(size));
  for (const int64_t stride : tensor.strides())
    type.strides.push_back(module_.dims().Const(stride));
  type.has_strides = true;
  if (tensor.storage_offset() != 0) type.dim = module_.dims().Const(tensor.storage_offset());
  return module_.types().Intern(type);
}

bool Recorder::IsTaken(std::string_view name) const {
  return std::ranges::any_of(graph_.nodes(),
                             [&](NodeId node) { return graph_.name(node) == name; });
}

std::string Recorder::ConstantPath() const {
  for (size_t number = constants_.size();; ++number) {
    std::string path = fmt::format("_tensor_constant{}", number);
    const bool is_known = std::ranges::any_of(
        constants_, [&](const auto& constant) { return constant.first == path; });
    if (!is_known && !IsTaken(path)) return path;
  }
}

std::string Recorder::PlaceholderName(std::string_view name) {
  std::string base;
  for (const char c : name)
    base += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0])) != 0) base.insert(0, "_");
  std::string unique = base;
  for (int suffix = 1; IsTaken(unique); ++suffix)
    unique = fmt::format("{}_{}", base, suffix);
  return unique;
}

}  // namespace strata
