#include <optional>

#include "prove/ops/elementwise.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

/// `fn` of each number; NaN and undefined elements stay.
template <class Fn>
Result<Values> MapNumbers(const Call& call, Fn&& fn) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  return Values{Map(ConvertTo(a, Domain::kFloat), Domain::kFloat,
                    [&](Residue x) { return x == kNan || x == kUndefined ? x : fn(x); })};
}

/// The gradient times `slope(x)` of the operand.
template <class Fn>
Result<Values> MapGradients(const Call& call, Fn&& slope) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  STRATA_TRY(const Tensor a, call.TensorAt(1, "self"));
  const Tensor slopes = Map(ConvertTo(a, Domain::kFloat), Domain::kFloat,
                            [&](Residue x) { return x == kNan || x == kUndefined ? x : slope(x); });
  STRATA_TRY(Tensor result, Mul(gradient, slopes));
  return Values{std::move(result)};
}

Residue Clamped(Residue x, double low, double high) {
  if (CompareToLiteral(x, low) < 0) return FromLiteral(low);
  return CompareToLiteral(x, high) > 0 ? FromLiteral(high) : x;
}

bool IsBetween(Residue x, double low, double high) {
  return CompareToLiteral(x, low) > 0 && CompareToLiteral(x, high) < 0;
}

Residue HardSigmoid(Residue x) {
  return Div(Clamped(Add(x, 3), 0, 6), 6);
}

/// hardtanh(self, min_val, max_val)
Result<Values> EvaluateHardTanh(Call& call) {
  const double low = call.LiteralAt(1, "min_val").value_or(-1);
  const double high = call.LiteralAt(2, "max_val").value_or(1);
  return MapNumbers(call, [&](Residue x) { return Clamped(x, low, high); });
}

/// hardtanh_backward(grad_output, self, min_val, max_val)
Result<Values> EvaluateHardTanhBackward(Call& call) {
  const double low = call.LiteralAt(2, "min_val").value_or(-1);
  const double high = call.LiteralAt(3, "max_val").value_or(1);
  return MapGradients(call, [&](Residue x) -> Residue { return IsBetween(x, low, high) ? 1 : 0; });
}

Result<Values> EvaluateHardSigmoid(Call& call) {
  return MapNumbers(call, HardSigmoid);
}

/// hardsigmoid_backward(grad_output, self)
Result<Values> EvaluateHardSigmoidBackward(Call& call) {
  return MapGradients(call,
                      [](Residue x) -> Residue { return IsBetween(x, -3, 3) ? Inverse(6) : 0; });
}

Result<Values> EvaluateHardSwish(Call& call) {
  return MapNumbers(call, [](Residue x) { return Mul(x, HardSigmoid(x)); });
}

/// hardswish_backward(grad_output, self)
Result<Values> EvaluateHardSwishBackward(Call& call) {
  return MapGradients(call, [](Residue x) -> Residue {
    if (CompareToLiteral(x, -3) < 0) return 0;
    return CompareToLiteral(x, 3) > 0 ? 1 : Add(Div(x, 3), Inverse(2));
  });
}

/// leaky_relu(self, negative_slope)
Result<Values> EvaluateLeakyRelu(Call& call) {
  const Residue slope = FromLiteral(call.LiteralAt(1, "negative_slope").value_or(0.01));
  return MapNumbers(call, [&](Residue x) { return Compare(x, 0) > 0 ? x : Mul(x, slope); });
}

/// leaky_relu_backward(grad_output, self, negative_slope, self_is_result): with a slope that is not
/// negative, the result has the sign of the operand.
Result<Values> EvaluateLeakyReluBackward(Call& call) {
  const Residue slope = FromLiteral(call.LiteralAt(2, "negative_slope").value_or(0.01));
  return MapGradients(call, [&](Residue x) { return Compare(x, 0) > 0 ? Residue{1} : slope; });
}

/// threshold(self, threshold, value)
Result<Values> EvaluateThreshold(Call& call) {
  const std::optional<double> threshold = call.LiteralAt(1, "threshold");
  const std::optional<double> value = call.LiteralAt(2, "value");
  if (!threshold || !value) return Error(ErrorCode::kInvalid, "no threshold");
  return MapNumbers(call, [&](Residue x) {
    return CompareToLiteral(x, *threshold) > 0 ? x : FromLiteral(*value);
  });
}

/// native_dropout_backward(gradient, mask, scale)
Result<Values> EvaluateDropoutBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  STRATA_TRY(const Tensor mask, call.TensorAt(1));
  STRATA_TRY(const Residue scale, call.NumberAt(2, "scale", 1));
  STRATA_TRY(const Tensor kept, Mul(gradient, mask));
  return Values{Scale(kept, scale)};
}

constexpr OpDefinition kPiecewiseOps[] = {
    {"aten.hardsigmoid", EvaluateHardSigmoid},
    {"aten.hardsigmoid_backward", EvaluateHardSigmoidBackward},
    {"aten.hardswish", EvaluateHardSwish},
    {"aten.hardswish_backward", EvaluateHardSwishBackward},
    {"aten.hardtanh", EvaluateHardTanh},
    {"aten.hardtanh_backward", EvaluateHardTanhBackward},
    {"aten.leaky_relu", EvaluateLeakyRelu},
    {"aten.leaky_relu_backward", EvaluateLeakyReluBackward},
    {"aten.native_dropout_backward", EvaluateDropoutBackward},
    {"aten.threshold", EvaluateThreshold},
};

}  // namespace

std::span<const OpDefinition> PiecewiseOps() {
  return kPiecewiseOps;
}

}  // namespace strata::prove
