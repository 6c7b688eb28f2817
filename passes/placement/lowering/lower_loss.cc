#include "passes/placement/lowering/lower_loss.h"

#include <limits>
#include <optional>
#include <vector>

#include "ir/ops.h"
#include "passes/placement/lowering/local_calls.h"

namespace strata {
namespace {

/// One softmax or loss whose classes are cut.
class CutClasses : public LocalCalls {
 public:
  CutClasses(Rewriter& rewriter, NodeId node, int64_t classes, const Placements& placements,
             const Mesh& mesh, LabelsOfLosses& labels)
      : LocalCalls(rewriter, node),
        classes_(classes),
        placements_(placements),
        mesh_(mesh),
        dim_(ClassDim(graph(), node)),
        labels_(labels) {}

  ValueId LogSoftmax() {
    const Type result = TypeOf(graph().result(node()));
    ValueId x = graph().args(node())[0].value();
    if (TypeOf(x).dtype != result.dtype) {
      x = Call("aten._to_copy.default", {Arg(x)}, Of(TypeOf(x), result.dtype),
               {{module().Intern("dtype"), Arg::DType(result.dtype)}});
    }
    if (HasMore()) x = WithoutOthers(x);
    const Type row = RowOf(result);
    const ValueId largest =
        OverRanks(Call("aten.amax.default", {Arg(x), Dims(), Arg::Bool(true)}, row), "max");
    const ValueId shifted = Call("aten.sub.Tensor", {Arg(x), Arg(largest)}, result);
    const ValueId powers = Call("aten.exp.default", {Arg(shifted)}, result);
    const ValueId total = OverRanks(SumOf(powers, row), "sum");
    const ValueId log = Call("aten.log.default", {Arg(total)}, row);
    return Replace(Call("aten.sub.Tensor", {Arg(shifted), Arg(log)}, result));
  }

  ValueId LogSoftmaxBackward() {
    const Type result = TypeOf(graph().result(node()));
    const Arg gradient = graph().args(node())[0], output = graph().args(node())[1];
    const Type exact = TypeOf(gradient.value());
    const std::optional<ValueId> known = SumOfLabels(gradient.value(), RowOf(exact));
    const ValueId total = known ? *known : OverRanks(SumOf(gradient.value(), RowOf(exact)), "sum");
    const ValueId share = Call("aten.exp.default", {output}, TypeOf(output.value()));
    const ValueId product = Call("aten.mul.Tensor", {Arg(share), Arg(total)}, exact);
    ValueId lowered = Call("aten.sub.Tensor", {gradient, Arg(product)}, exact);
    if (exact.dtype != result.dtype) {
      lowered = Call("aten._to_copy.default", {Arg(lowered)}, result,
                     {{module().Intern("dtype"), Arg::DType(result.dtype)}});
    }
    return Replace(lowered);
  }

  /// Labels of classes that the rank does not have become those that are ignored.
  ValueId OwnLabels(size_t label_position, size_t ignored_position) {
    std::vector<Arg> args(graph().args(node()).begin(), graph().args(node()).end());
    const int64_t ignored =
        ignored_position < args.size() ? args[ignored_position].as_int() : kIgnoredLabel;
    const ValueId labels = args[label_position].value();
    labels_.emplace(node(), labels);
    const int64_t classes = OwnClasses();
    const ValueId shifted = Shifted(labels, classes_, placements_, dim_, mesh_);
    const Type truth = Of(TypeOf(labels), DType::kBool);
    const ValueId below = Call("aten.lt.Scalar", {Arg(shifted), Arg::Int(0)}, truth);
    const ValueId above = Call("aten.ge.Scalar", {Arg(shifted), Arg::Int(classes)}, truth);
    ValueId other = Call("aten.logical_or.default", {Arg(below), Arg(above)}, truth);
    for (const ValueId end : Ends(TypeOf(labels), classes_, placements_, dim_, mesh_)) {
      const ValueId beyond = Call("aten.ge.Tensor", {Arg(shifted), Arg(end)}, truth);
      other = Call("aten.logical_or.default", {Arg(other), Arg(beyond)}, truth);
    }
    const ValueId own = Call("aten.masked_fill.Scalar",
                             {Arg(shifted), Arg(other), Arg::Int(ignored)}, TypeOf(labels));
    rewriter().SetSlot(
        node(), graph().node(node()).args_begin + static_cast<uint32_t>(label_position), Arg(own));
    return graph().result(node());
  }

 private:
  static constexpr int64_t kIgnoredLabel = -100;  // ATen's default

