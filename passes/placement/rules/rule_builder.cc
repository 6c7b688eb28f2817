#include "passes/placement/rules/rule_builder.h"

#include <algorithm>

#include "ir/ops.h"

namespace strata {
namespace {

/// The sizes of a value; numbers of the program have none. None: a tensor of unknown shape.
std::optional<std::vector<DimId>> SizesOf(const Graph& graph, ValueId value) {
  const TypeId id = graph.value(value).type;
  if (!id.valid()) return std::nullopt;
  const Type& type = graph.module().types()[id];
  return type.kind == TypeKind::kTensor ? type.sizes : std::vector<DimId>{};
}

}  // namespace

Result<RuleBuilder> RuleBuilder::Create(Graph& graph, NodeId node) {
  RuleBuilder builder(graph, node);
  const auto add = [&](ValueId value, std::vector<FactorDims>& tensors,
                       std::vector<std::vector<DimId>>& sizes) -> Status {
    auto shape = SizesOf(graph, value);
    if (!shape) {
      return Error("shape of {} is unknown: in {}", graph.value_name(value), graph.name(node));
    }
    FactorDims dims;
    for (const DimId size : *shape)
      dims.push_back({builder.NewFactor(size)});
    tensors.push_back(std::move(dims));
    sizes.push_back(std::move(*shape));
    return Ok();
  };
  for (const ValueId operand : graph.operands(node))
    STRATA_RETURN_IF_ERROR(add(operand, builder.rule_.operands, builder.operand_sizes_));
  for (size_t i = 0; i < graph.node(node).num_results; ++i) {
    const ValueId result = graph.result(node, i);
    if (!graph.value(result).type.valid()) {  // None, or an element that nothing reads
      builder.rule_.results.emplace_back();
      builder.result_sizes_.emplace_back();
      continue;
    }
    STRATA_RETURN_IF_ERROR(add(result, builder.rule_.results, builder.result_sizes_));
  }
  return builder;
}

std::string_view RuleBuilder::base() const {
  return BaseName(op());
}

bool RuleBuilder::is_float(size_t operand) const {
  const TypeId id = graph_->value(graph_->operands(node_)[operand]).type;
  switch (graph_->module().types()[id].dtype) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
    case DType::kF64:
    case DType::kC32:
    case DType::kC64:
    case DType::kC128:
      return true;
    default:
      return false;
  }
}

const Arg* RuleBuilder::FindArg(size_t position, std::string_view name) const {
  const auto args = graph_->args(node_);
  const Arg* arg = position < args.size() ? &args[position] : graph_->FindKwarg(node_, name);
  return arg == nullptr || arg->is_none() ? nullptr : arg;
}

std::optional<size_t> RuleBuilder::OperandOf(size_t position) const {
  const auto args = graph_->args(node_);
  if (position >= args.size() || !args[position].is_value()) return std::nullopt;
  size_t operand = 0;
  const auto count = [&](const Arg& arg, const auto& self) -> void {
    if (arg.is_value()) ++operand;
    if (arg.is_span()) {
      for (const Arg& element : graph_->elements(arg))
        self(element, self);
    }
  };
  for (size_t i = 0; i < position; ++i)
    count(args[i], count);
  return operand;
}

std::optional<int64_t> RuleBuilder::IntArg(size_t position, std::string_view name) const {
  const Arg* arg = FindArg(position, name);
  if (arg == nullptr || arg->kind() != ArgKind::kInt) return std::nullopt;
  return arg->as_int();
}

std::optional<size_t> RuleBuilder::DimArg(size_t position, std::string_view name,
                                          size_t rank) const {
  const auto dim = IntArg(position, name);
  if (!dim) return std::nullopt;
  return static_cast<size_t>(*dim < 0 ? *dim + static_cast<int64_t>(rank) : *dim);
}

std::vector<size_t> RuleBuilder::DimsArg(size_t position, std::string_view name,
                                         size_t rank) const {
  std::vector<size_t> dims;
  const auto add = [&](int64_t dim) {
    dims.push_back(static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(rank) : dim));
  };
  const Arg* arg = FindArg(position, name);
  if (arg != nullptr && arg->kind() == ArgKind::kInt) add(arg->as_int());
  if (arg != nullptr && arg->is_span()) {
    for (const Arg& element : graph_->elements(*arg))
      add(element.as_int());
  }
  if (!dims.empty()) return dims;
  for (size_t dim = 0; dim < rank; ++dim)
    dims.push_back(dim);
  return dims;
}

bool RuleBuilder::FlagArg(size_t position, std::string_view name, bool otherwise) const {
  const Arg* arg = FindArg(position, name);
  return arg != nullptr && arg->kind() == ArgKind::kBool ? arg->as_bool() : otherwise;
}

int RuleBuilder::NewFactor(DimId size, Factor::Kind kind, std::string_view reduce) {
  rule_.factors.push_back(
      {.size = size, .kind = kind, .reduce = reduce.empty() ? StrId{} : module().Intern(reduce)});
  return static_cast<int>(rule_.factors.size()) - 1;
}

void RuleBuilder::MakeReduce(int index, std::string_view reduce) {
  factor(index).kind = Factor::Kind::kReduce;
  factor(index).reduce = module().Intern(reduce);
}

void RuleBuilder::MakeOperandWhole(size_t operand) {
  for (const std::vector<int>& dim : rule_.operands[operand])
    for (const int index : dim)
      MakeWhole(index);
}

void RuleBuilder::MakeResultWhole(size_t result) {
  for (const std::vector<int>& dim : rule_.results[result])
    for (const int index : dim)
      MakeWhole(index);
}

}  // namespace strata
