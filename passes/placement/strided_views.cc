#include "passes/placement/strided_views.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "ir/ops.h"

namespace strata {
namespace {

/// A dimension in memory.
struct StridedDim {
  int64_t size, stride;
};

/// Dimensions and offset of a tensor; strides in elements.
struct StridedLayout {
  std::vector<StridedDim> dims;
  int64_t offset = 0;
};

std::optional<std::vector<int64_t>> Numbers(const Graph& graph, const Arg& list) {
  if (!list.is_span()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Arg& element : graph.elements(list)) {
    if (element.kind() != ArgKind::kInt) return std::nullopt;
    numbers.push_back(element.as_int());
  }
  return numbers;
}

std::optional<StridedLayout> NumbersOf(const Module& module, TypeId id) {
  if (!id.valid()) return std::nullopt;
  const Type& type = module.types()[id];
  if (type.kind != TypeKind::kTensor || !type.has_strides) return std::nullopt;
  StridedLayout layout;
  for (size_t dim = 0; dim < type.sizes.size(); ++dim) {
    const auto size = module.dims().AsConst(type.sizes[dim]),
               stride = module.dims().AsConst(type.strides[dim]);
    if (!size || !stride || *size < 1) return std::nullopt;
    layout.dims.push_back({*size, *stride});
  }
  const auto offset = type.dim.valid() ? module.dims().AsConst(type.dim) : 0;
  if (!offset) return std::nullopt;
  layout.offset = *offset;
  return layout;
}

/// The dimensions in their order in memory, the slowest first.
std::vector<size_t> MemoryOrder(const std::vector<StridedDim>& dims) {
  std::vector<size_t> order(dims.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    return std::pair(dims[a].stride, dims[a].size) > std::pair(dims[b].stride, dims[b].size);
  });
  return order;
}

std::vector<StridedDim> InOrder(const std::vector<StridedDim>& dims,
                                const std::vector<size_t>& order) {
  std::vector<StridedDim> permuted;
  for (const size_t dim : order)
    permuted.push_back(dims[dim]);
  return permuted;
}

/// Makes views of one value, one of the other.
class ViewChain {
 public:
  ViewChain(Rewriter& rewriter, ValueId value, StridedLayout layout, NodeId ancestor)
      : rewriter_(rewriter),
        value_(value),
        root_(RootOf(rewriter.graph(), value)),
        layout_(std::move(layout)),
        ancestor_(ancestor) {}

  const std::vector<StridedDim>& dims() const { return layout_.dims; }
  ValueId value() const { return value_; }

  void Permute(const std::vector<size_t>& order) {
    if (std::ranges::is_sorted(order)) return;
    std::vector<Arg> list;
    for (const size_t dim : order)
      list.push_back(Arg::Int(static_cast<int64_t>(dim)));
    layout_.dims = InOrder(layout_.dims, order);
    Create("aten.permute.default", {rewriter_.MakeSpan(ArgKind::kList, list)});
  }
  void View(std::vector<StridedDim> dims) {
    std::vector<Arg> list;
    for (const StridedDim& dim : dims)
      list.push_back(Arg::Int(dim.size));
    layout_.dims = std::move(dims);
    Create("aten.view.default", {rewriter_.MakeSpan(ArgKind::kList, list)});
  }
  void Slice(size_t dim, int64_t start, int64_t size) {
    if (size == layout_.dims[dim].size) return;
    layout_.offset += start * layout_.dims[dim].stride;
    layout_.dims[dim].size = size;
    Create("aten.slice.Tensor", {Int(dim), Arg::Int(start), Arg::Int(start + size)});
  }
  void Select(size_t dim, int64_t index) {
    layout_.offset += index * layout_.dims[dim].stride;
    layout_.dims.erase(layout_.dims.begin() + static_cast<std::ptrdiff_t>(dim));
    Create("aten.select.int", {Int(dim), Arg::Int(index)});
  }
  void Unsqueeze(size_t dim, int64_t stride) {
    layout_.dims.insert(layout_.dims.begin() + static_cast<std::ptrdiff_t>(dim), {1, stride});
    Create("aten.unsqueeze.default", {Int(dim)});
  }
  /// The last view, or the value itself, under the type that its readers know.
  ValueId As(TypeId type) {
    if (made_ == 0) Create("aten.alias.default", {});
    rewriter_.SetType(value_, type);
    return value_;
  }

 private:
  static ValueId RootOf(const Graph& graph, ValueId value) {
    const ValueId root = graph.value(value).alias_of;
    return root.valid() ? root : value;
  }
  static Arg Int(size_t dim) { return Arg::Int(static_cast<int64_t>(dim)); }

