#include "passes/cleanup/canonicalize.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <vector>

#include "ir/ops.h"
#include "ir/rewriter.h"

namespace strata {
namespace {

/// Argument `index`, called `name` when given by keyword; null when left out.
const Arg* FindArg(const Graph& graph, NodeId node, size_t index, std::string_view name) {
  if (index < graph.args(node).size()) return &graph.args(node)[index];
  return graph.FindKwarg(node, name);
}

/// The tensor that a view reads: its first argument.
std::optional<ValueId> Input(const Graph& graph, NodeId node) {
  const Arg* arg = FindArg(graph, node, 0, "self");
  if (arg == nullptr || !arg->is_value()) return std::nullopt;
  return arg->value();
}

/// The type of a value when it is known and a tensor's, else null.
const Type* TensorType(const Graph& graph, ValueId value) {
  const TypeId id = graph.value(value).type;
  if (!id.valid()) return nullptr;
  const Type& type = graph.module().types()[id];
  return type.kind == TypeKind::kTensor ? &type : nullptr;
}

/// Operators that change the shape or strides of the very tensor they are given.
/// Source: native_functions.yaml, tag inplace_view.
bool ReshapesInPlace(std::string_view op) {
  static constexpr std::string_view kBases[] = {
      "as_strided_", "detach_",   "rename_",   "resize_", "resize_as_", "set_",
      "squeeze_",    "swapaxes_", "swapdims_", "t_",      "transpose_", "unsqueeze_"};
  return std::ranges::find(kBases, BaseName(op)) != std::end(kBases);
}

/// The values whose tensor has its shape or strides changed in place by some node. An in-place
/// operator returns the tensor it was given, so its result is one with its input.
class ReshapedTensors {
 public:
  explicit ReshapedTensors(const Graph& graph) {
    const auto reshapes = [&](NodeId node) {
      return graph.node(node).kind == NodeKind::kCall && ReshapesInPlace(graph.op(node));
    };
    if (std::ranges::none_of(graph.nodes(), reshapes)) return;
    for (int32_t i = 0; i < graph.value_bound(); ++i)
      tensor_of_.Add(ValueId{i});
    reshaped_.resize(tensor_of_.size(), false);
    for (NodeId node : graph.nodes()) {
      const auto input = Input(graph, node);
      if (!input || graph.node(node).num_results != 1) continue;
      if (!BaseName(graph.op(node)).ends_with('_')) continue;
      tensor_of_[graph.result(node)] = tensor_of_[*input];
      if (reshapes(node)) reshaped_[tensor_of_[*input]] = true;
    }
  }

  bool contains(ValueId value) const { return !reshaped_.empty() && reshaped_[tensor_of_[value]]; }

 private:
  IdVector<ValueId, ValueId> tensor_of_;  // the first value that is this tensor
  IdVector<ValueId, bool> reshaped_;      // for first values
};

/// Removes views of one graph.
class ViewRemover {
 public:
  explicit ViewRemover(Graph& graph) : rewriter_(graph), reshaped_(graph) {}

  /// Lets the users of `view` read `input` instead, if the two are one tensor all the time.
  bool Bypass(NodeId view, ValueId input) {
    const ValueId result = graph().result(view);
    if (reshaped_.contains(result) || reshaped_.contains(input)) return false;
    rewriter_.ReplaceUses(result, input);
    rewriter_.Erase(view);
    return true;
  }

  Graph& graph() { return rewriter_.graph(); }
  Rewriter& rewriter() { return rewriter_; }
  const ReshapedTensors& reshaped() const { return reshaped_; }

