#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "prove/ops/elementwise.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

/// What elements are compared with. A literal keeps its own place in the order.
struct Bound {
  Tensor tensor;
  std::optional<double> literal;
};

Result<Bound> BoundAt(const Call& call, size_t position, std::string_view name) {
  STRATA_TRY(Tensor tensor, call.TensorAt(position, name));
  return Bound{std::move(tensor), call.LiteralAt(position, name)};
}

/// Compares elements: `fn` of -1, 0 or 1; of NaN `nan`, and of undefined elements an undefined one.
template <class Fn>
Result<Tensor> MapCompare(const Tensor& a, const Bound& bound, Domain domain, uint64_t nan,
                          Fn&& fn) {
  const Tensor& b = bound.tensor;
  if (Common(a.domain(), b.domain()) == Domain::kInteger) {
    return Map(a, b, domain, [&](uint64_t x, uint64_t y) {
      const int order = Signed(x) < Signed(y) ? -1 : static_cast<int>(Signed(x) > Signed(y));
      return fn(order, x, y);
    });
  }
  return Map(ConvertTo(a, Domain::kFloat), ConvertTo(b, Domain::kFloat), domain,
             [&](Residue x, Residue y) -> uint64_t {
               if (x == kUndefined || y == kUndefined) return kUndefined;
               if (x == kNan || y == kNan) return nan;
               return fn(bound.literal ? CompareToLiteral(x, *bound.literal) : Compare(x, y), x, y);
             });
}

template <bool kLess, bool kEqual, bool kGreater>
Result<Values> EvaluateCompare(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Bound b, BoundAt(call, 1, "other"));
  STRATA_TRY(
      Tensor truth,
      MapCompare(a, b, Domain::kInteger, kLess && kGreater ? 1 : 0,
                 [](int order, uint64_t /*x*/, uint64_t /*y*/) {
                   return static_cast<uint64_t>(order < 0 ? kLess : order == 0 ? kEqual : kGreater);
                 }));
  return Values{std::move(truth)};
}

template <bool kLargest>
Result<Tensor> Extremum(const Tensor& a, const Bound& b) {
  return MapCompare(
      a, b, Common(a.domain(), b.tensor.domain()), kNan,
      [](int order, uint64_t x, uint64_t y) { return (order > 0) == kLargest ? x : y; });
}

template <bool kLargest>
Result<Values> EvaluateExtremum(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Bound b, BoundAt(call, 1, "other"));
  STRATA_TRY(Tensor result, Extremum<kLargest>(a, b));
  return Values{std::move(result)};
}

Result<Values> EvaluateClamp(Call& call) {
  STRATA_TRY(Tensor a, call.TensorAt(0));
  if (call.Find(1, "min") != nullptr) {
    STRATA_TRY(const Bound low, BoundAt(call, 1, "min"));
    STRATA_TRY(a, Extremum<true>(a, low));
  }
  if (call.Find(2, "max") != nullptr) {
    STRATA_TRY(const Bound high, BoundAt(call, 2, "max"));
    STRATA_TRY(a, Extremum<false>(a, high));
  }
  return Values{std::move(a)};
}

Result<Values> EvaluateRelu(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(Tensor result, Extremum<true>(a, {Tensor(a.domain(), {}, 0), {}}));
  return Values{std::move(result)};
}

/// threshold_backward(grad_output, self, threshold): grad where self > threshold, else 0
Result<Values> EvaluateThresholdBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  STRATA_TRY(const Tensor a, call.TensorAt(1));
  STRATA_TRY(const Bound threshold, BoundAt(call, 2, "threshold"));
  STRATA_TRY(const Tensor mask, MapCompare(a, threshold, Domain::kFloat, 1,
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

/// Whether an element is one of the codes; integers are none of them.
template <Residue... kCodes>
Result<Values> EvaluateIsCode(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  if (a.domain() == Domain::kComplex) return Error(ErrorCode::kUnsupported, "of complex numbers");
  if (a.domain() == Domain::kInteger)
    return Values{Map(a, Domain::kInteger, [](uint64_t /*x*/) -> uint64_t { return 0; })};
  return Values{Map(a, Domain::kInteger, [](Residue x) -> uint64_t {
    if (x == kUndefined) return kUndefined;
    return ((x == kCodes) || ...) ? 1 : 0;
  })};
}

Result<Values> EvaluateIsFinite(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  if (a.domain() == Domain::kComplex) return Error(ErrorCode::kUnsupported, "of complex numbers");
  const bool is_integer = a.domain() == Domain::kInteger;
  return Values{Map(a, Domain::kInteger, [&](Residue x) -> uint64_t {
    if (!is_integer && x == kUndefined) return kUndefined;
    return is_integer || IsNumber(x) ? 1 : 0;
  })};
}

constexpr OpDefinition kOrderOps[] = {
    {"aten.abs", EvaluateAbs},
    {"aten.clamp", EvaluateClamp},
    {"aten.clamp_max", EvaluateExtremum<false>},
    {"aten.clamp_min", EvaluateExtremum<true>},
    {"aten.eq", EvaluateCompare<false, true, false>},
    {"aten.ge", EvaluateCompare<false, true, true>},
    {"aten.gt", EvaluateCompare<false, false, true>},
    {"aten.isfinite", EvaluateIsFinite},
    {"aten.isinf", EvaluateIsCode<kInfinity, kMinusInfinity>},
    {"aten.isnan", EvaluateIsCode<kNan>},
    {"aten.isneginf", EvaluateIsCode<kMinusInfinity>},
    {"aten.isposinf", EvaluateIsCode<kInfinity>},
    {"aten.le", EvaluateCompare<true, true, false>},
    {"aten.lt", EvaluateCompare<true, false, false>},
    {"aten.maximum", EvaluateExtremum<true>},
    {"aten.minimum", EvaluateExtremum<false>},
    {"aten.ne", EvaluateCompare<true, false, true>},
    {"aten.relu", EvaluateRelu},
    {"aten.sign", EvaluateSign},
    {"aten.threshold_backward", EvaluateThresholdBackward},
};

}  // namespace

std::span<const OpDefinition> OrderOps() {
  return kOrderOps;
}

}  // namespace strata::prove
