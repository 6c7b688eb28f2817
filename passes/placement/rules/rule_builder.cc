#include "passes/placement/rules/rule_builder.h"

#include <algorithm>

#include "ir/ops.h"
#include "passes/placement/rules/redistribute_op.h"

namespace strata {
namespace {

/// A graph that a higher-order operator takes as an argument.
bool IsBody(const Graph& graph, ValueId value) {
  const NodeId def = graph.value(value).def;
  const auto args = graph.args(def);
  return graph.node(def).kind == NodeKind::kGetAttr && !args.empty() &&
         args[0].kind() == ArgKind::kGraph;
}

/// The sizes of a value; numbers of the program, and bodies, have none. None: a tensor of unknown
/// shape.
std::optional<std::vector<DimId>> SizesOf(const Graph& graph, ValueId value) {
  const TypeId id = graph.value(value).type;
  if (!id.valid() && IsBody(graph, value)) return std::vector<DimId>{};
  if (!id.valid()) return std::nullopt;
  const Type& type = graph.module().types()[id];
  return type.kind == TypeKind::kTensor ? type.sizes : std::vector<DimId>{};
}

/// Inputs and what is redistributed end with zeros; so do products with them, and sums of them.
bool EndsWithZeros(const Graph& graph, ValueId value, int depth) {
  constexpr int kMaxDepth = 16;
  const NodeId def = graph.value(value).def;
  if (graph.node(def).kind == NodeKind::kPlaceholder) return true;
  if (graph.node(def).kind != NodeKind::kCall || depth > kMaxDepth) return false;
  if (graph.op(def) == kRedistributeOp) return true;
  const std::string_view base = BaseName(graph.op(def));
  const std::vector<ValueId> operands = graph.operands(def);
  // Neither has elements beyond the classes (passes/placement/lowering/lower_loss.h).
  if (base == "nll_loss_backward" || base == "_log_softmax_backward_data") return true;
  const auto ends = [&](ValueId operand) { return EndsWithZeros(graph, operand, depth + 1); };
  if (operands.empty()) return false;
  if (base == "mul" || base == "mul_") return std::ranges::any_of(operands, ends);
  if (base == "add" || base == "add_" || base == "sub" || base == "sub_")
    return operands.size() == 2 && std::ranges::all_of(operands, ends);
  constexpr std::string_view kOfFirst[] = {"_to_copy", "clone",   "detach",   "div",
                                           "div_",     "neg",     "t",        "view",
                                           "alias",    "reshape", "transpose"};
  return std::ranges::count(kOfFirst, base) > 0 && ends(operands[0]);
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

bool RuleBuilder::AreEqual(std::span<const DimId> sizes, std::span<const DimId> others) const {
  const DimTable& dims = graph_->module().dims();
  return std::ranges::equal(sizes, others,
                            [&](DimId a, DimId b) { return dims.ProvablyEqual(a, b); });
}

DType RuleBuilder::dtype(size_t operand) const {
  const TypeId id = graph_->value(graph_->operands(node_)[operand]).type;
  return graph_->module().types()[id].dtype;
}

bool RuleBuilder::is_float(size_t operand) const {
  switch (dtype(operand)) {
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
  return NumOperandsBefore(position);
}

size_t RuleBuilder::NumOperandsBefore(size_t position) const {
  const auto args = graph_->args(node_);
  size_t operand = 0;
  const auto count = [&](const Arg& arg, const auto& self) -> void {
    if (arg.is_value()) ++operand;
    if (arg.is_span()) {
      for (const Arg& element : graph_->elements(arg))
        self(element, self);
    }
  };
  for (size_t i = 0; i < std::min(position, args.size()); ++i)
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

std::vector<int> RuleBuilder::NewHeads(DimId query_heads, DimId key_heads) {
  DimTable& dims = module().dims();
  std::vector<int> heads = {NewFactor(key_heads)};
  const auto all = dims.AsConst(query_heads), shared = dims.AsConst(key_heads);
  if (all && shared && *shared > 0 && *all % *shared == 0)
    heads.push_back(NewFactor(dims.Const(*all / *shared), Factor::Kind::kWhole));
  return heads;
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

void RuleBuilder::MakeAllWhole() {
  for (size_t operand = 0; operand < num_operands(); ++operand)
    MakeOperandWhole(operand);
  for (size_t result = 0; result < num_results(); ++result)
    MakeResultWhole(result);
}

bool RuleBuilder::EndsWithZeros(size_t operand) const {
  return strata::EndsWithZeros(*graph_, graph_->operands(node_)[operand], 0);
}

RowOrder& RuleBuilder::OrderRows(int tokens, int rows) {
  MakeWhole(rows);
  if (tokens >= 0) MakeWhole(tokens);
  rule_.order = {.tokens = tokens, .rows = rows, .sum = module().Intern("sum")};
  return rule_.order;
}

std::pair<ValueId, int64_t> RuleBuilder::OrderOf(ValueId indices) const {
  int64_t rows_per_token = 1;
  while (BaseName(graph_->op(graph_->value(indices).def)) == "floor_divide") {
    const auto args = graph_->args(graph_->value(indices).def);
    if (!args[0].is_value() || args[1].kind() != ArgKind::kInt) break;
    rows_per_token *= args[1].as_int();
    indices = args[0].value();
  }
  return {indices, rows_per_token};
}

bool RuleBuilder::IsRowOfToken(size_t operand, DimId size) const {
  const auto [order, rows_per_token] = OrderOf(graph_->operands(node_)[operand]);
  const NodeId sort = graph_->value(order).def;
  return BaseName(graph_->op(sort)) == "sort" && order == graph_->result(sort, 1) &&
         HasRows(operand_sizes_[operand], size, rows_per_token);
}

std::vector<Placement> RuleBuilder::CutOfTokens(size_t operand) const {
  const NodeId sort = graph_->value(OrderOf(graph_->operands(node_)[operand]).first).def;
  const TypeId type = graph_->value(graph_->operands(sort)[0]).type;
  return type.valid() ? graph_->module().types()[type].placements : std::vector<Placement>{};
}

bool RuleBuilder::HasRows(std::span<const DimId> rows, DimId tokens, int64_t per_token) const {
  DimTable& dims = graph_->module().dims();
  return rows.size() == 1 && dims.ProvablyEqual(rows[0], dims.Mul(tokens, dims.Const(per_token)));
}

bool RuleBuilder::IsDispatch() const {
  if (operand_sizes_[0].size() != 1 || graph_->value(graph_->result(node_, 0)).num_uses > 0)
    return false;
  struct Indices {
    ValueId value;
    int64_t rows_per_token;
  };
  std::vector<Indices> found = {{graph_->result(node_, 1), 1}};
  bool selects = false;
  while (!found.empty()) {
    const Indices indices = found.back();
    found.pop_back();
    for (const Use use : graph_->uses(indices.value)) {
      const std::string_view base = BaseName(graph_->op(use.user));
      const auto args = graph_->args(use.user);
      const auto is_read_at = [&](size_t position) {
        return position < args.size() && args[position].is_value() &&
               args[position].value() == indices.value;
      };
      if (base == "floor_divide" && is_read_at(0) && args[1].kind() == ArgKind::kInt) {
        found.push_back({graph_->result(use.user), indices.rows_per_token * args[1].as_int()});
        continue;
      }
      const bool is_index =
          (base == "index_select" || base == "index_add" || base == "index_add_") && is_read_at(2);
      const auto tokens = is_index ? SizesOf(*graph_, args[0].value()) : std::nullopt;
      const auto along = is_index && args[1].kind() == ArgKind::kInt ? args[1].as_int() : -1;
      if (!tokens || along < 0 || along >= static_cast<int64_t>(tokens->size()) ||
          !HasRows(operand_sizes_[0], (*tokens)[static_cast<size_t>(along)],
                   indices.rows_per_token)) {
        return false;
      }
      selects = true;
    }
  }
  return selects;
}

}  // namespace strata
