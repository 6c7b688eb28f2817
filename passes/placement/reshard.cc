#include "passes/placement/reshard.h"

#include <string_view>

#include "passes/placement/inputs.h"

namespace strata {
namespace {

/// Whether a name has a number in it: `layers.3.attention.wq.weight`.
bool IsInBlock(std::string_view name) {
  bool is_number = false;  // so far, in this component
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '.' && is_number) return true;
    const bool begins = i == 0 || name[i - 1] == '.';
    is_number = c >= '0' && c <= '9' && (begins || is_number);
  }
  return is_number;
}

}  // namespace

std::set<ValueId> KeptParameters(const Graph& graph, Reshard reshard) {
  std::set<ValueId> in_blocks, others;
  for (const NodeId node : graph.placeholders()) {
    if (KindOf(graph, node) != PlacedInput::kParameter) continue;
    std::set<ValueId>& group = IsInBlock(graph.attribute(node, "fqn")) ? in_blocks : others;
    group.insert(graph.result(node));
  }
  if (reshard == Reshard::kAll) return {};
  if (reshard == Reshard::kBlocks) return in_blocks.empty() ? in_blocks : others;
  in_blocks.merge(others);
  return in_blocks;
}

}  // namespace strata
