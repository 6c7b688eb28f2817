#include "passes/placement/auto/auto_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "passes/placement/costs/recomputation.h"
#include "passes/placement/inputs.h"

namespace strata {
namespace {

/// Finds the placements of one graph.
class PlacementSearch {
 public:
  PlacementSearch(Graph& graph, const PlacementPlan& constraints, const CostModel& model,
                  const AutoOptions& options)
      : graph_(graph),
        constraints_(constraints),
        model_(model),
        options_(options),
        watch_(options.solver.clock) {}

  Result<AutoPlacement> Run() {
    STRATA_TRY(recomputation_, RecomputationOf(graph_, options_.memory_policy));
    if (!options_.space.has_twins) return SolveSplitAt(0, kNeverEnough, Left());
    STRATA_TRY(AutoPlacement placement, SolveSplitAt(0, kAlwaysEnough, Left() / 2));
    if (!placement.is_memory_tight) return placement;
    // Layers that are alike all take less memory, or all take more. What is cheapest lies between.
    STRATA_RETURN_IF_ERROR(SplitLayers(placement));
    const bool is_open = placement.solved.status == SolverResult::Status::kFeasible;
    if (placement.split_layer > 0 || !is_open || Left() <= 0) return placement;
    STRATA_TRY(AutoPlacement again, SolveSplitAt(0, kNeverEnough, Left()));
    const double bound = std::max(placement.solved.bound, again.solved.bound);
    if (again.solved.choices.empty() || again.solved.cost > placement.solved.cost)
      std::swap(again, placement);
    again.solved.bound = bound;
    if (again.solved.Gap() <= options_.solver.gap)
      again.solved.status = SolverResult::Status::kOptimal;
    return again;
  }

 private:
  static constexpr double kAlwaysEnough = std::numeric_limits<double>::infinity();
  static constexpr double kNeverEnough = -kAlwaysEnough;

  /// Replaces layers that are alike by the cheapest split of them that is found, if any is cheaper.
  Status SplitLayers(AutoPlacement& placement) {
    const SolverResult alike = placement.solved;
    if (alike.choices.empty() || alike.heavier <= alike.lighter ||
        alike.cost <= NearCost(alike.price_bound))
      return Ok();
    const auto layers = static_cast<double>(NumLayers(graph_));
    const double part = (alike.heavier - options_.memory_bytes) / (alike.heavier - alike.lighter);
    const double least = std::ceil(part * layers);
    for (const double layer : {least, least + 1}) {
      if (layer < 1 || layer >= layers || Left() <= 0) continue;
      const double near = NearCost(alike.price_bound);
      STRATA_TRY(AutoPlacement split, SolveSplitAt(static_cast<int64_t>(layer), near, Left() / 4));
      if (split.solved.choices.empty() || split.solved.cost >= placement.solved.cost) continue;
      placement = std::move(split);
      if (placement.solved.cost <= near) break;
    }
    if (placement.split_layer == 0) return Ok();
    // The proof of a split says nothing of other splits.
    placement.solved.bound = std::min(placement.solved.bound, alike.price_bound);
    if (placement.solved.Gap() > options_.solver.gap)
      placement.solved.status = SolverResult::Status::kFeasible;
    return Ok();
  }

  double NearCost(double bound) const { return bound / (1 - std::max(2e-3, options_.solver.gap)); }

  double Left() const { return std::max(0.0, options_.solver.seconds - watch_.seconds()); }

  /// `enough`: as of SolverOptions.
  Result<AutoPlacement> SolveSplitAt(int64_t layer, double enough, double seconds) {
    AutoPlacement placement;
    SpaceOptions space = options_.space;
    space.split_layer = layer;
    space.recomputed = recomputation_.recomputed;
    STRATA_TRY(placement.space, MakeSearchSpace(graph_, constraints_, model_, space));
    std::vector<ValueId> storages = recomputation_.saved;
    storages.insert(storages.end(), recomputation_.again.begin(), recomputation_.again.end());
    placement.memory = MemoryRow(graph_, placement.space, model_, storages, options_.memory_bytes);
    PairwiseProblem& problem = placement.space.problem;
    if (options_.memory_bytes > 0) problem.rows.push_back(placement.memory);
    SolverOptions solver = options_.solver;
    solver.enough_cost = enough;
    if (price_ > 0) solver.price = price_;
    solver.seconds = seconds;
    placement.solved = Solve(problem, solver);
    placement.is_memory_tight = placement.solved.is_row_tight;
    if (placement.solved.price > 0) price_ = placement.solved.price;
    placement.split_layer = layer;
    return placement;
  }

