#include <algorithm>
#include <cstdlib>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "prove/ops/elementwise.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

Tensor ViewOf(const Tensor& tensor, Sizes sizes, Sizes strides, int64_t offset) {
  return {tensor.domain(), tensor.storage(), std::move(sizes), std::move(strides), offset};
}

/// A dimension counted from the end is one from the front. Errors: out of range.
Result<size_t> DimAt(int64_t dim, int64_t rank) {
  const int64_t from_front = dim < 0 ? dim + rank : dim;
  if (from_front < 0 || from_front >= std::max<int64_t>(rank, 1))
    return Error(ErrorCode::kInvalid, "dimension {} of a tensor with {}", dim, rank);
  return static_cast<size_t>(from_front);
}

Result<Values> EvaluateView(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  std::optional<Sizes> sizes = call.IntegersAt(1, "size");
  if (!sizes) sizes = call.IntegersAt(1, "shape");
  if (!sizes) return Error(ErrorCode::kUnsupported, "a view as another type");
  const auto open = std::ranges::find(*sizes, -1);
  if (open != sizes->end()) {
    *open = 1;
    const int64_t others = Product(*sizes);
    *open = others == 0 ? 0 : a.numel() / others;
  }
  if (Product(*sizes) != a.numel())
    return Error(ErrorCode::kInvalid, "[{}] has not the elements of [{}]", fmt::join(*sizes, ", "),
                 fmt::join(a.sizes(), ", "));
  return Values{a.Reshape(*std::move(sizes))};
}

Result<Values> EvaluateAlias(Call& call) {
  STRATA_TRY(Tensor a, call.TensorAt(0));
  return Values{std::move(a)};
}

Result<Tensor> Permuted(const Tensor& a, const Sizes& order) {
  Sizes sizes, strides;
  for (const int64_t dim : order) {
    STRATA_TRY(const size_t from, DimAt(dim, a.dim()));
    sizes.push_back(a.sizes()[from]);
    strides.push_back(a.strides()[from]);
  }
  return ViewOf(a, std::move(sizes), std::move(strides), a.offset());
}

Result<Values> EvaluatePermute(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  const std::optional<Sizes> order = call.IntegersAt(1, "dims");
  if (!order || order->size() != a.sizes().size())
    return Error(ErrorCode::kInvalid, "not an order of its dimensions");
  STRATA_TRY(Tensor view, Permuted(a, *order));
  return Values{std::move(view)};
}

Result<Values> Transposed(const Tensor& a, int64_t first, int64_t second) {
  if (a.dim() == 0) return Values{a};
  STRATA_TRY(const size_t x, DimAt(first, a.dim()));
  STRATA_TRY(const size_t y, DimAt(second, a.dim()));
  Sizes order(a.sizes().size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[x], order[y]);
  STRATA_TRY(Tensor view, Permuted(a, order));
  return Values{std::move(view)};
}

Result<Values> EvaluateTranspose(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  return Transposed(a, call.IntegerAt(1, "dim0", 0), call.IntegerAt(2, "dim1", 1));
}

Result<Values> EvaluateT(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  if (a.dim() < 2) return Values{a};
  return Transposed(a, 0, 1);
}

Result<Values> EvaluateExpand(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  const std::optional<Sizes> sizes = call.IntegersAt(1, "size");
  if (!sizes) return Error(ErrorCode::kInvalid, "no sizes");
  STRATA_TRY(Tensor view, a.Expand(*sizes));
  return Values{std::move(view)};
}

/// slice(self, dim, start, end, step)
Result<Values> EvaluateSlice(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const size_t dim, DimAt(call.IntegerAt(1, "dim", 0), a.dim()));
  const int64_t size = a.sizes()[dim], step = call.IntegerAt(4, "step", 1);
  const auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const int64_t start = clamp(call.IntegerAt(2, "start", 0));
  const int64_t end = std::max(clamp(call.IntegerAt(3, "end", INT64_MAX)), start);
  Sizes sizes = a.sizes(), strides = a.strides();
  sizes[dim] = (end - start + step - 1) / step;
  strides[dim] *= step;
  return Values{
      ViewOf(a, std::move(sizes), std::move(strides), a.offset() + start * a.strides()[dim])};
}

