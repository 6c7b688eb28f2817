#include <algorithm>
#include <string_view>

#include "prove/ops/elementwise.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

using Words = std::vector<uint64_t>;

int64_t Signed(uint64_t word) {
  return static_cast<int64_t>(word);
}
uint64_t Word(int64_t value) {
  return static_cast<uint64_t>(value);
}

/// `fn(real, imaginary, real, imaginary)` gives both parts.
template <class Fn>
Result<Tensor> MapComplex(const Tensor& a, const Tensor& b, Fn&& fn) {
  STRATA_TRY(const Sizes sizes, BroadcastSizes(a.sizes(), b.sizes()));
  STRATA_TRY(const Tensor x, ConvertTo(a, Domain::kComplex).Expand(sizes));
  STRATA_TRY(const Tensor y, ConvertTo(b, Domain::kComplex).Expand(sizes));
  Words words = x.Read();
  const Words others = y.Read();
  for (size_t i = 0; i < words.size(); i += 2) {
    const auto [re, im] = fn(words[i], words[i + 1], others[i], others[i + 1]);
    words[i] = re;
    words[i + 1] = im;
  }
  return OfWords(Domain::kComplex, sizes, std::move(words));
}

using Parts = std::pair<Residue, Residue>;

/// A broadcast view, of which is known what is known of `a`: every law is one of elements.
Result<Tensor> ExpandWithLaws(const Tensor& a, const Sizes& sizes) {
  STRATA_TRY(Tensor expanded, a.Expand(sizes));
  const Laws* known = a.laws();
  if (known == nullptr) return expanded;
  Laws laws;
  for (const Law law : kLaws) {
    if (known->*law == nullptr) continue;
    STRATA_TRY(Tensor part, ExpandWithLaws(*(known->*law), sizes));
    laws.*law = std::make_shared<const Tensor>(std::move(part));
  }
  expanded.SetLaws(std::move(laws));
  return expanded;
}

/// `a` as numbers with fractions, with what is known of it.
Tensor ToFloat(const Tensor& a) {
  return a.domain() == Domain::kFloat ? a : ConvertTo(a, Domain::kFloat);
}

/// `a + alpha * b`; the difference is remembered, for its exponential.
Result<Tensor> AddScaled(const Tensor& a, const Tensor& b, Residue alpha) {
  const Tensor scaled = alpha == 1 ? b : Scale(b, alpha);
  STRATA_TRY(Tensor sum, Add(a, scaled));
  if (alpha != FromInteger(-1) || sum.domain() != Domain::kFloat) return sum;
  STRATA_TRY(const Tensor minuend, ExpandWithLaws(ToFloat(a), sum.sizes()));
  STRATA_TRY(const Tensor subtrahend, ExpandWithLaws(ToFloat(b), sum.sizes()));
  Laws laws;
  laws.minuend = std::make_shared<const Tensor>(minuend.Copy());
  laws.subtrahend = std::make_shared<const Tensor>(subtrahend.Copy());
  sum.SetLaws(std::move(laws));
  return sum;
}

Result<Values> EvaluateAdd(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "other"));
  STRATA_TRY(const Residue alpha, call.NumberAt(2, "alpha", 1));
  STRATA_TRY(Tensor sum, AddScaled(a, b, alpha));
  return Values{std::move(sum)};
}

Result<Values> EvaluateSub(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "other"));
  STRATA_TRY(const Residue alpha, call.NumberAt(2, "alpha", 1));
  STRATA_TRY(Tensor difference, AddScaled(a, b, Neg(alpha)));
  return Values{std::move(difference)};
}

Result<Values> EvaluateReverseSub(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "other"));
  STRATA_TRY(const Residue alpha, call.NumberAt(2, "alpha", 1));
  STRATA_TRY(Tensor difference, AddScaled(b, a, Neg(alpha)));
  return Values{std::move(difference)};
}

Result<Values> EvaluateMul(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "other"));
  STRATA_TRY(Tensor product, Mul(a, b));
  return Values{std::move(product)};
}

Result<Values> EvaluateDiv(Call& call) {
  if (call.Find(SIZE_MAX, "rounding_mode") != nullptr)
    return Error(ErrorCode::kUnsupported, "rounding division");
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "other"));
  STRATA_TRY(Tensor quotient, Div(a, b));
  return Values{std::move(quotient)};
}

Result<Values> EvaluateNeg(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  return Values{Scale(a, FromInteger(-1))};
}

Result<Values> EvaluateReciprocal(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  return Values{Reciprocal(ConvertTo(a, Domain::kFloat))};
}

