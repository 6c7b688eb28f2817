#include "ir/infer/infer_types.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "ir/infer/infer_rules.h"
#include "ir/rewriter.h"

namespace strata {

const Arg* InferredCall::FindArg(size_t position, std::string_view name) const {
  const auto args = graph_.args(node_);
  if (position < args.size()) return args[position].is_none() ? nullptr : &args[position];
  const Arg* found = name.empty() ? nullptr : graph_.FindKwarg(node_, name);
  return found == nullptr || found->is_none() ? nullptr : found;
}

const Type* InferredCall::TypeOf(const Arg& arg) const {
  if (!arg.is_value() || !graph_.value(arg.value()).type.valid()) return nullptr;
  const Type& type = module_.types()[graph_.value(arg.value()).type];
  return type.kind == TypeKind::kTensor && type.dtype != DType::kUnknown ? &type : nullptr;
}

const Type* InferredCall::Tensor(size_t position) const {
  const Arg* arg = FindArg(position, "");
  return arg == nullptr ? nullptr : TypeOf(*arg);
}

std::vector<const Type*> InferredCall::Tensors(size_t position) const {
  std::vector<const Type*> types;
  const Arg* list = FindArg(position, "");
  if (list == nullptr || !list->is_span()) return types;
  for (const Arg& arg : graph_.elements(*list))
    types.push_back(TypeOf(arg));
  return types;
}

std::optional<int64_t> InferredCall::Int(size_t position, std::string_view name) const {
  const Arg* arg = FindArg(position, name);
  if (arg == nullptr) return std::nullopt;
  const auto size = Size(*arg);
  return size ? module_.dims().AsConst(*size) : std::nullopt;
}

bool InferredCall::Flag(size_t position, std::string_view name) const {
  const Arg* arg = FindArg(position, name);
  return arg != nullptr && arg->kind() == ArgKind::kBool && arg->as_bool();
}

std::optional<size_t> InferredCall::DimOf(size_t position, std::string_view name,
                                          size_t rank) const {
  const auto dim = Int(position, name);
  const auto count = static_cast<int64_t>(rank);
  if (!dim || *dim >= count || *dim < -count) return std::nullopt;
  return static_cast<size_t>(*dim < 0 ? *dim + count : *dim);
}

std::vector<size_t> InferredCall::DimsOf(size_t position, std::string_view name,
                                         size_t rank) const {
  std::vector<size_t> dims;
  const Arg* list = FindArg(position, name);
  if (list != nullptr && list->is_span()) {
    const auto count = static_cast<int64_t>(rank);
    for (const Arg& arg : graph_.elements(*list))
      if (arg.kind() == ArgKind::kInt && arg.as_int() < count && arg.as_int() >= -count)
        dims.push_back(static_cast<size_t>(arg.as_int() < 0 ? arg.as_int() + count : arg.as_int()));
  } else if (const auto dim = DimOf(position, name, rank)) {
    dims.push_back(*dim);
  }
  return dims;
}

std::optional<DimId> InferredCall::Size(const Arg& arg) const {
  if (arg.kind() == ArgKind::kInt) return module_.dims().Const(arg.as_int());
  if (arg.kind() == ArgKind::kDim) return arg.dim();
  if (!arg.is_value() || !graph_.value(arg.value()).type.valid()) return std::nullopt;
  const Type& type = module_.types()[graph_.value(arg.value()).type];
  return type.kind == TypeKind::kSymInt ? std::optional(type.dim) : std::nullopt;
}

std::optional<std::vector<DimId>> InferredCall::Sizes(size_t position,
                                                      std::string_view name) const {
  const Arg* list = FindArg(position, name);
  if (list == nullptr || !list->is_span()) return std::nullopt;
  std::vector<DimId> sizes;
  for (const Arg& arg : graph_.elements(*list)) {
    const auto size = Size(arg);
    if (!size) return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

std::optional<DType> InferredCall::Element(size_t position, std::string_view name) const {
  const Arg* arg = FindArg(position, name);
  if (arg == nullptr || arg->kind() != ArgKind::kDType) return std::nullopt;
  return arg->dtype();
}

DimId InferredCall::Product(const std::vector<DimId>& sizes) const {
  DimId product = dims().Const(1);
  for (const DimId size : sizes)
    product = dims().Mul(product, size);
  return product;
}

Type InferredCall::Like(const Type& like, std::vector<DimId> sizes) const {
  Type type = like;
  type.wrapper = {};
  type.placements.clear();
  return module_.types().Contiguous(std::move(type), std::move(sizes));
}

Type InferredCall::Like(const Type& like, std::vector<DimId> sizes, DType dtype) const {
  Type type = Like(like, std::move(sizes));
  type.dtype = dtype;
  return type;
}

Type InferredCall::SymInt(DimId dim) const {
  Type type;
  type.kind = TypeKind::kSymInt;
  type.dim = dim;
  return type;
}

namespace {

class Inference {
 public:
  explicit Inference(Graph& graph) : graph_(graph), rewriter_(graph) {}

  std::vector<NodeId> Run() {
    for (const NodeId node : graph_.nodes())
      if (graph_.node(node).kind == NodeKind::kCall && !HasTypes(node) && !Infer(node))
        unknown_.push_back(node);
    return std::move(unknown_);
  }

 private:
  bool HasTypes(NodeId node) const {
    for (size_t i = 0; i < graph_.node(node).num_results; ++i)
      if (!graph_.value(graph_.result(node, i)).type.valid()) return false;
    return true;
  }

  /// False: not known.
  bool Infer(NodeId node) {
    if (graph_.op(node) == "_operator.getitem") return TakeElement(node);
    const InferRule rule = InferRuleOf(graph_.op(node));
    if (rule == nullptr) return IsOfNumbers(node);
    std::vector<Type> types = rule(InferredCall(graph_, node));
    if (types.empty()) return false;
    const size_t results = graph_.node(node).num_results;
    for (size_t i = 0; i < results && i < types.size(); ++i)
      SetType(graph_.result(node, i), types[i]);
    // Elements that are read by nodes of their own.
    if (results == 1 && types.size() > 1) elements_.emplace(graph_.result(node), std::move(types));
    return true;
  }

  void SetType(ValueId value, const Type& type) {
    const bool is_known = type.kind != TypeKind::kTensor || type.dtype != DType::kUnknown;
    if (is_known && !graph_.value(value).type.valid())
      rewriter_.SetType(value, graph_.module().types().Intern(type));
  }

  bool TakeElement(NodeId node) {
    const auto args = graph_.args(node);
    if (args.size() != 2 || !args[0].is_value()) return false;
    if (args[1].kind() == ArgKind::kString)
      return TakeWritten(node, args[0].value(), args[1].str());
    if (args[1].kind() != ArgKind::kInt) return false;
    const auto found = elements_.find(args[0].value());
    const auto index = static_cast<size_t>(std::max<int64_t>(args[1].as_int(), 0));
    if (found == elements_.end() || index >= found->second.size()) return false;
    SetType(graph_.result(node), found->second[index]);
    return true;
  }

  /// `triton_kernel_wrapper_functional(…, kwargs={'out': x, …})['out']` is like x.
  bool TakeWritten(NodeId node, ValueId kernel, StrId key) {
    const Arg* kwargs = graph_.FindKwarg(graph_.value(kernel).def, "kwargs");
    if (kwargs == nullptr || kwargs->kind() != ArgKind::kDict) return false;
    const auto elements = graph_.elements(*kwargs);
    for (size_t i = 0; i + 1 < elements.size(); i += 2) {
      const Arg &name = elements[i], &value = elements[i + 1];
      if (name.kind() != ArgKind::kString || name.str() != key || !value.is_value()) continue;
      const TypeId type = graph_.value(value.value()).type;
      if (type.valid()) rewriter_.SetType(graph_.result(node), type);
      return type.valid();
    }
    return false;
  }

  /// Functions of Python that compare and check sizes make no tensors, and neither do kernels of
  /// which only what they write is read.
  bool IsOfNumbers(NodeId node) const {
    const std::string_view op = graph_.op(node);
    return op.starts_with("_operator.") || op == "aten._assert_scalar.default" ||
           op == "higher_order.triton_kernel_wrapper_functional";
  }

  Graph& graph_;
  Rewriter rewriter_;
  std::map<ValueId, std::vector<Type>> elements_;
  std::vector<NodeId> unknown_;
};

}  // namespace

std::vector<NodeId> InferTypes(Graph& graph) {
  return Inference(graph).Run();
}

}  // namespace strata
