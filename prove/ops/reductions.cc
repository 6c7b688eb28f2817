#include "prove/ops/reductions.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/random.h"
#include "prove/ops/elementwise.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

/// Folds elements over dimensions: `fold(word, sum)`.
template <class Fold>
Tensor FoldOver(const Tensor& a, const Sizes& dims, bool keep, uint64_t initial, Fold&& fold) {
  Sizes sizes = a.sizes();
  for (const int64_t dim : dims)
    sizes[static_cast<size_t>(dim)] = 1;
  Tensor result(a.domain(), sizes, initial);
  std::vector<uint64_t>& sums = result.storage()->words;
  // Where each element goes: the strides of the result, 0 where it is folded.
  Sizes strides = result.strides();
  for (const int64_t dim : dims)
    strides[static_cast<size_t>(dim)] = 0;
  const Tensor targets(a.domain(), result.storage(), a.sizes(), strides, 0);
  const std::vector<uint64_t> words = a.Read();
  size_t next = 0;
  ForEachOffset(targets, [&](int64_t at) {
    uint64_t& sum = sums[static_cast<size_t>(at)];
    sum = fold(words[next++], sum);
  });
  if (keep) return result;
  Sizes kept;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (std::ranges::find(dims, static_cast<int64_t>(dim)) == dims.end())
      kept.push_back(sizes[dim]);
  }
  return result.Reshape(std::move(kept));
}

/// The first elements along `dims`, where all others are equal to them.
std::optional<Tensor> OneAlong(const Tensor& a, const Sizes& dims) {
  Sizes sizes = a.sizes();
  for (const int64_t dim : dims)
    sizes[static_cast<size_t>(dim)] = 1;
  const Tensor first(a.domain(), a.storage(), sizes, a.strides(), a.offset());
  const Result<Tensor> all = first.Expand(a.sizes());
  if (!all || all->Read() != a.Read()) return std::nullopt;
  return first.Copy();
}

Result<Values> EvaluateSum(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  if (a.domain() == Domain::kComplex)
    return Error(ErrorCode::kUnsupported, "a sum of complex numbers");
  STRATA_TRY(const Sizes dims, DimsAt(call, a, 1));
  const Domain domain = call.DomainOr(a.domain());
  const bool keeps = call.FlagAt(2, "keepdim");
  Tensor sum = SumOver(ConvertTo(a, domain), dims, keeps);
  const Laws* laws = a.laws();
  if (laws != nullptr && laws->scaled != nullptr && laws->shift != nullptr && keeps &&
      domain == a.domain()) {
    if (const auto shift = OneAlong(*laws->shift, dims)) {
      Laws shifted;
      shifted.scaled = std::make_shared<const Tensor>(SumOver(*laws->scaled, dims, keeps));
      shifted.shift = std::make_shared<const Tensor>(*shift);
      sum.SetLaws(std::move(shifted));
    }
  }
  return Values{std::move(sum)};
}

Result<Values> EvaluateMean(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Sizes dims, DimsAt(call, a, 1));
  const Tensor numbers = ConvertTo(a, Domain::kFloat);
  const Tensor sum = SumOver(numbers, dims, call.FlagAt(2, "keepdim"));
  return Values{Scale(sum, Inverse(FromInteger(CountOver(a, dims))))};
}

/// linalg_vector_norm(self, ord, dim, keepdim): the root of the sum of squares.
Result<Values> EvaluateNorm(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Residue order, call.NumberAt(1, "ord", 2));
  if (order != 2) return Error(ErrorCode::kUnsupported, "a norm that is not of order 2");
  STRATA_TRY(const Sizes dims, DimsAt(call, a, 2));
  const Tensor numbers = a.domain() == Domain::kFloat ? a : ConvertTo(a, Domain::kFloat);
  STRATA_TRY(const Tensor squares, Mul(numbers, numbers));
  Call root("aten.sqrt.default", {Argument{SumOver(squares, dims, call.FlagAt(3, "keepdim"))}}, {},
            1);
  return FindDefinition("aten.sqrt.default")->evaluate(root);
}

template <bool kLargest>
Result<Values> EvaluateExtreme(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Sizes dims, DimsAt(call, a, 1));
  const uint64_t initial = a.domain() == Domain::kInteger
                               ? static_cast<uint64_t>(kLargest ? INT64_MIN : INT64_MAX)
                           : kLargest ? kMinusInfinity
                                      : kInfinity;
  Tensor result =
      FoldOver(a, dims, call.FlagAt(2, "keepdim"), initial, [&](uint64_t x, uint64_t best) {
        if (a.domain() == Domain::kInteger)
          return (static_cast<int64_t>(x) > static_cast<int64_t>(best)) == kLargest ? x : best;
        if (!IsNumber(x) && x > kMinusInfinity) return x;
        if (!IsNumber(best) && best > kMinusInfinity) return best;
        return (Compare(x, best) > 0) == kLargest ? x : best;
      });
  return Values{std::move(result)};
}