  void Create(std::string_view op, std::initializer_list<Arg> rest) {
    Graph& graph = rewriter_.graph();
    Module& module = graph.module();
    Type type = module.types()[graph.value(value_).type];
    type.sizes.clear();
    type.strides.clear();
    for (const StridedDim& dim : layout_.dims) {
      type.sizes.push_back(module.dims().Const(dim.size));
      type.strides.push_back(module.dims().Const(dim.stride));
    }
    type.dim = layout_.offset == 0 ? DimId() : module.dims().Const(layout_.offset);
    std::vector<Arg> args = {Arg(value_)};
    args.insert(args.end(), rest.begin(), rest.end());
    const TypeId types[] = {module.types().Intern(type)};
    value_ =
        graph.result(rewriter_.Create({.op = op, .args = args, .results = types}, From{ancestor_}));
    rewriter_.SetAlias(value_, root_);
    ++made_;
  }

  Rewriter& rewriter_;
  ValueId value_;
  const ValueId root_;
  StridedLayout layout_;
  const NodeId ancestor_;
  int made_ = 0;
};

/// Dimensions of the same memory with the strides of `wanted`, both in memory order; none: they do
/// not lie within each other. The last one holds what is between elements, if anything is.
std::optional<std::vector<StridedDim>> CutAs(const std::vector<StridedDim>& dims,
                                             const std::vector<StridedDim>& wanted) {
  int64_t step = dims.empty() ? 1 : dims.back().stride;
  int64_t rest = step;
  for (size_t dim = dims.size(); dim-- > 0; rest *= dims[dim].size)
    if (dims[dim].size > 1 && dims[dim].stride != rest) return std::nullopt;  // not dense
  std::vector<StridedDim> cut;
  for (const StridedDim& dim : wanted) {
    if (dim.stride == 0 || rest % dim.stride != 0) return std::nullopt;
    cut.push_back({rest / dim.stride, dim.stride});
    rest = dim.stride;
  }
  if (rest % step != 0) return std::nullopt;
  if (rest > step) cut.push_back({rest / step, step});
  return cut;
}

/// Where a view starts in each dimension, and which ones it has; none: it does not fit in them.
struct SlicedPart {
  std::vector<int64_t> starts;
  std::vector<bool> are_wanted;

