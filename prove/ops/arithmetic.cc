#include <algorithm>
#include <string>
#include <string_view>

#include "prove/ops/elementwise.h"
#include "prove/ops/square_law.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

using Words = std::vector<uint64_t>;

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
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "other"));
  const std::string mode = call.TextAt(SIZE_MAX, "rounding_mode");
  STRATA_TRY(Tensor quotient, mode == "floor"   ? DivFloor(a, b)
                              : mode == "trunc" ? DivTrunc(a, b)
                                                : Div(a, b));
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

/// prims.fma(a, b, c): a * b + c
Result<Values> EvaluateFma(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "b"));
  STRATA_TRY(const Tensor c, call.TensorAt(2, "c"));
  STRATA_TRY(const Tensor product, Mul(a, b));
  STRATA_TRY(Tensor sum, Add(product, c));
  return Values{std::move(sum)};
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

constexpr OpDefinition kArithmeticOps[] = {
    {"aten.add", EvaluateAdd, false, true},
    {"aten.addcdiv", EvaluateAddcdiv},
    {"aten.addcmul", EvaluateAddcmul},
    {"aten.div", EvaluateDiv, false, true},
    {"aten.lerp", EvaluateLerp},
    {"aten.mul", EvaluateMul, false, true},
    {"aten.neg", EvaluateNeg, false, true},
    {"aten.reciprocal", EvaluateReciprocal},
    {"aten.rsub", EvaluateReverseSub, false, true},
    {"aten.sub", EvaluateSub, false, true},
    {"prims.fma", EvaluateFma},
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
  STRATA_TRY(Tensor sum, Map(ConvertTo(a, domain), ConvertTo(b, domain), domain,
                             [](Residue x, Residue y) { return Add(x, y); }));
  KeepSquare(a, b, sum);
  return sum;
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