/// self + value * tensor1 * tensor2
Result<Values> EvaluateAddcmul(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "tensor1"));
  STRATA_TRY(const Tensor c, call.TensorAt(2, "tensor2"));
  STRATA_TRY(const Residue value, call.NumberAt(3, "value", 1));
  STRATA_TRY(const Tensor product, Mul(b, c));
  STRATA_TRY(Tensor sum, Add(a, Scale(product, value)));
  return Values{std::move(sum)};
}

/// self + value * tensor1 / tensor2
Result<Values> EvaluateAddcdiv(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "tensor1"));
  STRATA_TRY(const Tensor c, call.TensorAt(2, "tensor2"));
  STRATA_TRY(const Residue value, call.NumberAt(3, "value", 1));
  STRATA_TRY(const Tensor quotient, Div(b, c));
  STRATA_TRY(Tensor sum, Add(a, Scale(quotient, value)));
  return Values{std::move(sum)};
}

/// self + weight * (end - self)
Result<Values> EvaluateLerp(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor end, call.TensorAt(1, "end"));
  STRATA_TRY(const Tensor weight, call.TensorAt(2, "weight"));
  STRATA_TRY(const Tensor difference, Sub(end, a));
  STRATA_TRY(const Tensor part, Mul(weight, difference));
  STRATA_TRY(Tensor sum, Add(a, part));
  return Values{std::move(sum)};
}

// --- Order -------------------------------------------------------------------------------------

/// Compares elements: `fn` of -1, 0 or 1; NaN and undefined elements make `nan`.
template <class Fn>
Result<Tensor> MapCompare(const Tensor& a, const Tensor& b, Domain domain, Fn&& fn) {
  if (Common(a.domain(), b.domain()) == Domain::kInteger) {
    return Map(a, b, domain, [&](uint64_t x, uint64_t y) {
      const int order = Signed(x) < Signed(y) ? -1 : static_cast<int>(Signed(x) > Signed(y));
      return fn(order, x, y);
    });
  }
  return Map(ConvertTo(a, Domain::kFloat), ConvertTo(b, Domain::kFloat), domain,
             [&](Residue x, Residue y) -> uint64_t {
               if (x == kUndefined || y == kUndefined) return kUndefined;
               if (x == kNan || y == kNan) return domain == Domain::kFloat ? kNan : 0;
               return fn(Compare(x, y), x, y);
             });
}

template <bool kLess, bool kEqual, bool kGreater>
Result<Values> EvaluateCompare(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "other"));
  STRATA_TRY(Tensor truth,
             MapCompare(a, b, Domain::kInteger, [](int order, uint64_t /*x*/, uint64_t /*y*/) {
               return static_cast<uint64_t>(order < 0 ? kLess : order == 0 ? kEqual : kGreater);
             }));
  return Values{std::move(truth)};
}

template <bool kLargest>
Result<Tensor> Extremum(const Tensor& a, const Tensor& b) {
  return MapCompare(a, b, Common(a.domain(), b.domain()), [](int order, uint64_t x, uint64_t y) {
    return (order > 0) == kLargest ? x : y;
  });
}

template <bool kLargest>
Result<Values> EvaluateExtremum(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "other"));
  STRATA_TRY(Tensor result, Extremum<kLargest>(a, b));
  return Values{std::move(result)};
}

Result<Values> EvaluateClamp(Call& call) {
  STRATA_TRY(Tensor a, call.TensorAt(0));
  if (call.Find(1, "min") != nullptr) {
    STRATA_TRY(const Tensor low, call.TensorAt(1, "min"));
    STRATA_TRY(a, Extremum<true>(a, low));
  }
  if (call.Find(2, "max") != nullptr) {
    STRATA_TRY(const Tensor high, call.TensorAt(2, "max"));
    STRATA_TRY(a, Extremum<false>(a, high));
  }
  return Values{std::move(a)};
}

Result<Values> EvaluateRelu(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(Tensor result, Extremum<true>(a, Tensor(a.domain(), {}, 0)));
  return Values{std::move(result)};
}

/// threshold_backward(grad_output, self, threshold): grad where self > threshold, else 0
Result<Values> EvaluateThresholdBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  STRATA_TRY(const Tensor a, call.TensorAt(1));
  STRATA_TRY(const Tensor threshold, call.TensorAt(2));
  STRATA_TRY(const Tensor mask, MapCompare(a, threshold, Domain::kFloat,
                                           [](int order, uint64_t /*x*/, uint64_t /*y*/) {
                                             return static_cast<uint64_t>(order > 0);
                                           }));
  STRATA_TRY(Tensor result, Mul(gradient, mask));
  return Values{std::move(result)};
}

