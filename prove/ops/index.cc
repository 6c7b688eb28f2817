#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "prove/ops/elementwise.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

using Words = std::vector<uint64_t>;

/// What an element is that an index out of range reads. ATen would fail there.
uint64_t OutOfRange(Domain domain) {
  return domain == Domain::kInteger ? 0x5555555555555555U : kUndefined;
}

/// The position that an index names; -1: out of range.
int64_t PositionOf(uint64_t index, int64_t size) {
  const auto at = static_cast<int64_t>(index);
  return at < 0 || at >= size ? -1 : at;
}

/// The same, counted from the end if negative: as of `index`, which `gather` does not do.
int64_t PositionFromEitherEnd(uint64_t index, int64_t size) {
  const auto at = static_cast<int64_t>(index);
  return PositionOf(static_cast<uint64_t>(at < 0 ? at + size : at), size);
}

/// What a write out of range makes of a tensor.
Values OutOfRangeLike(const Tensor& a) {
  return Values{Tensor(a.domain(), a.sizes(), OutOfRange(a.domain()))};
}

Result<size_t> DimOf(const Call& call, const Tensor& a, size_t position) {
  const int64_t dim = call.IntegerAt(position, "dim", 0);
  const int64_t from_front = dim < 0 ? dim + a.dim() : dim;
  if (from_front < 0 || from_front >= a.dim())
    return Error(ErrorCode::kInvalid, "dimension {} of a tensor with {}", dim, a.dim());
  return static_cast<size_t>(from_front);
}

/// Rows of a [rows, …] tensor, as words.
int64_t RowWords(const Tensor& a) {
  return a.size(0) == 0 ? 0 : a.numel() / a.size(0) * a.words_per_element();
}

/// Copies row `from` of `rows` to the end of `out`.
void AppendRow(const Words& rows, int64_t width, int64_t from, Domain domain, Words& out) {
  if (from < 0) {
    out.insert(out.end(), static_cast<size_t>(width), OutOfRange(domain));
    return;
  }
  const auto begin = rows.begin() + from * width;
  out.insert(out.end(), begin, begin + width);
}

/// embedding(weight, indices)
Result<Values> EvaluateEmbedding(Call& call) {
  STRATA_TRY(const Tensor weight, call.TensorAt(0));
  STRATA_TRY(const Tensor indices, call.TensorAt(1, "indices"));
  if (weight.dim() != 2) return Error(ErrorCode::kInvalid, "weights that are not a matrix");
  const Words rows = weight.Read();
  Words words;
  for (const uint64_t index : indices.Read())
    AppendRow(rows, RowWords(weight), PositionOf(index, weight.size(0)), weight.domain(), words);
  Sizes sizes = indices.sizes();
  sizes.push_back(weight.size(1));
  return Values{OfWords(weight.domain(), std::move(sizes), std::move(words))};
}

/// embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
Result<Values> EvaluateEmbeddingBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  STRATA_TRY(const Tensor indices, call.TensorAt(1, "indices"));
  if (call.FlagAt(4, "scale_grad_by_freq"))
    return Error(ErrorCode::kUnsupported, "gradients scaled by frequency");
  const int64_t count = call.IntegerAt(2, "num_weights", 0);
  const int64_t padding = call.IntegerAt(3, "padding_idx", -1);
  const int64_t width = gradient.dim() == 0 ? 0 : gradient.sizes().back();
  Tensor result(Domain::kFloat, {count, width}, 0);
  Words& sums = result.storage()->words;
  const Words rows = gradient.Read(), tokens = indices.Read();
  for (size_t row = 0; row < tokens.size(); ++row) {
    const int64_t at = PositionOf(tokens[row], count);
    if (at < 0 || at == padding) continue;
    for (int64_t column = 0; column < width; ++column) {
      Residue& sum = sums[static_cast<size_t>(at * width + column)];
      sum = prove::Add(sum, rows[row * static_cast<size_t>(width) + static_cast<size_t>(column)]);
    }
  }
  return Values{std::move(result)};
}

/// index_select(self, dim, index)
Result<Values> EvaluateIndexSelect(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const size_t dim, DimOf(call, a, 1));
  STRATA_TRY(const Tensor index, call.TensorAt(2, "index"));
  Sizes sizes = a.sizes();
  const Words positions = index.Read();
  sizes[dim] = static_cast<int64_t>(positions.size());
  Tensor result(a.domain(), sizes, OutOfRange(a.domain()));
  Sizes part = a.sizes();
  part[dim] = 1;
  for (size_t i = 0; i < positions.size(); ++i) {
    const int64_t from = PositionOf(positions[i], a.sizes()[dim]);
    if (from < 0) continue;
    const Tensor source(a.domain(), a.storage(), part, a.strides(),
                        a.offset() + from * a.strides()[dim]);
    const Tensor target(a.domain(), result.storage(), part, result.strides(),
                        static_cast<int64_t>(i) * result.strides()[dim]);
    target.Write(source.Read());
  }
  return Values{std::move(result)};
}

