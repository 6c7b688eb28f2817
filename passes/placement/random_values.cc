#include "passes/placement/random_values.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"
#include "ir/ops.h"

namespace strata {
namespace {

/// What draws the values of a new tensor in place, with its arguments behind the tensor.
/// Source: ATen/native/TensorFactories.cpp, Distributions.cpp.
struct Fill {
  std::string_view op;
  std::vector<Arg> args;
};

std::optional<Fill> FillOf(const Graph& graph, NodeId node) {
  const std::string_view op = graph.op(node);
  if (op == "aten.rand.default" || op == "aten.rand_like.default")
    return Fill{"aten.uniform_.default", {Arg::Float(0.0), Arg::Float(1.0)}};
  if (op == "aten.randn.default" || op == "aten.randn_like.default")
    return Fill{"aten.normal_.default", {Arg::Float(0.0), Arg::Float(1.0)}};
  if (op == "aten.bernoulli.p" && graph.args(node).size() == 2)
    return Fill{"aten.bernoulli_.float", {graph.args(node)[1]}};
  return std::nullopt;
}

bool IsDrawnInPlace(const Graph& graph, NodeId node) {
  return graph.op(node) == "aten.empty_like.default" &&
         std::ranges::any_of(graph.uses(graph.result(node)),
                             [&](const Use& use) { return TraitsOf(graph.op(use.user)).random; });
}

/// Memory for a value, at the cursor; none: its shape is dynamic, or it is not a contiguous tensor.
std::optional<ValueId> EmptyLike(Rewriter& rewriter, ValueId value) {
  Graph& graph = rewriter.graph();
  Module& module = graph.module();
  if (!graph.value(value).type.valid()) return std::nullopt;
  const Type type = module.types()[graph.value(value).type];
  if (type.kind != TypeKind::kTensor || !type.device.valid()) return std::nullopt;
  const TypeId types[] = {module.types().Intern(module.types().Contiguous(type, type.sizes))};
  if (types[0] != graph.value(value).type) return std::nullopt;
  std::vector<Arg> sizes;
  for (const DimId size : type.sizes) {
    const std::optional<int64_t> number = module.dims().AsConst(size);
    if (!number) return std::nullopt;
    sizes.push_back(Arg::Int(*number));
  }
  const Arg args[] = {rewriter.MakeSpan(ArgKind::kList, sizes)};
  const NamedArg kwargs[] = {{module.Intern("dtype"), Arg::DType(type.dtype)},
                             {module.Intern("device"), Arg::Device(type.device)}};
  const NodeId made = rewriter.Create(
      {.op = "aten.empty.memory_format", .args = args, .kwargs = kwargs, .results = types},
      From{graph.value(value).def});
  return graph.result(made);
}

}  // namespace

void MakeRandomOfSizes(Rewriter& rewriter) {
  Graph& graph = rewriter.graph();
  for (const NodeId node : graph.nodes().Snapshot()) {
    if (graph.node(node).kind != NodeKind::kCall) continue;
    const std::optional<Fill> fill = FillOf(graph, node);
    if (!fill && !IsDrawnInPlace(graph, node)) continue;
    const ValueId value = graph.result(node);
    rewriter.SetCursorBefore(node);
    const std::optional<ValueId> memory = EmptyLike(rewriter, value);
    if (!memory) continue;
    ValueId made = *memory;
    if (fill) {
      std::vector<Arg> args = {Arg(*memory)};
      args.insert(args.end(), fill->args.begin(), fill->args.end());
      const TypeId types[] = {graph.value(value).type};
      made = graph.result(
          rewriter.Create({.op = fill->op, .args = args, .results = types}, From{node}));
      rewriter.SetAlias(made, *memory);
    }
    rewriter.SetAlias(value, *memory);  // what shared its memory shares that of the new one
    rewriter.SetAlias(value, {});
    rewriter.ReplaceUses(value, made);
    rewriter.Erase(node);
  }
}

}  // namespace strata
