#include "passes/placement/lower_embedding.h"

#include <algorithm>
#include <vector>

#include "ir/ops.h"

namespace strata {
namespace {

/// Emits the lookup of own rows.
class RowLookup {
 public:
  RowLookup(Rewriter& rewriter, NodeId node)
      : rewriter_(rewriter), graph_(rewriter.graph()), module_(graph_.module()), node_(node) {}

  ValueId Call(std::string_view op, std::initializer_list<Arg> args, const Type& type) {
    const TypeId types[] = {module_.types().Intern(type)};
    const NodeId created = rewriter_.Create(
        {.op = op, .args = {args.begin(), args.size()}, .results = types}, From{node_});
    return graph_.result(created);
  }
  Type TypeOf(ValueId value) const { return module_.types()[graph_.value(value).type]; }

  static Type Of(Type type, DType dtype) {
    type.dtype = dtype;
    return type;
  }

  /// idx − first own row.
  ValueId Shifted(ValueId indices, int64_t rows, const Placements& vocabulary, const Mesh& mesh) {
    const Type type = TypeOf(indices);
    Type number = Of(type, DType::kI64);
    number.sizes.clear();
    number.strides.clear();
    int64_t stride = rows;  // rows between neighbours on an axis; the last plain axis cuts last
    ValueId shifted = indices;
    for (size_t axis = vocabulary.size(); axis-- > 0;) {
      if (!IsShard(vocabulary[axis]) || vocabulary[axis].dim != 0) continue;
      const Arg name = Arg::String(module_.Intern(mesh.axes()[axis].name));
      const ValueId index = Call("strata.axis_index.default", {name}, number);
      const ValueId first = Call("aten.mul.Scalar", {Arg(index), Arg::Int(stride)}, number);
      shifted = Call("aten.sub.Tensor", {Arg(shifted), Arg(first)}, type);
      stride *= mesh.axes()[axis].size;
    }
    return shifted;
  }

  /// `[.., 1]`: whether the row is an own one.
  ValueId Mask(ValueId shifted, int64_t rows) {
    Type truth = Of(TypeOf(shifted), DType::kBool);
    const ValueId above = Call("aten.ge.Scalar", {Arg(shifted), Arg::Int(0)}, truth);
    const ValueId below = Call("aten.lt.Scalar", {Arg(shifted), Arg::Int(rows)}, truth);
    const ValueId own = Call("aten.logical_and.default", {Arg(above), Arg(below)}, truth);
    truth.sizes.push_back(module_.dims().Const(1));
    truth.strides.push_back(module_.dims().Const(1));
    const ValueId column = Call("aten.unsqueeze.default", {Arg(own), Arg::Int(-1)}, truth);
    rewriter_.SetAlias(column, own);
    return column;
  }

  ValueId Clamped(ValueId shifted, int64_t rows) {
    return Call("aten.clamp.default", {Arg(shifted), Arg::Int(0), Arg::Int(rows - 1)},
                TypeOf(shifted));
  }

 private:
  Rewriter& rewriter_;
  Graph& graph_;
  Module& module_;
  NodeId node_;
};

}  // namespace

bool CutsRows(const Placements& vocabulary) {
  return std::ranges::any_of(vocabulary,
                             [](const Placement& p) { return IsShard(p) && p.dim == 0; });
}

ValueId LowerEmbedding(Rewriter& rewriter, NodeId node, const Placements& vocabulary,
                       const Mesh& mesh) {
  Graph& graph = rewriter.graph();
  const bool is_backward = BaseName(graph.op(node)) == "embedding_dense_backward";
  std::vector<Arg> args(graph.args(node).begin(), graph.args(node).end());
  const ValueId result = graph.result(node);
  RowLookup lookup(rewriter, node);
  const ValueId table = is_backward ? result : args[0].value();
  const int64_t rows = *graph.module().dims().AsConst(lookup.TypeOf(table).sizes[0]);
  rewriter.SetCursorBefore(node);
  const ValueId shifted = lookup.Shifted(args[1].value(), rows, vocabulary, mesh);
  const ValueId mask = lookup.Mask(shifted, rows);
  args[1] = Arg(lookup.Clamped(shifted, rows));
  if (is_backward) {
    const Type type = lookup.TypeOf(args[0].value());
    args[0] = Arg(lookup.Call("aten.mul.Tensor", {args[0], Arg(mask)}, type));
  }
  const TypeId types[] = {graph.value(result).type};
  const NodeId own = rewriter.Create({.op = graph.op(node), .args = args, .results = types},
                                     From({node}, Origin::kReplaced));
  ValueId lowered = graph.result(own);
  if (!is_backward)
    lowered = lookup.Call("aten.mul.Tensor", {Arg(lowered), Arg(mask)}, lookup.TypeOf(lowered));
  rewriter.ReplaceUses(result, lowered);
  rewriter.Erase(node);
  return lowered;
}

}  // namespace strata
