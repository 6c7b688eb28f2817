#include "passes/placement/lowering/local_calls.h"

#include <utility>
#include <vector>

namespace strata {

ValueId LocalCalls::Call(std::string_view op, std::initializer_list<Arg> args, const Type& type,
                         std::initializer_list<NamedArg> kwargs) {
  const TypeId types[] = {module().types().Intern(type)};
  const NodeId created = rewriter_.Create({.op = op,
                                           .args = {args.begin(), args.size()},
                                           .kwargs = {kwargs.begin(), kwargs.size()},
                                           .results = types},
                                          From{node_});
  return graph_.result(created);
}

Type LocalCalls::Contiguous(Type like, std::vector<DimId> sizes) {
  return module().types().Contiguous(std::move(like), std::move(sizes));
}

std::vector<LocalCalls::Cut> LocalCalls::CutsOf(int64_t whole, const Placements& placements,
                                                int32_t dim, const Mesh& mesh) {
  std::vector<Cut> cuts;
  for (size_t axis = 0; axis < placements.size(); ++axis) {
    if (!IsShard(placements[axis]) || placements[axis].dim != dim) continue;
    const int64_t ranks = mesh.axes()[axis].size;
    const int64_t part = (whole + ranks - 1) / ranks;
    cuts.push_back({.axis = axis, .shared = whole, .part = part});
    whole = part;
  }
  return cuts;
}

ValueId LocalCalls::ShiftedBy(ValueId indices, std::span<const Cut> cuts, const Mesh& mesh) {
  const Type type = TypeOf(indices);
  const Type number = Contiguous(Of(type, DType::kI64), {});
  for (size_t i = cuts.size(); i-- > 0;) {
    const Arg name = Arg::String(module().Intern(mesh.axes()[cuts[i].axis].name));
    const ValueId index = Call("strata.axis_index.default", {name}, number);
    const ValueId first = Call("aten.mul.Scalar", {Arg(index), Arg::Int(cuts[i].part)}, number);
    indices = Call("aten.sub.Tensor", {Arg(indices), Arg(first)}, type);
  }
  return indices;
}

ValueId LocalCalls::Shifted(ValueId indices, int64_t whole, const Placements& placements,
                            int32_t dim, const Mesh& mesh) {
  return ShiftedBy(indices, CutsOf(whole, placements, dim, mesh), mesh);
}

std::vector<ValueId> LocalCalls::Ends(const Type& like, int64_t whole, const Placements& placements,
                                      int32_t dim, const Mesh& mesh) {
  const Type number = Contiguous(Of(like, DType::kI64), {});
  const std::vector<Cut> cuts = CutsOf(whole, placements, dim, mesh);
  std::vector<ValueId> ends;
  for (size_t i = 1; i < cuts.size(); ++i) {
    if (cuts[i].shared % mesh.axes()[cuts[i].axis].size == 0) continue;
    const Arg none = rewriter_.MakeSpan(ArgKind::kList, {});
    const ValueId shared = Call("aten.full.default", {none, Arg::Int(cuts[i].shared)}, number,
                                {{module().Intern("dtype"), Arg::DType(DType::kI64)},
                                 {module().Intern("device"), Arg::Device(like.device)}});
    ends.push_back(ShiftedBy(shared, std::span(cuts).subspan(i), mesh));
  }
  return ends;
}

ValueId LocalCalls::Reduced(ValueId value, std::string_view reduce, const Placements& placements,
                            int32_t dim, const Mesh& mesh) {
  const Type type = TypeOf(value);
  const auto string = [&](std::string_view text) { return Arg::String(module().Intern(text)); };
  for (size_t axis = placements.size(); axis-- > 0;) {
    if (!IsShard(placements[axis]) || placements[axis].dim != dim) continue;
    const ValueId launched =
        Call("_c10d_functional.all_reduce.default",
             {Arg(value), string(reduce), string(mesh.axes()[axis].name)}, type);
    value = Call("_c10d_functional.wait_tensor.default", {Arg(launched)}, type);
    rewriter_.SetAlias(value, launched);
  }
  return value;
}

}  // namespace strata
