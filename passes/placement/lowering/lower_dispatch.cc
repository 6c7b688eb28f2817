#include "passes/placement/lowering/lower_dispatch.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace strata {

DimId NewUnbackedSymbol(Module& module) {
  DimTable& dims = module.dims();
  for (int64_t i = static_cast<int64_t>(dims.symbols().size());; ++i) {
    const StrId name = module.Intern(fmt::format("u{}", i));
    if (dims.FindSymbol(name) != nullptr) continue;
    const DimId symbol = dims.Sym(module.str(name));
    dims.SetSymbol({.name = name, .hint = std::nullopt, .min = 0, .backed = false});
    return symbol;
  }
}

DispatchLowering::DispatchLowering(Rewriter& rewriter, ValueId counts, std::string group,
                                   int64_t ranks, DimId rows, NodeId ancestor)
    : rewriter_(rewriter),
      module_(rewriter.graph().module()),
      group_(std::move(group)),
      ranks_(ranks),
      rows_(rows),
      ancestor_(ancestor),
      index_(TypeOf(counts)) {
  DimTable& dims = module_.dims();
  experts_ = *dims.AsConst(index_.sizes[0]);
  const DimId n = dims.Const(ranks), e = dims.Const(experts_ / ranks);
  const Type table = Of(DType::kI64, {n, e});
  const auto as_table = [&](ValueId flat) {
    const Arg sizes =
        rewriter_.MakeSpan(ArgKind::kList, {Arg::Int(ranks), Arg::Int(experts_ / ranks)});
    const ValueId made = Call("aten.view.default", {Arg(flat), sizes}, table);
    rewriter_.SetAlias(made, Root(flat));
    return made;
  };
  const auto equal_parts = [&] {
    return rewriter_.MakeSpan(
        ArgKind::kList, std::vector<Arg>(static_cast<size_t>(ranks), Arg::Int(experts_ / ranks)));
  };
  const ValueId received =
      as_table(Exchanged(counts, equal_parts(), equal_parts(), TypeOf(counts)));
  sent_ = Splits(as_table(counts));
  received_ = Splits(received);
  num_rows_ = Number(Call("aten.sum.default", {Arg(received)}, Of(DType::kI64, {})), rows);
  SortReceived(received);
  EndGroups(received);
}

ValueId DispatchLowering::ToExperts(ValueId rows, NodeId ancestor) {
  ancestor_ = ancestor;
  const Type sent = Dense(rows);
  const Type type = WithRows(sent, rows_);
  const ValueId exchanged = Exchanged(AsDense(rows, sent), List(received_), List(sent_), type);
  return Call("aten.index_select.default", {Arg(exchanged), Arg::Int(0), Arg(order_)}, type);
}

ValueId DispatchLowering::ToTokens(ValueId rows, DimId t, NodeId ancestor) {
  ancestor_ = ancestor;
  const Type type = Dense(rows);
  const ValueId by_rank =
      Call("aten.index_select.default", {Arg(rows), Arg::Int(0), Arg(back_)}, type);
  return Exchanged(by_rank, List(sent_), List(received_), WithRows(type, t));
}

/// Contiguous.
Type DispatchLowering::Dense(ValueId value) const {
  const Type type = TypeOf(value);
  return module_.types().Contiguous(type, type.sizes);
}

/// Collectives send memory as it lies.
ValueId DispatchLowering::AsDense(ValueId value, const Type& dense) {
  if (TypeOf(value).strides == dense.strides) return value;
  const Arg args[] = {Arg(value)};
  const NamedArg format[] = {
      {module_.Intern("memory_format"), Arg::Raw(module_.Intern("torch.contiguous_format"))}};
  const TypeId types[] = {module_.types().Intern(dense)};
  return rewriter_.graph().result(rewriter_.Create(
      {.op = "aten.clone.default", .args = args, .kwargs = format, .results = types},
      From{ancestor_}));
}

/// Strides of dimensions inside the first one do not depend on it.
Type DispatchLowering::WithRows(Type type, DimId rows) {
  type.sizes[0] = rows;
  return type;
}

Type DispatchLowering::TypeOf(ValueId value) const {
  return module_.types()[rewriter_.graph().value(value).type];
}

Type DispatchLowering::Of(DType dtype, std::initializer_list<DimId> sizes) const {
  Type type = index_;
  type.dtype = dtype;
  return module_.types().Contiguous(std::move(type), sizes);
}

ValueId DispatchLowering::Call(std::string_view op, std::initializer_list<Arg> args,
                               const Type& type) {
  const TypeId types[] = {module_.types().Intern(type)};
  const NodeId node = rewriter_.Create(
      {.op = op, .args = {args.begin(), args.size()}, .results = types}, From{ancestor_});
  return rewriter_.graph().result(node);
}

