#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "base/random.h"
#include "prove/ops/elementwise.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

/// exp(a), and log's exponential.
Tensor WithExponential(Tensor tensor, Tensor exponential) {
  Laws laws;
  laws.exponential = std::make_shared<const Tensor>(std::move(exponential));
  tensor.SetLaws(std::move(laws));
  return tensor;
}

Tensor SquareRoot(const Tensor& a) {
  static const uint64_t kFunction = FunctionKey("sqrt");
  Tensor root = Map(a, Domain::kFloat, [](Residue x) {
    return x == 0 || x == 1 || x == kInfinity ? x : Uninterpreted(kFunction, x);
  });
  Laws laws;
  laws.square = std::make_shared<const Tensor>(a.Copy());
  root.SetLaws(std::move(laws));
  return root;
}

Tensor ReciprocalRoot(const Tensor& a) {
  const Tensor inverse = Reciprocal(a);
  Tensor result = Reciprocal(SquareRoot(a));
  Laws laws;
  laws.square = std::make_shared<const Tensor>(inverse);
  result.SetLaws(std::move(laws));
  return result;
}

/// 1 / (1 + exp(-x))
Tensor Sigmoid(const Tensor& a) {
  const Tensor exponential = Exp(a);
  const Tensor sum = Map(exponential, Domain::kFloat, [](Residue e) { return Add(1, e); });
  return *Map(exponential, Reciprocal(sum), Domain::kFloat,
              [](Residue e, Residue inverse) { return e == kInfinity ? 1 : Mul(e, inverse); });
}

/// d sigmoid / dx = s (1 - s)
Residue SigmoidSlope(Residue s) {
  return Mul(s, Sub(1, s));
}

Result<Tensor> NumbersAt(const Call& call, size_t position) {
  STRATA_TRY(const Tensor tensor, call.TensorAt(position));
  if (tensor.domain() == Domain::kComplex)
    return Error(ErrorCode::kUnsupported, "a function of complex numbers");
  if (tensor.domain() == Domain::kFloat) return tensor;
  return ConvertTo(tensor, Domain::kFloat);
}

template <Tensor (*kFunction)(const Tensor&)>
Result<Values> EvaluateUnary(Call& call) {
  STRATA_TRY(const Tensor a, NumbersAt(call, 0));
  return Values{kFunction(a)};
}

/// What is known of a function of which nothing else is: sin(0) = 0 and sin(-x) = -sin(x),
/// cos(0) = 1 and cos(-x) = cos(x).
struct Symmetry {
  std::string_view name;
  Residue at_zero;
  bool is_odd;
};

constexpr Symmetry kSymmetries[] = {
    {"aten.asin", 0, true},  {"aten.asinh", 0, true},  {"aten.atan", 0, true},
    {"aten.atanh", 0, true}, {"aten.cos", 1, false},   {"aten.cosh", 1, false},
    {"aten.erf", 0, true},   {"aten.erfinv", 0, true}, {"aten.sin", 0, true},
    {"aten.sinh", 0, true},  {"aten.tan", 0, true},
};

Tensor ApplySymmetric(const Symmetry& symmetry, uint64_t function, const Tensor& a) {
  return Map(a, Domain::kFloat, [&](Residue x) {
    if (x == 0) return symmetry.at_zero;
    const bool is_negative = IsNumber(x) ? x > kPrime / 2 : x == kMinusInfinity;
    const Residue result = Uninterpreted(function, is_negative ? Neg(x) : x);
    return is_negative && symmetry.is_odd ? Neg(result) : result;
  });
}

/// A function of which only equality is known; literals, `approximate` of gelu, are part of it.
Result<Values> EvaluateUninterpreted(Call& call) {
  STRATA_TRY(const Tensor a, NumbersAt(call, 0));
  std::string name = call.Literals();
  name.erase(0, name.find('('));
  std::string_view base = call.op();
  base.remove_suffix(base.size() - base.find('.', base.find('.') + 1));
  if (base.ends_with('_')) base.remove_suffix(1);
  const uint64_t function = FunctionKey(std::string(base) + name);
  const auto* symmetry = std::ranges::find(kSymmetries, base, &Symmetry::name);
  return Values{symmetry == std::end(kSymmetries) ? Apply(function, a)
                                                  : ApplySymmetric(*symmetry, function, a)};
}

Result<Values> EvaluateExp(Call& call) {
  STRATA_TRY(const Tensor a, NumbersAt(call, 0));
  return Values{Exp(a)};
}

