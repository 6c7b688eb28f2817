#include "passes/placement/lower_attention.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "ir/ops.h"
#include "passes/placement/local_calls.h"

namespace strata {
namespace {

constexpr int32_t kPositions = 2;  // dimension of `[b, h, s, d]`

bool IsBackward(const Graph& graph, NodeId node) {
  return BaseName(graph.op(node)).ends_with("_backward");
}

/// Position of `is_causal` among the arguments.
uint32_t CausalPosition(const Graph& graph, NodeId node) {
  return IsBackward(graph, node) ? 7 : 4;
}

}  // namespace

bool IsAttention(std::string_view base) {
  return base == "_scaled_dot_product_flash_attention_for_cpu" ||
         base == "_scaled_dot_product_flash_attention_for_cpu_backward";
}

ValueId QueryOf(const Graph& graph, NodeId node) {
  return graph.args(node)[IsBackward(graph, node) ? 1 : 0].value();
}

void AttentionLowering::Lower(NodeId node, const Placements& query, const Mesh& mesh) {
  Graph& graph = rewriter_.graph();
  Module& module = graph.module();
  const bool is_cut = std::ranges::any_of(
      query, [](const Placement& p) { return IsShard(p) && p.dim == kPositions; });
  const uint32_t causal = CausalPosition(graph, node);
  const bool is_causal = causal < graph.args(node).size() &&
                         graph.args(node)[causal].kind() == ArgKind::kBool &&
                         graph.args(node)[causal].as_bool();
  if (!is_cut || !is_causal) return;
  const size_t key = IsBackward(graph, node) ? 2 : 1;
  const Type type = module.types()[graph.value(QueryOf(graph, node)).type];
  const DimId keys =
      module.types()[graph.value(graph.args(node)[key].value()).type].sizes[kPositions];
  rewriter_.SetCursorBefore(node);
  const ValueId mask = Mask(node, type, keys, query, mesh);
  std::vector<Arg> args(graph.args(node).begin(), graph.args(node).end());
  args[causal] = Arg::Bool(false);
  std::vector<NamedArg> kwargs = {{module.Intern("attn_mask"), Arg(mask)}};
  for (size_t i = 0; i < graph.node(node).num_kwargs; ++i) {
    const NamedArg kwarg = graph.kwarg(node, i);
    if (!(kwarg.name == kwargs[0].name)) kwargs.push_back(kwarg);
  }
  rewriter_.SetArgs(node, args, kwargs);
}

ValueId AttentionLowering::Mask(NodeId node, const Type& query, DimId keys,
                                const Placements& placements, const Mesh& mesh) {
  LocalCalls calls(rewriter_, node);
  Module& module = calls.module();
  const DimId queries = query.sizes[kPositions];
  const std::string what =
      fmt::format("{} {} {} {}", module.dims().ToString(queries), module.dims().ToString(keys),
                  static_cast<int>(query.dtype), PlacementsText(module, placements));
  if (const auto known = masks_.find(what); known != masks_.end()) return known->second;
  const int64_t num_queries = *module.dims().AsConst(queries);
  const int64_t num_keys = *module.dims().AsConst(keys);
  const NamedArg device = {module.Intern("device"), Arg::Device(query.device)};
  const auto range = [&](int64_t size, DimId dim) {
    const Type type = calls.Contiguous(LocalCalls::Of(query, DType::kI64), {dim});
    return calls.Call("aten.arange.default", {Arg::Int(size)}, type, {device});
  };
  // Positions of keys, seen from the rank's first query.
  const ValueId key_positions =
      calls.Shifted(range(num_keys, keys), num_queries, placements, kPositions, mesh);
  const ValueId positions = range(num_queries, queries);
  const Type column =
      calls.Contiguous(LocalCalls::Of(query, DType::kI64), {queries, module.dims().Const(1)});
  const ValueId own = calls.Call("aten.unsqueeze.default", {Arg(positions), Arg::Int(1)}, column);
  rewriter_.SetAlias(own, positions);
  const Type square = calls.Contiguous(query, {queries, keys});
  const ValueId later = calls.Call("aten.lt.Tensor", {Arg(own), Arg(key_positions)},
                                   LocalCalls::Of(square, DType::kBool));
  const Arg sizes = rewriter_.MakeSpan(ArgKind::kList, {Arg::Int(num_queries), Arg::Int(num_keys)});
  const ValueId zeros = calls.Call("aten.zeros.default", {sizes}, square,
                                   {{module.Intern("dtype"), Arg::DType(query.dtype)}, device});
  const ValueId mask = calls.Call(
      "aten.masked_fill.Scalar",
      {Arg(zeros), Arg(later), Arg::Float(-std::numeric_limits<double>::infinity())}, square);
  return masks_[what] = mask;
}

}  // namespace strata
