#include "passes/placement/lowering/lower_attention.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "passes/placement/lowering/local_calls.h"

namespace strata {
namespace {

constexpr int32_t kPositions = 2;  // dimension of `[b, h, s, d]`
constexpr int64_t kUnit = 16;      // elements, of the rows of masks for GPUs

bool IsCausal(const Graph& graph, NodeId node, const AttentionOp& op) {
  const auto args = graph.args(node);
  return op.causal < args.size() && args[op.causal].kind() == ArgKind::kBool &&
         args[op.causal].as_bool();
}

}  // namespace

void AttentionLowering::Lower(NodeId node, const AttentionOp& op, const Placements& query,
                              const Mesh& mesh) {
  Graph& graph = rewriter_.graph();
  Module& module = graph.module();
  const bool is_cut = std::ranges::any_of(
      query, [](const Placement& p) { return IsShard(p) && p.dim == kPositions; });
  if (!is_cut || !IsCausal(graph, node, op)) return;
  const auto type_of = [&](size_t position) {
    return module.types()[graph.value(graph.args(node)[position].value()).type];
  };
  const Type type = type_of(op.query);
  rewriter_.SetCursorBefore(node);
  const ValueId mask = Mask(node, type, type_of(op.query + 1).sizes[kPositions], query, mesh);
  std::vector<Arg> args(graph.args(node).begin(), graph.args(node).end());
  args[op.causal] = Arg::Bool(false);
  std::vector<NamedArg> kwargs;
  if (op.mask == AttentionOp::Mask::kByPosition) {
    args[op.mask_position] = Arg(OfHeads(node, mask, type));
  } else {
    kwargs.push_back({module.Intern(AttentionOp::kMaskName), Arg(mask)});
  }
  for (size_t i = 0; i < graph.node(node).num_kwargs; ++i) {
    const NamedArg kwarg = graph.kwarg(node, i);
    if (module.str(kwarg.name) != AttentionOp::kMaskName) kwargs.push_back(kwarg);
  }
  rewriter_.SetArgs(node, args, kwargs);
}

ValueId AttentionLowering::OfHeads(NodeId node, ValueId mask, const Type& query) {
  LocalCalls calls(rewriter_, node);
  DimTable& dims = calls.module().dims();
  Type type = calls.TypeOf(mask);
  const DimId queries = type.sizes[0], keys = type.sizes[1];
  const int64_t missing = (kUnit - *dims.AsConst(keys) % kUnit) % kUnit;
  ValueId rows = mask;
  if (missing > 0) {
    const DimId width = dims.Const(*dims.AsConst(keys) + missing);
    const Arg widths = rewriter_.MakeSpan(ArgKind::kList, {Arg::Int(0), Arg::Int(missing)});
    const ValueId padded = calls.Call("aten.constant_pad_nd.default", {Arg(mask), widths},
                                      calls.Contiguous(type, {queries, width}));
    type = calls.TypeOf(padded);
    type.sizes[1] = keys;
    rows = calls.Call("aten.slice.Tensor",
                      {Arg(padded), Arg::Int(1), Arg::Int(0), Arg::Int(*dims.AsConst(keys))}, type);
    rewriter_.SetAlias(rows, padded);
  }
  const DimId zero = dims.Const(0);
  type.sizes = {query.sizes[0], query.sizes[1], queries, keys};
  type.strides = {zero, zero, type.strides[0], type.strides[1]};
  std::vector<Arg> list;
  for (const DimId size : type.sizes) {
    const auto number = dims.AsConst(size);
    list.push_back(number ? Arg::Int(*number) : Arg::Dim(size));
  }
  const Arg sizes = rewriter_.MakeSpan(ArgKind::kList, list);
  const ValueId expanded = calls.Call("aten.expand.default", {Arg(rows), sizes}, type);
  const ValueId owner = rewriter_.graph().value(rows).alias_of;
  rewriter_.SetAlias(expanded, owner.valid() ? owner : rows);
  return expanded;
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
  // Positions of keys, seen from the rank's first query. As many as there are queries of all ranks.
  const ValueId key_positions =
      calls.Shifted(range(num_keys, keys), num_keys, placements, kPositions, mesh);
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
