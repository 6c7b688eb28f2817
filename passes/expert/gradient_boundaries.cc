#include "passes/expert/gradient_boundaries.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

template <size_t N>
bool IsOneOf(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::ranges::find(names, name) != names.end();
}

/// Operators of one tensor that may run on a sum instead of on what is added.
bool IsLinear(const Graph& graph, NodeId node) {
  constexpr std::array<std::string_view, 18> kLinear = {"axis_shard",
                                                        "clone",
                                                        "constant_pad_nd",
                                                        "contiguous",
                                                        "expand",
                                                        "flip",
                                                        "neg",
                                                        "permute",
                                                        "reshape",
                                                        "select_backward",
                                                        "slice",
                                                        "slice_backward",
                                                        "squeeze",
                                                        "sum",
                                                        "t",
                                                        "transpose",
                                                        "unsqueeze",
                                                        "wait_tensor"};
  const std::string_view op = graph.op(node);
  const std::string_view base = BaseName(op);
  if (TraitsOf(op).view || IsOneOf(base, kLinear)) return true;
  const std::span<const Arg> args = graph.args(node);
  if (base == "mul" || base == "div") {
    return args.size() == 2 && args[0].is_value() &&
           (args[1].kind() == ArgKind::kInt || args[1].kind() == ArgKind::kFloat);
  }
  const bool reduces = base.starts_with("all_reduce") || base.starts_with("reduce_scatter");
  if (!reduces || graph.args(node).size() < 2 || graph.args(node)[1].kind() != ArgKind::kString)
    return base.starts_with("all_gather");
  const std::string_view reduction = graph.module().str(graph.args(node)[1].str());
  return reduction == "sum" || reduction == "avg";
}

/// The only operand that is a tensor.
std::optional<ValueId> OnlyTensor(const Graph& graph, NodeId node) {
  std::optional<ValueId> only;
  size_t count = 0;
  graph.ForEachOperand(node, [&](ValueId operand) {
    if (!IsTensor(graph.module(), graph.value(operand).type)) return;
    only = operand;
    ++count;
  });
  return count == 1 ? only : std::nullopt;
}

bool IsInteger(const Graph& graph, ValueId value) {
  const TypeId type = graph.value(value).type;
  if (!type.valid()) return false;
  const DType dtype = graph.module().types()[type].dtype;
  return dtype == DType::kI64 || dtype == DType::kI32;
}

bool HaveOneType(const Graph& graph, ValueId a, ValueId b) {
  const TypeTable& types = graph.module().types();
  const Type &x = types[graph.value(a).type], &y = types[graph.value(b).type];
  return x.dtype == y.dtype && x.device == y.device;
}

/// The sequence numbers of forward casts of inputs: casts of parameters that all chunks share.
std::unordered_set<int32_t> CastsOfInputs(const Graph& graph) {
  std::unordered_set<int32_t> casts;
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kCall || IsBackward(graph, node)) continue;
    if (graph.node(node).seq_nr < 0 || BaseName(graph.op(node)) != "_to_copy") continue;
    std::optional<ValueId> source = OnlyTensor(graph, node);
    while (source && graph.node(graph.value(*source).def).kind == NodeKind::kCall &&
           IsLinear(graph, graph.value(*source).def)) {
      source = OnlyTensor(graph, graph.value(*source).def);
    }
    if (source && graph.node(graph.value(*source).def).kind == NodeKind::kPlaceholder)
      casts.insert(graph.node(node).seq_nr);
  }
  return casts;
}

/// The way from an output back to the node where its gradient, or count, leaves the chunks.
struct WayBack {
  NodeId end;
  std::vector<NodeId> passed;  ///< linear operators, and casts that all chunks share
};

class Walker {
 public:
  Walker(const Graph& graph, const ChunkSymbols& symbols)
      : graph_(graph), symbols_(symbols), shared_casts_(CastsOfInputs(graph)) {}

  /// None: the way ends before, at an input or at an operator that no sum may pass.
  std::optional<WayBack> From(ValueId value) const {
    WayBack way;
    while (true) {
      const NodeId node = graph_.value(value).def;
      if (graph_.node(node).kind != NodeKind::kCall) return std::nullopt;
      if (!IsBackward(graph_, node) && !IsInteger(graph_, value)) return std::nullopt;
      const std::optional<ValueId> source = OnlyTensor(graph_, node);
      const bool is_cast = source && !HaveOneType(graph_, *source, value);
      const bool is_shared = shared_casts_.contains(graph_.node(node).seq_nr);
      if (!source || symbols_.Carries(graph_, *source) || (is_cast && !is_shared)) {
        way.end = node;
        return way;
      }
      if (!is_cast && !IsLinear(graph_, node)) return std::nullopt;
      way.passed.push_back(node);
      value = *source;
    }
  }

 private:
  const Graph& graph_;
  const ChunkSymbols& symbols_;
  std::unordered_set<int32_t> shared_casts_;  // by sequence number
};

}  // namespace

bool IsSumOverTokens(const Graph& graph, NodeId node) {
  constexpr std::array<std::string_view, 16> kOthers = {
      "all", "amax", "amin", "any",  "argmax", "argmin", "cumprod", "logsumexp",
      "max", "mean", "min",  "norm", "prod",   "std",    "topk",    "var"};
  return !IsOneOf(BaseName(graph.op(node)), kOthers);
}

bool IsCount(const Graph& graph, NodeId node, const ChunkSymbols& symbols) {
  const std::string_view base = BaseName(graph.op(node));
  if ((base != "sum" && base != "bincount") || !IsInteger(graph, graph.result(node))) return false;
  const std::optional<ValueId> counted = OnlyTensor(graph, node);
  return counted && symbols.Carries(graph, *counted);
}

GradientBoundaries::GradientBoundaries(const Graph& graph, const ChunkSymbols& symbols) {
  if (!graph.output().valid()) return;
  const Walker walker(graph, symbols);
  const std::vector<ValueId> outputs = graph.operands(graph.output());
  for (size_t i = 1; i < outputs.size(); ++i) {  // the first is the loss
    const bool is_whole = IsTensor(graph.module(), graph.value(outputs[i]).type) &&
                          !symbols.Carries(graph, outputs[i]);
    const std::optional<WayBack> way = is_whole ? walker.From(outputs[i]) : std::nullopt;
    if (!way) continue;
    const bool is_sum = IsBackward(graph, way->end) ? IsSumOverTokens(graph, way->end)
                                                    : IsCount(graph, way->end, symbols);
    if (is_sum) boundaries.insert(way->end);
    suffix.insert(way->passed.begin(), way->passed.end());
  }
}

}  // namespace strata
