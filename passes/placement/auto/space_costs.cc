#include "passes/placement/auto/space_costs.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace strata {
namespace {

/// Nothing becomes partial. Rows in the order of experts go between the ranks of their tokens and
/// of their experts, while nothing else changes.
bool CanRedistribute(const Placements& from, const Placements& to) {
  bool moves_rows = false, has_others = false;
  for (size_t axis = 0; axis < to.size(); ++axis) {
    if (from[axis] == to[axis]) continue;
    if (IsPartial(to[axis])) return false;
    const bool is_rows = IsRows(from[axis]) || IsRows(to[axis]);
    (is_rows ? moves_rows : has_others) = true;
    if (is_rows && !(IsRows(from[axis]) && IsRows(to[axis]) && from[axis].dim == to[axis].dim))
      return false;
  }
  return !moves_rows || !has_others;
}

/// True where a sum over ranks is made.
bool MakesSums(const Placements& from, const Placements& to) {
  for (size_t axis = 0; axis < to.size(); ++axis)
    if (IsPartial(from[axis]) && !IsPartial(to[axis])) return true;
  return false;
}

class Pricing {
 public:
  Pricing(Module& module, const CostModel& model, SearchSpace& space)
      : module_(module), model_(model), space_(space) {}

  void Run() {
    for (const SearchSpace::Variable& variable : space_.variables) {
      space_.problem.variables.emplace_back();
      for (const CallStrategy& strategy : variable.strategies)
        space_.problem.variables.back().push_back(strategy.compute_us *
                                                  static_cast<double>(variable.runs));
    }
    for (const SearchSpace::Operand& operand : space_.operands)
      AddEdge(operand);
  }

 private:
  /// The distinct placements of one side, and which of them each choice has.
  template <class Get>
  static std::vector<Placements> Classes(size_t count, const Get& get, std::vector<int>& class_of) {
    std::map<Placements, int, PlacementsLess> numbers;
    std::vector<Placements> distinct;
    for (size_t choice = 0; choice < count; ++choice) {
      const Placements& placements = get(choice);
      const auto [found, is_new] =
          numbers.try_emplace(placements, static_cast<int>(distinct.size()));
      if (is_new) distinct.push_back(placements);
      class_of.push_back(found->second);
    }
    return distinct;
  }

  void AddEdge(const SearchSpace::Operand& operand) {
    const auto& producer = space_.variables[static_cast<size_t>(operand.producer)];
    const auto& reader = space_.variables[static_cast<size_t>(operand.reader)];
    PairwiseProblem::Edge edge;
    edge.a = operand.producer;
    edge.b = operand.reader;
    const auto from = Classes(
        producer.strategies.size(),
        [&](size_t choice) -> const Placements& {
          return producer.Produced(choice, operand.result);
        },
        edge.class_a);
    const auto to = Classes(
        reader.strategies.size(),
        [&](size_t choice) -> const Placements& { return reader.Wanted(choice, operand.operand); },
        edge.class_b);
    edge.num_a = static_cast<int>(from.size());
    edge.num_b = static_cast<int>(to.size());
    for (const Placements& have : from)
      for (const Placements& want : to)
        edge.costs.push_back(operand.is_fixed && !(have == want)
                                 ? kInfiniteCost
                                 : static_cast<double>(operand.count) * Us(operand, have, want));
    if (edge.a != edge.b) {
      space_.problem.edges.push_back(std::move(edge));
      return;
    }
    auto& costs = space_.problem.variables[static_cast<size_t>(edge.a)];
    for (size_t choice = 0; choice < costs.size(); ++choice)
      costs[choice] += edge.cost(static_cast<int>(choice), static_cast<int>(choice));
  }

  double Us(const SearchSpace::Operand& operand, const Placements& from, const Placements& to) {
    if (from == to) return 0;
    if (!CanRedistribute(from, to) || (operand.keeps_sums && MakesSums(from, to)))
      return kInfiniteCost;
    const auto key = std::tuple(operand.type, Number(from), Number(to), operand.is_prefetched);
    const auto [found, is_new] = us_.try_emplace(key, 0.0);
    if (is_new)
      found->second = model_.RedistributionUs(module_, module_.types()[operand.type], from, to,
                                              operand.is_prefetched);
    return found->second;
  }
  int Number(const Placements& placements) {
    return numbers_.try_emplace(placements, static_cast<int>(numbers_.size())).first->second;
  }

  Module& module_;
  const CostModel& model_;
  SearchSpace& space_;
  std::map<Placements, int, PlacementsLess> numbers_;
  std::map<std::tuple<TypeId, int, int, bool>, double> us_;
};

}  // namespace

bool PlacementsLess::operator()(const Placements& a, const Placements& b) const {
  return std::ranges::lexicographical_compare(a, b, [](const Placement& x, const Placement& y) {
    const auto key = [](const Placement& p) {
      return std::tuple(p.kind, p.dim, p.split, p.reduce);
    };
    return key(x) < key(y);
  });
}

double SearchSpace::EdgeUs(const Module& module, const CostModel& model, const Operand& operand,
                           int producer_choice, int reader_choice) const {
  const auto& producer = variables[static_cast<size_t>(operand.producer)];
  const auto& reader = variables[static_cast<size_t>(operand.reader)];
  return model.RedistributionUs(
      module, module.types()[operand.type],
      producer.Produced(static_cast<size_t>(producer_choice), operand.result),
      reader.Wanted(static_cast<size_t>(reader_choice), operand.operand), operand.is_prefetched);
}

void PriceChoices(Module& module, const CostModel& model, SearchSpace& space) {
  Pricing(module, model, space).Run();
}

}  // namespace strata
