#include "passes/expert/concretize.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/ops.h"
#include "ir/rewriter.h"
#include "ir/substitution.h"
#include "passes/placement/placement.h"

namespace strata {
namespace {

void AddSymbols(DimTable& dims, DimId dim, std::map<DimId, DimId>& numbers) {
  if (!dim.valid() || dims.kind(dim) == DimKind::kConst) return;
  if (dims.kind(dim) != DimKind::kSymbol) {
    const std::vector<DimId> operands(dims.operands(dim).begin(), dims.operands(dim).end());
    for (const DimId operand : operands)
      AddSymbols(dims, operand, numbers);
  } else if (const std::optional<int64_t> hint = dims.Hint(dim)) {
    numbers.emplace(dim, dims.Const(*hint));
  }
}

/// The symbols of inputs of programs, with their numbers.
std::map<DimId, DimId> NumbersOfInputs(Module& module) {
  std::map<DimId, DimId> numbers;
  for (const GraphId id : module.programs()) {
    const Graph& graph = module.graph(id);
    for (const NodeId node : graph.placeholders()) {
      const TypeId type_id = graph.value(graph.result(node)).type;
      if (!type_id.valid()) continue;
      const Type type = module.types()[type_id];
      AddSymbols(module.dims(), type.dim, numbers);
      for (const DimId size : type.sizes)
        AddSymbols(module.dims(), size, numbers);
    }
  }
  return numbers;
}

/// A comparison or logical expression of numbers; none: still open.
std::optional<bool> TruthOf(const DimTable& dims, DimId dim) {
  if (const std::optional<int64_t> number = dims.AsConst(dim)) return *number != 0;
  if (dims.kind(dim) != DimKind::kCall) return std::nullopt;
  const std::string_view name = dims.name(dim);
  if (name == "True") return true;
  if (name == "False") return false;
  const std::span<const DimId> operands = dims.operands(dim);
  if (operands.size() != 2) return std::nullopt;
  using Compare = bool (*)(int64_t, int64_t);
  static constexpr std::pair<std::string_view, Compare> kComparisons[] = {
      {"!=", [](int64_t a, int64_t b) { return a != b; }},
      {"<", [](int64_t a, int64_t b) { return a < b; }},
      {"<=", [](int64_t a, int64_t b) { return a <= b; }},
      {"==", [](int64_t a, int64_t b) { return a == b; }},
      {">", [](int64_t a, int64_t b) { return a > b; }},
      {">=", [](int64_t a, int64_t b) { return a >= b; }},
      {"Eq", [](int64_t a, int64_t b) { return a == b; }},
      {"Ne", [](int64_t a, int64_t b) { return a != b; }}};
  for (const auto& [head, compare] : kComparisons) {
    if (name != head) continue;
    const std::optional<int64_t> a = dims.AsConst(operands[0]), b = dims.AsConst(operands[1]);
    return a && b ? std::optional(compare(*a, *b)) : std::nullopt;
  }
  const std::optional<bool> a = TruthOf(dims, operands[0]), b = TruthOf(dims, operands[1]);
  if (!a || !b) return std::nullopt;
  if (name == "&") return *a && *b;
  if (name == "|") return *a || *b;
  return std::nullopt;
}

bool IsAssert(const Graph& graph, NodeId node) {
  return BaseName(graph.op(node)) == "_assert_scalar";
}

/// Concretizes one graph.
class Concretizer {
 public:
  Concretizer(Graph& graph, Substitution& numbers)
      : graph_(graph), module_(graph.module()), numbers_(numbers), rewriter_(graph) {}

  Status Run() {
    const std::vector<NodeId> order = graph_.nodes().Snapshot();
    for (const NodeId node : order) {
      const uint32_t begin = graph_.node(node).args_begin;
      const uint32_t count = graph_.node(node).num_args + 2u * graph_.node(node).num_kwargs;
      for (uint32_t slot = begin; slot < begin + count; ++slot)
        ReplaceIn(node, slot);
      for (size_t i = 0; i < graph_.node(node).num_results; ++i)
        ReplaceType(graph_.result(node, i));
    }
    for (const NodeId node : order) {
      ReplaceGlobalTypes(node);
      STRATA_RETURN_IF_ERROR(CheckAssert(node));
    }
    for (auto node = order.rbegin(); node != order.rend(); ++node)
      if (IsPlumbing(*node)) rewriter_.Erase(*node);
    return Ok();
  }

