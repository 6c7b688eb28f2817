#include <string_view>

#include "passes/placement/rules/rule_builder.h"

namespace strata {
namespace {

/// Every dimension of an operand is that of the result it broadcasts to, aligned at the last one.
void Broadcast(RuleBuilder& b) {
  const DimTable& dims = b.graph().module().dims();
  for (size_t result = 1; result < b.num_results(); ++result) {
    const bool is_equal = b.AreEqual(b.result_sizes(result), b.result_sizes(0));
    for (size_t dim = 0; dim < b.result_sizes(result).size() && is_equal; ++dim)
      b.SetResult(result, dim, b.result_factor(0, dim));
  }
  for (size_t operand = 0; operand < b.num_operands(); ++operand) {
    const auto sizes = b.operand_sizes(operand);
    const size_t offset = b.result_sizes(0).size() - sizes.size();
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
      if (!dims.ProvablyEqual(sizes[dim], b.result_sizes(0)[offset + dim])) continue;
      b.SetOperand(operand, dim, b.result_factor(0, offset + dim));
    }
  }
}

Status Pointwise(RuleBuilder& b) {
  Broadcast(b);
  if (b.base().ends_with('_')) b.rule().written = {0};
  return Ok();
}

/// f(x) = c·x of argument 0, which may be a number
Status LinearInFirst(RuleBuilder& b) {
  if (b.OperandOf(0) && b.is_float(0)) b.rule().linear = {{0}};
  return Pointwise(b);
}

/// x / y, linear in x but where the quotient is rounded
Status Quotient(RuleBuilder& b) {
  return b.FindArg(2, "rounding_mode") != nullptr ? Pointwise(b) : LinearInFirst(b);
}

/// A cast to real numbers is linear but for rounding; so is one between integers that hold the
/// counts of the graph.
Status Cast(RuleBuilder& b) {
  if (b.num_operands() != 1) return Pointwise(b);
  const bool is_prim = b.base() == "convert_element_type";
  const Arg* dtype = b.FindArg(is_prim ? 1 : SIZE_MAX, "dtype");
  const auto is_integer = [](DType type) { return type == DType::kI32 || type == DType::kI64; };
  const bool are_integers = dtype != nullptr && dtype->kind() == ArgKind::kDType &&
                            is_integer(dtype->dtype()) && is_integer(b.dtype(0));
  const bool to_float = dtype == nullptr || dtype->kind() != ArgKind::kDType ||
                        dtype->dtype() == DType::kF16 || dtype->dtype() == DType::kBF16 ||
                        dtype->dtype() == DType::kF32 || dtype->dtype() == DType::kF64;
  if (to_float || are_integers) b.rule().linear = {{0}};
  return Pointwise(b);
}

/// a + c·b
Status SumOfTwo(RuleBuilder& b) {
  if (b.num_operands() == 2) b.rule().linear = {{0, 1}};
  return Pointwise(b);
}

/// a·b: linear in each of them.
Status Product(RuleBuilder& b) {
  b.rule().linear = {{0}};
  if (b.num_operands() == 2) b.rule().linear.push_back({1});
  return Pointwise(b);
}

constexpr RuleEntry kPointwiseRules[] = {
    {"__and__", Pointwise},
    {"__lshift__", Pointwise},
    {"__or__", Pointwise},
    {"__rshift__", Pointwise},
    {"__xor__", Pointwise},
    {"_conj", LinearInFirst},
    {"_prelu_kernel", Pointwise},
    {"_prelu_kernel_backward", Pointwise},
    {"_to_copy", Cast},
    {"abs", Pointwise},
    {"acos", Pointwise},
    {"acosh", Pointwise},
    {"add", SumOfTwo},
    {"addcdiv", Pointwise},
    {"addcmul", Pointwise},
    {"alias", LinearInFirst},
    {"angle", Pointwise},
    {"asin", Pointwise},
    {"asinh", Pointwise},
    {"atan", Pointwise},
    {"atan2", Pointwise},
    {"atanh", Pointwise},
    {"bitwise_and", Pointwise},
    {"bitwise_left_shift", Pointwise},
    {"bitwise_not", Pointwise},
    {"bitwise_or", Pointwise},
    {"bitwise_right_shift", Pointwise},
    {"bitwise_xor", Pointwise},
    {"ceil", Pointwise},
    {"celu", Pointwise},
    {"clamp", Pointwise},
    {"clamp_max", Pointwise},
    {"clamp_min", Pointwise},
    {"clone", LinearInFirst},
    {"complex", Pointwise},
    {"conj_physical", LinearInFirst},
    {"convert_element_type", Cast},
    {"copy", Pointwise},
    {"copysign", Pointwise},
    {"cos", Pointwise},
    {"cosh", Pointwise},
    {"deg2rad", Pointwise},
    {"detach", LinearInFirst},
    {"digamma", Pointwise},
    {"div", Quotient},
    {"elu", Pointwise},
    {"elu_backward", Pointwise},
    {"eq", Pointwise},
    {"erf", Pointwise},
    {"erfc", Pointwise},
    {"erfinv", Pointwise},
    {"exp", Pointwise},
    {"exp2", Pointwise},
    {"expm1", Pointwise},
    {"fill", Pointwise},
    {"float_power", Pointwise},
    {"floor", Pointwise},
    {"floor_divide", Pointwise},
    {"fma", Pointwise},
    {"fmax", Pointwise},
    {"fmin", Pointwise},
    {"fmod", Pointwise},
    {"frac", Pointwise},
    {"gcd", Pointwise},
    {"ge", Pointwise},
    {"gelu", Pointwise},
    {"gelu_backward", Pointwise},
    {"gt", Pointwise},
    {"hardshrink", Pointwise},
    {"hardshrink_backward", Pointwise},
    {"hardsigmoid", Pointwise},
    {"hardsigmoid_backward", Pointwise},
    {"hardswish", Pointwise},
    {"hardswish_backward", Pointwise},
    {"hardtanh", Pointwise},
    {"hardtanh_backward", Pointwise},
    {"heaviside", Pointwise},
    {"hypot", Pointwise},
    {"i0", Pointwise},
    {"igamma", Pointwise},
    {"igammac", Pointwise},
    {"isfinite", Pointwise},
    {"isinf", Pointwise},
    {"isnan", Pointwise},
    {"isneginf", Pointwise},
    {"isposinf", Pointwise},
    {"lcm", Pointwise},
    {"ldexp", Pointwise},
    {"le", Pointwise},
    {"leaky_relu", Pointwise},
    {"leaky_relu_backward", Pointwise},
    {"lerp", Pointwise},
    {"lgamma", Pointwise},
    {"lift_fresh_copy", LinearInFirst},
    {"log", Pointwise},
    {"log10", Pointwise},
    {"log1p", Pointwise},
    {"log2", Pointwise},
    {"log_sigmoid_backward", Pointwise},
    {"log_sigmoid_forward", Pointwise},
    {"logaddexp", Pointwise},
    {"logaddexp2", Pointwise},
    {"logical_and", Pointwise},
    {"logical_not", Pointwise},
    {"logical_or", Pointwise},
    {"logical_xor", Pointwise},
    {"logit", Pointwise},
    {"logit_backward", Pointwise},
    {"lt", Pointwise},
    {"masked_fill", Pointwise},
    {"maximum", Pointwise},
    {"minimum", Pointwise},
    {"mish", Pointwise},
    {"mish_backward", Pointwise},
    {"mul", Product},
    {"nan_to_num", Pointwise},
    {"native_dropout_backward", LinearInFirst},
    {"ne", Pointwise},
    {"neg", LinearInFirst},
    {"nextafter", Pointwise},
    {"polar", Pointwise},
    {"polygamma", Pointwise},
    {"pow", Pointwise},
    {"rad2deg", Pointwise},
    {"reciprocal", Pointwise},
    {"relu", Pointwise},
    {"remainder", Pointwise},
    {"round", Pointwise},
    {"rrelu_with_noise_backward", Pointwise},
    {"rsqrt", Pointwise},
    {"rsub", Pointwise},
    {"sgn", Pointwise},
    {"sigmoid", Pointwise},
    {"sigmoid_backward", Pointwise},
    {"sign", Pointwise},
    {"signbit", Pointwise},
    {"silu", Pointwise},
    {"silu_backward", Pointwise},
    {"sin", Pointwise},
    {"sinc", Pointwise},
    {"sinh", Pointwise},
    {"softplus", Pointwise},
    {"softplus_backward", Pointwise},
    {"softshrink", Pointwise},
    {"softshrink_backward", Pointwise},
    {"special_entr", Pointwise},
    {"special_erfcx", Pointwise},
    {"special_i0e", Pointwise},
    {"special_i1", Pointwise},
    {"special_i1e", Pointwise},
    {"special_log_ndtr", Pointwise},
    {"special_ndtri", Pointwise},
    {"special_xlog1py", Pointwise},
    {"special_zeta", Pointwise},
    {"sqrt", Pointwise},
    {"square", Pointwise},
    {"sub", SumOfTwo},
    {"tan", Pointwise},
    {"tanh", Pointwise},
    {"tanh_backward", Pointwise},
    {"threshold", Pointwise},
    {"threshold_backward", Pointwise},
    {"trunc", Pointwise},
    {"where", Pointwise},
    {"xlogy", Pointwise},
    {"zero", Pointwise},
};

}  // namespace

std::span<const RuleEntry> PointwiseRules() {
  return kPointwiseRules;
}

}  // namespace strata
