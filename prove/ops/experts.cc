// What mixtures of experts are made of: the choice of experts, sorted rows, products per group.

#include <algorithm>
#include <numeric>

#include "prove/ops/elementwise.h"
#include "prove/ops/products.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

using Words = std::vector<uint64_t>;

Result<size_t> DimAt(const Call& call, size_t position, const Tensor& a, int64_t otherwise) {
  const int64_t given = call.IntegerAt(position, "dim", otherwise);
  const int64_t dim = given < 0 ? given + a.dim() : given;
  if (dim < 0 || dim >= a.dim())
    return Error(ErrorCode::kInvalid, "dimension {} of a tensor with {}", given, a.dim());
  return static_cast<size_t>(dim);
}

/// `count` elements of `a` along `dim`, from `first` on.
Tensor Range(const Tensor& a, size_t dim, int64_t first, int64_t count) {
  Sizes sizes = a.sizes();
  sizes[dim] = count;
  return {a.domain(), a.storage(), std::move(sizes), a.strides(),
          a.offset() + first * a.strides()[dim]};
}

bool HasOrder(Domain domain, uint64_t word) {
  return domain == Domain::kInteger || (word != kNan && word != kUndefined);
}

int CompareIn(Domain domain, uint64_t a, uint64_t b) {
  if (domain == Domain::kFloat) return Compare(a, b);
  const auto x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
  return x < y ? -1 : x > y ? 1 : 0;
}

/// The first `count` of each row along `dim`, in order; equal elements keep theirs. Values and
/// positions.
Result<Values> InOrder(const Tensor& a, size_t dim, int64_t count, bool is_descending) {
  if (a.domain() == Domain::kComplex || count > a.sizes()[dim])
    return Error(ErrorCode::kInvalid, "no such order");
  Sizes sizes = a.sizes();
  sizes[dim] = count;
  Tensor values(a.domain(), sizes), positions(Domain::kInteger, sizes);
  const int64_t size = a.sizes()[dim];
  std::vector<int64_t> order(static_cast<size_t>(size)), starts, targets;
  ForEachOffset(Range(a, dim, 0, 1), [&](int64_t at) { starts.push_back(at); });
  ForEachOffset(Range(values, dim, 0, 1), [&](int64_t at) { targets.push_back(at); });
  const int64_t step = a.strides()[dim], target_step = values.strides()[dim];
  for (size_t row = 0; row < starts.size(); ++row) {
    const auto word = [&](int64_t i) {
      return a.storage()->words[static_cast<size_t>(starts[row] + i * step)];
    };
    for (int64_t i = 0; i < size; ++i) {
      if (HasOrder(a.domain(), word(i))) continue;
      return Error(ErrorCode::kUnsupported, "an order of elements that are not numbers");
    }
    std::iota(order.begin(), order.end(), int64_t{0});
    std::ranges::stable_sort(order, [&](int64_t i, int64_t j) {
      const int sign = CompareIn(a.domain(), word(i), word(j));
      return is_descending ? sign > 0 : sign < 0;
    });
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(targets[row] + i * target_step);
      values.storage()->words[at] = word(order[static_cast<size_t>(i)]);
      positions.storage()->words[at] = static_cast<uint64_t>(order[static_cast<size_t>(i)]);
    }
  }
  return Values{std::move(values), std::move(positions)};
}

/// sort(self, dim, descending), sort.stable(self, stable, dim, descending)
Result<Values> EvaluateSort(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  const size_t first = call.op().ends_with(".stable") ? 2 : 1;
  STRATA_TRY(const size_t dim, DimAt(call, first, a, -1));
  return InOrder(a, dim, a.sizes()[dim], call.FlagAt(first + 1, "descending"));
}

/// topk(self, k, dim, largest, sorted)
Result<Values> EvaluateTopK(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const size_t dim, DimAt(call, 2, a, -1));
  return InOrder(a, dim, call.IntegerAt(1, "k", 1), call.FlagAt(3, "largest", true));
}

