#include "passes/placement/strategy_choice.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "ir/ops.h"
#include "passes/placement/inputs.h"
#include "passes/placement/redistribution.h"

namespace strata {

Result<StrategyChoice::Choice> StrategyChoice::Choose(NodeId node, const ShardingRule& rule,
                                                      const std::vector<ValueId>& operands) {
  Choice choice{.operands = std::vector<Placements>(operands.size(), values_.replicated()),
                .results = std::vector<Placements>(rule.results.size(), values_.replicated())};
  std::vector<std::vector<Placements>> available;
  for (const ValueId operand : operands)
    available.push_back(values_.Available(operand, node));
  std::vector<int64_t> sizes = FactorSizes(module_, rule);
  for (size_t axis = 0; axis < mesh_.axes().size(); ++axis) {
    std::vector<Placement> now;
    for (const auto& placements : available)
      now.push_back(placements.front()[axis]);
    STRATA_TRY(const std::optional<AxisStrategy> decided, Decided(node, rule, axis, now));
    ahead_.clear();  // values that were placed meanwhile have other copies
    std::optional<AxisStrategy> best;
    double least = std::numeric_limits<double>::infinity();
    std::vector<AxisStrategy> strategies =
        AxisStrategies(module_, rule, sizes, mesh_.axes()[axis].size, now);
    if (!decided && (IsCastOfParameter(node) || (IsCastOfGradient(node) && IsPartial(now[0]))))
      KeepStored(now[0], strategies);
    for (AxisStrategy& strategy : strategies) {
      if (decided &&
          !(strategy.operands == decided->operands && strategy.results == decided->results))
        continue;
      if (!MayJoin(node, operands, choice, strategy, axis) ||
          !KeepsBlocks(rule, choice, strategy, axis))
        continue;
      // A plan that decides calls decides how they read the experts, too.
      if (!decided && !(MaySort(node, rule, sizes, strategy, axis) &&
                        MayCount(node, rule, sizes, strategy, axis) &&
                        KeepsTokens(node, operands, now, strategy, axis) &&
                        IsWhereExpertsAre(rule, strategy, operands, axis)))
        continue;
      double cost = CostOf(node, rule, operands, available, axis, strategy);
      for (size_t i = 0; i < strategy.results.size() && cost < least && !decided; ++i)
        cost += CostAhead(graph_.result(node, i), axis, strategy.results[i], kViewsAhead,
                          ShareOf(choice.results[i]));
      if (cost >= least) continue;
      least = cost;
      best = std::move(strategy);
    }
    if (!best && decided) return NoStrategy(node, axis);
    if (!best) return NothingFits(node, rule, available);
    if (best->factor >= 0) {
      int64_t& size = sizes[static_cast<size_t>(best->factor)];
      const int64_t ranks = mesh_.axes()[axis].size;
      size = size < 0 ? size / ranks : (size + ranks - 1) / ranks;
    }
    for (size_t i = 0; i < operands.size(); ++i)
      choice.operands[i][axis] = best->operands[i];
    for (size_t i = 0; i < rule.results.size(); ++i)
      choice.results[i][axis] = best->results[i];
  }
  return choice;
}

bool StrategyChoice::IsCastOfParameter(NodeId node) {
  if (!IsCast(graph_, node)) return false;
  const ValueId operand = graph_.args(node)[0].value();
  return graph_.node(graph_.value(operand).def).kind == NodeKind::kPlaceholder &&
         values_.ReadAs(operand).has_value();
}

bool StrategyChoice::IsCastOfGradient(NodeId node) const {
  if (!IsCast(graph_, node) || graph_.node(node).phase != Phase::kBackward) return false;
  for (const Use use : graph_.uses(graph_.result(node)))
    if (graph_.node(use.user).kind == NodeKind::kOutput) return true;
  return false;
}

void StrategyChoice::KeepStored(const Placement& stored, std::vector<AxisStrategy>& strategies) {
  const auto keeps = [&](const AxisStrategy& strategy) { return strategy.operands[0] == stored; };
  if (std::ranges::any_of(strategies, keeps))
    std::erase_if(strategies, [&](const AxisStrategy& strategy) { return !keeps(strategy); });
}

Result<std::optional<AxisStrategy>> StrategyChoice::Decided(NodeId node, const ShardingRule& rule,
                                                            size_t axis,
                                                            std::vector<Placement>& now) {
  const NodeKey* key = values_.KeyOf(node);
  std::optional<AxisStrategy> decided;
  if (key != nullptr) decided = plan_.Strategy(module_, *key, axis);
  if (!decided) return decided;
  if (decided->operands.size() != now.size() || decided->results.size() != rule.results.size())
    return NoStrategy(node, axis);
  for (const int operand : rule.ignored)
    decided->operands[static_cast<size_t>(operand)] = now[static_cast<size_t>(operand)];
  now = decided->operands;
  return decided;
}

Error StrategyChoice::NoStrategy(NodeId node, size_t axis) const {
  return Error(
      "no such strategy: {} on axis {}: the sharding rule of {} does not allow it for "
      "{} operands: correct the entry, or remove it",
      plan_.WhereNode(*values_.KeyOf(node)), mesh_.axes()[axis].name, graph_.name(node),
      graph_.operands(node).size());
}

Error StrategyChoice::NothingFits(NodeId node, const ShardingRule& rule,
                                  const std::vector<std::vector<Placements>>& available) const {
  if (rule.written.empty()) {
    return Error(ErrorCode::kUnsupported,
                 "{} reads rows in the order of experts as no rank has them: in graph {}",
                 graph_.name(node), graph_.name_text());
  }
  const Placements& written = available[static_cast<size_t>(rule.written.front())].front();
  return Error(ErrorCode::kUnsupported,
               "{} writes a tensor of placement {} in place, which needs another placement: "
               "in graph {}",
               graph_.name(node), PlacementsText(module_, written), graph_.name_text());
}

double StrategyChoice::CostOf(const std::vector<Placements>& available, size_t axis,
                              const Placement& wanted, double bytes) const {
  double least = std::numeric_limits<double>::infinity();
  for (const Placements& from : available) {
    if (from[axis] == wanted) return 0;
    Placements to = from;
    to[axis] = wanted;
    least = std::min(least, RedistributionCost(from, to, bytes, mesh_));
  }
  return least;
}

double StrategyChoice::CostOfOperand(const ShardingRule& rule, const AxisStrategy& strategy,
                                     size_t i, const std::vector<Placements>& available,
                                     size_t axis, double bytes) const {
  const double cost = CostOf(available, axis, strategy.operands[i], bytes);
  const bool counts = std::ranges::count(rule.order.totals, static_cast<int>(i)) > 0;
  return counts && cost > 0 && IsPartial(strategy.operands[i])
             ? std::numeric_limits<double>::infinity()
             : cost;
}

double StrategyChoice::CostOf(NodeId node, const ShardingRule& rule,
                              const std::vector<ValueId>& operands,
                              const std::vector<std::vector<Placements>>& available, size_t axis,
                              const AxisStrategy& strategy) {
  // The results take memory and time, but far less than what is moved between ranks.
  constexpr double kResultCost = 0.01;
  if (MovesWritten(rule, strategy, available, axis)) return std::numeric_limits<double>::infinity();
  if (!FollowsTokens(rule, strategy, axis)) return std::numeric_limits<double>::infinity();
  double cost = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    const double move =
        CostOfOperand(rule, strategy, i, available[i], axis, values_.BytesOf(operands[i]));
    cost += values_.IsPinned(operands[i], node) ? move * kPinned : move;
  }
  if (rule.joint >= 0 && strategy.factor == rule.joint && !operands.empty()) {
    const DimId classes = rule.factors[static_cast<size_t>(rule.joint)].size;
    const auto size = static_cast<double>(module_.dims().AsConst(classes).value_or(1));
    cost += ExchangeCost(values_.BytesOf(operands[0]) / size);
  }
  for (size_t i = 0; i < strategy.results.size(); ++i) {
    const double bytes = values_.BytesOf(graph_.result(node, i)) * kResultCost;
    const Placement& placement = strategy.results[i];
    if (IsCut(placement)) {
      cost += bytes / static_cast<double>(mesh_.axes()[axis].size);
    } else {
      // Partial results must be reduced later.
      cost += IsPartial(placement) ? 2 * bytes : bytes;
    }
  }
  return cost;
}