Result<Values> EvaluateSelect(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const size_t dim, DimAt(call.IntegerAt(1, "dim", 0), a.dim()));
  STRATA_TRY(const size_t index, DimAt(call.IntegerAt(2, "index", 0), a.sizes()[dim]));
  Sizes sizes = a.sizes(), strides = a.strides();
  const auto at = static_cast<std::ptrdiff_t>(dim);
  const int64_t offset = a.offset() + static_cast<int64_t>(index) * strides[dim];
  sizes.erase(sizes.begin() + at);
  strides.erase(strides.begin() + at);
  return Values{ViewOf(a, std::move(sizes), std::move(strides), offset)};
}

Result<Values> EvaluateUnsqueeze(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const size_t dim, DimAt(call.IntegerAt(1, "dim", 0), a.dim() + 1));
  Sizes sizes = a.sizes(), strides = a.strides();
  const auto at = static_cast<std::ptrdiff_t>(dim);
  const int64_t stride = dim < sizes.size() ? sizes[dim] * strides[dim] : a.words_per_element();
  sizes.insert(sizes.begin() + at, 1);
  strides.insert(strides.begin() + at, stride);
  return Values{ViewOf(a, std::move(sizes), std::move(strides), a.offset())};
}

Result<Values> EvaluateSqueeze(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  const std::optional<Sizes> dims = call.IntegersAt(1, "dim");
  std::vector<bool> removed(a.sizes().size(), !dims);
  for (const int64_t dim : dims.value_or(Sizes{})) {
    STRATA_TRY(const size_t at, DimAt(dim, a.dim()));
    if (at < removed.size()) removed[at] = true;
  }
  Sizes sizes, strides;
  for (size_t dim = 0; dim < removed.size(); ++dim) {
    if (removed[dim] && a.sizes()[dim] == 1) continue;
    sizes.push_back(a.sizes()[dim]);
    strides.push_back(a.strides()[dim]);
  }
  return Values{ViewOf(a, std::move(sizes), std::move(strides), a.offset())};
}

/// Parts of these sizes along `dim`, as views.
Result<Values> SplitViews(const Tensor& a, const Sizes& parts, int64_t dim) {
  STRATA_TRY(const size_t at, DimAt(dim, a.dim()));
  Values views;
  int64_t begin = 0;
  for (const int64_t size : parts) {
    Sizes sizes = a.sizes();
    sizes[at] = size;
    views.emplace_back(
        ViewOf(a, std::move(sizes), a.strides(), a.offset() + begin * a.strides()[at]));
    begin += size;
  }
  if (begin != a.sizes()[at])
    return Error(ErrorCode::kInvalid, "parts of {} of {} elements", begin, a.sizes()[at]);
  return views;
}

Result<Values> EvaluateSplit(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  const int64_t dim = call.IntegerAt(2, "dim", 0);
  std::optional<Sizes> parts = call.IntegersAt(1, "split_sizes");
  if (!parts) return Error(ErrorCode::kInvalid, "no sizes");
  const Argument* literal = call.Find(1, "split_size");
  if (literal != nullptr && std::holds_alternative<int64_t>(literal->value)) {
    STRATA_TRY(const size_t at, DimAt(dim, a.dim()));
    const int64_t size = std::max<int64_t>(parts->front(), 1);
    parts->clear();
    for (int64_t begin = 0; begin < a.sizes()[at]; begin += size)
      parts->push_back(std::min(size, a.sizes()[at] - begin));
  }
  return SplitViews(a, *parts, dim);
}

Result<Values> EvaluateSplitCopy(Call& call) {
  STRATA_TRY(Values parts, EvaluateSplit(call));
  for (Value& part : parts)
    part = std::get<Tensor>(part).Copy();
  return parts;
}

Result<Values> EvaluateUnbind(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const size_t dim, DimAt(call.IntegerAt(1, "dim", 0), a.dim()));
  Values views;
  const auto at = static_cast<std::ptrdiff_t>(dim);
  for (int64_t index = 0; index < a.sizes()[dim]; ++index) {
    Sizes sizes = a.sizes(), strides = a.strides();
    const int64_t offset = a.offset() + index * strides[dim];
    sizes.erase(sizes.begin() + at);
    strides.erase(strides.begin() + at);
    views.emplace_back(ViewOf(a, std::move(sizes), std::move(strides), offset));
  }
  return views;
}