/// Offsets in `a` of the elements that `index` names along `dim`; -1: out of range. The index is
/// at most as large as the tensor in the other dimensions.
std::vector<int64_t> OffsetsAlong(const Tensor& a, size_t dim, const Tensor& index) {
  Sizes strides = a.strides();
  strides[dim] = 0;
  const Tensor starts(Domain::kInteger, a.storage(), index.sizes(), strides, a.offset());
  const Words positions = index.Read();
  std::vector<int64_t> offsets;
  offsets.reserve(positions.size());
  ForEachOffset(starts, [&](int64_t at) {
    const int64_t position = PositionOf(positions[offsets.size()], a.sizes()[dim]);
    offsets.push_back(position < 0 ? -1 : at + position * a.strides()[dim]);
  });
  return offsets;
}

/// Errors: dimensions that do not fit.
Status CheckIndex(const Tensor& a, const Tensor& index, size_t dim) {
  bool fits = a.dim() == index.dim() && a.domain() != Domain::kComplex;
  for (size_t i = 0; fits && i < a.sizes().size(); ++i)
    fits = i == dim || index.sizes()[i] <= a.sizes()[i];
  if (!fits) return Error(ErrorCode::kInvalid, "an index that does not fit its tensor");
  return Ok();
}

/// gather(self, dim, index)
Result<Values> EvaluateGather(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const size_t dim, DimOf(call, a, 1));
  STRATA_TRY(const Tensor index, call.TensorAt(2, "index"));
  STRATA_RETURN_IF_ERROR(CheckIndex(a, index, dim));
  Words words;
  for (const int64_t offset : OffsetsAlong(a, dim, index))
    words.push_back(offset < 0 ? OutOfRange(a.domain())
                               : a.storage()->words[static_cast<size_t>(offset)]);
  return Values{OfWords(a.domain(), index.sizes(), std::move(words))};
}

/// What is at the place of an index becomes, where `source` is scattered there. `reduce`: "add",
/// "multiply" or "", to overwrite.
uint64_t Scattered(uint64_t word, uint64_t source, std::string_view reduce, Domain domain) {
  const bool is_integer = domain == Domain::kInteger;
  if (reduce == "add") return is_integer ? word + source : prove::Add(word, source);
  if (reduce == "multiply") return is_integer ? word * source : prove::Mul(word, source);
  return source;
}

/// Operands of scatter operators: (self, dim, index, src or value, ...).
struct Scatter {
  Tensor result;                 ///< a copy of self
  Words added;                   ///< elements of src, in the order of the index
  std::vector<int64_t> offsets;  ///< where each is put in the result; -1: out of range

  bool IsInRange() const { return std::ranges::count(offsets, -1) == 0; }
};

Result<Scatter> ReadScatter(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const size_t dim, DimOf(call, a, 1));
  STRATA_TRY(const Tensor index, call.TensorAt(2, "index"));
  STRATA_TRY(const Tensor source, call.TensorAt(3, "src"));
  STRATA_RETURN_IF_ERROR(CheckIndex(a, index, dim));
  Tensor values = ConvertTo(source, a.domain());
  if (values.dim() == 0) {
    STRATA_TRY(values, values.Expand(index.sizes()));
  } else {
    values =
        Tensor(values.domain(), values.storage(), index.sizes(), values.strides(), values.offset());
  }
  Tensor result = a.Copy();
  std::vector<int64_t> offsets = OffsetsAlong(result, dim, index);
  return Scatter{std::move(result), values.Read(), std::move(offsets)};
}

/// scatter(self, dim, index, src or value, reduce), scatter_add(self, dim, index, src)
template <bool kAdd>
Result<Values> EvaluateScatter(Call& call) {
  STRATA_TRY(Scatter scatter, ReadScatter(call));
  if (!scatter.IsInRange()) return OutOfRangeLike(scatter.result);
  const std::string reduce = kAdd ? "add" : call.TextAt(SIZE_MAX, "reduce");
  Words& words = scatter.result.storage()->words;
  for (size_t i = 0; i < scatter.offsets.size(); ++i) {
    uint64_t& word = words[static_cast<size_t>(scatter.offsets[i])];
    word = Scattered(word, scatter.added[i], reduce, scatter.result.domain());
  }
  return Values{std::move(scatter.result)};
}