bool StrategyChoice::MayJoin(NodeId node, const std::vector<ValueId>& operands,
                             const Choice& choice, const AxisStrategy& strategy, size_t axis) {
  for (size_t i = 0; i < operands.size(); ++i)
    if (!MayJoin(operands[i], choice.operands[i], strategy.operands[i], axis)) return false;
  for (size_t i = 0; i < strategy.results.size(); ++i)
    if (!MayJoin(graph_.result(node, i), choice.results[i], strategy.results[i], axis))
      return false;
  return true;
}

bool StrategyChoice::MayJoin(ValueId value, const Placements& before, const Placement& placement,
                             size_t axis) {
  if (!IsCut(placement)) return true;
  if (!IsRows(placement)) return !IsOfExperts(value, placement.dim);
  const ValueId weight = dispatches_.WeightOf(value);
  for (size_t other = 0; other < axis; ++other) {
    const bool are_of_experts = IsRows(before[other]) && before[other].dim == placement.dim &&
                                ExpertsOn(weight, other) && ExpertsOn(weight, axis);
    if (are_of_experts && before[other].split != placement.split) return false;
  }
  return true;
}

bool StrategyChoice::IsOfExperts(ValueId value, int32_t dim) {
  if (!dispatches_.IsRowDim(value, dim)) return false;
  const ValueId weight = dispatches_.WeightOf(value);
  for (size_t axis = 0; axis < mesh_.axes().size(); ++axis)
    if (const auto experts = ExpertsOn(weight, axis); experts && experts->dim == 0) return true;
  return false;
}