/// The elements (i, i + offset) of the dimensions `first` and `second`, as the last dimension.
Result<Tensor> Diagonal(const Tensor& a, int64_t offset, int64_t first, int64_t second) {
  STRATA_TRY(const size_t x, DimAt(first, a.dim()));
  STRATA_TRY(const size_t y, DimAt(second, a.dim()));
  if (a.dim() < 2 || x == y) return Error(ErrorCode::kInvalid, "a diagonal of one dimension");
  const int64_t row = std::max<int64_t>(-offset, 0), column = std::max<int64_t>(offset, 0);
  const int64_t count = std::max<int64_t>(std::min(a.sizes()[x] - row, a.sizes()[y] - column), 0);
  Sizes sizes, strides;
  for (size_t dim = 0; dim < a.sizes().size(); ++dim) {
    if (dim == x || dim == y) continue;
    sizes.push_back(a.sizes()[dim]);
    strides.push_back(a.strides()[dim]);
  }
  sizes.push_back(count);
  strides.push_back(a.strides()[x] + a.strides()[y]);
  const int64_t skipped = row * a.strides()[x] + column * a.strides()[y];
  return ViewOf(a, std::move(sizes), std::move(strides), a.offset() + (count > 0 ? skipped : 0));
}

/// The diagonal that the arguments from `position` on name: offset, dim1, dim2.
Result<Tensor> DiagonalAt(const Call& call, const Tensor& a, size_t position) {
  return Diagonal(a, call.IntegerAt(position, "offset", 0), call.IntegerAt(position + 1, "dim1", 0),
                  call.IntegerAt(position + 2, "dim2", 1));
}

/// diagonal(self, offset, dim1, dim2)
Result<Values> EvaluateDiagonal(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(Tensor view, DiagonalAt(call, a, 1));
  return Values{std::move(view)};
}

Result<Values> EvaluateDiagonalCopy(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor view, DiagonalAt(call, a, 1));
  return Values{view.Copy()};
}

/// diagonal_backward(grad_output, input_sizes, offset, dim1, dim2): zeros around the gradient.
Result<Values> EvaluateDiagonalBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  const std::optional<Sizes> sizes = call.IntegersAt(1, "input_sizes");
  if (!sizes) return Error(ErrorCode::kInvalid, "no sizes");
  Tensor result(gradient.domain(), *sizes, 0);
  STRATA_TRY(const Tensor target, DiagonalAt(call, result, 2));
  target.Write(gradient.Read());
  return Values{std::move(result)};
}

/// diagonal_scatter(self, source, offset, dim1, dim2)
Result<Values> EvaluateDiagonalScatter(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor source, call.TensorAt(1));
  Tensor result = a.Copy();
  STRATA_TRY(const Tensor target, DiagonalAt(call, result, 2));
  if (source.sizes() != target.sizes() || source.domain() != target.domain())
    return Error(ErrorCode::kInvalid, "other sizes than those of the diagonal");
  target.Write(source.Read());
  return Values{std::move(result)};
}

/// diag_embed(self, offset, dim1, dim2): matrices with the last dimension as their diagonal.
Result<Values> EvaluateDiagonalEmbedding(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  if (a.dim() == 0) return Error(ErrorCode::kInvalid, "a number has no diagonal");
  const int64_t offset = call.IntegerAt(1, "offset", 0);
  STRATA_TRY(const size_t first, DimAt(call.IntegerAt(2, "dim1", -2), a.dim() + 1));
  STRATA_TRY(const size_t second, DimAt(call.IntegerAt(3, "dim2", -1), a.dim() + 1));
  Sizes sizes(a.sizes().begin(), a.sizes().end() - 1);
  const int64_t side = a.sizes().back() + std::abs(offset);
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(std::min(first, second)), side);
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(std::max(first, second)), side);
  Tensor result(a.domain(), std::move(sizes), 0);
  STRATA_TRY(const Tensor target,
             Diagonal(result, offset, static_cast<int64_t>(first), static_cast<int64_t>(second)));
  target.Write(a.Read());
  return Values{std::move(result)};
}