  int64_t OwnClasses() {
    return *module().dims().AsConst(
        TypeOf(ClassesOf(graph(), node())).sizes[static_cast<size_t>(dim_)]);
  }
  /// The sum of a row of the gradient of a sum of losses, over the classes of all ranks: every rank
  /// knows it, because only that of the label is not zero. None: of another gradient.
  std::optional<ValueId> SumOfLabels(ValueId gradient, const Type& row) {
    const NodeId loss = graph().value(gradient).def;
    const auto labels = labels_.find(loss);
    if (labels == labels_.end()) return std::nullopt;
    const auto args = graph().args(loss);
    constexpr size_t kReduction = 4, kIgnored = 5;
    constexpr int64_t kSum = 2;
    if (args[kReduction].as_int() != kSum) return std::nullopt;
    const ValueId of_loss = args[0].value();
    const Type scalar = TypeOf(of_loss);
    const Type truth = Of(TypeOf(labels->second), DType::kBool);
    const ValueId ignored = Call("aten.eq.Scalar", {Arg(labels->second), args[kIgnored]}, truth);
    const ValueId rows =
        Call("aten.unsqueeze.default", {Arg(ignored), Arg::Int(dim_)}, Of(row, DType::kBool));
    rewriter().SetAlias(rows, ignored);
    const Arg none = rewriter().MakeSpan(ArgKind::kList, {});
    const ValueId zero = Call("aten.full.default", {none, Arg::Float(0.0)}, scalar,
                              {{module().Intern("dtype"), Arg::DType(scalar.dtype)},
                               {module().Intern("device"), Arg::Device(scalar.device)}});
    const ValueId share = Call("aten.neg.default", {Arg(of_loss)}, scalar);
    return Call("aten.where.self", {Arg(rows), Arg(zero), Arg(share)}, row);
  }

  /// Some rank has elements beyond the classes.
  bool HasMore() {
    int64_t all = OwnClasses();
    for (size_t axis = 0; axis < placements_.size(); ++axis)
      if (IsShard(placements_[axis]) && placements_[axis].dim == dim_)
        all *= mesh_.axes()[axis].size;
    return all != classes_;
  }

  /// −∞ for what is beyond the classes.
  ValueId WithoutOthers(ValueId logits) {
    const Type type = TypeOf(logits);
    const Type number = Contiguous(Of(type, DType::kI64), {});
    const Type range = Contiguous(number, {type.sizes[static_cast<size_t>(dim_)]});
    const NamedArg device = {module().Intern("device"), Arg::Device(type.device)};
    const NamedArg dtype = {module().Intern("dtype"), Arg::DType(DType::kI64)};
    const Arg none = rewriter().MakeSpan(ArgKind::kList, {});
    const ValueId all =
        Call("aten.full.default", {none, Arg::Int(classes_)}, number, {dtype, device});
    const ValueId left = Shifted(all, classes_, placements_, dim_, mesh_);
    const ValueId index = Call("aten.arange.default", {Arg::Int(OwnClasses())}, range, {device});
    const Type truth = Of(range, DType::kBool);
    ValueId other = Call("aten.ge.Tensor", {Arg(index), Arg(left)}, truth);
    for (const ValueId end : Ends(type, classes_, placements_, dim_, mesh_)) {
      const ValueId beyond = Call("aten.ge.Tensor", {Arg(index), Arg(end)}, truth);
      other = Call("aten.logical_or.default", {Arg(other), Arg(beyond)}, truth);
    }
    return Call("aten.masked_fill.Scalar",
                {Arg(logits), Arg(other), Arg::Float(-std::numeric_limits<double>::infinity())},
                type);
  }

  Type RowOf(const Type& like) {
    std::vector<DimId> sizes = like.sizes;
    sizes[static_cast<size_t>(dim_)] = module().dims().Const(1);
    return Contiguous(like, std::move(sizes));
  }
  Arg Dims() { return rewriter().MakeSpan(ArgKind::kList, {Arg::Int(dim_)}); }
  ValueId SumOf(ValueId value, const Type& row) {
    return Call("aten.sum.dim_IntList", {Arg(value), Dims(), Arg::Bool(true)}, row);
  }
  ValueId OverRanks(ValueId value, std::string_view reduce) {
    return Reduced(value, reduce, placements_, dim_, mesh_);
  }
  ValueId Replace(ValueId lowered) {
    rewriter().ReplaceUses(graph().result(node()), lowered);
    rewriter().Erase(node());
    return lowered;
  }

  const int64_t classes_;
  const Placements& placements_;
  const Mesh& mesh_;
  const int32_t dim_;
  LabelsOfLosses& labels_;
};

}  // namespace

bool IsLoss(std::string_view base) {
  return base == "_log_softmax" || base == "_log_softmax_backward_data" ||
         base == "nll_loss_forward" || base == "nll_loss_backward";
}

ValueId ClassesOf(const Graph& graph, NodeId node) {
  const bool is_second = BaseName(graph.op(node)).ends_with("backward") ||
                         BaseName(graph.op(node)).ends_with("backward_data");
  return graph.args(node)[is_second ? 1 : 0].value();
}

int32_t ClassDim(const Graph& graph, NodeId node) {
  const std::string_view base = BaseName(graph.op(node));
  const auto rank = static_cast<int64_t>(
      graph.module().types()[graph.value(ClassesOf(graph, node)).type].sizes.size());
  if (base.starts_with("nll")) return static_cast<int32_t>(rank - 1);
  const int64_t dim = graph.args(node)[base == "_log_softmax" ? 1 : 2].as_int();
  return static_cast<int32_t>(dim < 0 ? dim + rank : dim);
}

ValueId LowerLoss(Rewriter& rewriter, NodeId node, int64_t classes, const Placements& placements,
                  const Mesh& mesh, LabelsOfLosses& labels) {
  const std::string_view base = BaseName(rewriter.graph().op(node));
  CutClasses cut(rewriter, node, classes, placements, mesh, labels);
  rewriter.SetCursorBefore(node);
  if (base == "_log_softmax") return cut.LogSoftmax();
  if (base == "_log_softmax_backward_data") return cut.LogSoftmaxBackward();
  return base == "nll_loss_forward" ? cut.OwnLabels(1, 4) : cut.OwnLabels(2, 5);
}

}  // namespace strata