  Graph& graph_;
  const PlacementPlan& constraints_;
  const CostModel& model_;
  const AutoOptions& options_;
  Recomputation recomputation_;
  double price_ = 0;  ///< of memory, of the last solution
  const WorkWatch watch_;
};

size_t ChoiceOf(const AutoPlacement& placement, int variable) {
  return static_cast<size_t>(placement.solved.choices[static_cast<size_t>(variable)]);
}

const CallStrategy& StrategyOf(const AutoPlacement& placement, NodeId node) {
  const int variable = placement.space.variable_of.at(node);
  return placement.space.variables[static_cast<size_t>(variable)]
      .strategies[ChoiceOf(placement, variable)];
}

/// Entries of one kind: what names them, and what they decide.
class Entries {
 public:
  /// `name` with the layer as a number in `path`.
  void Add(std::string_view path, const std::string& before, const std::string& after,
           const std::string& placements) {
    int64_t layer = -1;
    const std::string pattern = WithoutLayer(path, layer);
    const auto key = std::pair(pattern, before + after);
    auto [found, is_new] = index_.try_emplace(key, groups_.size());
    if (is_new) groups_.push_back({pattern, before, after, {}});
    groups_[found->second].members.emplace_back(std::string(path), placements);
  }

  /// Modules inside of others first: `layers.*` also matches what is inside of layers.
  std::string Text() const {
    std::vector<const Group*> sorted;
    for (const Group& group : groups_)
      sorted.push_back(&group);
    std::ranges::stable_sort(sorted, [](const Group* a, const Group* b) {
      return std::ranges::count(a->pattern, '.') > std::ranges::count(b->pattern, '.');
    });
    std::string text;
    for (const Group* group : sorted)
      text += TextOf(*group);
    return text;
  }

 private:
  struct Group {
    std::string pattern, before, after;
    std::vector<std::pair<std::string, std::string>> members;  ///< (path, placements)
  };

  /// Layers that differ from most others have entries of their own.
  static std::string TextOf(const Group& group) {
    std::map<std::string, int> counts;
    for (const auto& [path, placements] : group.members)
      ++counts[placements];
    const std::string most =
        std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })->first;
    std::string text;
    const auto add = [&](std::string_view path, std::string_view placements) {
      text += fmt::format("  {{ {}\"{}\"{}{} }},\n", group.before, path, group.after, placements);
    };
    for (const auto& [path, placements] : group.members)
      if (placements != most) add(path, placements);
    add(group.pattern, most);
    return text;
  }

  std::vector<Group> groups_;
  std::map<std::pair<std::string, std::string>, size_t> index_;
};

std::string OnAxis(const Module& module, const std::vector<Placements>& tensors, size_t axis) {
  Placements on_axis;
  for (const Placements& placements : tensors)
    on_axis.push_back(placements[axis]);
  return PlacementsText(module, on_axis);
}

/// In which placements readers share copies of the results of a call.
std::vector<Placements> SharedOf(const Graph& graph, const AutoPlacement& placement, NodeId node,
                                 std::vector<Placements> results) {
  for (size_t i = 0; i < results.size(); ++i) {
    const auto found = placement.space.shared_of.find(graph.result(node, i));
    if (found == placement.space.shared_of.end()) continue;
    const SearchSpace::Variable& shared =
        placement.space.variables[static_cast<size_t>(found->second)];
    results[i] = shared.strategies[ChoiceOf(placement, found->second)].results[0];
  }
  return results;
}

}  // namespace

