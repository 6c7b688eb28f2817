#include "passes/placement/auto/search_space.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "passes/placement/auto/constraints.h"
#include "passes/placement/auto/space_costs.h"
#include "passes/placement/call_rules.h"
#include "passes/placement/costs/prefetch.h"
#include "passes/placement/decided_outputs.h"
#include "passes/placement/gradient_casts.h"
#include "passes/placement/inputs.h"

namespace strata {
namespace {

/// Builds the space of one graph.
class Builder {
 public:
  Builder(Graph& graph, const PlacementPlan& plan, const CostModel& model,
          const SpaceOptions& options)
      : graph_(graph),
        module_(graph.module()),
        plan_(plan),
        model_(model),
        recomputed_(options.recomputed),
        rounds_(options.rounds),
        kept_(KeptParameters(graph, options.reshard)),
        call_rules_(graph),
        prefetchable_(PrefetchableOf(graph)) {
    if (plan.decides_nodes()) keys_ = NodeKeysOf(graph);
    const auto decided = [&](NodeId node) {
      const auto key = keys_.find(node);
      return DecidedText(graph, plan, node, key == keys_.end() ? nullptr : &key->second);
    };
    if (options.has_twins) twins_ = FindTwins(graph, options.split_layer, decided);
  }

  Result<SearchSpace> Run() {
    for (const NodeId node : graph_.nodes().Snapshot())
      STRATA_RETURN_IF_ERROR(AddVariable(node));
    for (const NodeId node : graph_.nodes())
      AddReads(node);
    AddShared();
    AddOperands();
    PriceChoices(module_, model_, space_);
    return std::move(space_);
  }

 private:
  using Kind = SearchSpace::Kind;
  /// A result of the nodes that are alike.
  using RootValue = std::pair<NodeId, size_t>;
  /// Why readers of a value do not share its copies.
  enum class Group : uint8_t { kAny, kForward, kBackward, kAlone };
  struct Read {
    NodeId reader;
    size_t operand;
  };

  const Type* TensorOf(ValueId value) const {
    const TypeId id = graph_.value(value).type;
    if (!id.valid() || module_.types()[id].kind != TypeKind::kTensor) return nullptr;
    return &module_.types()[id];
  }
  NodeId DefOf(ValueId value) const { return graph_.value(value).def; }
  size_t ResultOf(ValueId value) const {
    const NodeId def = DefOf(value);
    size_t result = 0;
    while (!(graph_.result(def, result) == value))
      ++result;
    return result;
  }

  // --- Variables

  Status AddVariable(NodeId node) {
    const NodeKind kind = graph_.node(node).kind;
    if (kind == NodeKind::kOutput) return Ok();
    const NodeId root = twins_.Root(node);
    if (root != node) {
      const int variable = space_.variable_of.at(root);
      ++space_.variables[static_cast<size_t>(variable)].count;
      space_.variables[static_cast<size_t>(variable)].runs += RunsOf(node);
      space_.variable_of.emplace(node, variable);
      FollowParameter(node);
      return Ok();
    }
    SearchSpace::Variable variable{.kind = Kind::kInput,
                                   .node = node,
                                   .value = graph_.result(node),
                                   .strategies = {},
                                   .count = 1,
                                   .runs = RunsOf(node)};
    if (kind == NodeKind::kCall) {
      variable.kind = Kind::kCall;
      STRATA_TRY(variable.strategies, StrategiesOf(node));
    } else {
      variable.strategies = InputStrategies(node);
      if (variable.strategies.empty()) {
        return Error(
            "no such placement: parameter {}: its entry in the constraints does not fit "
            "the mesh {}: correct the entry",
            graph_.attribute(node, "fqn"), model_.mesh().Text());
      }
    }
    space_.variable_of.emplace(node, static_cast<int>(space_.variables.size()));
    space_.variables.push_back(std::move(variable));
    FollowParameter(node);
    return Ok();
  }

