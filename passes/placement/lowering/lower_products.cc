#include "passes/placement/lowering/lower_products.h"

#include <optional>
#include <utility>

#include "passes/placement/lowering/local_calls.h"

namespace strata {
namespace {

constexpr int64_t kAlignment = 16;  // bytes

/// A grouped product whose operands and result begin their rows at multiples of kAlignment.
class AlignedProduct : public LocalCalls {
 public:
  using LocalCalls::LocalCalls;

  /// Gives the operand rows of a width that is aligned, if they have none.
  void AlignOperand(uint32_t position) {
    const ValueId operand = graph().args(node())[position].value();
    const Type type = TypeOf(operand);
    if (!type.has_strides || type.sizes.size() < 2) return;
    const size_t last = type.sizes.size() - 1;
    const bool is_transposed = Number(type.strides[last]) != 1;
    const auto pitch = Number(type.strides[is_transposed ? last : last - 1]);
    if (!pitch || *pitch == Aligned(*pitch, type)) return;
    ValueId aligned = is_transposed ? Transposed(operand) : operand;
    aligned = WithWideRows(aligned);
    if (is_transposed) aligned = Transposed(aligned);
    rewriter().SetSlot(node(), graph().node(node()).args_begin + position, Arg(aligned));
  }

  /// Gives the result such strides. Returns whether it had others.
  bool AlignResult() {
    const ValueId result = graph().result(node());
    Type type = TypeOf(result);
    const auto width = Number(type.sizes.back());
    if (!type.has_strides || !width || *width == Aligned(*width, type)) return false;
    DimTable& dims = module().dims();
    std::vector<DimId> wide = type.sizes;
    wide.back() = dims.Const(Aligned(*width, type));
    type.strides = Contiguous(type, std::move(wide)).strides;
    rewriter().SetType(result, module().types().Intern(type));
    return true;
  }

 private:
  std::optional<int64_t> Number(DimId dim) const { return module().dims().AsConst(dim); }

  static int64_t Aligned(int64_t elements, const Type& type) {
    const int64_t unit = kAlignment / ByteSize(type.dtype);
    return (elements + unit - 1) / unit * unit;
  }

  ValueId Root(ValueId value) const {
    const ValueId root = graph().value(value).alias_of;
    return root.valid() ? root : value;
  }

  ValueId Transposed(ValueId value) {
    Type type = TypeOf(value);
    const size_t last = type.sizes.size() - 1;
    std::swap(type.sizes[last - 1], type.sizes[last]);
    std::swap(type.strides[last - 1], type.strides[last]);
    const ValueId view = Call("aten.transpose.int", {Arg(value), Arg::Int(-2), Arg::Int(-1)}, type);
    rewriter().SetAlias(view, Root(value));
    return view;
  }

  /// A copy of `value`, a view of the first columns of wider memory.
  ValueId WithWideRows(ValueId value) {
    const Type type = TypeOf(value);
    const int64_t width = *Number(type.sizes.back()), wide = Aligned(width, type);
    std::vector<DimId> sizes = type.sizes;
    sizes.back() = module().dims().Const(wide);
    const Type padded = Contiguous(type, std::move(sizes));
    const Arg widths = rewriter().MakeSpan(ArgKind::kList, {{Arg::Int(0), Arg::Int(wide - width)}});
    const ValueId copy = Call("aten.constant_pad_nd.default", {Arg(value), widths}, padded);
    Type part = padded;
    part.sizes = type.sizes;
    const ValueId view =
        Call("aten.slice.Tensor", {Arg(copy), Arg::Int(-1), Arg::Int(0), Arg::Int(width)}, part);
    rewriter().SetAlias(view, copy);
    return view;
  }
};

}  // namespace

bool AlignProduct(Rewriter& rewriter, NodeId node) {
  rewriter.SetCursorBefore(node);
  AlignedProduct product(rewriter, node);
  product.AlignOperand(0);
  product.AlignOperand(1);
  return product.AlignResult();
}

}  // namespace strata