Result<AutoPlacement> PlaceAutomatically(Graph& graph, const PlacementPlan& constraints,
                                         const CostModel& model, const AutoOptions& options) {
  STRATA_TRY(AutoPlacement placement, PlacementSearch(graph, constraints, model, options).Run());
  using Status = SolverResult::Status;
  if (placement.solved.status == Status::kInfeasible) {
    if (placement.is_memory_tight) {
      return Error(ErrorCode::kUnsupported,
                   "no placements fit {:.1f} GiB on a rank: graph {} on mesh {}: take more ranks, "
                   "or a smaller batch",
                   options.memory_bytes / (1 << 30), graph.name_text(), model.mesh().Text());
    }
    return Error(ErrorCode::kUnsupported,
                 "no placements satisfy the constraints: graph {} on mesh {}: remove some",
                 graph.name_text(), model.mesh().Text());
  }
  if (placement.solved.status == Status::kUnknown) {
    return Error("no placements were found in {} s: graph {} on mesh {}: allow more time",
                 options.solver.seconds, graph.name_text(), model.mesh().Text());
  }
  const PairwiseProblem::Choices& choices = placement.solved.choices;
  for (size_t i = 0; i < choices.size(); ++i) {
    const SearchSpace::Variable& variable = placement.space.variables[i];
    placement.compute_us += static_cast<double>(variable.runs) *
                            variable.strategies[static_cast<size_t>(choices[i])].compute_us;
  }
  placement.communication_us = placement.solved.cost - placement.compute_us;
  placement.memory_bytes = placement.memory.Sum(choices);
  placement.memory_policy = options.memory_policy;
  placement.output_entries = constraints.OutputEntries();
  return placement;
}

Result<AutoPlacement> PlaceWithMemoryPolicies(Graph& graph, const PlacementPlan& constraints,
                                              const CostModel& model, AutoOptions options) {
  using Policy = TagMemory::Policy;
  Result<AutoPlacement> best = Error("no memory policy");
  for (const Policy policy : {Policy::kNone, Policy::kDefault, Policy::kFull}) {
    options.memory_policy = policy;
    Result<AutoPlacement> placement = PlaceAutomatically(graph, constraints, model, options);
    if (!placement && placement.error().code() != ErrorCode::kUnsupported) return placement;
    const bool is_free = placement && !placement->is_memory_tight;
    if (placement && placement->solved.price > 0) options.solver.price = placement->solved.price;
    if (placement && (!best || placement->solved.cost < best->solved.cost)) {
      best = std::move(placement);
    } else if (!best) {
      best = std::move(placement).error();
    }
    // Nothing that computes more again is cheaper.
    if (is_free) break;
  }
  return best;
}

std::string PlanText(const Graph& graph, const AutoPlacement& placement, const Mesh& mesh,
                     std::string_view comment) {
  const Module& module = graph.module();
  Entries parameters, nodes;
  const std::map<NodeId, NodeKey> keys = NodeKeysOf(graph);
  for (const NodeId node : graph.nodes()) {
    std::string placements;
    if (graph.node(node).kind == NodeKind::kPlaceholder) {
      if (KindOf(graph, node) != PlacedInput::kParameter) continue;
      const std::vector<Placements>& held = StrategyOf(placement, node).results;
      const Type& type = module.types()[graph.value(graph.result(node)).type];
      bool is_uneven = false;
      for (size_t axis = 0; axis < mesh.axes().size(); ++axis) {
        placements +=
            fmt::format(", {} = \"{}\"", mesh.axes()[axis].name, OnAxis(module, held, axis));
        is_uneven = is_uneven || IsUneven(module, type, held[0], axis, mesh);
      }
      if (is_uneven) placements += ", uneven = true";
      parameters.Add(graph.attribute(node, "fqn"), "name = ", "", placements);
    } else if (const auto key = keys.find(node); key != keys.end()) {
      const CallStrategy& strategy = StrategyOf(placement, node);
      const std::vector<Placements> shared = SharedOf(graph, placement, node, strategy.results);
      for (size_t axis = 0; axis < mesh.axes().size(); ++axis) {
        placements += fmt::format(", {} = \"{} -> {}", mesh.axes()[axis].name,
                                  OnAxis(module, strategy.operands, axis),
                                  OnAxis(module, strategy.results, axis));
        if (!(shared == strategy.results)) placements += " => " + OnAxis(module, shared, axis);
        placements += '"';
      }
      const std::string index =
          key->second.index == 0 ? "" : fmt::format(", index = {}", key->second.index);
      nodes.Add(key->second.module, "module = ",
                fmt::format(", phase = \"{}\", op = \"{}\"{}", ToString(key->second.phase),
                            key->second.op, index),
                placements);
    }
  }
  std::string text;
  for (size_t begin = 0; begin < comment.size();) {
    const size_t end = std::min(comment.find('\n', begin), comment.size());
    text += fmt::format("# {}\n", comment.substr(begin, end - begin));
    begin = end + 1;
  }
  if (!placement.output_entries.empty()) text += "output = [\n" + placement.output_entries + "]\n";
  return text + "parameter = [\n" + parameters.Text() + "]\nnode = [\n" + nodes.Text() + "]\n";
}

}  // namespace strata