  int64_t RunsOf(NodeId node) const {
    if (graph_.node(node).kind != NodeKind::kCall) return 1;
    return recomputed_.contains(node) ? 2 * rounds_ : rounds_;
  }

  /// Parameters, and casts of them, are gathered where they are read.
  void FollowParameter(NodeId node) {
    const bool is_parameter =
        graph_.node(node).kind == NodeKind::kPlaceholder
            ? KindOf(graph_, node) == PlacedInput::kParameter
            : IsCast(graph_, node) && gathered_.contains(graph_.operands(node)[0]);
    if (!is_parameter) return;
    gathered_.insert(graph_.result(node));
    if (IsCast(graph_, node) && kept_.contains(graph_.operands(node)[0]))
      kept_.insert(graph_.result(node));
  }

  std::vector<CallStrategy> InputStrategies(NodeId node) {
    const auto held = [](Placements placements) {
      return CallStrategy{.operands = {}, .results = {std::move(placements)}};
    };
    const Type* type = TensorOf(graph_.result(node));
    if (type == nullptr || graph_.node(node).kind != NodeKind::kPlaceholder)
      return {held(plan_.Replicated())};
    const PlacedInput kind = KindOf(graph_, node);
    if (kind == PlacedInput::kBatch) return {held(plan_.Batch(module_, *type))};
    if (kind != PlacedInput::kParameter) return {held(plan_.Replicated())};
    std::vector<CallStrategy> strategies;
    const std::string name(graph_.attribute(node, "fqn"));
    for (Placements& placements : HeldPlacements(module_, *type, model_.mesh())) {
      if (!IsHeldAs(module_, plan_, name, placements)) continue;
      strategies.push_back(held(std::move(placements)));
      strategies.back().compute_us = model_.UpdateUs(module_, *type, strategies.back().results[0]);
    }
    return strategies;
  }

  Result<std::vector<CallStrategy>> StrategiesOf(NodeId node) {
    STRATA_TRY(ShardingRule rule, call_rules_.Of(node));
    OfferedPlacements offered;
    const std::vector<ValueId> operands = graph_.operands(node);
    for (size_t i = 0; i < operands.size(); ++i) {
      const auto& producer = VariableOf(DefOf(operands[i]));
      const size_t result = ResultOf(operands[i]);
      const Type* type = TensorOf(operands[i]);
      for (size_t choice = 0; choice < producer.strategies.size(); ++choice)
        offered.Add(module_, type, producer.Produced(choice, result), model_.mesh(), i == 0);
    }
    std::vector<CallStrategy> strategies = CallStrategies(graph_, node, rule, model_, offered);
    if (const auto key = keys_.find(node); key != keys_.end()) {
      STRATA_RETURN_IF_ERROR(KeepDecided(module_, plan_, key->second, rule, strategies));
    }
    rules_.emplace(node, std::move(rule));
    return strategies;
  }

  const SearchSpace::Variable& VariableOf(NodeId node) const {
    return space_.variables[static_cast<size_t>(space_.variable_of.at(node))];
  }

  // --- Operands

  void AddReads(NodeId node) {
    const std::vector<ValueId> operands = graph_.operands(node);
    const auto rule = rules_.find(twins_.Root(node));
    for (size_t i = 0; i < operands.size(); ++i) {
      if (TensorOf(operands[i]) == nullptr) continue;
      if (rule != rules_.end() &&
          std::ranges::count(rule->second.ignored, static_cast<int>(i)) != 0)
        continue;
      reads_[operands[i]][GroupOf(operands[i], node, i)].push_back({node, i});
    }
    if (graph_.node(node).kind == NodeKind::kPlaceholder &&
        KindOf(graph_, node) == PlacedInput::kParameter)
      parameters_.push_back(node);
  }

  Group GroupOf(ValueId value, NodeId reader, size_t operand) const {
    if (IsWritten(reader, operand) || WidensGradient(graph_, reader)) return Group::kAlone;
    if (!gathered_.contains(value)) return Group::kAny;
    if (IsCast(graph_, reader)) return Group::kAlone;
    if (kept_.contains(value)) return Group::kForward;
    return graph_.node(reader).phase == Phase::kBackward ? Group::kBackward : Group::kForward;
  }

