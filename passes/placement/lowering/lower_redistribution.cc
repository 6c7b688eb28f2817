#include "passes/placement/lowering/lower_redistribution.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "passes/placement/redistribution.h"

namespace strata {
namespace {

/// Emits local operators and collectives on one tensor.
class Emitter {
 public:
  Emitter(Rewriter& rewriter, const Mesh& mesh, NodeId ancestor)
      : rewriter_(rewriter), module_(rewriter.graph().module()), mesh_(mesh), ancestor_(ancestor) {}

  /// `axis`: several of the mesh, or one. `sizes`: what the part has afterwards.
  Result<ValueId> Change(ValueId value, const AxisChange& change, const MeshAxis& axis,
                         const std::vector<DimId>& sizes) {
    axis_ = &axis;
    if (IsShard(change.to)) value = Padded(value, Dim(change.to), sizes);
    STRATA_TRY(value, ChangeAny(value, change));
    return IsShard(change.from) ? Shortened(value, Dim(change.from), sizes) : value;
  }

 private:
  Result<ValueId> ChangeAny(ValueId value, const AxisChange& change) {
    if (IsRows(change.from) || IsRows(change.to))
      return Error("rows in the order of experts are not gathered on mesh axis {}", axis_->name);
    // The parts of blocks lie one after the other on each rank, chunks of one tensor.
    if (IsBlocked(change.to)) {
      STRATA_TRY(value, Transposed(value, Dim(change.to), BlocksOf(change.to.split), axis_->size));
    }
    STRATA_TRY(value, ChangeChunks(value, change));
    if (!IsBlocked(change.from)) return value;
    return Transposed(value, Dim(change.from), axis_->size, BlocksOf(change.from.split));
  }

  Result<ValueId> ChangeChunks(ValueId value, const AxisChange& change) {
    if (IsCut(change.from)) {
      if (!IsCut(change.to)) return Gather(value, Dim(change.from));
      return Exchange(value, Dim(change.from), Dim(change.to));
    }
    if (IsPartial(change.from)) {
      const std::string_view reduce = module_.str(change.from.reduce);
      if (IsCut(change.to) && (reduce == "sum" || reduce == "avg")) {
        STRATA_TRY(const ValueId sum, ReduceScatter(value, Dim(change.to)));
        return reduce == "avg" ? Divided(sum) : sum;
      }
      const std::string_view to = IsPartial(change.to) ? module_.str(change.to.reduce) : "";
      if (reduce == "avg" && to == "sum") return Divided(value);
      if (reduce == "sum" && to == "avg") return Multiplied(value);
      value = AllReduce(value, reduce);
    }
    if (IsCut(change.to)) return Cut(value, Dim(change.to));
    if (!IsPartial(change.to)) return value;
    // The average, maximum or minimum of copies is the value.
    const std::string_view reduce = module_.str(change.to.reduce);
    return reduce == "sum" || reduce == "norm2" ? OnFirstRank(value) : value;
  }

  static size_t Dim(const Placement& placement) { return static_cast<size_t>(placement.dim); }

  const Type& TypeOf(ValueId value) const {
    return module_.types()[rewriter_.graph().value(value).type];
  }
  Arg String(std::string_view text) { return Arg::String(module_.Intern(text)); }
  Arg Group() { return String(axis_->name); }
  Arg Ranks() const { return Arg::Int(axis_->size); }
  DimTable& dims() { return module_.dims(); }

  /// A contiguous tensor like `like`, of other sizes.
  TypeId Contiguous(const Type& like, std::vector<DimId> sizes) {
    return module_.types().Intern(module_.types().Contiguous(like, std::move(sizes)));
  }

  ValueId Call(std::string_view op, std::initializer_list<Arg> args, TypeId type,
               std::initializer_list<NamedArg> kwargs = {}) {
    const TypeId types[] = {type};
    const NodeId node = rewriter_.Create({.op = op,
                                          .args = {args.begin(), args.size()},
                                          .kwargs = {kwargs.begin(), kwargs.size()},
                                          .results = types},
                                         From{ancestor_});
    return rewriter_.graph().result(node);
  }

