#include "passes/placement/strategies.h"

#include <algorithm>
#include <optional>

namespace strata {
namespace {

/// The placement of a tensor when factor `sharded` is cut: none where another factor stands before
/// it in its dimension, since its parts would then not be contiguous.
std::optional<Placement> PlacementOf(const FactorDims& tensor, int sharded, const Factor& factor,
                                     const std::vector<int64_t>& sizes) {
  for (size_t dim = 0; dim < tensor.size(); ++dim) {
    for (const int index : tensor[dim]) {
      if (index == sharded) return Shard(dim);
      if (std::ranges::count(tensor[dim], sharded) != 0 && sizes[static_cast<size_t>(index)] != 1)
        return std::nullopt;
    }
  }
  return factor.kind == Factor::Kind::kReduce ? Partial(factor.reduce) : Replicate();
}

bool Has(const FactorDims& tensor, int factor) {
  return std::ranges::any_of(
      tensor, [&](const std::vector<int>& dim) { return std::ranges::count(dim, factor) != 0; });
}

std::optional<AxisStrategy> Sharded(const ShardingRule& rule, int index,
                                    const std::vector<int64_t>& sizes) {
  const Factor& factor = rule.factors[static_cast<size_t>(index)];
  const auto has_factor = [&](const FactorDims& tensor) { return Has(tensor, index); };
  if (std::ranges::none_of(rule.operands, has_factor) &&
      std::ranges::none_of(rule.results, has_factor))
    return std::nullopt;  // a dimension that took the factor of another one
  AxisStrategy strategy{.operands = {}, .results = {}, .factor = index};
  bool is_read = false;
  for (const FactorDims& operand : rule.operands) {
    const auto placement = PlacementOf(operand, index, factor, sizes);
    if (!placement) return std::nullopt;
    is_read = is_read || IsShard(*placement);
    // A partial operand is another strategy.
    strategy.operands.push_back(IsPartial(*placement) ? Replicate() : *placement);
  }
  for (const FactorDims& result : rule.results) {
    const auto placement = PlacementOf(result, index, factor, sizes);
    if (!placement) return std::nullopt;
    // Iterations that a rank does not have are missing from this result.
    if (is_read && factor.kind == Factor::Kind::kFree && !Has(result, index) && !result.empty())
      return std::nullopt;
    strategy.results.push_back(*placement);
  }
  if (!is_read && factor.kind == Factor::Kind::kReduce) return std::nullopt;
  return strategy;
}

/// The strategy with shards inside those of inner axes, where an operand has such now.
std::optional<AxisStrategy> Strided(AxisStrategy strategy, const std::vector<Placement>& now) {
  int32_t split = 0;
  for (size_t operand = 0; operand < now.size(); ++operand) {
    const Placement& wanted = strategy.operands[operand];
    if (IsShard(wanted) && IsShard(now[operand]) && now[operand].dim == wanted.dim)
      split = std::max(split, now[operand].split);
  }
  if (split == 0) return std::nullopt;
  for (std::vector<Placement>* placements : {&strategy.operands, &strategy.results}) {
    for (Placement& placement : *placements)
      if (IsShard(placement)) placement.split = split;
  }
  return strategy;
}

}  // namespace

std::vector<int64_t> FactorSizes(const Module& module, const ShardingRule& rule) {
  std::vector<int64_t> sizes;
  for (const Factor& factor : rule.factors)
    sizes.push_back(module.dims().AsConst(factor.size).value_or(-1));
  return sizes;
}

std::vector<AxisStrategy> AxisStrategies(const Module& module, const ShardingRule& rule,
                                         const std::vector<int64_t>& sizes, int64_t ranks,
                                         const std::vector<Placement>& now) {
  std::vector<AxisStrategy> strategies;
  const auto all_replicated = [&] {
    return AxisStrategy{.operands = std::vector<Placement>(rule.operands.size()),
                        .results = std::vector<Placement>(rule.results.size())};
  };
  for (size_t index = 0; index < rule.factors.size(); ++index) {
    if (rule.factors[index].kind == Factor::Kind::kWhole) continue;
    if (sizes[index] <= 1 || sizes[index] % ranks != 0) continue;
    auto strategy = Sharded(rule, static_cast<int>(index), sizes);
    if (!strategy) continue;
    if (auto strided = Strided(*strategy, now)) strategies.push_back(std::move(*strided));
    strategies.push_back(std::move(*strategy));
  }
  strategies.push_back(all_replicated());
  const auto add_partial = [&](const std::vector<int>& operands) {
    const Placement& partial = now[static_cast<size_t>(operands[0])];
    AxisStrategy strategy = all_replicated();
    for (const int operand : operands)
      strategy.operands[static_cast<size_t>(operand)] = partial;
    std::ranges::fill(strategy.results, partial);
    strategies.push_back(std::move(strategy));
  };
  for (const std::vector<int>& operands : rule.linear) {
    if (operands.empty()) continue;
    const Placement& first = now[static_cast<size_t>(operands[0])];
    if (!IsPartial(first)) continue;
    // Of the reductions, only sums and means are linear.
    const std::string_view reduce = module.str(first.reduce);
    if (reduce == "sum" || reduce == "avg") add_partial(operands);
  }
  if (rule.moves_elements && !rule.operands.empty() && IsPartial(now[0])) {
    add_partial(rule.linear.empty() ? std::vector<int>{0} : rule.linear[0]);
  }
  for (AxisStrategy& strategy : strategies)
    for (const int operand : rule.ignored)
      strategy.operands[static_cast<size_t>(operand)] = now[static_cast<size_t>(operand)];
  return strategies;
}

}  // namespace strata