  bool IsWritten(NodeId reader, size_t operand) const {
    const auto rule = rules_.find(twins_.Root(reader));
    return rule != rules_.end() &&
           std::ranges::count(rule->second.written, static_cast<int>(operand)) != 0;
  }

  RootValue RootOf(ValueId value) const { return {twins_.Root(DefOf(value)), ResultOf(value)}; }

  /// The copies of a value that several readers share.
  struct Copies {
    ValueId first;
    int64_t count = 0;
    std::vector<std::optional<Placement>> decided;  ///< by the plan, of what leaves a module
    std::set<Placements, PlacementsLess> wanted;
  };
  using CopiesOfAll = std::map<std::pair<RootValue, Group>, Copies>;

  /// What several nodes read, and what leaves a module as the plan decides.
  CopiesOfAll ValuesToCopy() {
    CopiesOfAll copies;
    for (const auto& [value, groups] : reads_) {
      for (const auto& [group, reads] : groups) {
        std::vector<std::optional<Placement>> decided;
        if (group == Group::kAny) decided = DecidedOutput(graph_, plan_, value);
        const bool is_shared = reads.size() > 1 && group != Group::kAlone;
        if (!is_shared && decided.empty()) continue;
        Copies& of = copies[{RootOf(value), group}];
        if (!decided.empty()) of.decided = std::move(decided);
      }
    }
    return copies;
  }

  void AddWanted(ValueId value, const std::vector<Read>& reads, Copies& copies) const {
    const auto add = [&](const Placements& placements) {
      copies.wanted.insert(WithDecided(placements, copies.decided));
    };
    const SearchSpace::Variable& producer = VariableOf(DefOf(value));
    for (size_t choice = 0; choice < producer.strategies.size(); ++choice)
      add(producer.Produced(choice, ResultOf(value)));
    for (const Read& read : reads) {
      if (graph_.node(read.reader).kind == NodeKind::kOutput) continue;
      const SearchSpace::Variable& reader = VariableOf(read.reader);
      for (size_t choice = 0; choice < reader.strategies.size(); ++choice)
        add(reader.Wanted(choice, read.operand));
    }
  }

  /// A variable for the copies of each value that are shared.
  void AddShared() {
    CopiesOfAll copies = ValuesToCopy();
    for (const auto& [value, groups] : reads_) {
      for (const auto& [group, reads] : groups) {
        const auto of = copies.find({RootOf(value), group});
        if (of == copies.end()) continue;
        if (of->second.count++ == 0) of->second.first = value;
        AddWanted(value, reads, of->second);
      }
    }
    for (const auto& [key, of] : copies) {
      SearchSpace::Variable variable{.kind = Kind::kShared,
                                     .node = key.first.first,
                                     .value = of.first,
                                     .strategies = {},
                                     .count = of.count,
                                     .runs = of.count};
      for (const Placements& each : of.wanted)
        variable.strategies.push_back({.operands = {}, .results = {each}});
      shared_.emplace(key, static_cast<int>(space_.variables.size()));
      space_.variables.push_back(std::move(variable));
    }
    // Outputs that are not gradients are whole on each rank.
    whole_ = static_cast<int>(space_.variables.size());
    space_.variables.push_back({.kind = Kind::kShared,
                                .node = graph_.output(),
                                .value = {},
                                .strategies = {{.operands = {}, .results = {plan_.Replicated()}}},
                                .count = 1,
                                .runs = 1});
  }

  /// How often a step redistributes `value` for `reader`: what reads again needs it again, but for
  /// parameters, which backward gathers anyway.
  int64_t RunsOf(ValueId value, const Read& read) const {
    return gathered_.contains(value) ? 1 : RunsOf(read.reader);
  }