ValueId DispatchLowering::Number(ValueId tensor, DimId dim) {
  Type number;
  number.kind = TypeKind::kSymInt;
  number.dim = dim;
  return Call("aten._local_scalar_dense.default", {Arg(tensor)}, number);
}

Arg DispatchLowering::List(const std::vector<ValueId>& numbers) {
  return rewriter_.MakeSpan(ArgKind::kList, std::vector<Arg>(numbers.begin(), numbers.end()));
}

std::vector<ValueId> DispatchLowering::Splits(ValueId counts) {
  const Arg dims = rewriter_.MakeSpan(ArgKind::kList, {Arg::Int(1)});
  const ValueId sums = Call("aten.sum.dim_IntList", {Arg(counts), dims},
                            Of(DType::kI64, {module_.dims().Const(ranks_)}));
  std::vector<ValueId> numbers;
  for (int64_t rank = 0; rank < ranks_; ++rank) {
    Type element = Of(DType::kI64, {});
    if (rank > 0) element.dim = module_.dims().Const(rank);
    const ValueId sum = Call("aten.select.int", {Arg(sums), Arg::Int(0), Arg::Int(rank)}, element);
    rewriter_.SetAlias(sum, sums);
    numbers.push_back(Number(sum, NewUnbackedSymbol(module_)));
  }
  return numbers;
}

ValueId DispatchLowering::Root(ValueId value) const {
  while (rewriter_.graph().value(value).alias_of.valid())
    value = rewriter_.graph().value(value).alias_of;
  return value;
}

ValueId DispatchLowering::Exchanged(ValueId value, const Arg& received, const Arg& sent,
                                    const Type& type) {
  const Arg group = Arg::String(module_.Intern(group_));
  const ValueId launched =
      Call("_c10d_functional.all_to_all_single.default", {Arg(value), received, sent, group}, type);
  const ValueId complete = Call("_c10d_functional.wait_tensor.default", {Arg(launched)}, type);
  rewriter_.SetAlias(complete, launched);
  return complete;
}

/// Rows come by rank and, of each rank, by expert. A stable sort by expert is their order here.
void DispatchLowering::SortReceived(ValueId received) {
  DimTable& dims = module_.dims();
  const Type experts = Of(DType::kI64, {dims.Const(experts_)});
  const Type rows = Of(DType::kI64, {rows_});
  const Arg sizes = rewriter_.MakeSpan(ArgKind::kList, {Arg::Int(experts_)});
  const ValueId flat = Call("aten.view.default", {Arg(received), sizes}, experts);
  rewriter_.SetAlias(flat, Root(received));
  const TypeId block_type[] = {module_.types().Intern(rows)};
  const Arg repeats[] = {Arg(flat)};
  const NamedArg size[] = {{module_.Intern("output_size"), Arg(num_rows_)}};
  const NodeId blocks = rewriter_.Create({.op = "aten.repeat_interleave.Tensor",
                                          .args = repeats,
                                          .kwargs = size,
                                          .results = block_type},
                                         From{ancestor_});
  const ValueId block = rewriter_.graph().result(blocks);
  const ValueId expert =
      Call("aten.remainder.Scalar", {Arg(block), Arg::Int(experts_ / ranks_)}, rows);
  const auto sorted = [&](ValueId keys) {
    const Arg args[] = {Arg(keys)};
    const NamedArg stable[] = {{module_.Intern("stable"), Arg::Bool(true)},
                               {module_.Intern("dim"), Arg::Int(0)}};
    const TypeId types[] = {module_.types().Intern(rows), module_.types().Intern(rows)};
    const NodeId node = rewriter_.Create({.op = "aten.sort.stable",
                                          .args = args,
                                          .kwargs = stable,
                                          .results = types,
                                          .returns_tuple = true},
                                         From{ancestor_});
    return rewriter_.graph().result(node, 1);
  };
  order_ = sorted(expert);
  back_ = sorted(order_);
}

void DispatchLowering::EndGroups(ValueId received) {
  DimTable& dims = module_.dims();
  const DimId e = dims.Const(experts_ / ranks_);
  const Arg over = rewriter_.MakeSpan(ArgKind::kList, {Arg::Int(0)});
  const ValueId own = Call("aten.sum.dim_IntList", {Arg(received), over}, Of(DType::kI64, {e}));
  const ValueId sums = Call("aten.cumsum.default", {Arg(own), Arg::Int(0)}, Of(DType::kI64, {e}));
  const TypeId types[] = {module_.types().Intern(Of(DType::kI32, {e}))};
  const Arg args[] = {Arg(sums)};
  const NamedArg dtype[] = {{module_.Intern("dtype"), Arg::DType(DType::kI32)}};
  ends_ = rewriter_.graph().result(rewriter_.Create(
      {.op = "aten._to_copy.default", .args = args, .kwargs = dtype, .results = types},
      From{ancestor_}));
}

}  // namespace strata
