#include "runtime/files/tensor_io.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>

#include <fmt/ranges.h>

#include "base/random.h"
#include "ir/complex_literal.h"
#include "ir/module.h"
#include "runtime/aten/literals.h"
#include "runtime/files/safetensors.h"
#include "runtime/plan/input_sizes.h"

namespace strata {
namespace {

using at::Tensor;

constexpr std::string_view kComplexSuffix = "#complex";

constexpr std::pair<TensorDtype, at::ScalarType> kTypes[] = {
    {TensorDtype::kBool, at::kBool},
    {TensorDtype::kU8, at::kByte},
    {TensorDtype::kI8, at::kChar},
    {TensorDtype::kF8E4M3, at::kFloat8_e4m3fn},
    {TensorDtype::kF8E5M2, at::kFloat8_e5m2},
    {TensorDtype::kU16, at::kUInt16},
    {TensorDtype::kI16, at::kShort},
    {TensorDtype::kF16, at::kHalf},
    {TensorDtype::kBF16, at::kBFloat16},
    {TensorDtype::kU32, at::kUInt32},
    {TensorDtype::kI32, at::kInt},
    {TensorDtype::kF32, at::kFloat},
    {TensorDtype::kU64, at::kUInt64},
    {TensorDtype::kI64, at::kLong},
    {TensorDtype::kF64, at::kDouble}};

at::ScalarType ScalarTypeOf(TensorDtype dtype) {
  for (const auto& [stored, scalar] : kTypes) {
    if (stored == dtype) return scalar;
  }
  return at::kFloat;
}

/// Sizes and strides of an input, as the graph says.
struct InputType {
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> sizes;
  std::optional<std::vector<int64_t>> strides;

  /// The values in memory of their own that lies as the graph says. A dimension whose elements are
  /// one in memory (stride 0) has the first value.
  Tensor Lay(const Tensor& values) const {
    const at::TensorOptions options(dtype);
    if (!strides) return at::empty(sizes, options).copy_(values);
    Tensor part = values;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (IsOneInMemory(i)) part = part.narrow(static_cast<int64_t>(i), 0, 1);
    }
    return at::empty_strided(part.sizes(), *strides, options).copy_(part).expand(sizes);
  }
  bool IsOneInMemory(size_t dimension) const {
    return (*strides)[dimension] == 0 && sizes[dimension] > 1;
  }
};

Result<InputType> TypeOfInput(const Graph& graph, NodeId node, const SymbolSizes& sizes) {
  const Module& module = graph.module();
  const auto refuse = [&](std::string_view why) {
    return Error(ErrorCode::kUnsupported, "graph {} cannot be executed: input {}: {}",
                 graph.name_text(), graph.name(node), why);
  };
  const TypeId id = graph.value(graph.result(node)).type;
  if (!id.valid() || module.types()[id].kind != TypeKind::kTensor ||
      module.types()[id].dtype == DType::kUnknown) {
    return refuse("it is no tensor of known type, and only tensors can be given");
  }
  const Type& type = module.types()[id];
  InputType input{.dtype = ToScalarType(type.dtype), .sizes = {}, .strides = {}};
  auto numbers = NumbersOf(module, type.sizes, sizes);
  if (!numbers) return refuse(numbers.error().message());
  input.sizes = *std::move(numbers);
  if (type.has_strides) {
    auto strides = NumbersOf(module, type.strides, sizes);
    if (!strides) return refuse(strides.error().message());
    input.strides = *std::move(strides);
  }
  return input;
}

uint64_t HashText(std::string_view text) {
  uint64_t hash = 0;
  for (const char c : text)
    hash = Mix(hash ^ static_cast<unsigned char>(c));
  return hash;
}

Tensor Draw(const InputType& type, uint64_t key, Signs signs) {
  const Tensor drawn = at::empty(type.sizes, at::kDouble);
  const bool is_number = c10::isFloatingType(type.dtype) || c10::isComplexType(type.dtype);
  auto* values = drawn.mutable_data_ptr<double>();
  for (int64_t i = 0; i < drawn.numel(); ++i) {
    const uint64_t bits = RandomBits(key, static_cast<uint64_t>(i));
    const double magnitude = 0.25 + 0.75 * static_cast<double>(bits >> 11U) * 0x1p-53;
    const bool is_negative = signs == Signs::kBoth && (bits & 1U) != 0;
    values[i] =
        is_number ? (is_negative ? -magnitude : magnitude) : static_cast<double>(bits >> 63U);
  }
  return type.Lay(drawn);
}

/// Whether an embedding bag reads the input as the begins of its bags, which ascend from 0.
bool AreOffsetsOfBags(const Graph& graph, NodeId placeholder) {
  const ValueId value = graph.result(placeholder);
  return std::ranges::any_of(graph.uses(value), [&](const Use& use) {
    const std::span<const Arg> args = graph.args(use.user);
    return graph.op(use.user).starts_with("aten._embedding_bag") && args.size() > 2 &&
           args[2].is_value() && args[2].value() == value;
  });
}

at::Scalar ScalarOf(const StatedConstant& constant) {
  switch (constant.literal.kind()) {
    case ArgKind::kBool:
      return constant.literal.as_bool();
    case ArgKind::kInt:
      return constant.literal.as_int();
    case ArgKind::kFloat:
      return constant.literal.as_float();
    default: {
      const auto number = ParseComplex(constant.text);
      return c10::complex<double>(number->real(), number->imag());
    }
  }
}

}  // namespace