template <bool kAll>
Result<Values> EvaluateTruth(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Sizes dims, DimsAt(call, a, 1));
  const Tensor truth =
      Map(a, Domain::kInteger, [](uint64_t x) { return static_cast<uint64_t>(x != 0); });
  return Values{FoldOver(truth, dims, call.FlagAt(2, "keepdim"), kAll ? 1 : 0,
                         [](uint64_t x, uint64_t y) { return kAll ? x & y : x | y; })};
}

/// prod(self), prod.dim_int(self, dim, keepdim)
Result<Values> EvaluateProduct(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Sizes dims, DimsAt(call, a, 1));
  const Domain domain = call.DomainOr(a.domain());
  return Values{FoldOver(ConvertTo(a, domain), dims, call.FlagAt(2, "keepdim"), 1,
                         [&](uint64_t x, uint64_t y) {
                           return domain == Domain::kInteger ? x * y : prove::Mul(x, y);
                         })};
}

/// cumsum(self, dim), cumprod(self, dim)
template <bool kProduct>
Result<Values> EvaluateRunning(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Sizes dims, DimsAt(call, a, 1));
  const Domain domain = call.DomainOr(a.domain());
  Tensor sums = ConvertTo(a, domain).Copy();
  if (dims.empty()) return Values{std::move(sums)};
  const auto dim = static_cast<size_t>(dims[0]);
  const int64_t step = sums.strides()[dim], size = sums.sizes()[dim];
  Sizes starts = sums.sizes();
  starts[dim] = size == 0 ? 0 : 1;
  std::vector<uint64_t>& words = sums.storage()->words;
  ForEachOffset(Tensor(domain, sums.storage(), starts, sums.strides(), 0), [&](int64_t at) {
    for (int64_t i = 1; i < size; ++i) {
      uint64_t& word = words[static_cast<size_t>(at + i * step)];
      const uint64_t before = words[static_cast<size_t>(at + (i - 1) * step)];
      if (kProduct) {
        word = domain == Domain::kInteger ? word * before : prove::Mul(word, before);
      } else {
        word = domain == Domain::kInteger ? word + before : prove::Add(word, before);
      }
    }
  });
  return Values{std::move(sums)};
}

constexpr OpDefinition kReductionsOps[] = {
    {"aten.all", EvaluateTruth<true>},
    {"aten.amax", EvaluateExtreme<true>},
    {"aten.amin", EvaluateExtreme<false>},
    {"aten.any", EvaluateTruth<false>},
    {"aten.cumprod", EvaluateRunning<true>},
    {"aten.cumsum", EvaluateRunning<false>},
    {"aten.linalg_vector_norm", EvaluateNorm},
    {"aten.mean", EvaluateMean},
    {"aten.prod", EvaluateProduct},
    {"aten.sum", EvaluateSum},
};

}  // namespace

Result<Sizes> DimsAt(const Call& call, const Tensor& a, size_t position) {
  std::optional<Sizes> dims = call.IntegersAt(position, "dim");
  if (!dims || dims->empty()) {
    Sizes all(a.sizes().size());
    for (size_t dim = 0; dim < all.size(); ++dim)
      all[dim] = static_cast<int64_t>(dim);
    return all;
  }
  for (int64_t& dim : *dims) {
    if (dim < 0) dim += a.dim();
    if (dim < 0 || dim >= std::max<int64_t>(a.dim(), 1))
      return Error(ErrorCode::kInvalid, "a dimension of a tensor with {}", a.dim());
  }
  if (a.dim() == 0) return Sizes{};
  return *std::move(dims);
}

int64_t CountOver(const Tensor& a, const Sizes& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims)
    count *= a.size(dim);
  return count;
}

Tensor SumOver(const Tensor& a, const Sizes& dims, bool keep) {
  if (a.domain() == Domain::kInteger)
    return FoldOver(a, dims, keep, 0, [](uint64_t x, uint64_t sum) { return x + sum; });
  return FoldOver(a, dims, keep, 0, [](Residue x, Residue sum) { return prove::Add(x, sum); });
}

std::span<const OpDefinition> ReductionOps() {
  return kReductionsOps;
}

}  // namespace strata::prove
