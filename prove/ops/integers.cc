#include <algorithm>

#include "prove/ops/elementwise.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

using Words = std::vector<uint64_t>;

enum class Bits : uint8_t { kAnd, kOr, kXor };

uint64_t Combine(Bits bits, uint64_t x, uint64_t y) {
  switch (bits) {
    case Bits::kAnd:
      return x & y;
    case Bits::kOr:
      return x | y;
    case Bits::kXor:
      return x ^ y;
  }
  return 0;
}

template <Bits kBits, bool kLogical>
Result<Values> EvaluateBits(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "other"));
  STRATA_TRY(Tensor result, Map(a, b, Domain::kInteger, [](uint64_t x, uint64_t y) {
               return kLogical ? Combine(kBits, static_cast<uint64_t>(x != 0),
                                         static_cast<uint64_t>(y != 0))
                               : Combine(kBits, x, y);
             }));
  return Values{std::move(result)};
}

/// The complement of the bits. REQUIRES: not of truth values.
Result<Values> EvaluateComplement(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  return Values{Map(a, Domain::kInteger, [](uint64_t x) { return ~x; })};
}

Result<Values> EvaluateNot(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  return Values{Map(a, Domain::kInteger, [](uint64_t x) { return static_cast<uint64_t>(x == 0); })};
}

int64_t FloorDivide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  const int64_t quotient = a / b;
  return quotient - static_cast<int64_t>(a % b != 0 && (a < 0) != (b < 0));
}

int64_t TruncDivide(int64_t a, int64_t b) {
  return b == 0 ? 0 : a / b;
}

/// `of_integers` of integers, `of_numbers` of the quotient of others.
Result<Tensor> RoundedQuotient(const Tensor& a, const Tensor& b,
                               int64_t (*of_integers)(int64_t, int64_t),
                               Tensor (*of_numbers)(const Tensor&)) {
  const Domain domain = Common(a.domain(), b.domain());
  if (domain == Domain::kComplex)
    return Error(ErrorCode::kUnsupported, "a rounded quotient of complex numbers");
  if (domain == Domain::kInteger) {
    return Map(a, b, domain,
               [&](uint64_t x, uint64_t y) { return Word(of_integers(Signed(x), Signed(y))); });
  }
  STRATA_TRY(const Tensor quotient, Div(a, b));
  return of_numbers(quotient);
}

using Quotient = Result<Tensor> (*)(const Tensor&, const Tensor&);

template <Quotient kQuotient>
Result<Values> EvaluateQuotient(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "other"));
  STRATA_TRY(Tensor quotient, kQuotient(a, b));
  return Values{std::move(quotient)};
}

/// What a quotient leaves of `a`: a - b · quotient.
template <Quotient kQuotient>
Result<Values> EvaluateRemainder(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "other"));
  STRATA_TRY(const Tensor quotient, kQuotient(a, b));
  STRATA_TRY(const Tensor product, Mul(quotient, b));
  STRATA_TRY(Tensor rest, Sub(a, product));
  return Values{std::move(rest)};
}

/// where(condition, self, other)
Result<Values> EvaluateWhere(Call& call) {
  STRATA_TRY(const Tensor condition, call.TensorAt(0));
  STRATA_TRY(const Tensor a, call.TensorAt(1, "self"));
  STRATA_TRY(const Tensor b, call.TensorAt(2, "other"));
  const Domain domain = Common(a.domain(), b.domain());
  STRATA_TRY(const Sizes of_values, BroadcastSizes(a.sizes(), b.sizes()));
  STRATA_TRY(const Sizes sizes, BroadcastSizes(of_values, condition.sizes()));
  STRATA_TRY(const Tensor x, ConvertTo(a, domain).Expand(sizes));
  STRATA_TRY(const Tensor y, ConvertTo(b, domain).Expand(sizes));
  STRATA_TRY(const Tensor mask, condition.Expand(sizes));
  Words words = x.Read();
  const Words others = y.Read(), truth = mask.Read();
  const size_t per = words.size() / std::max<size_t>(truth.size(), 1);
  for (size_t i = 0; i < words.size(); ++i) {
    if (truth[i / per] == 0) words[i] = others[i];
  }
  return Values{OfWords(domain, sizes, std::move(words))};
}

/// masked_fill(self, mask, value)
Result<Values> EvaluateMaskedFill(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor mask, call.TensorAt(1, "mask"));
  STRATA_TRY(const Tensor value, call.TensorAt(2, "value"));
  STRATA_TRY(const Sizes sizes, BroadcastSizes(a.sizes(), mask.sizes()));
  STRATA_TRY(const Tensor x, a.Expand(sizes));
  STRATA_TRY(const Tensor hidden, mask.Expand(sizes));
  const uint64_t fill = ConvertTo(value, a.domain()).Read()[0];
  Words words = x.Read();
  const Words truth = hidden.Read();
  for (size_t i = 0; i < words.size(); ++i) {
    if (truth[i] != 0) words[i] = fill;
  }
  return Values{OfWords(a.domain(), sizes, std::move(words))};
}

constexpr OpDefinition kIntegerOps[] = {
    {"aten.bitwise_and", EvaluateBits<Bits::kAnd, false>},
    {"aten.bitwise_not", EvaluateComplement},
    {"aten.bitwise_or", EvaluateBits<Bits::kOr, false>},
    {"aten.bitwise_xor", EvaluateBits<Bits::kXor, false>},
    {"aten.floor_divide", EvaluateQuotient<DivFloor>},
    {"aten.fmod", EvaluateRemainder<DivTrunc>},
    {"aten.logical_and", EvaluateBits<Bits::kAnd, true>},
    {"aten.logical_not", EvaluateNot},
    {"aten.logical_or", EvaluateBits<Bits::kOr, true>},
    {"aten.logical_xor", EvaluateBits<Bits::kXor, true>},
    {"aten.masked_fill", EvaluateMaskedFill},
    {"aten.remainder", EvaluateRemainder<DivFloor>},
    {"aten.where", EvaluateWhere, false, true},
};

}  // namespace

Result<Tensor> DivFloor(const Tensor& a, const Tensor& b) {
  return RoundedQuotient(a, b, FloorDivide, Floor);
}

Result<Tensor> DivTrunc(const Tensor& a, const Tensor& b) {
  return RoundedQuotient(a, b, TruncDivide, Trunc);
}

std::span<const OpDefinition> IntegerOps() {
  return kIntegerOps;
}

}  // namespace strata::prove
