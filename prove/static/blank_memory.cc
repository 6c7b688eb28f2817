#include "prove/static/blank_memory.h"

#include <string_view>
#include <vector>

#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "passes/core/written_memory.h"

namespace strata::prove {
namespace {

bool MakesBlank(std::string_view base) {
  return base.starts_with("empty") || base.starts_with("new_empty") || base.starts_with("zeros") ||
         base == "new_zeros";
}

}  // namespace

void BlankMemory::Follow(const Graph& graph, NodeId node) {
  const std::vector<ValueId> operands = graph.operands(node);
  const bool writes = Mutates(graph, node);
  if (writes)
    for (const ValueId operand : operands)
      owners_.erase(OwnerOf(graph, operand));
  if (graph.node(node).num_results == 0) return;
  const ValueId result = graph.result(node);
  if (writes) owners_.erase(OwnerOf(graph, result));
  const bool exchanges = CollectiveOf(graph, node).has_value();
  if (MakesBlank(BaseName(graph.op(node))) || (exchanges && Contains(graph, operands[0])))
    owners_.insert(result);
}

bool BlankMemory::Contains(const Graph& graph, ValueId value) const {
  return owners_.contains(OwnerOf(graph, value));
}

}  // namespace strata::prove