uint64_t Combined(uint64_t a, uint64_t b, std::string_view reduce, Domain domain) {
  const bool is_integer = domain == Domain::kInteger;
  if (reduce == "prod") return is_integer ? a * b : prove::Mul(a, b);
  if (reduce == "sum" || reduce == "mean") return is_integer ? a + b : prove::Add(a, b);
  if (!is_integer && !IsNumber(a) && a > kMinusInfinity) return a;
  if (!is_integer && !IsNumber(b) && b > kMinusInfinity) return b;
  const bool is_larger = is_integer ? Signed(a) > Signed(b) : Compare(a, b) > 0;
  return is_larger == (reduce == "amax") ? a : b;
}

/// scatter_reduce(self, dim, index, src, reduce, include_self)
Result<Values> EvaluateScatterReduce(Call& call) {
  STRATA_TRY(Scatter scatter, ReadScatter(call));
  const Domain domain = scatter.result.domain();
  const std::string reduce = call.TextAt(4, "reduce");
  if (domain == Domain::kInteger && reduce == "mean")
    return Error(ErrorCode::kUnsupported, "a mean of integers by index");
  if (!scatter.IsInRange()) return OutOfRangeLike(scatter.result);
  Words& words = scatter.result.storage()->words;
  std::vector<int64_t> counts(words.size(), call.FlagAt(5, "include_self", true) ? 1 : 0);
  for (size_t i = 0; i < scatter.offsets.size(); ++i) {
    const auto at = static_cast<size_t>(scatter.offsets[i]);
    const uint64_t added = scatter.added[i];
    words[at] = counts[at]++ == 0 ? added : Combined(words[at], added, reduce, domain);
  }
  for (size_t at = 0; at < words.size() && reduce == "mean"; ++at)
    if (counts[at] > 1) words[at] = prove::Div(words[at], FromInteger(counts[at]));
  return Values{std::move(scatter.result)};
}

/// Indices of index.Tensor and index_put, one for each of the first dimensions; none: all of it.
struct Indices {
  Sizes sizes;                   ///< of the result
  std::vector<int64_t> offsets;  ///< of its elements in the tensor; -1: out of range
};

Result<Indices> ReadIndices(const Call& call, const Tensor& a) {
  const Argument* argument = call.Find(1, "indices");
  const auto* list =
      argument != nullptr ? std::get_if<std::vector<Argument>>(&argument->value) : nullptr;
  if (list == nullptr || list->size() > a.sizes().size())
    return Error(ErrorCode::kInvalid, "indices that do not fit the tensor");
  // The indexed dimensions must be neighbours: their place is then that of the result's.
  size_t begin = 0;
  while (begin < list->size() && (*list)[begin].is_none())
    ++begin;
  std::vector<Tensor> indices;
  size_t end = begin;
  for (; end < list->size() && (*list)[end].is_tensor(); ++end)
    indices.push_back(std::get<Tensor>((*list)[end].value));
  for (size_t i = end; i < list->size(); ++i) {
    if (!(*list)[i].is_none()) return Error(ErrorCode::kUnsupported, "indices that are apart");
  }
  Sizes common;
  for (const Tensor& index : indices) {
    STRATA_TRY(common, BroadcastSizes(common, index.sizes()));
  }
  // Offsets of the indexed part.
  std::vector<int64_t> inner(static_cast<size_t>(Product(common)), 0);
  for (size_t i = 0; i < indices.size(); ++i) {
    STRATA_TRY(const Tensor index, indices[i].Expand(common));
    const Words positions = index.Read();
    for (size_t k = 0; k < inner.size(); ++k) {
      const int64_t position = PositionFromEitherEnd(positions[k], a.sizes()[begin + i]);
      const bool is_valid = inner[k] >= 0 && position >= 0;
      inner[k] = is_valid ? inner[k] + position * a.strides()[begin + i] : -1;
    }
  }
  Indices result;
  const auto at = [](size_t index) { return static_cast<std::ptrdiff_t>(index); };
  const Sizes first(a.sizes().begin(), a.sizes().begin() + at(begin)),
      last(a.sizes().begin() + at(end), a.sizes().end());
  result.sizes = first;
  result.sizes.insert(result.sizes.end(), common.begin(), common.end());
  result.sizes.insert(result.sizes.end(), last.begin(), last.end());
  const Tensor outer(a.domain(), a.storage(), first,
                     Sizes(a.strides().begin(), a.strides().begin() + at(begin)), a.offset());
  const Tensor rest(a.domain(), a.storage(), last,
                    Sizes(a.strides().begin() + at(end), a.strides().end()), 0);
  ForEachOffset(outer, [&](int64_t x) {
    for (const int64_t y : inner) {
      ForEachOffset(rest, [&](int64_t z) { result.offsets.push_back(y < 0 ? -1 : x + y + z); });
    }
  });
  return result;
}

