#include "passes/placement/place.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/ops.h"
#include "ir/rewriter.h"
#include "passes/placement/dispatch.h"
#include "passes/placement/inputs.h"
#include "passes/placement/node_key.h"
#include "passes/placement/placement.h"
#include "passes/placement/plan.h"
#include "passes/placement/redistribution.h"
#include "passes/placement/rules/sharding_rule.h"
#include "passes/placement/strategies.h"

namespace strata {
namespace {

/// Places one graph.
class GraphPlacer {
 public:
  GraphPlacer(Graph& graph, const PlacementPlan& plan, bool reshard)
      : graph_(graph),
        module_(graph.module()),
        plan_(plan),
        mesh_(plan.mesh()),
        reshard_(reshard),
        dispatches_(graph),
        rewriter_(graph) {
    for (int32_t i = 0; i < graph.value_bound(); ++i)
      first_root_.emplace(ValueId{i}, RootOf(ValueId{i}));
    takes_gradients_ = std::ranges::any_of(graph.placeholders(), [&](NodeId node) {
      return KindOf(graph, node) == PlacedInput::kGradient;
    });
    if (plan.decides_nodes() && HasGradients()) keys_ = NodeKeysOf(graph);
  }

  Status Run() {
    for (const NodeId node : graph_.nodes().Snapshot()) {
      switch (graph_.node(node).kind) {
        case NodeKind::kPlaceholder:
          STRATA_RETURN_IF_ERROR(PlaceInput(node));
          break;
        case NodeKind::kOutput:
          STRATA_RETURN_IF_ERROR(PlaceOutputs(node));
          break;
        case NodeKind::kGetAttr:
          SetPlacements(graph_.result(node), replicated_);
          break;
        default:
          STRATA_RETURN_IF_ERROR(PlaceCall(node));
          break;
      }
    }
    return Ok();
  }

 private:
  /// A value, and copies of it with other placements.
  using Copies = std::vector<ValueId>;

  const Placements& PlacementsOf(ValueId value) const {
    const TypeId type = graph_.value(value).type;
    if (!type.valid() || module_.types()[type].placements.empty()) return replicated_;
    return module_.types()[type].placements;
  }
  double BytesOf(ValueId value) const {
    const TypeId id = graph_.value(value).type;
    if (!id.valid()) return 0;
    const Type& type = module_.types()[id];
    return NumElements(module_, type) * static_cast<double>(ByteSize(type.dtype));
  }
  void SetPlacements(ValueId value, const Placements& placements) {
    rewriter_.SetType(value, WithPlacements(module_, graph_.value(value).type, placements));
  }
  ValueId RootOf(ValueId value) const {
    while (graph_.value(value).alias_of.valid())
      value = graph_.value(value).alias_of;
    return value;
  }

  Status PlaceInput(NodeId node) {
    const ValueId value = graph_.result(node);
    const Type type = module_.types()[graph_.value(value).type];
    if (type.kind != TypeKind::kTensor) return Ok();
    const std::string name(graph_.attribute(node, "fqn"));
    const PlacedInput kind = KindOf(graph_, node);
    Placements placements = plan_.Replicated();
    if (kind == PlacedInput::kBatch) {
      if (IsStep()) placements = plan_.Batch(module_, type);
    } else if (kind == PlacedInput::kParameter) {
      const ParameterPlacement parameter = plan_.Parameter(module_, name, type);
      placements = parameter.stored;
      parameters_.push_back(value);
      read_as_.emplace(value, parameter.read);
    } else if (kind != PlacedInput::kOther && !type.sizes.empty()) {
      const std::string_view parameter = ParameterOf(name);
      if (parameter != name) placements = plan_.Parameter(module_, parameter, type).stored;
      if (kind == PlacedInput::kGradient) gradients_.push_back(value);
    }
    SetPlacements(value, placements);
    return Ok();
  }

  // --- Choosing
  // ------------------------------------------------------------------------------------

  /// Where a parameter, or a cast of it, is read by a step: gathered. Optimizers update what is
  /// stored.
  bool IsGathered(ValueId value, NodeId reader) const {
    return read_as_.contains(value) && IsStep() && !IsCast(graph_, reader);
  }
  /// Of a batch, not of gradients: these come from a step.
  bool IsStep() const { return !takes_gradients_; }