 private:
  Rewriter rewriter_;
  const ReshapedTensors reshaped_;
};

/// Calls `step(views, node)` for each call of each program; true means changed. A step may erase
/// its node and nodes before it.
template <class Step>
Changed ForEachCall(Module& module, Step step) {
  bool changed = false;
  for (GraphId id : module.programs()) {
    Graph& graph = module.graph(id);
    ViewRemover views(graph);
    for (NodeId node : graph.nodes().Snapshot()) {
      if (graph.node(node).kind == NodeKind::kCall) changed |= step(views, node);
    }
  }
  return Changed(changed);
}

bool IsView(std::string_view op) {
  return op == "aten.view.default" || op == "aten.reshape.default" ||
         op == "aten._unsafe_view.default";
}

bool SameShape(const DimTable& dims, const Type& a, const Type& b) {
  return std::ranges::equal(a.sizes, b.sizes,
                            [&](DimId x, DimId y) { return dims.ProvablyEqual(x, y); });
}

/// Whether `inner` exchanges the dimensions that `outer` exchanges again.
bool AreInverse(const Graph& graph, NodeId outer, NodeId inner) {
  const std::string_view op = graph.op(outer);
  if (graph.op(inner) != op) return false;
  if (op == "aten.t.default") return true;
  if (op != "aten.transpose.int") return false;
  const TypeId type = graph.value(graph.result(inner)).type;
  const auto dims = [&](NodeId node) {
    std::array<int64_t, 2> both = {-1, -1};
    if (!type.valid() || graph.args(node).size() != 3) return both;
    const auto rank = static_cast<int64_t>(graph.module().types()[type].sizes.size());
    for (size_t i = 0; i < 2; ++i) {
      const Arg& dim = graph.args(node)[i + 1];
      if (dim.kind() != ArgKind::kInt) return std::array<int64_t, 2>{-1, -1};
      both[i] = dim.as_int() < 0 ? dim.as_int() + rank : dim.as_int();
    }
    if (both[0] > both[1]) std::swap(both[0], both[1]);
    return both;
  };
  return dims(outer)[0] >= 0 && dims(outer) == dims(inner);
}

/// A slice bound: a number, or a symbolic one. None when the graph computes it.
std::optional<DimId> Bound(DimTable& dims, const Arg* arg, int64_t default_value) {
  if (arg == nullptr || arg->is_none()) return dims.Const(default_value);
  if (arg->kind() == ArgKind::kInt) return dims.Const(arg->as_int());
  if (arg->kind() == ArgKind::kDim) return arg->dim();
  return std::nullopt;
}

/// True when `aten.slice(self, dim, start, end, step)` takes all of dimension `dim`.
bool TakesEverything(Graph& graph, NodeId slice, const Type& input) {
  DimTable& dims = graph.module().dims();
  const auto dim = Bound(dims, FindArg(graph, slice, 1, "dim"), 0);
  const auto start = Bound(dims, FindArg(graph, slice, 2, "start"), 0);
  const auto end = Bound(dims, FindArg(graph, slice, 3, "end"), INT64_MAX);
  const auto step = Bound(dims, FindArg(graph, slice, 4, "step"), 1);
  if (!dim || !start || !end || !step) return false;
  if (dims.AsConst(*start) != 0 || dims.AsConst(*step) != 1) return false;

  const auto rank = static_cast<int64_t>(input.sizes.size());
  int64_t axis = dims.AsConst(*dim).value_or(rank);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return false;
  const DimId size = input.sizes[static_cast<size_t>(axis)];
  return dims.AsConst(*end) == INT64_MAX || dims.ProvablyEqual(*end, size) ||
         dims.ProvablyLess(size, *end);
}

}  // namespace

Result<Changed> RemoveDetach::Run(Module& module) {
  return ForEachCall(module, [](ViewRemover& views, NodeId node) {
    const Graph& graph = views.graph();
    if (graph.op(node) != "aten.detach.default") return false;
    const auto input = Input(graph, node);
    return input && views.Bypass(node, *input);
  });
}

Result<Changed> RemoveIdentityViews::Run(Module& module) {
  return ForEachCall(module, [](ViewRemover& views, NodeId node) {
    const Graph& graph = views.graph();
    if (!IsView(graph.op(node))) return false;
    const auto input = Input(graph, node);
    if (!input) return false;
    const Type* from = TensorType(graph, *input);
    const Type* to = TensorType(graph, graph.result(node));
    if (!from || !to || !SameShape(graph.module().dims(), *from, *to)) return false;
    return views.Bypass(node, *input);
  });
}

Result<Changed> RemoveDoubleTransposes::Run(Module& module) {
  return ForEachCall(module, [](ViewRemover& views, NodeId outer) {
    const Graph& graph = views.graph();
    const std::string_view op = graph.op(outer);
    if (op != "aten.t.default" && op != "aten.transpose.int") return false;
    const auto middle = Input(graph, outer);
    if (!middle) return false;
    const NodeId inner = graph.value(*middle).def;
    if (!AreInverse(graph, outer, inner) || views.reshaped().contains(*middle)) return false;
    const auto input = Input(graph, inner);
    if (!input || !views.Bypass(outer, *input)) return false;
    if (!graph.HasUses(inner)) views.rewriter().Erase(inner);
    return true;
  });
}

Result<Changed> RemoveIdentitySlices::Run(Module& module) {
  return ForEachCall(module, [](ViewRemover& views, NodeId node) {
    Graph& graph = views.graph();
    if (graph.op(node) != "aten.slice.Tensor") return false;
    const auto input = Input(graph, node);
    if (!input) return false;
    const Type* type = TensorType(graph, *input);
    if (!type || !TakesEverything(graph, node, *type)) return false;
    return views.Bypass(node, *input);
  });
}

Result<Changed> NormalizeViews::Run(Module& module) {
  return ForEachCall(module, [](ViewRemover& views, NodeId node) {
    const std::string_view op = views.graph().op(node);
    if (op != "aten.view.default" && op != "aten._unsafe_view.default") return false;
    views.rewriter().SetOp(node, "aten.reshape.default");
    return true;
  });
}

Result<Changed> Canonicalize::Run(Module& module) {
  RemoveDetach detach;
  RemoveIdentityViews identity_views;
  RemoveDoubleTransposes double_transposes;
  RemoveIdentitySlices identity_slices;
  NormalizeViews spelling;
  Pass* const parts[] = {&detach, &identity_views, &double_transposes, &identity_slices, &spelling};
  bool changed = false;
  // A second round for what the first uncovered: a slice between two transposes.
  for (bool again = true; again;) {
    again = false;
    for (Pass* part : parts) {
      STRATA_TRY(const Changed answer, part->Run(module));
      again |= answer == Changed::kYes;
    }
    changed |= again;
  }
  return Changed(changed);
}

}  // namespace strata