bool StrategyChoice::KeepsBlocks(const ShardingRule& rule, const Choice& choice,
                                 const AxisStrategy& strategy, size_t axis) {
  const auto keeps = [axis](const FactorDims& tensor, const Placements& before,
                            const Placement& placement) {
    if (!IsCut(placement) || IsBlocked(placement)) return true;
    const auto dim = static_cast<size_t>(placement.dim);
    if (dim >= tensor.size() || tensor[dim].size() < 2) return true;
    return std::none_of(
        before.begin(), before.begin() + static_cast<std::ptrdiff_t>(axis),
        [&](const Placement& other) { return IsBlocked(other) && other.dim == placement.dim; });
  };
  for (size_t i = 0; i < strategy.operands.size(); ++i)
    if (!keeps(rule.operands[i], choice.operands[i], strategy.operands[i])) return false;
  for (size_t i = 0; i < strategy.results.size(); ++i)
    if (!keeps(rule.results[i], choice.results[i], strategy.results[i])) return false;
  return true;
}

std::optional<Placement> StrategyChoice::ExpertsOn(ValueId weight, size_t axis) {
  const auto read = weight.valid() ? values_.ReadAs(weight) : std::nullopt;
  if (!read || !IsShard((*read)[axis])) return std::nullopt;
  return (*read)[axis];
}

