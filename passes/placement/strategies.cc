#include "passes/placement/strategies.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>

namespace strata {
namespace {

constexpr int64_t kMaxBlocks = int64_t{1} << 30U;

/// The placement of a tensor when factor `sharded` is cut. Where other factors stand before it in
/// its dimension, its parts are not contiguous but blocks, which only views have; else none.
std::optional<Placement> PlacementOf(const FactorDims& tensor, int sharded, const Factor& factor,
                                     const std::vector<int64_t>& sizes, bool is_view) {
  for (size_t dim = 0; dim < tensor.size(); ++dim) {
    if (std::ranges::count(tensor[dim], sharded) == 0) continue;
    int64_t blocks = 1;
    for (const int index : tensor[dim]) {
      if (index == sharded) break;
      const int64_t size = sizes[static_cast<size_t>(index)];
      if (size < 0) return std::nullopt;
      blocks *= size;
    }
    if (blocks == 1) return Shard(dim);
    if (!is_view || blocks < 1 || blocks > kMaxBlocks) return std::nullopt;
    return Shard(dim, SplitOfBlocks(static_cast<int32_t>(blocks)));
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
  const bool is_view = rule.moves_elements && rule.operands.size() == 1;
  bool is_read = false;
  for (const FactorDims& operand : rule.operands) {
    const auto placement = PlacementOf(operand, index, factor, sizes, is_view);
    if (!placement) return std::nullopt;
    is_read = is_read || IsCut(*placement);
    // A partial operand is another strategy.
    strategy.operands.push_back(IsPartial(*placement) ? Replicate() : *placement);
  }
  for (const FactorDims& result : rule.results) {
    const auto placement = PlacementOf(result, index, factor, sizes, is_view);
    if (!placement) return std::nullopt;
    // Iterations that a rank does not have are missing from this result.
    if (is_read && factor.kind == Factor::Kind::kFree && !Has(result, index) && !result.empty())
      return std::nullopt;
    strategy.results.push_back(*placement);
  }
  if (!is_read && factor.kind == Factor::Kind::kReduce) return std::nullopt;
  return strategy;
}

/// Each tensor that has the factor has it alone in a dimension, so that rows can be in any order.
bool IsAlone(const ShardingRule& rule, int factor, const std::vector<int64_t>& sizes) {
  const auto is_alone = [&](const FactorDims& tensor) {
    return std::ranges::all_of(tensor, [&](const std::vector<int>& dim) {
      if (std::ranges::count(dim, factor) == 0) return true;
      return std::ranges::all_of(dim, [&](int other) {
        return other == factor || sizes[static_cast<size_t>(other)] == 1;
      });
    });
  };
  return std::ranges::all_of(rule.operands, is_alone) &&
         std::ranges::all_of(rule.results, is_alone);
}

/// The other cuts of the factor that `strategy` shards, where an operand has such now: shards
/// inside those of inner axes, blocks, rows in an order of their own.
std::vector<AxisStrategy> OtherCuts(const Module& module, const ShardingRule& rule,
                                    const AxisStrategy& strategy, const std::vector<Placement>& now,
                                    const std::vector<int64_t>& sizes, int64_t ranks) {
  std::vector<int32_t> splits;
  if (strategy.factor == rule.joint) return {};
  const auto add = [&](int32_t split) {
    if (split != 0 && std::ranges::count(splits, split) == 0) splits.push_back(split);
  };
  for (size_t operand = 0; operand < now.size(); ++operand) {
    const Placement& wanted = strategy.operands[operand];
    if (!IsShard(wanted) || !IsCut(now[operand]) || now[operand].dim != wanted.dim) continue;
    add(now[operand].split);
    if (!IsRows(now[operand])) continue;
    add(kByToken);
    add(kByExpert);
  }
  std::vector<AxisStrategy> others;
  const Factor& factor = rule.factors[static_cast<size_t>(strategy.factor)];
  const bool is_mean = factor.kind == Factor::Kind::kReduce && module.str(factor.reduce) == "avg";
  for (const int32_t split : splits) {
    const bool is_rows = split == kByToken || split == kByExpert;
    if (is_rows && (strategy.factor == rule.order.rows || !IsAlone(rule, strategy.factor, sizes)))
      continue;
    // Each rank has a part of each block.
    const int64_t size = sizes[static_cast<size_t>(strategy.factor)];
    if (split < kByExpert && size % (BlocksOf(split) * ranks) != 0) continue;
    // The means of ranks with different numbers of rows have no mean.
    if (split == kByExpert && is_mean) continue;
    AxisStrategy other = strategy;
    bool has_blocks = false;  // blocks of blocks
    for (std::vector<Placement>* placements : {&other.operands, &other.results}) {
      for (Placement& placement : *placements) {
        has_blocks = has_blocks || IsBlocked(placement);
        if (IsCut(placement)) placement.split = split;
      }
    }
    if (has_blocks) continue;
    others.push_back(std::move(other));
  }
  return others;
}

/// True where an operand is cut in the dimension of a factor that ranks do not divide evenly, and
/// what they have beyond the whole does no harm.
bool MayBeUneven(const Module& module, const ShardingRule& rule, int factor,
                 const std::vector<int64_t>& sizes, const std::vector<Placement>& now) {
  bool is_cut = false;
  if (sizes[static_cast<size_t>(factor)] < 0) return false;
  for (size_t operand = 0; operand < now.size(); ++operand) {
    const FactorDims& dims = rule.operands[operand];
    if (!IsShard(now[operand]) || static_cast<size_t>(now[operand].dim) >= dims.size()) continue;
    is_cut = is_cut || std::ranges::count(dims[static_cast<size_t>(now[operand].dim)], factor) > 0;
  }
  if (!is_cut || !IsAlone(rule, factor, sizes)) return false;
  const Factor& of = rule.factors[static_cast<size_t>(factor)];
  if (of.kind == Factor::Kind::kFree) return true;
  const std::string_view reduce = module.str(of.reduce);
  return rule.ends_with_zeros && (reduce == "sum" || reduce == "norm2");
}

/// Rows in the order of experts: of the rank's tokens, or of its experts.
class RowStrategies {
 public:
  RowStrategies(const ShardingRule& rule, const std::vector<int64_t>& sizes, int64_t ranks,
                const std::vector<Placement>& now)
      : rule_(rule), order_(rule.order), sizes_(sizes), ranks_(ranks), now_(now) {}

  void AddTo(std::vector<AxisStrategy>& strategies) const {
    if (order_.rows < 0) return;
    if (order_.tokens >= 0) {
      if (!Divides(order_.tokens)) return;
      for (const int32_t split : TokenSplits())
        strategies.push_back(ByToken(split));
      return;
    }
    strategies.push_back(ByToken(0));
    if (order_.groups >= 0 && Divides(order_.groups)) strategies.push_back(ByExpert());
  }

 private:
  bool Divides(int factor) const {
    const int64_t size = sizes_[static_cast<size_t>(factor)];
    return size != 0 && size % ranks_ == 0;
  }

  static std::optional<size_t> DimOf(const FactorDims& tensor, int factor) {
    for (size_t dim = 0; dim < tensor.size() && factor >= 0; ++dim)
      if (std::ranges::count(tensor[dim], factor) != 0) return dim;
    return std::nullopt;
  }

  /// How tokens are cut: in chunks, or as operands are cut in blocks now.
  std::vector<int32_t> TokenSplits() const {
    std::vector<int32_t> splits;
    const auto add = [&](const Placement& p) {
      if (IsCut(p) && !IsRows(p) && std::ranges::count(splits, p.split) == 0)
        splits.push_back(p.split);
    };
    std::ranges::for_each(order_.cut, add);
    for (size_t i = 0; i < now_.size() && order_.cut.empty(); ++i)
      if (DimOf(rule_.operands[i], order_.tokens)) add(now_[i]);
    if (splits.empty()) splits = {0};
    return splits;
  }

  AxisStrategy ByToken(int32_t split) const {
    AxisStrategy strategy{.operands = {}, .results = {}, .factor = order_.tokens};
    const auto place = [&](const FactorDims& tensor, const Placement& otherwise) {
      if (const auto dim = DimOf(tensor, order_.tokens)) return Shard(*dim, split);
      if (const auto dim = DimOf(tensor, order_.rows)) return Shard(*dim, kByToken);
      return otherwise;
    };
    for (const FactorDims& operand : rule_.operands)
      strategy.operands.push_back(place(operand, Replicate()));
    for (const FactorDims& result : rule_.results)
      strategy.results.push_back(place(result, Partial(order_.sum)));
    CountOwn(strategy);
    return strategy;
  }

  AxisStrategy ByExpert() const {
    AxisStrategy strategy{.operands = {}, .results = {}, .factor = order_.groups};
    const auto place = [&](const FactorDims& tensor) {
      if (const auto dim = DimOf(tensor, order_.rows)) return Shard(*dim, kByExpert);
      const auto dim = DimOf(tensor, order_.groups);
      return dim ? Shard(*dim) : Replicate();
    };
    std::ranges::transform(rule_.operands, std::back_inserter(strategy.operands), place);
    std::ranges::transform(rule_.results, std::back_inserter(strategy.results), place);
    CountOwn(strategy);
    return strategy;
  }

  void CountOwn(AxisStrategy& strategy) const {
    for (const int operand : order_.totals)
      strategy.operands[static_cast<size_t>(operand)] = Partial(order_.sum);
  }

  const ShardingRule& rule_;
  const RowOrder& order_;
  const std::vector<int64_t>& sizes_;
  const int64_t ranks_;
  const std::vector<Placement>& now_;
};

}  // namespace

bool FollowsTokens(const ShardingRule& rule, const AxisStrategy& strategy, size_t axis) {
  const RowOrder& order = rule.order;
  if (axis >= order.cut.size() || std::ranges::none_of(strategy.operands, IsByToken)) return true;
  const Placement& cut = order.cut[axis];
  for (size_t i = 0; i < rule.operands.size(); ++i) {
    const Placement& p = strategy.operands[i];
    if (!IsCut(p) || IsRows(p)) continue;
    const std::vector<int>& factors = rule.operands[i][static_cast<size_t>(p.dim)];
    if (std::ranges::count(factors, order.tokens) == 0) continue;
    if (!IsCut(cut) || p.split != cut.split) return false;
  }
  return true;
}

bool HasOwnRows(const ShardingRule& rule, const AxisStrategy& strategy) {
  return rule.order.rows >= 0 && strategy.factor != rule.order.rows &&
         (std::ranges::any_of(strategy.operands, IsRows) ||
          std::ranges::any_of(strategy.results, IsRows));
}

std::vector<int64_t> FactorSizes(const Module& module, const ShardingRule& rule) {
  std::vector<int64_t> sizes;
  for (const Factor& factor : rule.factors) {
    const auto number = module.dims().AsConst(factor.size);
    sizes.push_back(number.value_or(-KnownDivisor(module.dims(), factor.size)));
  }
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
    const bool divides = std::abs(sizes[index]) > 1 && sizes[index] % ranks == 0;
    if (!divides && !MayBeUneven(module, rule, static_cast<int>(index), sizes, now)) continue;
    auto strategy = Sharded(rule, static_cast<int>(index), sizes);
    if (!strategy) continue;
    for (AxisStrategy& other : OtherCuts(module, rule, *strategy, now, sizes, ranks))
      strategies.push_back(std::move(other));
    strategies.push_back(std::move(*strategy));
  }
  RowStrategies(rule, sizes, ranks, now).AddTo(strategies);
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
  if (!rule.operands.empty() && IsPartial(now[0]) && rule.KeepsPartial(now[0])) {
    add_partial(rule.linear.empty() ? std::vector<int>{0} : rule.linear[0]);
  }
  for (AxisStrategy& strategy : strategies)
    for (const int operand : rule.ignored)
      strategy.operands[static_cast<size_t>(operand)] = now[static_cast<size_t>(operand)];
  return strategies;
}

}  // namespace strata