/// max(self), max.dim(self, dim, keepdim), max.other(self, other), and argmax(self, dim, keepdim)
template <bool kLargest, bool kPlace>
Result<Values> EvaluateExtremeAt(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  const Argument* where = call.Find(1, kPlace ? "dim" : "");
  if (where != nullptr && where->is_tensor())
    return FindDefinition(kLargest ? "aten.maximum" : "aten.minimum")->evaluate(call);
  const bool is_flat = where == nullptr;
  const Tensor all = is_flat ? a.Reshape({a.numel()}) : a;
  STRATA_TRY(const size_t dim, DimAt(call, is_flat ? SIZE_MAX : 1, all, 0));
  STRATA_TRY(Values found, InOrder(all, dim, 1, kLargest));
  Sizes sizes = all.sizes();
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  if (call.FlagAt(2, "keepdim")) {
    sizes.assign(a.sizes().size(), 1);
    if (!is_flat) sizes = std::get<Tensor>(found[0]).sizes();
  }
  for (Value& value : found)
    value = std::get<Tensor>(value).Reshape(sizes);
  if (kPlace) return Values{found[1]};
  if (is_flat) return Values{found[0]};
  return found;
}

/// index_add(self, dim, index, source, alpha)
Result<Values> EvaluateIndexAdd(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const size_t dim, DimAt(call, 1, a, 0));
  STRATA_TRY(const Tensor index, call.TensorAt(2, "index"));
  STRATA_TRY(const Tensor source, call.TensorAt(3, "source"));
  STRATA_TRY(const Residue alpha, call.NumberAt(4, "alpha", 1));
  const Words positions = index.Read();
  if (a.domain() != Domain::kFloat || source.domain() != Domain::kFloat ||
      source.dim() != a.dim() || source.sizes()[dim] != static_cast<int64_t>(positions.size())) {
    return Error(ErrorCode::kInvalid, "an index that does not fit its tensor");
  }
  Tensor result = a.Copy();
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto at = static_cast<int64_t>(positions[i]);
    if (at < 0 || at >= result.sizes()[dim])
      return Error(ErrorCode::kInvalid, "index {} of {}", at, result.sizes()[dim]);
    const Tensor target = Range(result, dim, at, 1);
    Words sums = target.Read();
    const Words added = Range(source, dim, static_cast<int64_t>(i), 1).Read();
    if (added.size() != sums.size())
      return Error(ErrorCode::kInvalid, "rows of different sizes are added");
    for (size_t j = 0; j < sums.size(); ++j)
      sums[j] = prove::Add(sums[j], prove::Mul(alpha, added[j]));
    target.Write(sums);
  }
  return Values{std::move(result)};
}

/// slice_backward(grad_output, input_sizes, dim, start, end, step)
Result<Values> EvaluateSliceBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  const std::optional<Sizes> sizes = call.IntegersAt(1, "input_sizes");
  if (!sizes || sizes->size() != gradient.sizes().size())
    return Error(ErrorCode::kInvalid, "sizes that do not fit the tensor");
  Tensor result(gradient.domain(), *sizes);
  STRATA_TRY(const size_t dim, DimAt(call, 2, result, 0));
  const int64_t size = (*sizes)[dim], given = call.IntegerAt(3, "start", 0);
  const int64_t start = std::clamp<int64_t>(given < 0 ? given + size : given, 0, size);
  const int64_t step = call.IntegerAt(5, "step", 1), count = gradient.sizes()[dim];
  if (step < 1 || (count > 0 && start + (count - 1) * step >= size))
    return Error(ErrorCode::kInvalid, "a slice that does not fit its tensor");
  Sizes strides = result.strides();
  const int64_t offset = start * strides[dim];
  strides[dim] *= step;
  const Tensor target(result.domain(), result.storage(), gradient.sizes(), strides, offset);
  target.Write(gradient.Read());
  return Values{std::move(result)};
}