bool StrategyChoice::MaySort(NodeId node, const ShardingRule& rule,
                             const std::vector<int64_t>& sizes, const AxisStrategy& strategy,
                             size_t axis) {
  if (rule.order.tokens < 0 || BaseName(graph_.op(node)) != "sort") return true;
  const ValueId rows = graph_.result(node, 1), counts = dispatches_.CountsOf(rows);
  const bool is_by_token = std::ranges::any_of(strategy.results, IsByToken);
  if (is_by_token && !SortsCounted(counts, strategy, axis)) return false;
  const auto experts = ExpertsOn(dispatches_.WeightOf(rows), axis);
  if (!experts) {  // rows are of the tokens that were counted
    return !counts.valid() || !values_.IsPlaced(counts) ||
           is_by_token == IsPartial(values_.PlacementsOf(counts)[axis]);
  }
  return experts->dim == 0 ? is_by_token || !Divides(sizes, rule.order.tokens, axis) : !is_by_token;
}

bool StrategyChoice::MayCount(NodeId node, const ShardingRule& rule,
                              const std::vector<int64_t>& sizes, const AxisStrategy& strategy,
                              size_t axis) {
  if (graph_.node(node).num_results != 1) return true;
  const ValueId weight = dispatches_.WeightCountedBy(graph_.result(node));
  if (!weight.valid() || IsPartial(strategy.results[0])) return true;
  if (const auto experts = ExpertsOn(weight, axis); experts && experts->dim != 0) return true;
  for (size_t factor = 0; factor < rule.factors.size(); ++factor)
    if (rule.factors[factor].kind == Factor::Kind::kReduce &&
        Divides(sizes, static_cast<int>(factor), axis))
      return false;
  return true;
}

bool StrategyChoice::KeepsTokens(NodeId node, const std::vector<ValueId>& operands,
                                 const std::vector<Placement>& now, const AxisStrategy& strategy,
                                 size_t axis) {
  for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
    const ValueId weight = dispatches_.WeightChosenBy(graph_.result(node, i));
    if (!weight.valid()) continue;
    if (const auto experts = ExpertsOn(weight, axis); experts && experts->dim != 0) continue;
    for (size_t operand = 0; operand < operands.size(); ++operand)
      if (IsCut(now[operand]) && !(strategy.operands[operand] == now[operand]) &&
          dispatches_.WeightChosenBy(operands[operand]).valid())
        return false;
  }
  return true;
}

bool StrategyChoice::SortsCounted(ValueId counts, const AxisStrategy& strategy, size_t axis) const {
  if (!counts.valid() || !values_.IsPlaced(counts)) return true;
  for (const ValueId counted : graph_.operands(graph_.value(counts).def)) {
    const Placement& cut = values_.PlacementsOf(counted)[axis];
    if (IsCut(cut) && cut.split != strategy.operands[0].split) return false;
  }
  return true;
}

bool StrategyChoice::Divides(const std::vector<int64_t>& sizes, int factor, size_t axis) const {
  const int64_t size = sizes[static_cast<size_t>(factor)];
  return size != 0 && size % mesh_.axes()[axis].size == 0;
}

bool StrategyChoice::IsWhereExpertsAre(const ShardingRule& rule, const AxisStrategy& strategy,
                                       const std::vector<ValueId>& operands, size_t axis) {
  if (rule.order.groups < 0 || std::ranges::none_of(strategy.operands, IsRows)) return true;
  const ValueId weight = dispatches_.WeightOf(operands[0]);
  const auto read = weight.valid() ? values_.ReadAs(weight) : std::nullopt;
  if (!read) return true;
  return std::ranges::any_of(strategy.operands, IsByExpert) == IsShard((*read)[axis]);
}

bool StrategyChoice::MovesWritten(const ShardingRule& rule, const AxisStrategy& strategy,
                                  const std::vector<std::vector<Placements>>& available,
                                  size_t axis) {
  return std::ranges::any_of(rule.written, [&](int operand) {
    const auto i = static_cast<size_t>(operand);
    return !available[i].empty() && !(available[i].front()[axis] == strategy.operands[i]);
  });
}

double StrategyChoice::ShareOf(const Placements& placements) const {
  double share = 1;
  for (size_t axis = 0; axis < placements.size(); ++axis)
    if (IsCut(placements[axis])) share /= static_cast<double>(mesh_.axes()[axis].size);
  return share;
}

