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

bool HasDType(const Graph& graph, ValueId a, ValueId b) {
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
  const std::unordered_set<int32_t> shared_casts = CastsOfInputs(graph);
  const std::vector<ValueId> outputs = graph.operands(graph.output());
  for (size_t i = 1; i < outputs.size(); ++i) {
    if (!IsTensor(graph.module(), graph.value(outputs[i]).type)) continue;
    if (symbols.Carries(graph, outputs[i])) continue;
    ValueId value = outputs[i];
    std::vector<NodeId> passed;
    while (true) {
      const NodeId node = graph.value(value).def;
      if (graph.node(node).kind != NodeKind::kCall) break;
      const bool is_gradient = IsBackward(graph, node);
      if (!is_gradient && !IsInteger(graph, value)) break;
      const std::optional<ValueId> source = OnlyTensor(graph, node);
      const bool leaves_tokens = !source || symbols.Carries(graph, *source);
      const bool is_cast = source && !HasDType(graph, *source, value);
      const bool is_shared = shared_casts.contains(graph.node(node).seq_nr);
      if (leaves_tokens || (is_cast && !is_shared)) {
        if (is_gradient ? IsSumOverTokens(graph, node) : IsCount(graph, node, symbols))
          boundaries.insert(node);
        suffix.insert(passed.begin(), passed.end());
        break;
      }
      if (!is_cast && !IsLinear(graph, node)) break;
      passed.push_back(node);
      value = *source;
    }
  }
}

}  // namespace strata
