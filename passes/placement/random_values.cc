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
  const auto args = graph.args(node);
  if (op == "aten.bernoulli.p" && args.size() == 2) return Fill{"aten.bernoulli_.float", {args[1]}};
  if (op == "aten.randint_like.default" && args.size() == 2)
    return Fill{"aten.random_.from", {Arg::Int(0), args[1]}};
  if (op == "aten.randint_like.low_dtype" && args.size() == 3)
    return Fill{"aten.random_.from", {args[1], args[2]}};
  return std::nullopt;
}

/// The probability to drop an element; none: the call drops nothing.
std::optional<double> DroppedBy(const Graph& graph, NodeId node) {
  const auto args = graph.args(node);
  if (graph.op(node) != "aten.native_dropout.default" || args.size() < 2) return std::nullopt;
  const bool is_training = args.size() < 3 || args[2].is_none() ||
                           (args[2].kind() == ArgKind::kBool && args[2].as_bool());
  if (!is_training) return std::nullopt;
  if (args[1].kind() == ArgKind::kInt) return static_cast<double>(args[1].as_int());
  return args[1].kind() == ArgKind::kFloat ? std::optional(args[1].as_float()) : std::nullopt;
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

bool IsOnCpu(const Graph& graph, ValueId value) {
  const TypeId type = graph.value(value).type;
  return type.valid() && graph.module().str(graph.module().types()[type].device) == "cpu";
}

/// `memory`, filled.
ValueId Filled(Rewriter& rewriter, ValueId memory, const Fill& fill, NodeId ancestor) {
  Graph& graph = rewriter.graph();
  std::vector<Arg> args = {Arg(memory)};
  args.insert(args.end(), fill.args.begin(), fill.args.end());
  const TypeId types[] = {graph.value(memory).type};
  const ValueId made = graph.result(
      rewriter.Create({.op = fill.op, .args = args, .results = types}, From{ancestor}));
  rewriter.SetAlias(made, memory);
  return made;
}

/// Source: ATen/native/Dropout.cpp, native_dropout_cpu.
void MakeDropoutOfMask(Rewriter& rewriter, NodeId node, double p) {
  Graph& graph = rewriter.graph();
  rewriter.SetCursorBefore(node);
  const ValueId kept = graph.result(node, 0), mask = graph.result(node, 1);
  if (!IsOnCpu(graph, mask)) return;  // GPUs draw other numbers for it
  const std::optional<ValueId> memory = EmptyLike(rewriter, mask);
  if (!memory) return;
  const ValueId made =
      Filled(rewriter, *memory, {"aten.bernoulli_.float", {Arg::Float(1.0 - p)}}, node);
  const auto product = [&](ValueId of, Arg factor) {
    const TypeId types[] = {graph.value(kept).type};
    const Arg args[] = {Arg(of), factor};
    return graph.result(
        rewriter.Create({.op = "aten.mul.Tensor", .args = args, .results = types}, From{node}));
  };
  const ValueId chosen = product(graph.args(node)[0].value(), Arg(made));
  const ValueId scaled = product(chosen, Arg::Float(p == 1.0 ? 0.0 : 1.0 / (1.0 - p)));
  rewriter.ReplaceUses(kept, scaled);
  rewriter.ReplaceUses(mask, made);
  rewriter.Erase(node);
}

}  // namespace

void MakeRandomOfSizes(Rewriter& rewriter) {
  Graph& graph = rewriter.graph();
  for (const NodeId node : graph.nodes().Snapshot()) {
    if (graph.node(node).kind != NodeKind::kCall) continue;
    if (const auto p = DroppedBy(graph, node)) {
      MakeDropoutOfMask(rewriter, node, *p);
      continue;
    }
    const std::optional<Fill> fill = FillOf(graph, node);
    if (!fill && !IsDrawnInPlace(graph, node)) continue;
    const ValueId value = graph.result(node);
    rewriter.SetCursorBefore(node);
    const std::optional<ValueId> memory = EmptyLike(rewriter, value);
    if (!memory) continue;
    const ValueId made = fill ? Filled(rewriter, *memory, *fill, node) : *memory;
    rewriter.SetAlias(value, *memory);  // what shared its memory shares that of the new one
    rewriter.SetAlias(value, {});
    rewriter.ReplaceUses(value, made);
    rewriter.Erase(node);
  }
}

}  // namespace strata
