#include "passes/placement/rules/rule_builder.h"

namespace strata {
namespace {

/// ([parameter], [gradient], [exp_avg], [exp_avg_sq], …, [step], lr=…): each element on its own, in
/// place. Several tensors have calls of their own (passes/placement/split_lists.h).
Status AdamW(RuleBuilder& b) {
  const auto args = b.graph().args(b.node());
  for (const Arg& list : args) {
    if (list.is_span() && b.graph().elements(list).size() > 1)
      return Error(ErrorCode::kUnsupported, "a list of several tensors");
  }
  const auto parameter = b.operand_sizes(0);
  for (size_t operand = 1; operand < b.num_operands(); ++operand) {
    const auto sizes = b.operand_sizes(operand);
    const bool is_like_parameter = b.AreEqual(sizes, parameter);
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
      if (is_like_parameter) b.SetOperand(operand, dim, b.operand_factor(0, dim));
      if (!is_like_parameter) b.MakeWhole(b.operand_factor(operand, dim));
    }
  }
  // The lists before that of steps are written, gradients where they are scaled, too.
  for (size_t operand = 0, list = 0; list + 1 < args.size(); ++list) {
    if (b.graph().elements(args[list]).empty()) continue;
    if (list != 1 || b.FindArg(SIZE_MAX, "grad_scale") != nullptr)
      b.rule().written.push_back(static_cast<int>(operand));
    ++operand;
  }
  return Ok();
}

constexpr RuleEntry kOptimizerRules[] = {
    {"_fused_adam_", AdamW},
    {"_fused_adamw_", AdamW},
};

}  // namespace

std::span<const RuleEntry> OptimizerRules() {
  return kOptimizerRules;
}

}  // namespace strata