  /// The tensor that the collective returned, complete.
  ValueId Wait(ValueId launched) {
    const ValueId complete = Call("_c10d_functional.wait_tensor.default", {Arg(launched)},
                                  rewriter_.graph().value(launched).type);
    rewriter_.SetAlias(complete, launched);
    return complete;
  }

  /// Collectives send memory as it lies.
  ValueId Dense(ValueId value) {
    const Type& type = TypeOf(value);
    const TypeId dense = Contiguous(type, type.sizes);
    if (!type.has_strides || TypeOf(value).strides == module_.types()[dense].strides) return value;
    return Call(
        "aten.clone.default", {Arg(value)}, dense,
        {{module_.Intern("memory_format"), Arg::Raw(module_.Intern("torch.contiguous_format"))}});
  }

  Result<DimId> Part(DimId size) {
    const DimId part = dims().FloorDiv(size, dims().Const(axis_->size));
    if (dims().ProvablyEqual(dims().Mul(part, dims().Const(axis_->size)), size)) return part;
    return Error("the {} ranks of mesh axis {} cannot divide a dimension of size {} evenly",
                 axis_->size, axis_->name, dims().ToString(size));
  }

  /// The parts of dimension `from` one after the other along dimension `to`: what a collective
  /// along dimension 0 needs, or gave. Where they lie so already, in a batch of one, it is a view.
  Result<ValueId> MoveParts(ValueId value, size_t from, size_t to) {
    if (from == to) return value;
    const Type type = TypeOf(value);
    STRATA_TRY(const DimId part, Part(type.sizes[from]));
    std::vector<DimId> sizes = type.sizes;
    sizes[from] = part;
    const auto is_one = [&](DimId size) { return dims().AsConst(size) == 1; };
    const auto outer = sizes.begin() + static_cast<std::ptrdiff_t>(std::min(from, to)),
               inner = sizes.begin() + static_cast<std::ptrdiff_t>(std::max(from, to));
    if (std::all_of(outer, inner, is_one)) {
      value = Dense(value);
      sizes[to] = dims().Mul(sizes[to], dims().Const(axis_->size));
      return View(value, sizes);
    }
    Type piece = type;
    piece.sizes = sizes;
    const std::vector<TypeId> pieces(static_cast<size_t>(axis_->size),
                                     module_.types().Intern(piece));
    const auto constant = dims().AsConst(part);
    const Arg args[] = {Arg(value), constant ? Arg::Int(*constant) : Arg::Dim(part),
                        Arg::Int(static_cast<int64_t>(from))};
    const NodeId split = rewriter_.Create(
        {.op = "aten.split.Tensor", .args = args, .results = pieces, .returns_tuple = true},
        From{ancestor_});
    std::vector<Arg> elements;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const ValueId element = rewriter_.graph().result(split, i);
      rewriter_.SetAlias(element, Root(value));
      elements.emplace_back(element);
    }
    sizes[to] = dims().Mul(sizes[to], dims().Const(axis_->size));
    return Call("aten.cat.default",
                {rewriter_.MakeSpan(ArgKind::kList, elements), Arg::Int(static_cast<int64_t>(to))},
                Contiguous(type, sizes));
  }

