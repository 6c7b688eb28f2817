#include "passes/placement/local_calls.h"

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
  DimTable& dims = module().dims();
  like.has_strides = true;
  like.strides.assign(sizes.size(), dims.Const(1));
  for (size_t dim = sizes.size(); dim-- > 1;)
    like.strides[dim - 1] = dims.Mul(like.strides[dim], sizes[dim]);
  like.sizes = std::move(sizes);
  like.dim = {};
  return like;
}

ValueId LocalCalls::Shifted(ValueId indices, int64_t size, const Placements& placements,
                            int32_t dim, const Mesh& mesh) {
  const Type type = TypeOf(indices);
  const Type number = Contiguous(Of(type, DType::kI64), {});
  int64_t stride = size;  // elements between neighbours on an axis; the last plain axis cuts last
  ValueId shifted = indices;
  for (size_t axis = placements.size(); axis-- > 0;) {
    if (!IsShard(placements[axis]) || placements[axis].dim != dim) continue;
    const Arg name = Arg::String(module().Intern(mesh.axes()[axis].name));
    const ValueId index = Call("strata.axis_index.default", {name}, number);
    const ValueId first = Call("aten.mul.Scalar", {Arg(index), Arg::Int(stride)}, number);
    shifted = Call("aten.sub.Tensor", {Arg(shifted), Arg(first)}, type);
    stride *= mesh.axes()[axis].size;
  }
  return shifted;
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