Tensor Log(const Tensor& a) {
  if (const Laws* laws = a.laws();
      laws != nullptr && laws->scaled != nullptr && laws->shift != nullptr) {
    // log(s / exp(b)) = log(s) - b
    Result<Tensor> difference = Sub(Log(*laws->scaled), *laws->shift);
    if (difference) return WithExponential(*std::move(difference), a.Copy());
  }
  static const uint64_t kFunction = FunctionKey("log");
  Tensor result = Map(a, Domain::kFloat, [](Residue x) {
    if (x == 0) return kMinusInfinity;
    return x == 1 ? Residue{0} : Uninterpreted(kFunction, x);
  });
  return WithExponential(std::move(result), a.Copy());
}

Tensor Silu(const Tensor& a) {
  return *Mul(a, Sigmoid(a));
}

Tensor Tanh(const Tensor& a) {
  // (E² - 1) / (E² + 1)
  const Tensor square = Map(Exp(a), Domain::kFloat, [](Residue e) { return Mul(e, e); });
  const Tensor sum = Map(square, Domain::kFloat, [](Residue e) { return Add(e, 1); });
  return *Map(square, Reciprocal(sum), Domain::kFloat,
              [](Residue e, Residue inverse) { return Mul(Sub(e, 1), inverse); });
}

/// The integer part of one element, down.
Residue FloorOf(Residue x) {
  static const uint64_t kFunction = FunctionKey("floor");
  if (!IsNumber(x)) return x;
  const std::optional<int64_t> whole = WholeOf(x);
  if (!whole) return Uninterpreted(kFunction, x);
  const bool is_above = Compare(FromInteger(*whole), x) > 0;  // towards 0 is up
  return FromInteger(*whole - static_cast<int64_t>(is_above));
}

Residue CeilOf(Residue x) {
  return IsNumber(x) ? Neg(FloorOf(Neg(x))) : x;
}

Residue TruncOf(Residue x) {
  return IsNumber(x) && Compare(x, 0) < 0 ? CeilOf(x) : FloorOf(x);
}

Tensor Ceil(const Tensor& a) {
  return Map(a, Domain::kFloat, CeilOf);
}

Tensor Fraction(const Tensor& a) {
  return Map(a, Domain::kFloat, [](Residue x) { return Sub(x, TruncOf(x)); });
}

/// pow of a number with an integer literal is a product, else uninterpreted.
Result<Values> EvaluatePow(Call& call) {
  STRATA_TRY(const Tensor base, call.TensorAt(0, "self"));
  STRATA_TRY(const Tensor exponent, call.TensorAt(1, "exponent"));
  const Argument* literal = call.Find(1, "exponent");
  std::optional<int64_t> power;
  if (const auto* number = std::get_if<int64_t>(&literal->value)) power = *number;
  if (const auto* number = std::get_if<double>(&literal->value)) {
    if (std::trunc(*number) == *number && std::abs(*number) < 64)
      power = static_cast<int64_t>(*number);
    if (*number == 0.5) return Values{SquareRoot(ConvertTo(base, Domain::kFloat))};
    if (*number == -0.5) return Values{ReciprocalRoot(ConvertTo(base, Domain::kFloat))};
  }
  if (power && base.domain() == Domain::kInteger && *power >= 0) {
    return Values{Map(base, Domain::kInteger, [&](uint64_t x) {
      uint64_t product = 1;
      for (int64_t i = 0; i < *power; ++i)
        product *= x;
      return product;
    })};
  }
  if (power && base.domain() != Domain::kComplex) {
    const Tensor numbers = base.domain() == Domain::kFloat ? base : ConvertTo(base, Domain::kFloat);
    if (*power == 2) {
      STRATA_TRY(Tensor square, Mul(numbers, numbers));
      return Values{std::move(square)};
    }
    return Values{Map(numbers, Domain::kFloat, [&](Residue x) {
      const Residue product = Power(x, static_cast<uint64_t>(std::abs(*power)));
      return *power < 0 ? Inverse(product) : product;
    })};
  }
  static const uint64_t kFunction = FunctionKey("pow");
  STRATA_TRY(
      Tensor result,
      Map(ConvertTo(base, Domain::kFloat), ConvertTo(exponent, Domain::kFloat), Domain::kFloat,
          [](Residue x, Residue y) { return Uninterpreted(kFunction ^ Mix(x), y); }));
  return Values{std::move(result)};
}