  /// Dimension `dim` as `outer` × `inner` × the rest, in the order `inner` × `outer` × the rest.
  Result<ValueId> Transposed(ValueId value, size_t dim, int64_t outer, int64_t inner) {
    value = Dense(value);
    const std::vector<DimId> whole = TypeOf(value).sizes;
    const DimId rest = dims().FloorDiv(whole[dim], dims().Const(outer * inner));
    if (!dims().ProvablyEqual(dims().Mul(rest, dims().Const(outer * inner)), whole[dim]))
      return Error("{} blocks of {} parts do not divide a dimension of size {} evenly", outer,
                   inner, dims().ToString(whole[dim]));
    std::vector<DimId> sizes = whole;
    const auto at = sizes.begin() + static_cast<std::ptrdiff_t>(dim);
    *at = rest;
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim),
                 {dims().Const(outer), dims().Const(inner)});
    const ValueId apart = View(value, sizes);
    Type swapped = TypeOf(apart);
    std::swap(swapped.sizes[dim], swapped.sizes[dim + 1]);
    std::swap(swapped.strides[dim], swapped.strides[dim + 1]);
    const auto first = static_cast<int64_t>(dim);
    const ValueId turned =
        Call("aten.transpose.int", {Arg(apart), Arg::Int(first), Arg::Int(first + 1)},
             module_.types().Intern(swapped));
    rewriter_.SetAlias(turned, Root(value));
    return View(Dense(turned), whole);
  }

  /// With zeros after dimension `dim`, so that every rank gets a part of the size in `sizes`.
  ValueId Padded(ValueId value, size_t dim, const std::vector<DimId>& sizes) {
    const std::vector<DimId> now = TypeOf(value).sizes;
    const auto size = dims().AsConst(now[dim]), part = dims().AsConst(sizes[dim]);
    if (!size || !part || *size == *part * axis_->size) return value;
    std::vector<Arg> widths(2 * (now.size() - dim), Arg::Int(0));
    widths.back() = Arg::Int(*part * axis_->size - *size);
    std::vector<DimId> padded = now;
    padded[dim] = dims().Const(*part * axis_->size);
    return Call("aten.constant_pad_nd.default",
                {Arg(value), rewriter_.MakeSpan(ArgKind::kList, widths)},
                Contiguous(TypeOf(value), padded));
  }

  /// Without what is beyond the whole.
  ValueId Shortened(ValueId value, size_t dim, const std::vector<DimId>& sizes) {
    Type type = TypeOf(value);
    const auto size = dims().AsConst(type.sizes[dim]), kept = dims().AsConst(sizes[dim]);
    if (!size || !kept || *size == *kept) return value;
    type.sizes[dim] = sizes[dim];
    const ValueId slice =
        Call("aten.slice.Tensor",
             {Arg(value), Arg::Int(static_cast<int64_t>(dim)), Arg::Int(0), Arg::Int(*kept)},
             module_.types().Intern(type));
    rewriter_.SetAlias(slice, Root(value));
    return Dense(slice);
  }

  ValueId View(ValueId value, const std::vector<DimId>& sizes) {
    std::vector<Arg> list;
    for (const DimId size : sizes) {
      const auto number = dims().AsConst(size);
      list.push_back(number ? Arg::Int(*number) : Arg::Dim(size));
    }
    const ValueId view =
        Call("aten.view.default", {Arg(value), rewriter_.MakeSpan(ArgKind::kList, list)},
             Contiguous(TypeOf(value), sizes));
    rewriter_.SetAlias(view, Root(value));
    return view;
  }

  ValueId Root(ValueId value) const {
    while (rewriter_.graph().value(value).alias_of.valid())
      value = rewriter_.graph().value(value).alias_of;
    return value;
  }

  Result<ValueId> Gather(ValueId value, size_t dim) {
    value = Dense(value);
    std::vector<DimId> sizes = TypeOf(value).sizes;
    sizes[0] = dims().Mul(sizes[0], dims().Const(axis_->size));
    const ValueId gathered =
        Wait(Call("_c10d_functional.all_gather_into_tensor.default", {Arg(value), Ranks(), Group()},
                  Contiguous(TypeOf(value), sizes)));
    return MoveParts(gathered, 0, dim);
  }

  Result<ValueId> ReduceScatter(ValueId value, size_t dim) {
    STRATA_TRY(value, MoveParts(value, dim, 0));
    value = Dense(value);
    std::vector<DimId> sizes = TypeOf(value).sizes;
    STRATA_TRY(sizes[0], Part(sizes[0]));
    return Wait(Call("_c10d_functional.reduce_scatter_tensor.default",
                     {Arg(value), String("sum"), Ranks(), Group()},
                     Contiguous(TypeOf(value), sizes)));
  }

  Result<ValueId> Exchange(ValueId value, size_t from, size_t to) {
    STRATA_TRY(value, MoveParts(value, to, 0));
    value = Dense(value);
    STRATA_TRY(const DimId part, Part(TypeOf(value).sizes[0]));
    const auto constant = dims().AsConst(part);
    const std::vector<Arg> parts(static_cast<size_t>(axis_->size),
                                 constant ? Arg::Int(*constant) : Arg::Dim(part));
    const Arg received = rewriter_.MakeSpan(ArgKind::kList, parts);
    const Arg sent = rewriter_.MakeSpan(ArgKind::kList, parts);
    const TypeId type = Contiguous(TypeOf(value), TypeOf(value).sizes);
    const ValueId exchanged = Wait(Call("_c10d_functional.all_to_all_single.default",
                                        {Arg(value), received, sent, Group()}, type));
    return MoveParts(exchanged, 0, from);
  }

  ValueId Divided(ValueId value) {
    return Call("aten.div.Scalar", {Arg(value), Ranks()}, rewriter_.graph().value(value).type);
  }

  ValueId Multiplied(ValueId value) {
    return Call("aten.mul.Scalar", {Arg(value), Ranks()}, rewriter_.graph().value(value).type);
  }

  ValueId AllReduce(ValueId value, std::string_view reduce) {
    value = Dense(value);
    const TypeId type = rewriter_.graph().value(value).type;
    if (reduce == "norm2") value = Call("aten.pow.Tensor_Scalar", {Arg(value), Arg::Int(2)}, type);
    const bool is_order = reduce == "max" || reduce == "min";
    const ValueId reduced =
        Wait(Call("_c10d_functional.all_reduce.default",
                  {Arg(value), String(is_order ? reduce : "sum"), Group()}, type));
    if (reduce == "norm2") return Call("aten.sqrt.default", {Arg(reduced)}, type);
    return reduce == "avg" ? Divided(reduced) : reduced;
  }

  Result<ValueId> Cut(ValueId value, size_t dim) {
    value = Dense(value);
    std::vector<DimId> sizes = TypeOf(value).sizes;
    STRATA_TRY(sizes[dim], Part(sizes[dim]));
    return Call("strata.axis_shard.default",
                {Arg(value), Arg::Int(static_cast<int64_t>(dim)), Group(), Ranks()},
                Contiguous(TypeOf(value), sizes));
  }

  /// The value on the first rank of the axis, zeros on the others.
  ValueId OnFirstRank(ValueId value) {
    const Type type = TypeOf(value);
    Type index = type;
    index.sizes.clear();
    index.strides.clear();
    index.dtype = DType::kI64;
    Type mask = index;
    mask.dtype = DType::kBool;
    const ValueId rank =
        Call("strata.axis_index.default", {Group()}, module_.types().Intern(index));
    const ValueId is_first =
        Call("aten.eq.Scalar", {Arg(rank), Arg::Int(0)}, module_.types().Intern(mask));
    return Call("aten.mul.Tensor", {Arg(value), Arg(is_first)},
                rewriter_.graph().value(value).type);
  }

  Rewriter& rewriter_;
  Module& module_;
  const Mesh& mesh_;
  const NodeId ancestor_;
  const MeshAxis* axis_ = nullptr;
};