  /// Gathered parameters and views of them are read as the plan says.
  bool IsPinned(ValueId value, NodeId reader) const {
    return IsGathered(value, reader) || parameter_views_.contains(value);
  }

  /// The placements in which `value` can be read for nothing.
  std::vector<Placements> Available(ValueId value, NodeId reader) const {
    if (IsGathered(value, reader)) return {read_as_.at(value)};
    std::vector<Placements> all{PlacementsOf(value)};
    if (const auto copies = copies_.find(value); copies != copies_.end())
      for (const ValueId copy : copies->second)
        all.push_back(PlacementsOf(copy));
    return all;
  }

  double CostOf(const std::vector<Placements>& available, size_t axis, const Placement& wanted,
                double bytes) const {
    double least = std::numeric_limits<double>::infinity();
    for (const Placements& from : available) {
      if (from[axis] == wanted) return 0;
      Placements to = from;
      to[axis] = wanted;
      least = std::min(least, RedistributionCost(from, to, bytes, mesh_));
    }
    return least;
  }

  /// The cost of operand `i` in the placement of a strategy. What counts rows is not made partial:
  /// summands that no rank counted are not the rows of any.
  double CostOfOperand(const ShardingRule& rule, const AxisStrategy& strategy, size_t i,
                       const std::vector<Placements>& available, size_t axis, double bytes) const {
    const double cost = CostOf(available, axis, strategy.operands[i], bytes);
    const bool counts = std::ranges::count(rule.order.totals, static_cast<int>(i)) > 0;
    return counts && cost > 0 && IsPartial(strategy.operands[i])
               ? std::numeric_limits<double>::infinity()
               : cost;
  }

  struct Choice {
    std::vector<Placements> operands, results;
  };

