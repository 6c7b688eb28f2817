#include "passes/placement/lowering/lower_embedding.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "ir/ops.h"
#include "passes/placement/lowering/local_calls.h"

namespace strata {
namespace {

/// Emits the lookup of own rows.
class RowLookup : public LocalCalls {
 public:
  using LocalCalls::LocalCalls;

  /// Where an index is another number: the row of padding has no gradient.
  ValueId Differs(ValueId index, int64_t number) {
    return Call("aten.ne.Scalar", {Arg(index), Arg::Int(number)}, Of(TypeOf(index), DType::kBool));
  }

  /// `[.., 1]`: whether the row is an own one. `ends`: of LocalCalls::Ends. `read`: false where the
  /// row is left out.
  ValueId Mask(ValueId shifted, int64_t rows, std::span<const ValueId> ends,
               std::optional<ValueId> read) {
    Type truth = Of(TypeOf(shifted), DType::kBool);
    const ValueId above = Call("aten.ge.Scalar", {Arg(shifted), Arg::Int(0)}, truth);
    const ValueId below = Call("aten.lt.Scalar", {Arg(shifted), Arg::Int(rows)}, truth);
    ValueId own = Call("aten.logical_and.default", {Arg(above), Arg(below)}, truth);
    for (const ValueId end : ends) {
      const ValueId before = Call("aten.lt.Tensor", {Arg(shifted), Arg(end)}, truth);
      own = Call("aten.logical_and.default", {Arg(own), Arg(before)}, truth);
    }
    if (read) own = Call("aten.logical_and.default", {Arg(own), Arg(*read)}, truth);
    truth.sizes.push_back(module().dims().Const(1));
    truth.strides.push_back(module().dims().Const(1));
    const ValueId column = Call("aten.unsqueeze.default", {Arg(own), Arg::Int(-1)}, truth);
    rewriter().SetAlias(column, own);
    return column;
  }

  ValueId Clamped(ValueId shifted, int64_t rows) {
    return Call("aten.clamp.default", {Arg(shifted), Arg::Int(0), Arg::Int(rows - 1)},
                TypeOf(shifted));
  }
};

}  // namespace

bool CutsRows(const Placements& vocabulary) {
  return std::ranges::any_of(vocabulary,
                             [](const Placement& p) { return IsShard(p) && p.dim == 0; });
}

ValueId LowerEmbedding(Rewriter& rewriter, NodeId node, const Placements& vocabulary, int64_t whole,
                       const Mesh& mesh) {
  Graph& graph = rewriter.graph();
  const bool is_backward = BaseName(graph.op(node)) == "embedding_dense_backward";
  std::vector<Arg> args(graph.args(node).begin(), graph.args(node).end());
  const ValueId result = graph.result(node);
  RowLookup lookup(rewriter, node);
  const ValueId table = is_backward ? result : args[0].value();
  const int64_t rows = *graph.module().dims().AsConst(lookup.TypeOf(table).sizes[0]);
  rewriter.SetCursorBefore(node);
  const ValueId shifted = lookup.Shifted(args[1].value(), whole, vocabulary, 0, mesh);
  std::optional<ValueId> read;
  if (is_backward && args.size() > 3 && args[3].kind() == ArgKind::kInt && args[3].as_int() >= 0)
    read = lookup.Differs(args[1].value(), args[3].as_int());
  const ValueId mask = lookup.Mask(
      shifted, rows, lookup.Ends(lookup.TypeOf(shifted), whole, vocabulary, 0, mesh), read);
  args[1] = Arg(lookup.Clamped(shifted, rows));
  if (is_backward) {
    const Type type = lookup.TypeOf(args[0].value());
    args[0] = Arg(lookup.Call("aten.mul.Tensor", {args[0], Arg(mask)}, type));
    if (args.size() > 3) args[3] = Arg::Int(-1);  // the mask excludes it
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