/// The order of dimensions in memory, the slowest first; the identity when it is not known.
std::vector<size_t> MemoryOrder(const Module& module, const Type& type) {
  std::vector<size_t> order(type.sizes.size());
  for (size_t dim = 0; dim < order.size(); ++dim)
    order[dim] = dim;
  if (!type.has_strides) return order;
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    const auto x = module.dims().Hint(type.strides[a]), y = module.dims().Hint(type.strides[b]);
    return x && y && *x > *y;
  });
  return order;
}

/// `value` with its dimensions in the order `order`, as a view.
ValueId Permuted(Rewriter& rewriter, ValueId value, const std::vector<size_t>& order,
                 NodeId ancestor) {
  Graph& graph = rewriter.graph();
  Type type = graph.module().types()[graph.value(value).type];
  const Type before = type;
  std::vector<Arg> dims;
  for (size_t dim = 0; dim < order.size(); ++dim) {
    type.sizes[dim] = before.sizes[order[dim]];
    type.strides[dim] = before.strides[order[dim]];
    dims.push_back(Arg::Int(static_cast<int64_t>(order[dim])));
  }
  const Arg args[] = {Arg(value), rewriter.MakeSpan(ArgKind::kList, dims)};
  const TypeId types[] = {graph.module().types().Intern(type)};
  const NodeId node = rewriter.Create(
      {.op = "aten.permute.default", .args = args, .results = types}, From{ancestor});
  const ValueId root = graph.value(value).alias_of.valid() ? graph.value(value).alias_of : value;
  rewriter.SetAlias(graph.result(node), root);
  return graph.result(node);
}