double StrategyChoice::CostAhead(ValueId value, size_t axis, const Placement& placement, int views,
                                 double share) {
  if (!values_.IsTensor(value)) return 0;
  const auto key = std::make_tuple(value, placement.kind, placement.dim, placement.split,
                                   placement.reduce, views);
  if (const auto known = ahead_.find(key); known != ahead_.end()) return known->second;
  double cost = 0;
  int readers = 0;
  for (const Use use : graph_.uses(value)) {
    constexpr int kMaxReaders = 4;
    if (graph_.node(use.user).kind == NodeKind::kOutput)
      cost += OutputCost(use.user, value, axis, placement, share);
    if (graph_.node(use.user).kind != NodeKind::kCall || ++readers > kMaxReaders) continue;
    const ShardingRule* rule = values_.RuleOf(use.user);
    if (rule == nullptr) continue;
    const double of_reader = ReaderCost(use.user, *rule, value, axis, placement, views, share);
    // Readers of rows share what was exchanged for one of them.
    cost = IsRows(placement) ? std::max(cost, of_reader) : cost + of_reader;
  }
  return ahead_[key] = cost;
}

double StrategyChoice::OutputCost(NodeId output, ValueId value, size_t axis,
                                  const Placement& placement, double share) const {
  if (!values_.IsStep() || values_.SharesBatch(axis)) return 0;
  const std::vector<ValueId> values = graph_.operands(output);
  const auto index = static_cast<size_t>(std::ranges::find(values, value) - values.begin());
  Placements from = values_.replicated(), to = from;
  from[axis] = placement;
  to[axis] = values_.PlacementsOfOutput(value, index)[axis];
  return RedistributionCost(from, to, values_.BytesOf(value) * share, mesh_);
}

double StrategyChoice::ReaderCost(NodeId reader, const ShardingRule& rule, ValueId value,
                                  size_t axis, const Placement& placement, int views,
                                  double share) {
  const std::vector<ValueId> operands = graph_.operands(reader);
  std::vector<std::vector<Placements>> available;
  std::vector<Placement> now;
  for (const ValueId operand : operands) {
    if (operand == value) {
      Placements placements = values_.PlacementsOf(value);
      placements[axis] = placement;
      available.push_back({placements});
    } else if (values_.IsPlaced(operand)) {
      available.push_back(values_.Available(operand, reader));
    } else if (const auto read = values_.ReadAs(operand)) {
      available.push_back({*read});
    } else {
      available.emplace_back();
    }
    now.push_back(available.back().empty() ? Replicate() : available.back().front()[axis]);
  }
  double least = std::numeric_limits<double>::infinity();
  for (const AxisStrategy& strategy :
       AxisStrategies(module_, rule, FactorSizes(module_, rule), mesh_.axes()[axis].size, now)) {
    if (!IsWhereExpertsAre(rule, strategy, operands, axis)) continue;
    if (MovesWritten(rule, strategy, available, axis)) continue;
    double cost = 0;
    for (size_t i = 0; i < operands.size() && cost < least; ++i) {
      if (available[i].empty()) continue;  // not placed yet: it may take any placement
      const double bytes = values_.BytesOf(operands[i]) * (operands[i] == value ? share : 1);
      const double move = CostOfOperand(rule, strategy, i, available[i], axis, bytes);
      const bool is_pinned = operands[i] != value && (values_.IsPinned(operands[i], reader) ||
                                                      !values_.IsPlaced(operands[i]));
      cost += is_pinned ? move * kPinned : move;
    }
    if (rule.moves_elements && operands.size() == 1 && views > 0 && cost < least)
      cost += CostAhead(graph_.result(reader), axis, strategy.results[0], views - 1, share);
    least = std::min(least, cost);
  }
  return least;
}

}  // namespace strata