  void AddOperands() {
    for (const auto& [value, groups] : reads_) {
      for (const auto& [group, reads] : groups) {
        int producer = space_.variable_of.at(DefOf(value));
        size_t result = ResultOf(value);
        const TypeId type = graph_.value(value).type;
        const auto shared = shared_.find({RootOf(value), group});
        if (shared != shared_.end()) {
          int64_t runs = 1;
          for (const Read& read : reads)
            runs = std::max(runs, RunsOf(value, read));
          AddOperand({.producer = producer,
                      .reader = shared->second,
                      .result = result,
                      .operand = 0,
                      .type = type,
                      .count = runs,
                      .is_prefetched = std::ranges::all_of(
                          reads, [&](const Read& read) { return IsPrefetched(value, read); })});
          if (group == Group::kAny) space_.shared_of.emplace(value, shared->second);
          producer = shared->second;
          result = 0;
        }
        for (const Read& read : reads) {
          AddOperand({.producer = producer,
                      .reader = ReaderOf(read),
                      .result = result,
                      .operand = read.operand,
                      .type = type,
                      .count = RunsOf(value, read),
                      .is_fixed = IsWritten(read.reader, read.operand),
                      .keeps_sums = WidensGradient(graph_, read.reader),
                      .is_prefetched = IsPrefetched(value, read)});
        }
      }
    }
  }

  bool IsGradient(const Read& read) const {
    return graph_.node(read.reader).kind == NodeKind::kOutput && read.operand >= 1 &&
           read.operand <= parameters_.size();
  }
  bool IsPrefetched(ValueId value, const Read& read) const {
    return IsGradient(read) || prefetchable_.Has(DefOf(value), read.reader);
  }

  /// Gradients are held as their parameters.
  int ReaderOf(const Read& read) const {
    if (graph_.node(read.reader).kind != NodeKind::kOutput)
      return space_.variable_of.at(read.reader);
    return IsGradient(read) ? space_.variable_of.at(parameters_[read.operand - 1]) : whole_;
  }

  void AddOperand(SearchSpace::Operand operand) {
    // An operand of the output has no place of its own.
    const bool is_call = space_.variables[static_cast<size_t>(operand.reader)].kind == Kind::kCall;
    if (!is_call) operand.operand = 0;
    const auto key = std::tuple(operand.producer, operand.result, operand.reader, operand.operand,
                                operand.type, operand.is_fixed, operand.is_prefetched);
    const auto [found, is_new] = operand_of_.try_emplace(key, space_.operands.size());
    if (is_new) {
      space_.operands.push_back(operand);
    } else {
      space_.operands[found->second].count += operand.count;
    }
  }

  Graph& graph_;
  Module& module_;
  const PlacementPlan& plan_;
  const CostModel& model_;
  const std::set<NodeId>& recomputed_;
  const int64_t rounds_;
  std::set<ValueId> kept_;  // parameters, and casts of them, that are gathered once
  Twins twins_;
  const CallRules call_rules_;
  const Prefetchable prefetchable_;
  SearchSpace space_;
  std::map<NodeId, NodeKey> keys_;
  std::map<NodeId, ShardingRule> rules_;  // of roots
  std::set<ValueId> gathered_;
  std::vector<NodeId> parameters_;
  std::map<ValueId, std::map<Group, std::vector<Read>>> reads_;
  std::map<std::pair<RootValue, Group>, int> shared_;
  int whole_ = 0;
  std::map<std::tuple<int, size_t, int, size_t, TypeId, bool, bool>, size_t> operand_of_;
};

}  // namespace

Result<SearchSpace> MakeSearchSpace(Graph& graph, const PlacementPlan& plan, const CostModel& model,
                                    const SpaceOptions& options) {
  return Builder(graph, plan, model, options).Run();
}

const Placements& SearchSpace::Variable::Produced(size_t choice, size_t result) const {
  return strategies[choice].results[result];
}

const Placements& SearchSpace::Variable::Wanted(size_t choice, size_t operand) const {
  return kind == Kind::kCall ? strategies[choice].operands[operand] : strategies[choice].results[0];
}

}  // namespace strata