  static std::optional<SlicedPart> Of(const std::vector<StridedDim>& dims,
                                      const std::vector<StridedDim>& wanted, int64_t distance) {
    SlicedPart part;
    size_t next = 0;
    for (const StridedDim& dim : dims) {
      const int64_t start = dim.stride == 0 ? 0 : distance / dim.stride;
      distance -= start * dim.stride;
      const bool is_wanted =
          next < wanted.size() && wanted[next].stride == dim.stride && dim.size > 1;
      const int64_t size = is_wanted ? wanted[next++].size : 1;
      if (start < 0 || start + size > dim.size) return std::nullopt;
      part.starts.push_back(start);
      part.are_wanted.push_back(is_wanted);
    }
    return next == wanted.size() && distance == 0 ? std::optional(std::move(part)) : std::nullopt;
  }
};

/// The view `to` of a tensor that lies as `from`; none: it needs more than slices.
std::optional<ValueId> ViewBy(Rewriter& rewriter, ValueId value, const StridedLayout& from,
                              const StridedLayout& to, TypeId type, NodeId ancestor) {
  std::vector<StridedDim> longer;  // dimensions of more than one element
  std::ranges::copy_if(to.dims, std::back_inserter(longer),
                       [](const StridedDim& dim) { return dim.size > 1; });
  const std::vector<size_t> to_order = MemoryOrder(longer), from_order = MemoryOrder(from.dims);
  const std::vector<StridedDim> wanted = InOrder(longer, to_order);
  std::vector<StridedDim> dims = InOrder(from.dims, from_order);
  std::optional<SlicedPart> part = SlicedPart::Of(dims, wanted, to.offset - from.offset);
  bool is_cut_anew = false;
  if (!part) {
    const auto cut = CutAs(dims, wanted);
    if (!cut) return std::nullopt;
    part = SlicedPart::Of(*cut, wanted, to.offset - from.offset);
    if (!part) return std::nullopt;
    dims = *cut;
    is_cut_anew = true;
  }
  ViewChain views(rewriter, value, from, ancestor);
  views.Permute(from_order);
  if (is_cut_anew) views.View(dims);
  for (size_t dim = dims.size(), next = wanted.size(); dim-- > 0;) {
    if (part->are_wanted[dim]) {
      views.Slice(dim, part->starts[dim], wanted[--next].size);
    } else {
      views.Select(dim, part->starts[dim]);
    }
  }
  std::vector<size_t> back(to_order.size());
  for (size_t i = 0; i < to_order.size(); ++i)
    back[to_order[i]] = i;
  views.Permute(back);
  for (size_t dim = 0; dim < to.dims.size(); ++dim)
    if (to.dims[dim].size == 1) views.Unsqueeze(dim, to.dims[dim].stride);
  return views.As(type);
}

/// as_strided(self, size, stride, storage_offset)
std::optional<ValueId> ReplaceView(Rewriter& rewriter, NodeId node) {
  Graph& graph = rewriter.graph();
  const auto args = graph.args(node);
  if (args.size() < 3 || !args[0].is_value()) return std::nullopt;
  const ValueId source = args[0].value(), result = graph.result(node);
  const auto from = NumbersOf(graph.module(), graph.value(source).type);
  const auto sizes = Numbers(graph, args[1]), strides = Numbers(graph, args[2]);
  if (!from || !sizes || !strides || sizes->size() != strides->size()) return std::nullopt;
  StridedLayout to{.dims = {}, .offset = from->offset};
  if (args.size() > 3 && !args[3].is_none()) {
    if (args[3].kind() != ArgKind::kInt) return std::nullopt;
    to.offset = args[3].as_int();
  }
  for (size_t dim = 0; dim < sizes->size(); ++dim) {
    if ((*sizes)[dim] < 1) return std::nullopt;
    to.dims.push_back({(*sizes)[dim], (*strides)[dim]});
  }
  return ViewBy(rewriter, source, *from, to, graph.value(result).type, node);
}

/// new_empty_strided(self, size, stride), empty_strided(size, stride)
std::optional<ValueId> ReplaceMemory(Rewriter& rewriter, NodeId node) {
  Graph& graph = rewriter.graph();
  Module& module = graph.module();
  const bool is_new = graph.op(node) == "aten.new_empty_strided.default";
  const size_t at = is_new ? 1 : 0;
  const std::vector<Arg> args(graph.args(node).begin(), graph.args(node).end());
  const TypeId type = graph.value(graph.result(node)).type;
  const auto layout = NumbersOf(module, type);
  if (args.size() != at + 2 || !layout || layout->offset != 0) return std::nullopt;
  const std::vector<size_t> order = MemoryOrder(layout->dims);
  const StridedLayout memory{.dims = InOrder(layout->dims, order)};
  int64_t step = 1;
  std::vector<Arg> sizes;
  Type contiguous = module.types()[type];
  for (size_t dim = order.size(); dim-- > 0; step *= memory.dims[dim].size)
    if (memory.dims[dim].size > 1 && memory.dims[dim].stride != step) return std::nullopt;
  for (size_t dim = 0; dim < order.size(); ++dim) {
    sizes.push_back(Arg::Int(memory.dims[dim].size));
    contiguous.sizes[dim] = module.dims().Const(memory.dims[dim].size);
    contiguous.strides[dim] = module.dims().Const(memory.dims[dim].stride);
  }
  std::vector<Arg> made_of;
  if (is_new) made_of.push_back(args[0]);
  made_of.push_back(rewriter.MakeSpan(ArgKind::kList, sizes));
  std::vector<NamedArg> kwargs;
  for (size_t i = 0; i < graph.node(node).num_kwargs; ++i)
    kwargs.push_back(graph.kwarg(node, i));
  const TypeId types[] = {module.types().Intern(contiguous)};
  const ValueId made = graph.result(
      rewriter.Create({.op = is_new ? "aten.new_empty.default" : "aten.empty.memory_format",
                       .args = made_of,
                       .kwargs = kwargs,
                       .results = types},
                      From{node}));
  rewriter.SetAlias(graph.result(node), made);  // what shared its memory shares the new one
  rewriter.SetAlias(graph.result(node), {});
  if (std::ranges::is_sorted(order)) return made;
  return ViewBy(rewriter, made, memory, *layout, type, node);
}

}  // namespace

void MakeViewsOfStrides(Rewriter& rewriter) {
  Graph& graph = rewriter.graph();
  for (const NodeId node : graph.nodes().Snapshot()) {
    if (graph.node(node).kind != NodeKind::kCall) continue;
    const std::string_view op = graph.op(node);
    const bool is_view = op == "aten.as_strided.default";
    if (!is_view && op != "aten.new_empty_strided.default" && op != "aten.empty_strided.default")
      continue;
    rewriter.SetCursorBefore(node);
    const auto made = is_view ? ReplaceView(rewriter, node) : ReplaceMemory(rewriter, node);
    if (!made) continue;
    rewriter.ReplaceUses(graph.result(node), *made);
    rewriter.Erase(node);
  }
}

}  // namespace strata
