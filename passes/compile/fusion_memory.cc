// Which nodes that write in place may be members of a region, and in which order.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "passes/compile/fusion_regions.h"
#include "passes/core/written_memory.h"

namespace strata {

/// Writes come after what read the memory before, and before what reads it later.
void FusionRegions::OrderMemory() {
  const std::set<ValueId> written = WrittenMemory(graph_);
  std::map<ValueId, std::vector<NodeId>> since_write;  // the last write first
  for (const NodeId node : graph_.nodes()) {
    std::set<ValueId> touched;
    graph_.ForEachOperand(node, [&](ValueId value) {
      if (written.contains(OwnerOf(graph_, value))) touched.insert(OwnerOf(graph_, value));
    });
    const bool writes = Mutates(graph_, node);
    for (const ValueId owner : touched) {
      std::vector<NodeId>& others = since_write[owner];
      const size_t count = writes ? others.size() : std::min<size_t>(others.size(), 1);
      for (size_t i = 0; i < count; ++i) {
        if (!writes && !Mutates(graph_, others[i])) continue;
        before_[node].push_back(others[i]);
        after_[others[i]].push_back(node);
      }
      if (writes) others.clear();
      others.push_back(node);
    }
  }
}

/// All later readers know the memory as the result, or as a view of it.
bool FusionRegions::MayFuseInPlace(NodeId node) const {
  const ValueId result = graph_.result(node);
  const ValueId owner = graph_.value(result).alias_of;
  if (!owner.valid() || !graph_.args(node)[0].is_value()) return false;
  if (OwnerOf(graph_, graph_.args(node)[0].value()) != owner) return false;
  if (graph_.value(graph_.args(node)[0].value()).type != graph_.value(result).type) return false;
  const auto comes_from_result = [&](ValueId value) {
    while (value != result) {
      const NodeId def = graph_.value(value).def;
      if (graph_.node(def).kind != NodeKind::kCall || graph_.args(def).empty()) return false;
      const Arg& source = graph_.args(def)[0];
      if (!source.is_value() || OwnerOf(graph_, source.value()) != owner) return false;
      value = source.value();
    }
    return true;
  };
  for (const NodeId later : after_[node]) {
    bool is_fine = true;
    graph_.ForEachOperand(later, [&](ValueId value) {
      if (OwnerOf(graph_, value) == owner) is_fine = is_fine && comes_from_result(value);
    });
    if (!is_fine) return false;
  }
  return true;
}

std::optional<ValueId> FusionRegions::WrittenInput(NodeId node) const {
  if (!Mutates(graph_, node)) return std::nullopt;
  const ValueId owner = OwnerOf(graph_, graph_.result(node));
  const NodeKind kind = graph_.node(graph_.value(owner).def).kind;
  if (kind != NodeKind::kPlaceholder && kind != NodeKind::kGetAttr) return std::nullopt;
  return owner;
}

}  // namespace strata