/// as_strided(self, size, stride, storage_offset), in elements.
Result<Values> EvaluateAsStrided(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  std::optional<Sizes> sizes = call.IntegersAt(1, "size"), strides = call.IntegersAt(2, "stride");
  if (!sizes || !strides || sizes->size() != strides->size())
    return Error(ErrorCode::kInvalid, "no sizes and strides");
  const int64_t words = a.words_per_element();
  const int64_t offset = call.Find(3, "storage_offset") == nullptr
                             ? a.offset()
                             : call.IntegerAt(3, "storage_offset", 0) * words;
  int64_t last = offset;
  for (size_t dim = 0; dim < sizes->size(); ++dim) {
    (*strides)[dim] *= words;
    last += std::max<int64_t>((*sizes)[dim] - 1, 0) * (*strides)[dim];
  }
  if (last + words > static_cast<int64_t>(a.storage()->words.size()) && Product(*sizes) > 0)
    return Error(ErrorCode::kInvalid, "a view beyond its memory");
  return Values{ViewOf(a, *std::move(sizes), *std::move(strides), offset)};
}

/// [..., 2] numbers as complex ones.
Result<Values> EvaluateViewAsComplex(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  if (a.dim() == 0 || a.sizes().back() != 2 || a.strides().back() != 1)
    return Error(ErrorCode::kInvalid, "the last dimension is not a pair");
  Sizes sizes = a.sizes(), strides = a.strides();
  sizes.pop_back();
  strides.pop_back();
  return Values{
      Tensor(Domain::kComplex, a.storage(), std::move(sizes), std::move(strides), a.offset())};
}

Result<Values> EvaluateViewAsReal(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  if (a.domain() != Domain::kComplex) return Error(ErrorCode::kInvalid, "not complex");
  Sizes sizes = a.sizes(), strides = a.strides();
  sizes.push_back(2);
  strides.push_back(1);
  return Values{
      Tensor(Domain::kFloat, a.storage(), std::move(sizes), std::move(strides), a.offset())};
}

Result<Values> EvaluateConj(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  if (a.domain() != Domain::kComplex) return Values{a};
  std::vector<uint64_t> words = a.Read();
  for (size_t i = 1; i < words.size(); i += 2)
    words[i] = Neg(words[i]);
  return Values{OfWords(Domain::kComplex, a.sizes(), std::move(words))};
}

constexpr OpDefinition kViewsOps[] = {
    {"ao.offload", EvaluateAlias, false, true},
    {"ao.reload", EvaluateAlias, false, true},
    {"ao.wait_tensor", EvaluateAlias, false, true},
    {"aten._conj", EvaluateConj, false, true},
    {"aten._unsafe_view", EvaluateView, true},
    {"_c10d_functional.wait_tensor", EvaluateAlias, true},
    {"aten.alias", EvaluateAlias, true},
    {"aten.as_strided", EvaluateAsStrided, false, true},
    {"aten.conj", EvaluateConj, false, true},
    {"aten.detach", EvaluateAlias, true},
    {"aten.diag_embed", EvaluateDiagonalEmbedding, false, true},
    {"aten.diagonal", EvaluateDiagonal, true},
    {"aten.diagonal_backward", EvaluateDiagonalBackward, false, true},
    {"aten.diagonal_copy", EvaluateDiagonalCopy, true},
    {"aten.diagonal_scatter", EvaluateDiagonalScatter, false, true},
    {"aten.expand", EvaluateExpand, true},
    {"aten.permute", EvaluatePermute, true},
    {"aten.reshape", EvaluateView, true},
    {"aten.select", EvaluateSelect, true},
    {"aten.slice", EvaluateSlice, true},
    {"aten.split", EvaluateSplit, true},
    {"aten.split_with_sizes", EvaluateSplit, true},
    {"aten.split_with_sizes_copy", EvaluateSplitCopy, true},
    {"aten.squeeze", EvaluateSqueeze, true},
    {"aten.t", EvaluateT, true},
    {"aten.transpose", EvaluateTranspose, true},
    {"aten.unbind", EvaluateUnbind, true},
    {"aten.unsafe_split", EvaluateSplitCopy, true},
    {"aten.unsafe_split_with_sizes", EvaluateSplitCopy, true},
    {"aten.unsqueeze", EvaluateUnsqueeze, true},
    {"aten.view", EvaluateView, true},
    {"aten.view_as_complex", EvaluateViewAsComplex, false, true},
    {"aten.view_as_real", EvaluateViewAsReal, false, true},
};

}  // namespace

std::span<const OpDefinition> ViewOps() {
  return kViewsOps;
}

}  // namespace strata::prove