Result<Values> EvaluateAbs(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  if (a.domain() == Domain::kInteger)
    return Values{Map(a, Domain::kInteger, [](uint64_t x) { return Word(std::abs(Signed(x))); })};
  return Values{Map(a, Domain::kFloat, [](Residue x) {
    const bool has_order = x != kUndefined && x != kNan;
    return has_order && Compare(x, 0) < 0 ? Neg(x) : x;
  })};
}

Result<Values> EvaluateSign(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  if (a.domain() == Domain::kInteger) {
    return Values{Map(a, Domain::kInteger, [](uint64_t x) {
      return Word((Signed(x) > 0 ? 1 : 0) - (Signed(x) < 0 ? 1 : 0));
    })};
  }
  return Values{Map(a, Domain::kFloat, [](Residue x) {
    if (x == kNan || x == kUndefined) return x;
    return FromInteger(Compare(x, 0));
  })};
}

// --- Integers and truth values -----------------------------------------------------------------

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

/// Of truth values: 0 and 1, which the domain represents as integers.
Result<Values> EvaluateNot(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  return Values{Map(a, Domain::kInteger, [](uint64_t x) { return static_cast<uint64_t>(x == 0); })};
}

int64_t FloorDivide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  const int64_t quotient = a / b;
  return quotient - static_cast<int64_t>(a % b != 0 && (a < 0) != (b < 0));
}

enum class Division : uint8_t { kFloor, kRemainder, kTruncatedRemainder };

template <Division kDivision>
Result<Values> EvaluateFloorDivide(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "other"));
  if (Common(a.domain(), b.domain()) != Domain::kInteger)
    return Error(ErrorCode::kUnsupported, "division that rounds, of numbers");
  STRATA_TRY(Tensor result, Map(a, b, Domain::kInteger, [](uint64_t x, uint64_t y) {
               if (kDivision == Division::kTruncatedRemainder)
                 return y == 0 ? 0 : Word(Signed(x) % Signed(y));
               const int64_t quotient = FloorDivide(Signed(x), Signed(y));
               return kDivision == Division::kFloor ? Word(quotient)
                                                    : Word(Signed(x) - quotient * Signed(y));
             }));
  return Values{std::move(result)};
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

constexpr OpDefinition kArithmeticOps[] = {
    {"aten.abs", EvaluateAbs},
    {"aten.add", EvaluateAdd},
    {"aten.addcdiv", EvaluateAddcdiv},
    {"aten.addcmul", EvaluateAddcmul},
    {"aten.bitwise_and", EvaluateBits<Bits::kAnd, false>},
    {"aten.bitwise_not", EvaluateNot},
    {"aten.bitwise_or", EvaluateBits<Bits::kOr, false>},
    {"aten.bitwise_xor", EvaluateBits<Bits::kXor, false>},
    {"aten.clamp", EvaluateClamp},
    {"aten.clamp_max", EvaluateExtremum<false>},
    {"aten.clamp_min", EvaluateExtremum<true>},
    {"aten.div", EvaluateDiv},
    {"aten.eq", EvaluateCompare<false, true, false>},
    {"aten.floor_divide", EvaluateFloorDivide<Division::kFloor>},
    {"aten.fmod", EvaluateFloorDivide<Division::kTruncatedRemainder>},
    {"aten.ge", EvaluateCompare<false, true, true>},
    {"aten.gt", EvaluateCompare<false, false, true>},
    {"aten.le", EvaluateCompare<true, true, false>},
    {"aten.lerp", EvaluateLerp},
    {"aten.logical_and", EvaluateBits<Bits::kAnd, true>},
    {"aten.logical_not", EvaluateNot},
    {"aten.logical_or", EvaluateBits<Bits::kOr, true>},
    {"aten.logical_xor", EvaluateBits<Bits::kXor, true>},
    {"aten.lt", EvaluateCompare<true, false, false>},
    {"aten.masked_fill", EvaluateMaskedFill},
    {"aten.maximum", EvaluateExtremum<true>},
    {"aten.minimum", EvaluateExtremum<false>},
    {"aten.mul", EvaluateMul},
    {"aten.ne", EvaluateCompare<true, false, true>},
    {"aten.neg", EvaluateNeg},
    {"aten.reciprocal", EvaluateReciprocal},
    {"aten.relu", EvaluateRelu},
    {"aten.remainder", EvaluateFloorDivide<Division::kRemainder>},
    {"aten.rsub", EvaluateReverseSub},
    {"aten.sign", EvaluateSign},
    {"aten.sub", EvaluateSub},
    {"aten.threshold_backward", EvaluateThresholdBackward},
    {"aten.where", EvaluateWhere},
};

}  // namespace

