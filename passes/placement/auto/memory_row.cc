#include <map>
#include <utility>
#include <vector>

#include "passes/placement/auto/search_space.h"
#include "passes/placement/inputs.h"

namespace strata {

PairwiseProblem::Row MemoryRow(const Graph& graph, const SearchSpace& space, const CostModel& model,
                               const std::vector<ValueId>& storages, double limit) {
  const Module& module = graph.module();
  std::map<int, std::vector<double>> weights;  // by variable
  const auto add = [&](NodeId node, size_t result, const auto& bytes_of) {
    const int variable = space.variable_of.at(node);
    const auto& strategies = space.variables[static_cast<size_t>(variable)].strategies;
    auto& of_choice = weights.try_emplace(variable, strategies.size()).first->second;
    for (size_t choice = 0; choice < strategies.size(); ++choice)
      of_choice[choice] += bytes_of(strategies[choice].results[result]);
  };
  for (const NodeId node : graph.placeholders()) {
    if (KindOf(graph, node) != PlacedInput::kParameter) continue;
    const Type& type = module.types()[graph.value(graph.result(node)).type];
    add(node, 0, [&](const Placements& placements) {
      const double bytes = model.LocalBytes(module, type, placements);
      return 2 * bytes + 8 * bytes / static_cast<double>(ByteSize(type.dtype));
    });
  }
  for (const ValueId storage : storages) {
    const NodeId def = graph.value(storage).def;
    const TypeId id = graph.value(storage).type;
    if (graph.node(def).kind != NodeKind::kCall || !id.valid() ||
        module.types()[id].kind != TypeKind::kTensor)
      continue;
    size_t result = 0;
    while (!(graph.result(def, result) == storage))
      ++result;
    add(def, result, [&](const Placements& placements) {
      return model.LocalBytes(module, module.types()[id], placements);
    });
  }
  PairwiseProblem::Row row{.name = "memory", .terms = {}, .limit = limit};
  for (auto& [variable, of_choice] : weights)
    row.terms.push_back({variable, std::move(of_choice)});
  return row;
}

}  // namespace strata
