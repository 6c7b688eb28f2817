#include <algorithm>
#include <string_view>

#include "passes/placement/rules/rule_builder.h"

namespace strata {
namespace {

/// Every dimension of an operand is that of the result it broadcasts to, aligned at the last one.
void Broadcast(RuleBuilder& b) {
  const DimTable& dims = b.graph().module().dims();
  for (size_t result = 1; result < b.num_results(); ++result)
    for (size_t dim = 0; dim < b.result_sizes(result).size(); ++dim)
      b.SetResult(result, dim, b.result_factor(0, dim));
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

/// f(x) = c·x
Status LinearInFirst(RuleBuilder& b) {
  if (b.is_float(0)) b.rule().linear = {{0}};
  return Pointwise(b);
}

/// A cast to real numbers is linear but for rounding; so is one between integers that hold the
/// counts of the graph.
Status Cast(RuleBuilder& b) {
  if (b.num_operands() != 1) return Pointwise(b);
  const Arg* dtype = b.FindArg(SIZE_MAX, "dtype");
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
    {"_conj", LinearInFirst},
    {"_to_copy", Cast},
    {"abs", Pointwise},
    {"add", SumOfTwo},
    {"add_", SumOfTwo},
    {"addcdiv", Pointwise},
    {"addcdiv_", Pointwise},
    {"addcmul", Pointwise},
    {"addcmul_", Pointwise},
    {"alias", LinearInFirst},
    {"bitwise_and", Pointwise},
    {"bitwise_not", Pointwise},
    {"bitwise_or", Pointwise},
    {"ceil", Pointwise},
    {"clamp", Pointwise},
    {"clamp_", Pointwise},
    {"clamp_max", Pointwise},
    {"clamp_min", Pointwise},
    {"clone", LinearInFirst},
    {"copy_", Pointwise},
    {"cos", Pointwise},
    {"detach", LinearInFirst},
    {"div", LinearInFirst},
    {"div_", LinearInFirst},
    {"eq", Pointwise},
    {"erf", Pointwise},
    {"exp", Pointwise},
    {"fill", Pointwise},
    {"fill_", Pointwise},
    {"floor", Pointwise},
    {"floor_divide", Pointwise},
    {"fmod", Pointwise},
    {"ge", Pointwise},
    {"gelu", Pointwise},
    {"gt", Pointwise},
    {"isfinite", Pointwise},
    {"isinf", Pointwise},
    {"isnan", Pointwise},
    {"le", Pointwise},
    {"lerp", Pointwise},
    {"lerp_", Pointwise},
    {"log", Pointwise},
    {"logical_and", Pointwise},
    {"logical_not", Pointwise},
    {"logical_or", Pointwise},
    {"lt", Pointwise},
    {"masked_fill", Pointwise},
    {"maximum", Pointwise},
    {"minimum", Pointwise},
    {"mul", Product},
    {"mul_", Product},
    {"ne", Pointwise},
    {"neg", LinearInFirst},
    {"pow", Pointwise},
    {"reciprocal", Pointwise},
    {"relu", Pointwise},
    {"remainder", Pointwise},
    {"round", Pointwise},
    {"rsqrt", Pointwise},
    {"rsub", Pointwise},
    {"sigmoid", Pointwise},
    {"sigmoid_backward", Pointwise},
    {"sign", Pointwise},
    {"silu", Pointwise},
    {"silu_backward", Pointwise},
    {"sin", Pointwise},
    {"sqrt", Pointwise},
    {"sub", SumOfTwo},
    {"sub_", SumOfTwo},
    {"tanh", Pointwise},
    {"tanh_backward", Pointwise},
    {"threshold_backward", Pointwise},
    {"where", Pointwise},
    {"zero_", Pointwise},
};

}  // namespace

std::span<const RuleEntry> PointwiseRules() {
  return kPointwiseRules;
}

}  // namespace strata
