#include "runtime/train/programs/param_groups.h"

#include <algorithm>
#include <memory>
#include <re2/re2.h>

namespace strata {

Result<std::vector<AdamWConfig>> AdamWOfParameters(const OptimizerConfig& config,
                                                   std::span<const ParameterSpec> parameters) {
  std::vector<std::unique_ptr<RE2>> patterns;
  for (const ParamGroup& group : config.param_groups) {
    patterns.push_back(std::make_unique<RE2>(group.pattern, RE2::Quiet));
    if (patterns.back()->ok()) continue;
    return Error("no regular expression: optimizer.param_groups.{}.pattern: '{}': {}", group.name,
                 group.pattern, patterns.back()->error());
  }
  std::vector<AdamWConfig> settings;
  std::vector<int64_t> sizes(patterns.size(), 0);
  for (const ParameterSpec& parameter : parameters) {
    const auto first = std::ranges::find_if(patterns, [&](const std::unique_ptr<RE2>& pattern) {
      return RE2::PartialMatch(parameter.name, *pattern);
    });
    if (first == patterns.end()) {
      settings.push_back(config);
      continue;
    }
    const auto index = static_cast<size_t>(first - patterns.begin());
    ++sizes[index];
    settings.push_back(config.param_groups[index].adamw);
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > 0) continue;
    return Error(
        "no parameter matches '{}': optimizer.param_groups.{}.pattern: the model has {} and "
        "others, "
        "and the first group that matches takes a parameter",
        config.param_groups[i].pattern, config.param_groups[i].name,
        parameters.empty() ? "none" : parameters.back().name);
  }
  return settings;
}

std::vector<double> GroupLearningRates(const OptimizerConfig& config) {
  std::vector<double> rates;
  for (const ParamGroup& group : config.param_groups) {
    const double lr = group.adamw.lr;
    if (lr != config.lr && std::ranges::find(rates, lr) == rates.end()) rates.push_back(lr);
  }
  return rates;
}

}  // namespace strata
