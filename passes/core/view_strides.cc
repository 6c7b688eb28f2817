#include "passes/core/view_strides.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/module.h"
#include "ir/ops.h"

namespace strata {
namespace {

class ViewStrides {
 public:
  ViewStrides(Graph& graph, NodeId call, size_t result)
      : graph_(graph),
        dims_(graph.module().dims()),
        call_(call),
        result_(result),
        from_(TypeOf(graph.args(call)[0].value())),
        to_(TypeOf(graph.result(call, result))) {}

  Type Run() {
    to_.dim = from_.dim;
    const bool are_known = from_.has_strides && to_.has_strides;
    if (are_known && SetStrides(BaseName(graph_.op(call_)))) return to_;
    to_.has_strides = false;
    to_.strides.clear();
    to_.dim = {};
    return to_;
  }

 private:
  const Type& TypeOf(ValueId value) const {
    return graph_.module().types()[graph_.value(value).type];
  }
  size_t rank() const { return from_.sizes.size(); }

  const Arg* FindArg(size_t position, std::string_view name) const {
    const auto args = graph_.args(call_);
    return position < args.size() ? &args[position] : graph_.FindKwarg(call_, name);
  }
  DimId Number(size_t position, std::string_view name, int64_t otherwise) const {
    const Arg* arg = FindArg(position, name);
    if (arg != nullptr && arg->kind() == ArgKind::kInt) return dims_.Const(arg->as_int());
    if (arg != nullptr && arg->kind() == ArgKind::kDim) return arg->dim();
    return arg == nullptr || arg->is_none() ? dims_.Const(otherwise) : DimId{};
  }
  static size_t Wrap(int64_t dim, size_t rank) {
    return static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(rank) : dim);
  }
  std::optional<size_t> Dim(size_t position, size_t rank, int64_t otherwise = 0) const {
    const DimId number = Number(position, "dim", otherwise);
    const auto dim = number.valid() ? dims_.AsConst(number) : std::nullopt;
    return dim && Wrap(*dim, rank) < rank ? std::optional(Wrap(*dim, rank)) : std::nullopt;
  }

  /// A negative index counts from the end of a dimension.
  DimId FromStart(DimId index, size_t dim) {
    const auto number = dims_.AsConst(index);
    return number && *number < 0 ? dims_.Add(from_.sizes[dim], index) : index;
  }

  void Skip(DimId elements) {
    const DimId now = to_.dim.valid() ? to_.dim : dims_.Const(0);
    const DimId offset = dims_.Add(now, elements);
    to_.dim = dims_.AsConst(offset) == 0 ? DimId{} : offset;
  }

  /// The dimensions of the result are those of the operand, in order `dims`.
  bool Pick(const std::vector<size_t>& dims) {
    if (dims.size() != to_.sizes.size()) return false;
    for (size_t i = 0; i < dims.size(); ++i)
      to_.strides[i] = from_.strides[dims[i]];
    return true;
  }
  std::vector<size_t> AllDims() const {
    std::vector<size_t> dims(rank());
    for (size_t i = 0; i < dims.size(); ++i)
      dims[i] = i;
    return dims;
  }

  bool SetStrides(std::string_view base) {
    if (TraitsOf(graph_.op(call_)).mutates || base == "alias" || base == "detach" ||
        base == "wait_tensor")
      return from_.sizes.size() == to_.sizes.size() && Pick(AllDims());
    if (base == "t" || base == "transpose") return Transpose(base == "t");
    if (base == "permute") return Permute();
    if (base == "unsqueeze") return Unsqueeze();
    if (base == "squeeze") return Squeeze();
    if (base == "expand") return Expand();
    if (base == "slice") return Slice();
    if (base == "select" || base == "unbind") return Select(base == "unbind");
    if (base.starts_with("split") || base == "chunk") return Split();
    if (base == "view_as_complex" || base == "view_as_real") return Complex(base.ends_with('l'));
    if (base == "view" || base == "reshape" || base == "_unsafe_view") return View();
    return false;
  }

  bool Transpose(bool is_matrix) {
    std::vector<size_t> dims = AllDims();
    if (is_matrix && rank() < 2) return Pick(dims);
    const auto first = is_matrix ? std::optional<size_t>(0) : Dim(1, rank());
    const auto second = is_matrix ? std::optional<size_t>(1) : Dim(2, rank());
    if (!first || !second) return false;
    std::swap(dims[*first], dims[*second]);
    return Pick(dims);
  }

  bool Permute() {
    const Arg* list = FindArg(1, "dims");
    if (list == nullptr || !list->is_span()) return false;
    std::vector<size_t> dims;
    for (const Arg& element : graph_.elements(*list))
      dims.push_back(Wrap(element.as_int(), rank()));
    return Pick(dims);
  }

  bool Unsqueeze() {
    const auto dim = Dim(1, rank() + 1);
    if (!dim || to_.sizes.size() != rank() + 1) return false;
    const DimId step =
        *dim < rank() ? dims_.Mul(from_.sizes[*dim], from_.strides[*dim]) : dims_.Const(1);
    to_.strides = from_.strides;
    to_.strides.insert(to_.strides.begin() + static_cast<std::ptrdiff_t>(*dim), step);
    return true;
  }

