#pragma once
#include <span>
#include <vector>

#include "base/result.h"
#include "runtime/config/config.h"
#include "runtime/config/parameters.h"

namespace strata {

/// What AdamW does with each parameter, in their order: as the first of `config.param_groups` that
/// matches its name says, or else as `config` itself.
/// Errors: a pattern that is not a regular expression, or that no parameter is left for.
Result<std::vector<AdamWConfig>> AdamWOfParameters(const OptimizerConfig& config,
                                                   std::span<const ParameterSpec> parameters);

/// The learning rates of the groups that differ from `config.lr`, in the order of the groups.
std::vector<double> GroupLearningRates(const OptimizerConfig& config);

}  // namespace strata