/// _grouped_mm(self, mat2, offs): group i ends at `offs[i]`.
///
///   [rows, k] x [groups, k, n]   groups of rows: [rows, n]
///   [m, rows] x [rows, n]        groups of the inner dimension: [groups, m, n]
Result<Values> EvaluateGroupedProduct(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "mat2"));
  STRATA_TRY(const Tensor ends, call.TensorAt(2, "offs"));
  const bool cuts_rows = a.dim() == 2 && b.dim() == 3;
  if (!cuts_rows && (a.dim() != 2 || b.dim() != 2))
    return Error(ErrorCode::kUnsupported, "groups of matrices");
  const int64_t rows = cuts_rows ? a.size(0) : a.size(1);
  Words words;
  int64_t begin = 0, group = 0;
  for (const uint64_t word : ends.Read()) {
    const int64_t end = std::clamp(static_cast<int64_t>(word), begin, rows);
    STRATA_TRY(const Tensor product,
               cuts_rows ? MatrixProduct(Range(a, 0, begin, end - begin), MatrixAt(b, group))
                         : MatrixProduct(Range(a, 1, begin, end - begin),
                                         Range(b, 0, begin, end - begin)));
    const Words part = product.Read();
    words.insert(words.end(), part.begin(), part.end());
    begin = end;
    ++group;
  }
  if (!cuts_rows)
    return Values{OfWords(Domain::kFloat, {group, a.size(0), b.size(1)}, std::move(words))};
  words.resize(static_cast<size_t>(rows * b.size(2)), kUndefined);  // rows of no group
  return Values{OfWords(Domain::kFloat, {rows, b.size(2)}, std::move(words))};
}

/// _local_scalar_dense(self): a number that the host reads.
Result<Values> EvaluateScalarRead(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  if (a.domain() != Domain::kInteger || a.numel() != 1)
    return Error(ErrorCode::kUnsupported, "a number with a fraction that the host reads");
  return Values{static_cast<int64_t>(a.Read()[0])};
}

/// repeat_interleave.Tensor(repeats): i, `repeats[i]` times, for each i.
Result<Values> EvaluateRepeatInterleave(Call& call) {
  STRATA_TRY(const Tensor repeats, call.TensorAt(0, "repeats"));
  if (!call.op().ends_with(".Tensor") || repeats.dim() != 1 ||
      repeats.domain() != Domain::kInteger) {
    return Error(ErrorCode::kUnsupported, "repeated elements");
  }
  constexpr int64_t kMaxCount = 1 << 24;
  Words words;
  uint64_t index = 0;
  for (const uint64_t word : repeats.Read()) {
    const auto count = static_cast<int64_t>(word);
    if (count < 0 || count > kMaxCount)
      return Error(ErrorCode::kInvalid, "an element that is repeated {} times", count);
    words.insert(words.end(), static_cast<size_t>(count), index++);
  }
  Sizes sizes = {static_cast<int64_t>(words.size())};
  return Values{OfWords(Domain::kInteger, std::move(sizes), std::move(words))};
}

constexpr OpDefinition kExpertsOps[] = {
    {"aten._grouped_mm", EvaluateGroupedProduct},
    {"aten._local_scalar_dense", EvaluateScalarRead},
    {"aten.argmax", EvaluateExtremeAt<true, true>},
    {"aten.argmin", EvaluateExtremeAt<false, true>},
    {"aten.index_add", EvaluateIndexAdd},
    {"aten.max", EvaluateExtremeAt<true, false>},
    {"aten.min", EvaluateExtremeAt<false, false>},
    {"aten.repeat_interleave", EvaluateRepeatInterleave},
    {"aten.slice_backward", EvaluateSliceBackward},
    {"aten.sort", EvaluateSort},
    {"aten.topk", EvaluateTopK},
};

}  // namespace

std::span<const OpDefinition> ExpertOps() {
  return kExpertsOps;
}

}  // namespace strata::prove