Tensor ConvertTo(const Tensor& tensor, Domain domain) {
  if (tensor.domain() == domain) return tensor;
  Words words = tensor.Read();
  if (tensor.domain() == Domain::kInteger) {
    for (uint64_t& word : words)
      word = FromInteger(Signed(word));
  }
  if (domain == Domain::kInteger) {
    for (uint64_t& word : words)
      word = Word(Truncate(word));
  }
  if (domain != Domain::kComplex) return OfWords(domain, tensor.sizes(), std::move(words));
  Words parts(2 * words.size(), 0);
  for (size_t i = 0; i < words.size(); ++i)
    parts[2 * i] = words[i];
  return OfWords(domain, tensor.sizes(), std::move(parts));
}

Result<Tensor> Add(const Tensor& a, const Tensor& b) {
  const Domain domain = Common(a.domain(), b.domain());
  if (domain == Domain::kComplex) {
    return MapComplex(a, b, [](Residue ar, Residue ai, Residue br, Residue bi) {
      return Parts(Add(ar, br), Add(ai, bi));
    });
  }
  if (domain == Domain::kInteger)
    return Map(a, b, domain, [](uint64_t x, uint64_t y) { return x + y; });
  return Map(ConvertTo(a, domain), ConvertTo(b, domain), domain,
             [](Residue x, Residue y) { return Add(x, y); });
}

Result<Tensor> Sub(const Tensor& a, const Tensor& b) {
  return AddScaled(a, b, FromInteger(-1));
}

Result<Tensor> Mul(const Tensor& a, const Tensor& b) {
  const Domain domain = Common(a.domain(), b.domain());
  if (domain == Domain::kComplex) {
    return MapComplex(a, b, [](Residue ar, Residue ai, Residue br, Residue bi) {
      return Parts(Sub(Mul(ar, br), Mul(ai, bi)), Add(Mul(ar, bi), Mul(ai, br)));
    });
  }
  if (domain == Domain::kInteger)
    return Map(a, b, domain, [](uint64_t x, uint64_t y) { return x * y; });
  // x·x where the square of x is known
  if (const Laws* laws = a.laws();
      laws != nullptr && laws->square != nullptr && a.sizes() == b.sizes() && SameElements(a, b)) {
    return *laws->square;
  }
  STRATA_TRY(Tensor product, Map(ConvertTo(a, domain), ConvertTo(b, domain), domain,
                                 [](Residue x, Residue y) { return Mul(x, y); }));
  // (x·y)² where the square of a factor is known
  const auto has_square = [](const Tensor& factor) {
    return factor.laws() != nullptr && factor.laws()->square != nullptr;
  };
  if (has_square(a) || has_square(b)) {
    const auto square = [&](const Tensor& factor) -> Result<Tensor> {
      return has_square(factor) ? *factor.laws()->square : Mul(factor, factor);
    };
    STRATA_TRY(const Tensor first, square(a));
    STRATA_TRY(const Tensor second, square(b));
    STRATA_TRY(Tensor both, Mul(first, second));
    Laws laws;
    laws.square = std::make_shared<const Tensor>(std::move(both));
    product.SetLaws(std::move(laws));
  }
  return product;
}

Result<Tensor> Div(const Tensor& a, const Tensor& b) {
  if (b.domain() == Domain::kComplex)
    return Error(ErrorCode::kUnsupported, "division by complex numbers");
  const Tensor inverse = Reciprocal(ConvertTo(b, Domain::kFloat));
  return Mul(ConvertTo(a, Common(a.domain(), Domain::kFloat)), inverse);
}

Tensor Reciprocal(const Tensor& a) {
  Words words = a.Read();
  InvertAll(words);
  return OfWords(Domain::kFloat, a.sizes(), std::move(words));
}

Tensor Scale(const Tensor& a, Residue factor) {
  if (a.domain() == Domain::kInteger) {
    const auto number = Word(factor <= kPrime / 2 ? Signed(factor) : Signed(factor - kPrime));
    return Map(a, a.domain(), [&](uint64_t x) { return x * number; });
  }
  Words words = a.Read();
  for (Residue& word : words)
    word = Mul(word, factor);
  return OfWords(a.domain(), a.sizes(), std::move(words));
}

std::span<const OpDefinition> ArithmeticOps() {
  return kArithmeticOps;
}

}  // namespace strata::prove