/// index(self, indices)
Result<Values> EvaluateIndex(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(Indices indices, ReadIndices(call, a));
  Words words;
  for (const int64_t offset : indices.offsets) {
    for (int64_t part = 0; part < a.words_per_element(); ++part)
      words.push_back(offset < 0 ? OutOfRange(a.domain())
                                 : a.storage()->words[static_cast<size_t>(offset + part)]);
  }
  return Values{OfWords(a.domain(), std::move(indices.sizes), std::move(words))};
}

/// index_put(self, indices, values, accumulate)
Result<Values> EvaluateIndexPut(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  if (a.domain() == Domain::kComplex)
    return Error(ErrorCode::kUnsupported, "complex numbers by index");
  Tensor result = a.Copy();
  STRATA_TRY(const Indices indices, ReadIndices(call, result));
  STRATA_TRY(const Tensor source, call.TensorAt(2, "values"));
  STRATA_TRY(const Tensor values, ConvertTo(source, a.domain()).Expand(indices.sizes));
  const bool adds = call.FlagAt(3, "accumulate");
  const Words added = values.Read();
  if (std::ranges::count(indices.offsets, -1) > 0) return OutOfRangeLike(a);
  for (size_t i = 0; i < added.size(); ++i) {
    uint64_t& word = result.storage()->words[static_cast<size_t>(indices.offsets[i])];
    if (!adds) {
      word = added[i];
    } else {
      word = a.domain() == Domain::kInteger ? word + added[i] : prove::Add(word, added[i]);
    }
  }
  return Values{std::move(result)};
}

/// cat(tensors, dim)
Result<Values> EvaluateCat(Call& call) {
  STRATA_TRY(std::vector<Tensor> parts, call.TensorsAt(0, "tensors"));
  std::erase_if(parts, [](const Tensor& part) { return part.dim() == 1 && part.numel() == 0; });
  if (parts.empty()) return Error(ErrorCode::kInvalid, "nothing to concatenate");
  STRATA_TRY(const size_t dim, DimOf(call, parts[0], 1));
  Sizes sizes = parts[0].sizes();
  Domain domain = parts[0].domain();
  sizes[dim] = 0;
  for (const Tensor& part : parts) {
    Sizes others = part.sizes();
    if (others.size() != sizes.size())
      return Error(ErrorCode::kInvalid, "tensors of other dimensions to concatenate");
    others[dim] = sizes[dim];
    if (others != sizes) return Error(ErrorCode::kInvalid, "other sizes to concatenate");
    sizes[dim] += part.sizes()[dim];
    domain = Common(domain, part.domain());
  }
  Tensor result(domain, sizes, 0);
  int64_t begin = 0;
  for (const Tensor& part : parts) {
    const Tensor target(domain, result.storage(), part.sizes(), result.strides(),
                        begin * result.strides()[dim]);
    target.Write(ConvertTo(part, domain).Read());
    begin += part.sizes()[dim];
  }
  return Values{std::move(result)};
}

/// stack(tensors, dim)
Result<Values> EvaluateStack(Call& call) {
  STRATA_TRY(const std::vector<Tensor> parts, call.TensorsAt(0, "tensors"));
  if (parts.empty()) return Error(ErrorCode::kInvalid, "nothing to stack");
  const int64_t rank = parts[0].dim() + 1, given = call.IntegerAt(1, "dim", 0);
  const int64_t dim = given < 0 ? given + rank : given;
  if (dim < 0 || dim >= rank) return Error(ErrorCode::kInvalid, "no such dimension");
  std::vector<Argument> views;
  for (const Tensor& part : parts) {
    Sizes sizes = part.sizes();
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim), 1);
    views.push_back({part.Reshape(std::move(sizes))});
  }
  Call cat("aten.cat.default", {Argument{std::move(views)}, Argument{dim}}, {}, 1);
  return EvaluateCat(cat);
}

constexpr OpDefinition kIndexOps[] = {
    {"aten._unsafe_index", EvaluateIndex, true},
    {"aten._unsafe_index_put", EvaluateIndexPut},
    {"aten.cat", EvaluateCat, true},
    {"aten.embedding", EvaluateEmbedding},
    {"aten.embedding_dense_backward", EvaluateEmbeddingBackward},
    {"aten.gather", EvaluateGather, true},
    {"aten.index", EvaluateIndex, true},
    {"aten.index_put", EvaluateIndexPut},
    {"aten.index_select", EvaluateIndexSelect, true},
    {"aten.scatter", EvaluateScatter<false>},
    {"aten.scatter_add", EvaluateScatter<true>},
    {"aten.scatter_reduce", EvaluateScatterReduce},
    {"aten.stack", EvaluateStack, true},
};

}  // namespace

std::span<const OpDefinition> IndexOps() {
  return kIndexOps;
}

}  // namespace strata::prove