  Result<Choice> Choose(NodeId node, const ShardingRule& rule,
                        const std::vector<ValueId>& operands) {
    Choice choice{.operands = std::vector<Placements>(operands.size(), replicated_),
                  .results = std::vector<Placements>(rule.results.size(), replicated_)};
    std::vector<std::vector<Placements>> available;
    for (const ValueId operand : operands)
      available.push_back(Available(operand, node));
    std::vector<int64_t> sizes = FactorSizes(module_, rule);
    for (size_t axis = 0; axis < mesh_.axes().size(); ++axis) {
      std::vector<Placement> now;
      for (const auto& placements : available)
        now.push_back(placements.front()[axis]);
      STRATA_TRY(const std::optional<AxisStrategy> decided, Decided(node, rule, axis, now));
      ahead_.clear();  // values that were placed meanwhile have other copies
      std::optional<AxisStrategy> best;
      double least = std::numeric_limits<double>::infinity();
      for (AxisStrategy& strategy :
           AxisStrategies(module_, rule, sizes, mesh_.axes()[axis].size, now)) {
        if (decided &&
            !(strategy.operands == decided->operands && strategy.results == decided->results))
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
      if (!best && !rule.writes_operand0) {
        return Error(ErrorCode::kUnsupported,
                     "{} reads rows in the order of experts as no rank has them: in graph {}",
                     graph_.name(node), graph_.name_text());
      }
      if (!best) {
        return Error(ErrorCode::kUnsupported,
                     "{} writes a tensor of placement {} in place, which needs another placement: "
                     "in graph {}",
                     graph_.name(node), PlacementsText(module_, available[0].front()),
                     graph_.name_text());
      }
      if (best->factor >= 0) {
        int64_t& size = sizes[static_cast<size_t>(best->factor)];
        const int64_t ranks = mesh_.axes()[axis].size;
        size = (size + ranks - 1) / ranks;
      }
      for (size_t i = 0; i < operands.size(); ++i)
        choice.operands[i][axis] = best->operands[i];
      for (size_t i = 0; i < rule.results.size(); ++i)
        choice.results[i][axis] = best->results[i];
    }
    return choice;
  }

  /// What the plan says of a call on one axis. Operands whose value has no effect stay as they are;
  /// the others become those of `now`, of which the strategies with partial operands are made.
  Result<std::optional<AxisStrategy>> Decided(NodeId node, const ShardingRule& rule, size_t axis,
                                              std::vector<Placement>& now) {
    const auto key = keys_.find(node);
    std::optional<AxisStrategy> decided;
    if (key != keys_.end()) decided = plan_.Strategy(module_, key->second, axis);
    if (!decided) return decided;
    if (decided->operands.size() != now.size() || decided->results.size() != rule.results.size())
      return NoStrategy(node, axis);
    for (const int operand : rule.ignored)
      decided->operands[static_cast<size_t>(operand)] = now[static_cast<size_t>(operand)];
    now = decided->operands;
    return decided;
  }

  Error NoStrategy(NodeId node, size_t axis) const {
    return Error(
        "no such strategy: {} on axis {}: the sharding rule of {} does not allow it for "
        "{} operands: correct the entry, or remove it",
        plan_.WhereNode(keys_.at(node)), mesh_.axes()[axis].name, graph_.name(node),
        graph_.operands(node).size());
  }

  double CostOf(NodeId node, const ShardingRule& rule, const std::vector<ValueId>& operands,
                const std::vector<std::vector<Placements>>& available, size_t axis,
                const AxisStrategy& strategy) {
    // The results take memory and time, but far less than what is moved between ranks.
    constexpr double kResultCost = 0.01;
    if (rule.writes_operand0 && !(available[0].front()[axis] == strategy.operands[0]))
      return std::numeric_limits<double>::infinity();
    if (!FollowsTokens(rule, strategy, axis) || !MaySort(node, rule, strategy, axis) ||
        !IsWhereExpertsAre(rule, strategy, operands, axis))
      return std::numeric_limits<double>::infinity();
    double cost = 0;
    for (size_t i = 0; i < operands.size(); ++i) {
      const double move =
          CostOfOperand(rule, strategy, i, available[i], axis, BytesOf(operands[i]));
      cost += IsPinned(operands[i], node) ? move * kPinned : move;
    }
    if (rule.joint >= 0 && strategy.factor == rule.joint && !operands.empty()) {
      const DimId classes = rule.factors[static_cast<size_t>(rule.joint)].size;
      const auto size = static_cast<double>(module_.dims().AsConst(classes).value_or(1));
      cost += ExchangeCost(BytesOf(operands[0]) / size);
    }
    for (size_t i = 0; i < strategy.results.size(); ++i) {
      const double bytes = BytesOf(graph_.result(node, i)) * kResultCost;
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

  /// Ranks that have parts of every expert need the rows of all tokens.
  bool MaySort(NodeId node, const ShardingRule& rule, const AxisStrategy& strategy, size_t axis) {
    const bool is_sort = rule.order.tokens >= 0 && BaseName(graph_.op(node)) == "sort";
    if (!is_sort || std::ranges::none_of(strategy.results, IsByToken)) return true;
    const ValueId weight = dispatches_.WeightOf(graph_.result(node, 1));
    const auto read = weight.valid() ? ReadAs(weight) : std::nullopt;
    return !read || IsReplicate((*read)[axis]) || (*read)[axis].dim == 0;
  }

  /// A product over rows runs by expert on the axes that cut the experts, and there alone: else the
  /// gradients of all experts would be summed over the ranks that share them.
  bool IsWhereExpertsAre(const ShardingRule& rule, const AxisStrategy& strategy,
                         const std::vector<ValueId>& operands, size_t axis) {
    if (rule.order.groups < 0 || std::ranges::none_of(strategy.operands, IsRows)) return true;
    const ValueId weight = dispatches_.WeightOf(operands[0]);
    const auto read = weight.valid() ? ReadAs(weight) : std::nullopt;
    if (!read) return true;
    return std::ranges::any_of(strategy.operands, IsByExpert) == IsShard((*read)[axis]);
  }

  double ShareOf(const Placements& placements) const {
    double share = 1;
    for (size_t axis = 0; axis < placements.size(); ++axis)
      if (IsCut(placements[axis])) share /= static_cast<double>(mesh_.axes()[axis].size);
    return share;
  }

  /// What the readers of a result must at least move when it has `placement` on `axis`. Looks
  /// through at most `views` views: what a view costs shows where its elements are used.
  /// `share`: the part of the value that other axes leave on a rank.
  double CostAhead(ValueId value, size_t axis, const Placement& placement, int views,
                   double share) {
    if (!IsTensor(value)) return 0;
    const auto key = std::make_tuple(value, placement.kind, placement.dim, placement.split,
                                     placement.reduce, views);
    if (const auto known = ahead_.find(key); known != ahead_.end()) return known->second;
    double cost = 0;
    int readers = 0;
    for (const Use use : graph_.uses(value)) {
      constexpr int kMaxReaders = 4;
      if (graph_.node(use.user).kind != NodeKind::kCall || ++readers > kMaxReaders) continue;
      const ShardingRule* rule = RuleOf(use.user);
      if (rule != nullptr)
        cost += ReaderCost(use.user, *rule, value, axis, placement, views, share);
    }
    return ahead_[key] = cost;
  }

  double ReaderCost(NodeId reader, const ShardingRule& rule, ValueId value, size_t axis,
                    const Placement& placement, int views, double share) {
    const std::vector<ValueId> operands = graph_.operands(reader);
    std::vector<std::vector<Placements>> available;
    std::vector<Placement> now;
    for (const ValueId operand : operands) {
      if (operand == value) {
        Placements placements = PlacementsOf(value);
        placements[axis] = placement;
        available.push_back({placements});
      } else if (IsPlaced(operand)) {
        available.push_back(Available(operand, reader));
      } else if (const auto read = ReadAs(operand)) {
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
      double cost = 0;
      for (size_t i = 0; i < operands.size() && cost < least; ++i) {
        if (available[i].empty()) continue;  // not placed yet: it may take any placement
        const double bytes = BytesOf(operands[i]) * (operands[i] == value ? share : 1);
        const double move = CostOfOperand(rule, strategy, i, available[i], axis, bytes);
        const bool is_pinned =
            operands[i] != value && (IsPinned(operands[i], reader) || !IsPlaced(operands[i]));
        cost += is_pinned ? move * kPinned : move;
      }
      if (rule.moves_elements && operands.size() == 1 && views > 0 && cost < least)
        cost += CostAhead(graph_.result(reader), axis, strategy.results[0], views - 1, share);
      least = std::min(least, cost);
    }
    return least;
  }

  /// How a parameter, or a view or cast of one that is not placed yet, will be read; none: it is
  /// neither.
  std::optional<Placements> ReadAs(ValueId value) {
    if (!IsStep()) return std::nullopt;
    if (const auto read = read_as_.find(value); read != read_as_.end()) return read->second;
    const NodeId def = graph_.value(value).def;
    if (graph_.node(def).kind != NodeKind::kCall) return std::nullopt;
    const std::vector<ValueId> operands = graph_.operands(def);
    const ShardingRule* rule = RuleOf(def);
    if (rule == nullptr || operands.size() != 1 || !(rule->moves_elements || IsCast(graph_, def)))
      return std::nullopt;
    const auto source = ReadAs(operands[0]);
    if (!source) return std::nullopt;
    Placements placements = replicated_;
    for (size_t axis = 0; axis < placements.size(); ++axis) {
      for (const AxisStrategy& strategy :
           AxisStrategies(module_, *rule, FactorSizes(module_, *rule), mesh_.axes()[axis].size,
                          {(*source)[axis]}))
        if (strategy.operands[0] == (*source)[axis]) placements[axis] = strategy.results[0];
    }
    return placements;
  }

  /// The rule of a node; null: it has none.
  const ShardingRule* RuleOf(NodeId node) {
    auto found = rules_.find(node);
    if (found == rules_.end()) {
      auto rule = ShardingRuleOf(graph_, node);
      found = rules_.emplace(node, rule ? std::optional(*std::move(rule)) : std::nullopt).first;
    }
    return found->second ? &*found->second : nullptr;
  }

  bool IsPlaced(ValueId value) const {
    const TypeId type = graph_.value(value).type;
    return type.valid() && !module_.types()[type].placements.empty();
  }

  // --- Rewriting
  // ------------------------------------------------------------------------------------

  /// `value` as `reader` wants it. A new node stands before `reader`.
  ValueId Redistributed(ValueId value, const Placements& wanted, NodeId reader) {
    const Phase phase = graph_.node(reader).phase;
    const bool is_gathered = IsGathered(value, reader);
    if (!is_gathered && PlacementsOf(value) == wanted) return value;
    Copies& copies = copies_[value];
    for (const ValueId copy : copies) {
      if (!(PlacementsOf(copy) == wanted)) continue;
      const bool is_backward = graph_.node(graph_.value(copy).def).phase == Phase::kBackward;
      if (is_gathered && reshard_ && is_backward != (phase == Phase::kBackward)) continue;
      return copy;
    }
    if (PlacementsOf(value) == wanted) return value;
    rewriter_.SetCursorBefore(reader);
    if (const auto shared = ShareCopy(value, reader); shared && PlacementsOf(*shared) == wanted)
      return *shared;
    const ValueId copy = Redistribute(is_gathered ? value : Nearest(value, wanted), wanted);
    const NodeId made = graph_.value(copy).def;
    rewriter_.SetPhase(made, phase);
    // A parameter has no module of its own: it is gathered for the one that reads it.
    if (is_gathered) rewriter_.SetModule(made, module_.str(graph_.node(reader).module));
    copies_[value].push_back(copy);
    return copy;
  }

  /// The copy that the plan wants readers of `value` to share, before the first that needs one.
  std::optional<ValueId> ShareCopy(ValueId value, NodeId reader) {
    const auto found = shared_.find(value);
    if (found == shared_.end()) return std::nullopt;
    const Placements shared = found->second;
    shared_.erase(found);
    if (PlacementsOf(value) == shared) return std::nullopt;
    const ValueId copy = Redistribute(value, shared);
    rewriter_.SetPhase(graph_.value(copy).def, graph_.node(reader).phase);
    copies_[value].push_back(copy);
    return copy;
  }

  /// What the plan says of copies of the results of a call.
  void DecideShared(NodeId node) {
    const auto key = keys_.find(node);
    if (key == keys_.end()) return;
    for (size_t axis = 0; axis < mesh_.axes().size(); ++axis) {
      const std::vector<Placement> shared = plan_.Shared(module_, key->second, axis);
      for (size_t i = 0; i < shared.size() && i < graph_.node(node).num_results; ++i) {
        const ValueId value = graph_.result(node, i);
        if (!IsTensor(value)) continue;
        shared_.try_emplace(value, PlacementsOf(value)).first->second[axis] = shared[i];
      }
    }
  }

  /// Of a value and its copies, the one from which `wanted` is made with the least effort.
  ValueId Nearest(ValueId value, const Placements& wanted) const {
    ValueId nearest = value;
    const auto copies = copies_.find(value);
    if (copies == copies_.end()) return nearest;
    const auto cost = [&](ValueId from) {
      return RedistributionCost(PlacementsOf(from), wanted, BytesOf(value), mesh_);
    };
    for (const ValueId copy : copies->second)
      if (cost(copy) < cost(nearest)) nearest = copy;
    return nearest;
  }

  /// What counts the rows that move between the ranks of tokens and of experts; none: none do.
  ValueId CountsFor(ValueId value, const Placements& wanted) const {
    const Placements& now = PlacementsOf(value);
    bool moves = false;
    for (size_t axis = 0; axis < now.size(); ++axis)
      moves = moves || (IsRows(now[axis]) && !(now[axis] == wanted[axis]));
    if (!moves) return {};
    while (graph_.op(graph_.value(value).def) == kRedistributeOp)
      value = graph_.args(graph_.value(value).def)[0].value();
    return dispatches_.CountsOf(value);
  }

  ValueId Redistribute(ValueId value, const Placements& wanted) {
    std::vector<Arg> args = {Arg(value),
                             Arg::String(module_.Intern(PlacementsText(module_, wanted)))};
    if (const ValueId counts = CountsFor(value, wanted); counts.valid()) args.emplace_back(counts);
    const TypeId types[] = {WithPlacements(module_, graph_.value(value).type, wanted)};
    const NodeId node = rewriter_.Create({.op = kRedistributeOp, .args = args, .results = types},
                                         From{graph_.value(value).def});
    first_root_.emplace(graph_.result(node), first_root_.at(value));
    return graph_.result(node);
  }

  Status PlaceCall(NodeId node) {
    STRATA_TRY(const ShardingRule rule, ShardingRuleOf(graph_, node));
    const std::vector<ValueId> operands = graph_.operands(node);
    STRATA_TRY(Choice choice, Choose(node, rule, operands));
    std::vector<uint32_t> slots = SlotsOf(node);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!IsTensor(operands[i])) continue;
      const ValueId wanted = Redistributed(operands[i], choice.operands[i], node);
      if (wanted != operands[i]) rewriter_.ReplaceUse({node, slots[i]}, wanted);
    }
    for (size_t i = 0; i < rule.results.size(); ++i) {
      SetPlacements(graph_.result(node, i), choice.results[i]);
      FollowStorage(graph_.result(node, i), operands, graph_.operands(node));
    }
    if (rule.writes_operand0) ForgetCopies(operands[0]);
    if (IsCast(graph_, node)) {
      // A cast parameter is gathered after the cast.
      if (const auto read = read_as_.find(operands[0]); read != read_as_.end() && IsStep())
        read_as_.emplace(graph_.result(node), read->second);
    }
    const bool is_view = rule.moves_elements || BaseName(graph_.op(node)) == "constant_pad_nd";
    if (is_view && operands.size() == 1 && IsPinned(operands[0], node))
      parameter_views_.insert(graph_.result(node));
    FollowPlan(node);
    DecideShared(node);
    return Ok();
  }

  /// A view of an operand that was redistributed is a view of the copy.
  void FollowStorage(ValueId result, const std::vector<ValueId>& before,
                     const std::vector<ValueId>& after) {
    if (!graph_.value(result).alias_of.valid()) return;
    for (size_t i = 0; i < before.size(); ++i) {
      if (first_root_.at(before[i]) != first_root_.at(result)) continue;
      rewriter_.SetAlias(result, RootOf(after[i]));
      return;
    }
  }

  bool IsTensor(ValueId value) const {
    const TypeId type = graph_.value(value).type;
    return type.valid() && module_.types()[type].kind == TypeKind::kTensor;
  }

  /// Slots of the operands, in the order of Graph::operands.
  std::vector<uint32_t> SlotsOf(NodeId node) const {
    std::vector<uint32_t> slots;
    const auto visit = [&](uint32_t slot, const auto& self) -> void {
      const Arg& arg = graph_.slot(slot);
      if (arg.is_value()) slots.push_back(slot);
      if (!arg.is_span()) return;
      for (uint32_t i = 0; i < arg.span_size(); ++i)
        self(arg.span_begin() + i, self);
    };
    const Node& n = graph_.node(node);
    for (uint32_t i = 0; i < n.num_args; ++i)
      visit(n.args_begin + i, visit);
    for (uint32_t i = 0; i < n.num_kwargs; ++i)
      visit(n.args_begin + n.num_args + 2 * i + 1, visit);
    return slots;
  }

  /// Copies of what shares storage with a value that was written hold its old elements.
  void ForgetCopies(ValueId written) {
    const ValueId root = RootOf(written);
    std::erase_if(copies_, [&](const auto& entry) { return RootOf(entry.first) == root; });
  }

  /// Gives what leaves a module the placement that the plan decides.
  void FollowPlan(NodeId node) {
    if (graph_.node(node).phase != Phase::kForward || !graph_.node(node).module.valid()) return;
    const std::string module_path(module_.str(graph_.node(node).module));
    for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
      const ValueId value = graph_.result(node, i);
      if (!IsTensor(value) || !Leaves(value, module_path)) continue;
      Placements wanted = PlacementsOf(value);
      for (size_t axis = 0; axis < wanted.size(); ++axis)
        if (const auto decided = plan_.Output(module_, module_path, axis)) wanted[axis] = *decided;
      if (wanted == PlacementsOf(value)) continue;
      rewriter_.SetCursorAfter(node);
      const ValueId copy = Redistribute(value, wanted);
      for (const Use use : UsesOf(value))
        if (use.user != graph_.value(copy).def) rewriter_.ReplaceUse(use, copy);
    }
  }

  std::vector<Use> UsesOf(ValueId value) const {
    std::vector<Use> uses;
    for (const Use use : graph_.uses(value))
      uses.push_back(use);
    return uses;
  }

  bool Leaves(ValueId value, std::string_view module_path) const {
    for (const Use use : graph_.uses(value)) {
      const Node& user = graph_.node(use.user);
      if (user.phase != Phase::kForward && user.phase != Phase::kLoss) continue;
      const std::string_view reader = user.module.valid() ? module_.str(user.module) : "";
      const bool is_inside =
          reader == module_path ||
          (reader.starts_with(module_path) && reader.substr(module_path.size()).starts_with('.'));
      if (!is_inside) return true;
    }
    return false;
  }

  // --- Outputs
  // ---------------------------------------------------------------------------------------

  /// Gradients are held as their parameters; everything else is whole on each rank.
  Status PlaceOutputs(NodeId output) {
    const std::vector<ValueId> values = graph_.operands(output);
    const std::vector<uint32_t> slots = SlotsOf(output);
    for (size_t i = 0; i < values.size(); ++i) {
      if (!IsTensor(values[i])) continue;
      const Placements wanted = OutputPlacements(i);
      if (PlacementsOf(values[i]) == wanted) continue;
      rewriter_.ReplaceUse({output, slots[i]}, OutputCopy(values[i], wanted));
    }
    rewriter_.SetAttribute(output, kMeshAttribute, mesh_.Text());
    return Ok();
  }

  /// Right after the value is made, so that ranks exchange it while others are computed.
  ValueId OutputCopy(ValueId value, const Placements& wanted) {
    for (const ValueId copy : copies_[value])
      if (PlacementsOf(copy) == wanted) return copy;
    const NodeId def = graph_.value(value).def;
    if (graph_.node(def).kind == NodeKind::kPlaceholder) {
      rewriter_.SetCursorToEnd();
    } else {
      rewriter_.SetCursorAfter(def);
    }
    const ValueId copy = Redistribute(value, wanted);
    copies_[value].push_back(copy);
    return copy;
  }

  /// Of output `index`: a step gives its loss, then a gradient for each parameter; without a batch,
  /// outputs are sums of the gradients that come in.
  Placements OutputPlacements(size_t index) const {
    if (IsStep() && index >= 1 && index <= parameters_.size() && HasGradients())
      return PlacementsOf(parameters_[index - 1]);
    if (!IsStep() && parameters_.empty() && index < gradients_.size())
      return PlacementsOf(gradients_[index]);
    return plan_.Replicated();
  }

  bool HasGradients() const {
    return std::ranges::any_of(
        graph_.nodes(), [&](NodeId node) { return graph_.node(node).phase == Phase::kBackward; });
  }

  static constexpr double kPinned = 1000;  // factor of the cost to move a parameter again
  static constexpr int kViewsAhead = 4;

  Graph& graph_;
  Module& module_;
  const PlacementPlan& plan_;
  const Mesh& mesh_;
  const bool reshard_;
  const Dispatches dispatches_;
  Rewriter rewriter_;
  const Placements replicated_ = plan_.Replicated();
  bool takes_gradients_ = false;
  std::vector<ValueId> parameters_, gradients_;
  std::map<ValueId, Placements> read_as_;  // by parameter or cast of one
  std::set<ValueId> parameter_views_;
  /// What `CostAhead` gave for a value, a placement and a number of views.
  std::map<std::tuple<ValueId, Placement::Kind, int32_t, int32_t, StrId, int>, double> ahead_;
  std::map<NodeId, std::optional<ShardingRule>> rules_;
  std::map<NodeId, NodeKey> keys_;  // of the calls that the plan may decide
  std::map<ValueId, Copies> copies_;
  std::map<ValueId, Placements> shared_;   // copies that the plan decides and no reader needed yet
  std::map<ValueId, ValueId> first_root_;  // the owner of a value's storage before this pass
};

}  // namespace

void Place::Options::Bind(OptionList& list) {
  list.Add("mesh", mesh, "axes of ranks and their sizes, outermost first: \"fsdp=2,tp=4\"");
  list.Add(
      "plan", plan,
      "placements of parameters and module outputs: llama3, qwen3, deepseek_v3, or a TOML file");
  list.Add("sequence_parallel", sequence_parallel, "which entries of the plan hold");
  list.Add("loss_parallel", loss_parallel, "which entries of the plan hold");
  list.Add("reshard_after_forward", reshard_after_forward,
           "gather parameters again in backward, instead of keeping them");
}

Result<Changed> Place::Run(Module& module) {
  STRATA_TRY(const Mesh mesh, Mesh::Parse(options_.mesh));
  if (mesh.axes().empty()) return Changed::kNo;
  STRATA_TRY(const PlacementPlan plan,
             PlacementPlan::Load(options_.plan, mesh,
                                 {.sequence_parallel = options_.sequence_parallel,
                                  .loss_parallel = options_.loss_parallel}));
  for (const GraphId id : module.programs()) {
    STRATA_RETURN_IF_ERROR(PlaceGraph(module.graph(id), plan, options_.reshard_after_forward));
  }
  return Changed::kYes;
}

Status PlaceGraph(Graph& graph, const PlacementPlan& plan, bool reshard_after_forward) {
  return GraphPlacer(graph, plan, reshard_after_forward).Run();
}

}  // namespace strata