 private:
  void ReplaceIn(NodeId node, uint32_t slot) {
    const Arg arg = graph_.slot(slot);
    if (arg.is_span()) {
      for (uint32_t i = 0; i < arg.span_size(); ++i)
        ReplaceIn(node, arg.span_begin() + i);
    } else if (arg.kind() == ArgKind::kDim) {
      rewriter_.SetSlot(node, slot, numbers_(arg));
    }
  }

  void ReplaceType(ValueId value) {
    const TypeId before = graph_.value(value).type;
    const TypeId after = numbers_(before);
    if (after != before) rewriter_.SetType(value, after);
    if (graph_.node(graph_.value(value).def).kind == NodeKind::kPlaceholder) return;
    const std::optional<Arg> literal = LiteralOf(value);
    if (!literal) return;
    const std::vector<Use> uses(graph_.uses(value).begin(), graph_.uses(value).end());
    for (const Use use : uses)
      rewriter_.SetSlot(use.user, use.slot, *literal);
  }

  /// What lowering keeps of inputs and outputs: types as text, separated by "; ".
  void ReplaceGlobalTypes(NodeId node) {
    std::string_view before = graph_.attribute(node, kGlobalTypeAttribute);
    if (before.empty()) return;
    std::string after;
    while (true) {
      const size_t end = before.find("; ");
      const TypeId type = numbers_(module_.types().Parse(before.substr(0, end)));
      after += module_.types().ToString(type);
      if (end == std::string_view::npos) break;
      after += "; ";
      before.remove_prefix(end + 2);
    }
    rewriter_.SetAttribute(node, kGlobalTypeAttribute, after);
  }

  std::optional<Arg> LiteralOf(ValueId value) const {
    const TypeId id = graph_.value(value).type;
    if (!id.valid() || module_.types()[id].kind != TypeKind::kSymInt) return std::nullopt;
    const DimId dim = module_.types()[id].dim;
    if (const auto number = module_.dims().AsConst(dim)) return Arg::Int(*number);
    if (const auto truth = TruthOf(module_.dims(), dim)) return Arg::Bool(*truth);
    return std::nullopt;
  }

  Status CheckAssert(NodeId node) const {
    if (!IsAssert(graph_, node) || graph_.args(node).empty()) return Ok();
    const Arg& condition = graph_.args(node)[0];
    const bool is_false =
        (condition.kind() == ArgKind::kBool && !condition.as_bool()) ||
        (condition.kind() == ArgKind::kInt && condition.as_int() == 0) ||
        (condition.kind() == ArgKind::kDim && TruthOf(module_.dims(), condition.dim()) == false);
    if (!is_false) return Ok();
    const bool has_message =
        graph_.args(node).size() > 1 && graph_.args(node)[1].kind() == ArgKind::kString;
    return Error("an assertion evaluates to False: graph {}: node {}: {}", graph_.name_text(),
                 graph_.name(node),
                 has_message ? module_.str(graph_.args(node)[1].str()) : "no message");
  }

  /// An assertion that holds, or a computation of an integer that nothing reads.
  bool IsPlumbing(NodeId node) const {
    if (graph_.node(node).kind != NodeKind::kCall || graph_.HasUses(node)) return false;
    if (IsAssert(graph_, node)) {
      return !graph_.args(node).empty() && (graph_.args(node)[0].kind() == ArgKind::kBool ||
                                            graph_.args(node)[0].kind() == ArgKind::kInt);
    }
    if (IsImpure(graph_, node) && !graph_.op(node).starts_with("_operator.")) return false;
    bool is_number = graph_.node(node).num_results > 0;
    for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
      const TypeId type = graph_.value(graph_.result(node, i)).type;
      is_number &= type.valid() && module_.types()[type].kind == TypeKind::kSymInt;
    }
    return is_number;
  }

  Graph& graph_;
  Module& module_;
  Substitution& numbers_;
  Rewriter rewriter_;
};

}  // namespace

Result<Changed> Concretize::Run(Module& module) {
  std::map<DimId, DimId> numbers = NumbersOfInputs(module);
  if (numbers.empty()) return Changed::kNo;
  Substitution substitution(module, std::move(numbers));
  for (size_t i = 0; i < module.num_graphs(); ++i) {
    Graph& graph = module.graph(GraphId{static_cast<int32_t>(i)});
    STRATA_RETURN_IF_ERROR(Concretizer(graph, substitution).Run());
  }
  return Changed::kYes;
}

}  // namespace strata
