#include "prove/values/call.h"

#include <fmt/format.h>

#include "ir/ops.h"

namespace strata::prove {
namespace {

std::optional<int64_t> AsInteger(const Argument& argument) {
  if (const auto* number = std::get_if<int64_t>(&argument.value)) return *number;
  if (const auto* flag = std::get_if<bool>(&argument.value)) return *flag ? 1 : 0;
  if (const auto* tensor = std::get_if<Tensor>(&argument.value)) {
    if (tensor->domain() == Domain::kInteger && tensor->numel() == 1)
      return static_cast<int64_t>(tensor->Read()[0]);
  }
  return std::nullopt;
}

std::optional<Tensor> AsTensor(const Argument& argument) {
  if (const auto* tensor = std::get_if<Tensor>(&argument.value)) return *tensor;
  if (const auto* number = std::get_if<double>(&argument.value))
    return Tensor(Domain::kFloat, {}, FromLiteral(*number));
  if (const std::optional<int64_t> integer = AsInteger(argument))
    return Tensor(Domain::kInteger, {}, static_cast<uint64_t>(*integer));
  return std::nullopt;
}

void AppendLiteral(const Argument& argument, std::string& out) {
  struct Printer {
    std::string& out;
    void operator()(std::monostate /*none*/) const { out += "None"; }
    void operator()(const Tensor& /*tensor*/) const { out += '%'; }
    void operator()(int64_t number) const { out += fmt::format("{}", number); }
    void operator()(double number) const { out += fmt::format("{}", FromLiteral(number)); }
    void operator()(bool flag) const { out += flag ? "True" : "False"; }
    void operator()(DType dtype) const { out += ShortName(dtype); }
    void operator()(const std::string& text) const { out += text; }
    void operator()(GraphId /*body*/) const { out += "body"; }
    void operator()(const std::vector<Argument>& list) const {
      out += '[';
      for (const Argument& element : list)
        AppendLiteral(element, out);
      out += ']';
    }
  };
  std::visit(Printer{out}, argument.value);
  out += ',';
}

}  // namespace

const Argument* Call::Find(size_t position, std::string_view name) const {
  const Argument* found = position < args_.size() ? &args_[position] : nullptr;
  for (const auto& [key, argument] : kwargs_) {
    if (!name.empty() && key == name) found = &argument;
  }
  return found == nullptr || found->is_none() ? nullptr : found;
}

Result<Tensor> Call::TensorAt(size_t position, std::string_view name) const {
  const Argument* argument = Find(position, name);
  std::optional<Tensor> tensor = argument != nullptr ? AsTensor(*argument) : std::nullopt;
  if (!tensor) return Error(ErrorCode::kInvalid, "argument {} is not a tensor", position);
  return *std::move(tensor);
}

Result<std::vector<Tensor>> Call::TensorsAt(size_t position, std::string_view name) const {
  const Argument* argument = Find(position, name);
  const auto* list =
      argument != nullptr ? std::get_if<std::vector<Argument>>(&argument->value) : nullptr;
  if (list == nullptr)
    return Error(ErrorCode::kInvalid, "argument {} is not a list of tensors", position);
  std::vector<Tensor> tensors;
  for (const Argument& element : *list) {
    std::optional<Tensor> tensor = AsTensor(element);
    if (!tensor)
      return Error(ErrorCode::kInvalid, "argument {} is not a list of tensors", position);
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

int64_t Call::IntegerAt(size_t position, std::string_view name, int64_t otherwise) const {
  const Argument* argument = Find(position, name);
  return argument == nullptr ? otherwise : AsInteger(*argument).value_or(otherwise);
}

bool Call::FlagAt(size_t position, std::string_view name, bool otherwise) const {
  return IntegerAt(position, name, otherwise ? 1 : 0) != 0;
}

std::string Call::TextAt(size_t position, std::string_view name) const {
  const Argument* argument = Find(position, name);
  const auto* text = argument != nullptr ? std::get_if<std::string>(&argument->value) : nullptr;
  return text != nullptr ? *text : std::string();
}

Result<Residue> Call::NumberAt(size_t position, std::string_view name, Residue otherwise) const {
  const Argument* argument = Find(position, name);
  if (argument == nullptr) return otherwise;
  const std::optional<Tensor> number = AsTensor(*argument);
  if (!number || number->numel() != 1 || number->domain() == Domain::kComplex)
    return Error(ErrorCode::kInvalid, "argument {} is not a number", position);
  const uint64_t word = number->Read()[0];
  return number->domain() == Domain::kFloat ? word : FromInteger(static_cast<int64_t>(word));
}

std::optional<double> Call::LiteralAt(size_t position, std::string_view name) const {
  const Argument* argument = Find(position, name);
  if (argument == nullptr || argument->is_tensor()) return std::nullopt;
  if (const auto* number = std::get_if<double>(&argument->value)) return *number;
  const std::optional<int64_t> integer = AsInteger(*argument);
  return integer ? std::optional(static_cast<double>(*integer)) : std::nullopt;
}

std::optional<Sizes> Call::IntegersAt(size_t position, std::string_view name) const {
  const Argument* argument = Find(position, name);
  if (argument == nullptr) return std::nullopt;
  if (const std::optional<int64_t> one = AsInteger(*argument)) return Sizes{*one};
  const auto* list = std::get_if<std::vector<Argument>>(&argument->value);
  if (list == nullptr) return std::nullopt;
  Sizes integers;
  for (const Argument& element : *list) {
    const std::optional<int64_t> integer = AsInteger(element);
    if (!integer) return std::nullopt;
    integers.push_back(*integer);
  }
  return integers;
}

Domain Call::DomainOr(Domain otherwise, size_t position) const {
  const Argument* argument = Find(position, "dtype");
  const auto* dtype = argument != nullptr ? std::get_if<DType>(&argument->value) : nullptr;
  return dtype != nullptr ? DomainOf(*dtype) : otherwise;
}

std::string Call::Literals() const {
  std::string text(op_);
  text += '(';
  for (const Argument& argument : args_)
    AppendLiteral(argument, text);
  for (const auto& [name, argument] : kwargs_) {
    text += name + '=';
    AppendLiteral(argument, text);
  }
  return text;
}

Domain DomainOf(DType dtype) {
  switch (dtype) {
    case DType::kC32:
    case DType::kC64:
    case DType::kC128:
    case DType::kBC32:
      return Domain::kComplex;
    case DType::kU8:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
    case DType::kBool:
      return Domain::kInteger;
    default:
      return Domain::kFloat;
  }
}

}  // namespace strata::prove
