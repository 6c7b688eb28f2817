#include <algorithm>

#include "prove/ops/elementwise.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

using Words = std::vector<uint64_t>;

/// constant_pad_nd(self, pad, value); pads from the last dimension on, negative ones cut.
Result<Values> EvaluatePad(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Residue value, call.NumberAt(2, "value", 0));
  const std::optional<Sizes> pads = call.IntegersAt(1, "pad");
  if (!pads || pads->size() % 2 != 0 || pads->size() > 2 * a.sizes().size())
    return Error(ErrorCode::kInvalid, "pads that do not fit the tensor");
  Sizes sizes = a.sizes(), part = a.sizes();
  Tensor source = a;
  int64_t from = a.offset();
  Sizes before(sizes.size(), 0);
  for (size_t i = 0; i < pads->size() / 2; ++i) {
    const size_t dim = sizes.size() - 1 - i;
    const int64_t low = (*pads)[2 * i], high = (*pads)[2 * i + 1];
    sizes[dim] += low + high;
    part[dim] += std::min<int64_t>(low, 0) + std::min<int64_t>(high, 0);
    from -= std::min<int64_t>(low, 0) * a.strides()[dim];
    before[dim] = std::max<int64_t>(low, 0);
    if (part[dim] < 0) return Error(ErrorCode::kInvalid, "pads that cut more than there is");
  }
  const uint64_t fill =
      a.domain() == Domain::kInteger
          ? ConvertTo(Tensor(Domain::kFloat, {}, value), Domain::kInteger).Read()[0]
          : value;
  Tensor result(a.domain(), sizes, fill);
  int64_t to = 0;
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    to += before[dim] * result.strides()[dim];
  const Tensor target(a.domain(), result.storage(), part, result.strides(), to);
  target.Write(Tensor(a.domain(), a.storage(), part, a.strides(), from).Read());
  return Values{std::move(result)};
}

/// tril(self, diagonal), triu(self, diagonal)
template <bool kLower>
Result<Values> EvaluateTriangle(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  if (a.dim() < 2 || a.domain() == Domain::kComplex)
    return Error(ErrorCode::kInvalid, "not a matrix of numbers");
  const int64_t diagonal = call.IntegerAt(1, "diagonal", 0);
  Words words = a.Read();
  const int64_t rows = a.size(a.dim() - 2), columns = a.size(a.dim() - 1);
  for (size_t i = 0; i < words.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const int64_t row = at / columns % rows, column = at % columns;
    const bool keeps = kLower ? column - row <= diagonal : column - row >= diagonal;
    if (!keeps) words[i] = 0;
  }
  return Values{OfWords(a.domain(), a.sizes(), std::move(words))};
}

Result<Values> EvaluateFlip(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  const std::optional<Sizes> dims = call.IntegersAt(1, "dims");
  if (!dims || a.domain() == Domain::kComplex)
    return Error(ErrorCode::kInvalid, "not dimensions of numbers");
  const Words words = a.Read();
  Words flipped(words.size());
  std::vector<bool> is_flipped(a.sizes().size());
  for (const int64_t dim : *dims) {
    const int64_t at = dim < 0 ? dim + a.dim() : dim;
    if (at < 0 || at >= a.dim()) return Error(ErrorCode::kInvalid, "not one of its dimensions");
    is_flipped[static_cast<size_t>(at)] = true;
  }
  for (size_t i = 0; i < words.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), from = 0, stride = 1;
    for (size_t dim = is_flipped.size(); dim-- > 0;) {
      const int64_t size = a.sizes()[dim], at = rest % size;
      from += (is_flipped[dim] ? size - 1 - at : at) * stride;
      rest /= size;
      stride *= size;
    }
    flipped[i] = words[static_cast<size_t>(from)];
  }
  return Values{OfWords(a.domain(), a.sizes(), std::move(flipped))};
}

constexpr OpDefinition kRearrangeOps[] = {
    {"aten.constant_pad_nd", EvaluatePad}, {"aten.flip", EvaluateFlip, true},
    {"aten.tril", EvaluateTriangle<true>}, {"aten.triu", EvaluateTriangle<false>},
    {"prims.rev", EvaluateFlip, true},
};

}  // namespace

std::span<const OpDefinition> RearrangeOps() {
  return kRearrangeOps;
}

}  // namespace strata::prove
