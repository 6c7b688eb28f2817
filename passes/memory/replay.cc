#include "passes/memory/replay.h"

#include <algorithm>
#include <utility>

#include "ir/by_node.h"
#include "passes/core/written_memory.h"

namespace strata {

Replay::Replay(const Graph& graph, IdVector<NodeId, bool> wanted)
    : graph_(graph), position_(PositionsOf(graph)), can_copy_(std::move(wanted)) {
  for (const NodeId node : graph.nodes()) {
    for (const ValueId owner : WrittenBy(node))
      writers_[owner].push_back(node);
  }
  for (const NodeId node : graph.nodes()) {
    graph.ForEachOperand(node, [&](ValueId operand) {
      const ValueId owner = OwnerOf(graph, operand);
      if (!writers_.contains(owner)) return;
      std::vector<NodeId>& readers = readers_[owner];
      if (readers.empty() || readers.back() != node) readers.push_back(node);
    });
  }
  if (writers_.empty()) return;
  // What one node loses may take the fresh memory of others away.
  for (bool changed = true; changed;) {
    changed = false;
    for (const NodeId node : graph.nodes()) {
      if (!can_copy_[node] || MayCopy(node)) continue;
      can_copy_[node] = false;
      changed = true;
    }
  }
}

std::vector<ValueId> Replay::WrittenBy(NodeId node) const {
  std::vector<ValueId> owners;
  if (!Mutates(graph_, node)) return owners;
  const auto add = [&](ValueId owner) {
    if (std::ranges::find(owners, owner) == owners.end()) owners.push_back(owner);
  };
  for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
    const ValueId owner = graph_.value(graph_.result(node, i)).alias_of;
    if (owner.valid()) add(owner);
  }
  // What it writes is not known of one without results that say it.
  if (owners.empty())
    graph_.ForEachOperand(node, [&](ValueId operand) { add(OwnerOf(graph_, operand)); });
  return owners;
}

const std::vector<NodeId>& Replay::WritersOf(ValueId owner) const {
  static const std::vector<NodeId> kNone;
  const auto found = writers_.find(owner);
  return found == writers_.end() ? kNone : found->second;
}

std::vector<NodeId> Replay::ReadersOf(ValueId owner) const {
  const auto found = readers_.find(owner);
  return found == readers_.end() ? std::vector<NodeId>() : found->second;
}

std::vector<NodeId> Replay::ReadersBefore(NodeId writer) const {
  std::vector<NodeId> earlier;
  for (const ValueId owner : WrittenBy(writer)) {
    for (const NodeId reader : ReadersOf(owner)) {
      if (position(reader) >= position(writer)) break;
      if (can_copy_[reader]) earlier.push_back(reader);
    }
  }
  return earlier;
}

/// Whether what copies read for `value` lies in memory that copies made.
bool Replay::IsFresh(ValueId value) const {
  for (;;) {
    const NodeId def = graph_.value(value).def;
    if (!can_copy_[def]) return false;
    const ValueId owner = OwnerOf(graph_, value);
    if (owner == value || graph_.value(owner).def == def) return true;
    ValueId base;  // the operand that the result is a view of
    graph_.ForEachOperand(def, [&](ValueId operand) {
      if (!base.valid() && OwnerOf(graph_, operand) == owner) base = operand;
    });
    if (!base.valid()) return false;
    value = base;
  }
}

bool Replay::MayCopy(NodeId node) const {
  bool may = true;
  graph_.ForEachOperand(node, [&](ValueId operand) {
    const std::vector<NodeId>& writers = WritersOf(OwnerOf(graph_, operand));
    if (writers.empty()) return;
    if (IsFresh(operand)) {
      may &= std::ranges::all_of(writers, [&](NodeId writer) { return can_copy_[writer]; });
    } else {
      may &= position(writers.back()) < position(node);
    }
  });
  return may;
}

}  // namespace strata
