#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "diff/ranks/rank_rule.h"

namespace strata {

// Values of ranks in words. `values` are those of `ranks`, in the same order.

/// `5 on rank 1, 3 on ranks 0, 2, 3`: the rarest first.
std::string ValuesText(const std::vector<int32_t>& ranks, const std::vector<int64_t>& values);

/// Values that do not follow a rule, and the rule: `3 on rank 5, 8·rank`.
std::string ExceptionsText(const std::vector<int32_t>& ranks, const std::vector<int64_t>& values,
                           const RankRule& rule);

/// The rule that all values follow: `8·rank`; without one, `another one on each rank`.
std::string RuleText(const std::vector<int32_t>& ranks, const std::vector<int64_t>& values);

}  // namespace strata