  /// Dimensions of size 1 go, as many as the result lacks.
  bool Squeeze() {
    std::vector<size_t> dims;
    for (size_t dim = 0; dim < rank(); ++dim) {
      const size_t at = dims.size();
      const bool stays =
          at < to_.sizes.size() && from_.sizes[dim] == to_.sizes[at] &&
          (dims_.AsConst(from_.sizes[dim]) != 1 || rank() - dim <= to_.sizes.size() - at);
      if (stays) dims.push_back(dim);
    }
    return Pick(dims);
  }

  bool Expand() {
    const size_t added = to_.sizes.size() - rank();
    for (size_t dim = 0; dim < to_.sizes.size(); ++dim) {
      const bool is_repeated = dim < added || !(from_.sizes[dim - added] == to_.sizes[dim]);
      to_.strides[dim] = is_repeated ? dims_.Const(0) : from_.strides[dim - added];
    }
    return true;
  }

  bool Slice() {
    const auto dim = Dim(1, rank());
    const DimId start = Number(2, "start", 0), step = Number(4, "step", 1);
    if (!dim || !start.valid() || !step.valid()) return false;
    Skip(dims_.Mul(FromStart(start, *dim), from_.strides[*dim]));
    if (!Pick(AllDims())) return false;
    to_.strides[*dim] = dims_.Mul(to_.strides[*dim], step);
    return true;
  }

  bool Select(bool is_unbind) {
    const auto dim = Dim(1, rank());
    const DimId index =
        is_unbind ? dims_.Const(static_cast<int64_t>(result_)) : Number(2, "index", 0);
    if (!dim || !index.valid()) return false;
    Skip(dims_.Mul(FromStart(index, *dim), from_.strides[*dim]));
    std::vector<size_t> dims = AllDims();
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(*dim));
    return Pick(dims);
  }

  bool Split() {
    const auto dim = Dim(2, rank());
    if (!dim) return false;
    for (size_t before = 0; before < result_; ++before)
      Skip(dims_.Mul(TypeOf(graph_.result(call_, before)).sizes[*dim], from_.strides[*dim]));
    return Pick(AllDims());
  }

  bool Complex(bool to_real) {
    const size_t shared = std::min(rank(), to_.sizes.size());
    for (size_t dim = 0; dim < shared; ++dim) {
      to_.strides[dim] = to_real ? dims_.Mul(from_.strides[dim], dims_.Const(2))
                                 : dims_.FloorDiv(from_.strides[dim], dims_.Const(2));
    }
    if (to_real) to_.strides.back() = dims_.Const(1);
    if (!to_.dim.valid()) return true;
    to_.dim =
        to_real ? dims_.Mul(to_.dim, dims_.Const(2)) : dims_.FloorDiv(to_.dim, dims_.Const(2));
    return true;
  }

  /// Runs of dimensions that follow each other in memory are cut anew.
  bool View() {
    if (IsContiguous(from_)) {
      to_.strides = graph_.module().types().Contiguous(to_, to_.sizes).strides;
      return true;
    }
    std::vector<int64_t> sizes, strides, wanted;
    for (size_t dim = 0; dim < rank(); ++dim) {
      const auto size = dims_.AsConst(from_.sizes[dim]), stride = dims_.AsConst(from_.strides[dim]);
      if (!size || !stride) return false;
      if (*size == 1) continue;
      sizes.push_back(*size);
      strides.push_back(*stride);
    }
    for (const DimId id : to_.sizes) {
      const auto size = dims_.AsConst(id);
      if (!size || *size == 0) return false;
      wanted.push_back(*size);
    }
    size_t next = wanted.size();  // the dimensions of the result from here on have their strides
    for (size_t end = sizes.size(); end > 0;) {
      size_t begin = end - 1;
      int64_t run = sizes[begin];
      while (begin > 0 && strides[begin - 1] == sizes[begin] * strides[begin])
        run *= sizes[--begin];
      int64_t step = strides[end - 1];
      for (; next > 0 && (run > 1 || wanted[next - 1] == 1); --next) {
        if (run % wanted[next - 1] != 0) return false;
        to_.strides[next - 1] = dims_.Const(step);
        step *= wanted[next - 1];
        run /= wanted[next - 1];
      }
      if (run != 1) return false;
      end = begin;
    }
    for (; next > 0; --next)
      to_.strides[next - 1] = dims_.Const(1);
    return true;
  }

  bool IsContiguous(const Type& type) const {
    DimId step = dims_.Const(1);
    for (size_t dim = type.sizes.size(); dim-- > 0;) {
      if (dims_.AsConst(type.sizes[dim]) != 1 && !dims_.ProvablyEqual(type.strides[dim], step))
        return false;
      step = dims_.Mul(step, type.sizes[dim]);
    }
    return true;
  }

  Graph& graph_;
  DimTable& dims_;
  const NodeId call_;
  const size_t result_;
  const Type from_;
  Type to_;
};

}  // namespace

Type TypeOfView(Graph& graph, NodeId call, size_t i) {
  return ViewStrides(graph, call, i).Run();
}

}  // namespace strata