/// `slope(x)` times the gradient: linear in it.
template <Tensor (*kSlope)(const Tensor&)>
Result<Values> EvaluateBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  STRATA_TRY(const Tensor a, NumbersAt(call, 1));
  STRATA_TRY(Tensor result, Mul(gradient, kSlope(a)));
  return Values{std::move(result)};
}

Tensor SiluSlope(const Tensor& a) {
  // s (1 + x (1 - s))
  return *Map(a, Sigmoid(a), Domain::kFloat,
              [](Residue x, Residue s) { return Mul(s, Add(1, Mul(x, Sub(1, s)))); });
}

/// Of the result of sigmoid.
Tensor SlopeOfSigmoid(const Tensor& s) {
  return Map(s, Domain::kFloat, SigmoidSlope);
}

/// Of the result of tanh.
Tensor SlopeOfTanh(const Tensor& t) {
  return Map(t, Domain::kFloat, [](Residue x) { return Sub(1, Mul(x, x)); });
}

/// A slope of which only equality is known, with the literals of the call.
Result<Values> EvaluateUninterpretedBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  STRATA_TRY(const Tensor a, NumbersAt(call, 1));
  STRATA_TRY(Tensor result, Mul(gradient, Apply(FunctionKey(call.Literals()), a)));
  return Values{std::move(result)};
}

Tensor ExpMinusOne(const Tensor& a) {
  return Map(Exp(a), Domain::kFloat, [](Residue e) { return Sub(e, 1); });
}

/// The factors of elu: of x where it is positive, of exp(x) − 1 elsewhere, and of x in that.
struct EluFactors {
  Residue positive, negative, input;
};

Result<EluFactors> EluFactorsAt(const Call& call, size_t position) {
  STRATA_TRY(const Residue alpha, call.NumberAt(position, "alpha", 1));
  STRATA_TRY(const Residue scale, call.NumberAt(position + 1, "scale", 1));
  STRATA_TRY(const Residue input, call.NumberAt(position + 2, "input_scale", 1));
  return EluFactors{scale, Mul(alpha, scale), input};
}

/// `positive(x)` where x > 0, else `negative`.
template <class Fn>
Result<Tensor> WherePositive(const Tensor& x, const Tensor& negative, Fn&& positive) {
  return Map(x, negative, Domain::kFloat, [&](Residue value, Residue other) {
    if (value == kNan || value == kUndefined) return value;
    return Compare(value, 0) > 0 ? positive(value) : other;
  });
}

Result<Values> EluOf(const Tensor& x, const EluFactors& factors) {
  const Tensor scaled = factors.input == 1 ? x : Scale(x, factors.input);
  STRATA_TRY(Tensor result,
             WherePositive(x, Scale(ExpMinusOne(scaled), factors.negative),
                           [&](Residue value) { return Mul(value, factors.positive); }));
  return Values{std::move(result)};
}

/// elu(x, alpha, scale, input_scale)
Result<Values> EvaluateElu(Call& call) {
  STRATA_TRY(const Tensor x, NumbersAt(call, 0));
  STRATA_TRY(const EluFactors factors, EluFactorsAt(call, 1));
  return EluOf(x, factors);
}

/// celu(x, alpha): elu with the input scale 1 / alpha. Its backward is that of elu.
Result<Values> EvaluateCelu(Call& call) {
  STRATA_TRY(const Tensor x, NumbersAt(call, 0));
  STRATA_TRY(const Residue alpha, call.NumberAt(1, "alpha", 1));
  return EluOf(x, {.positive = 1, .negative = alpha, .input = Inverse(alpha)});
}

/// elu_backward(gradient, alpha, scale, input_scale, is_result, x), x maybe the result of elu
Result<Values> EvaluateEluBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  STRATA_TRY(const EluFactors factors, EluFactorsAt(call, 1));
  STRATA_TRY(const Tensor x, NumbersAt(call, 5));
  const Tensor negative =
      call.FlagAt(4, "is_result")
          ? Map(x, Domain::kFloat, [&](Residue y) { return Add(y, factors.negative); })
          : Scale(Exp(factors.input == 1 ? x : Scale(x, factors.input)), factors.negative);
  STRATA_TRY(const Tensor slope, WherePositive(x, Scale(negative, factors.input),
                                               [&](Residue) { return factors.positive; }));
  STRATA_TRY(Tensor result, Mul(gradient, slope));
  return Values{std::move(result)};
}