/// Whether the ranks of `group`, those of `joined` changes from `first` on, divide the dimension
/// that they have parts of. Where they do not, each axis has zeros after its own parts, and the
/// parts of all do not follow each other.
bool AreEven(Module& module, const std::vector<DimId>& sizes, Placements now,
             const std::vector<AxisChange>& changes, size_t first, size_t joined, const Mesh& mesh,
             const MeshAxis& group) {
  for (size_t i = first; i < first + joined; ++i)
    now[changes[i].axis] = {};
  const std::vector<DimId> whole = PartSizes(module, sizes, now, mesh);
  for (const Placement& placement : {changes[first].from, changes[first].to}) {
    if (!IsShard(placement)) continue;
    const auto size = module.dims().AsConst(whole[static_cast<size_t>(placement.dim)]);
    if (size && *size % group.size != 0) return false;
  }
  return true;
}

Placements InOrder(Placements placements, const std::vector<size_t>& place_of) {
  for (Placement& p : placements)
    if (IsCut(p)) p.dim = static_cast<int32_t>(place_of[static_cast<size_t>(p.dim)]);
  return placements;
}

}  // namespace

Result<ValueId> LowerRedistribution(Rewriter& rewriter, ValueId value, const Type& whole,
                                    const Placements& from, const Placements& to, const Mesh& mesh,
                                    NodeId ancestor) {
  Graph& graph = rewriter.graph();
  // A transposed tensor stays one: the steps are those of the dense tensor that lies in memory. The
  // strides of a part leave its order open where a rank has one element of a dimension.
  const std::vector<size_t> order = MemoryOrder(graph.module(), whole);
  const bool is_permuted = !std::ranges::is_sorted(order);
  std::vector<size_t> place_of(order.size());
  for (size_t place = 0; place < order.size(); ++place)
    place_of[order[place]] = place;
  if (is_permuted) value = Permuted(rewriter, value, order, ancestor);
  Emitter emitter(rewriter, mesh, ancestor);
  std::vector<DimId> sizes;
  for (const size_t dim : order)
    sizes.push_back(whole.sizes[dim]);
  Placements now = InOrder(from, place_of);
  const std::vector<AxisChange> changes = PlanRedistribution(now, InOrder(to, place_of));
  for (size_t i = 0; i < changes.size();) {
    MeshAxis group;
    size_t joined = CountJoined(changes, i, mesh, group);
    if (joined > 1 && !AreEven(graph.module(), sizes, now, changes, i, joined, mesh, group)) {
      joined = 1;
      group = mesh.axes()[changes[i].axis];
    }
    for (size_t j = i; j < i + joined; ++j)
      now[changes[j].axis] = changes[j].to;
    STRATA_TRY(value, emitter.Change(value, changes[i], group,
                                     PartSizes(graph.module(), sizes, now, mesh)));
    i += joined;
  }
  return is_permuted ? Permuted(rewriter, value, place_of, ancestor) : value;
}

}  // namespace strata