std::optional<TensorDtype> StoredType(at::ScalarType type) {
  for (const auto& [stored, scalar] : kTypes) {
    if (scalar == type) return stored;
  }
  return std::nullopt;
}

Tensor CopyOf(const TensorView& view) {
  Tensor tensor = at::empty(view.shape, ScalarTypeOf(view.dtype));
  std::memcpy(tensor.mutable_data_ptr(), view.bytes.data(), view.bytes.size());
  return tensor;
}

Result<NamedTensors> LoadTensors(const std::string& path) {
  STRATA_TRY(const SafetensorsFile file, SafetensorsFile::Open(path));
  NamedTensors tensors;
  for (const TensorView& view : file.tensors()) {
    Tensor tensor = CopyOf(view);
    std::string name = view.name;
    if (name.ends_with(kComplexSuffix) && !view.shape.empty() && view.shape.back() == 2 &&
        c10::isFloatingType(tensor.scalar_type())) {
      name.resize(name.size() - kComplexSuffix.size());
      tensor = at::view_as_complex(tensor);
    }
    tensors.insert_or_assign(std::move(name), std::move(tensor));
  }
  return tensors;
}

Status SaveTensors(const std::string& path,
                   std::span<const std::pair<std::string, Tensor>> tensors) {
  std::vector<Tensor> kept;
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) continue;
    const bool is_complex = tensor.is_complex();
    // Of a conjugate that is not computed yet there is no real view.
    kept.push_back(
        (is_complex ? at::view_as_real(tensor.resolve_conj()) : tensor).cpu().contiguous());
    const std::optional<TensorDtype> dtype = StoredType(kept.back().scalar_type());
    if (!dtype) {
      return Error(ErrorCode::kUnsupported, "cannot store tensor {}: {}: the format has no {}",
                   name, path, ShortName(tensor.scalar_type()));
    }
    views.push_back({.name = is_complex ? name + std::string(kComplexSuffix) : name,
                     .dtype = *dtype,
                     .shape = kept.back().sizes().vec(),
                     .bytes = {static_cast<const std::byte*>(kept.back().const_data_ptr()),
                               kept.back().nbytes()}});
  }
  return WriteSafetensors(path, std::move(views));
}

std::string InputName(const Graph& graph, NodeId placeholder) {
  const std::string_view fqn = graph.attribute(placeholder, "fqn");
  return std::string(fqn.empty() ? graph.name(placeholder) : fqn);
}

Result<std::vector<Tensor>> TakeInputs(const Graph& graph, const NamedTensors& given) {
  const std::vector<NodeId> placeholders = GivenInputs(graph);
  std::vector<NamedTensors::const_iterator> tensors;
  std::vector<std::vector<int64_t>> shapes;
  for (const NodeId node : placeholders) {
    auto found = given.find(InputName(graph, node));
    if (found == given.end()) found = given.find(std::string(graph.name(node)));
    if (found == given.end()) {
      return Error(ErrorCode::kNotFound, "no input {}: graph {}: give it under this name",
                   InputName(graph, node), graph.name_text());
    }
    tensors.push_back(found);
    shapes.push_back(found->second.sizes().vec());
  }
  STRATA_TRY(SymbolSizes sizes, SizesOfInputs(graph, shapes));
  sizes.merge(DrawSizes(graph));
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < placeholders.size(); ++i) {
    const auto found = tensors[i];
    STRATA_TRY(const InputType type, TypeOfInput(graph, placeholders[i], sizes));
    const Tensor& tensor = found->second;
    if (tensor.scalar_type() != type.dtype || tensor.sizes() != at::IntArrayRef(type.sizes)) {
      return Error("input {} does not fit: graph {}: it is {} [{}], the graph takes {} [{}]",
                   found->first, graph.name_text(), ShortName(tensor.scalar_type()),
                   fmt::join(tensor.sizes(), ", "), ShortName(type.dtype),
                   fmt::join(type.sizes, ", "));
    }
    Tensor input = type.Lay(tensor);
    if (!input.is_non_overlapping_and_dense() && !at::equal(input, tensor)) {
      return Error(
          "input {} does not fit: graph {}: it has different values where the graph takes one for "
          "all, strides [{}]",
          found->first, graph.name_text(), fmt::join(*type.strides, ", "));
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

Result<NamedTensors> DrawInputs(const Graph& graph, uint64_t seed, Signs signs) {
  const SymbolSizes sizes = DrawSizes(graph);
  NamedTensors inputs;
  for (const NodeId node : GivenInputs(graph)) {
    STRATA_TRY(const InputType type, TypeOfInput(graph, node, sizes));
    const std::string name = InputName(graph, node);
    Tensor drawn = Draw(type, Mix(seed) ^ HashText(name), signs);
    if (AreOffsetsOfBags(graph, node)) drawn.zero_();
    inputs.insert_or_assign(name, std::move(drawn));
  }
  for (const NodeId node : graph.nodes()) {  // a graph does not hold the tensors that it names
    if (graph.node(node).kind != NodeKind::kGetAttr || graph.node(node).num_args > 0) continue;
    const auto type = TypeOfInput(graph, node, sizes);
    const std::string name(graph.op(node));
    if (type) inputs.try_emplace(name, Draw(*type, Mix(seed) ^ HashText(name), signs));
  }
  return inputs;
}

void SetStatedConstants(const StatedConstants& constants, NamedTensors& inputs) {
  for (const auto& [attribute, constant] : constants) {
    if (const auto found = inputs.find(attribute); found != inputs.end())
      found->second.fill_(ScalarOf(constant));
  }
}

}  // namespace strata