constexpr OpDefinition kFunctionsOps[] = {
    {"aten.acos", EvaluateUninterpreted},
    {"aten.acosh", EvaluateUninterpreted},
    {"aten.asin", EvaluateUninterpreted},
    {"aten.asinh", EvaluateUninterpreted},
    {"aten.atan", EvaluateUninterpreted},
    {"aten.atanh", EvaluateUninterpreted},
    {"aten.ceil", EvaluateUnary<Ceil>},
    {"aten.celu", EvaluateCelu},
    {"aten.cos", EvaluateUninterpreted},
    {"aten.cosh", EvaluateUninterpreted},
    {"aten.digamma", EvaluateUninterpreted},
    {"aten.elu", EvaluateElu},
    {"aten.elu_backward", EvaluateEluBackward},
    {"aten.erf", EvaluateUninterpreted},
    {"aten.erfc", EvaluateUninterpreted},
    {"aten.erfinv", EvaluateUninterpreted},
    {"aten.exp", EvaluateExp},
    {"aten.exp2", EvaluateUninterpreted},
    {"aten.expm1", EvaluateUnary<ExpMinusOne>},
    {"aten.floor", EvaluateUnary<Floor>},
    {"aten.frac", EvaluateUnary<Fraction>},
    {"aten.gelu", EvaluateUninterpreted},
    {"aten.gelu_backward", EvaluateUninterpretedBackward},
    {"aten.lgamma", EvaluateUninterpreted},
    {"aten.log", EvaluateUnary<Log>},
    {"aten.log10", EvaluateUninterpreted},
    {"aten.log1p", EvaluateUninterpreted},
    {"aten.log2", EvaluateUninterpreted},
    {"aten.mish", EvaluateUninterpreted},
    {"aten.mish_backward", EvaluateUninterpretedBackward},
    {"aten.pow", EvaluatePow},
    {"aten.round", EvaluateUninterpreted},
    {"aten.rsqrt", EvaluateUnary<ReciprocalRoot>},
    {"aten.sigmoid", EvaluateUnary<Sigmoid>},
    {"aten.sigmoid_backward", EvaluateBackward<SlopeOfSigmoid>},
    {"aten.silu", EvaluateUnary<Silu>},
    {"aten.silu_backward", EvaluateBackward<SiluSlope>},
    {"aten.sin", EvaluateUninterpreted},
    {"aten.sinh", EvaluateUninterpreted},
    {"aten.softplus", EvaluateUninterpreted},
    {"aten.softplus_backward", EvaluateUninterpretedBackward},
    {"aten.sqrt", EvaluateUnary<SquareRoot>},
    {"aten.tan", EvaluateUninterpreted},
    {"aten.tanh", EvaluateUnary<Tanh>},
    {"aten.tanh_backward", EvaluateBackward<SlopeOfTanh>},
    {"aten.trunc", EvaluateUnary<Trunc>},
};

}  // namespace

uint64_t FunctionKey(std::string_view name) {
  uint64_t key = name.size();
  for (const char letter : name)
    key = Mix(key ^ static_cast<unsigned char>(letter));
  return key;
}

Tensor Floor(const Tensor& a) {
  return Map(a, Domain::kFloat, FloorOf);
}

Tensor Trunc(const Tensor& a) {
  return Map(a, Domain::kFloat, TruncOf);
}

Tensor Apply(uint64_t function, const Tensor& a) {
  return Map(a, Domain::kFloat, [&](Residue x) { return Uninterpreted(function, x); });
}

Tensor Exp(const Tensor& a) {
  if (const Laws* laws = a.laws()) {
    if (laws->exponential != nullptr) return *laws->exponential;
    if (laws->minuend != nullptr) {
      // exp(a - b) = exp(a) / exp(b)
      Result<Tensor> quotient = Div(Exp(*laws->minuend), Exp(*laws->subtrahend));
      if (quotient) {
        Laws shifted;
        shifted.scaled = std::make_shared<const Tensor>(Exp(*laws->minuend));
        shifted.shift = laws->subtrahend;
        quotient->SetLaws(std::move(shifted));
        return *std::move(quotient);
      }
    }
  }
  std::vector<uint64_t> words = a.Read();
  ExpAll(words);
  return OfWords(Domain::kFloat, a.sizes(), std::move(words));
}

std::span<const OpDefinition> FunctionOps() {
  return kFunctionsOps;
}

}  // namespace strata::prove
