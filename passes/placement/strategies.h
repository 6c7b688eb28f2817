#pragma once
#include <cstdint>
#include <vector>

#include "passes/placement/placement.h"
#include "passes/placement/rules/sharding_rule.h"

namespace strata {

/// One way to run an operator on the ranks of one mesh axis: placements on that axis.
struct AxisStrategy {
  std::vector<Placement> operands, results;
  int factor = -1;  ///< the one that is sharded; -1: none
};

/// Every way that `rule` allows: all replicated, a factor sharded, operands partial.
/// `sizes`: of each factor, what axes chosen before left of it; -n: a symbolic size, a multiple of
/// n, which n ranks can cut. `now`: the placements of the operands, of which partial ones may stay.
std::vector<AxisStrategy> AxisStrategies(const Module& module, const ShardingRule& rule,
                                         const std::vector<int64_t>& sizes, int64_t ranks,
                                         const std::vector<Placement>& now);

/// False for a strategy that has rows of tokens, but cuts tokens in another way on mesh axis `axis`
/// than what their dispatch sorted.
bool FollowsTokens(const ShardingRule& rule, const AxisStrategy& strategy, size_t axis);

/// True for a strategy whose ranks have some of the rows each, by another factor than that of rows.
bool HasOwnRows(const ShardingRule& rule, const AxisStrategy& strategy);

/// The sizes of the factors of `rule`; -n: symbolic, a multiple of n.
std::vector<int64_t> FactorSizes(const Module& module, const ShardingRule& rule);

}  // namespace strata
