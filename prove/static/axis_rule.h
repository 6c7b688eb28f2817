#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "passes/placement/placement.h"
#include "passes/placement/rules/sharding_rule.h"

namespace strata::prove {

/// How the ranks of one mesh axis hold a value; none: not known.
using AxisPlacement = std::optional<Placement>;

struct AxisOperand {
  AxisPlacement placement;
  /// Into which outer axes cut the dimension that this axis cuts; 0: not known.
  int64_t outer_parts = 1;
};

/// What an operator makes on one axis.
struct AxisResult {
  std::vector<AxisPlacement> results;
  int operand = -1;   ///< that made them, or that is wrong; -1: none
  std::string error;  ///< why the operands fit no rule; "": they do
};

/// Applies the rule of a call to its operands on one axis.
AxisResult ApplyRule(const Module& module, const ShardingRule& rule,
                     const std::vector<AxisOperand>& operands);

/// Whether the dimension of a result is one that no operand has, as of `expand` or `zeros`: ranks
/// that make a part of it need not have cut anything.
bool IsNewDim(const ShardingRule& rule, size_t result, int32_t dim);

}  // namespace strata::prove
