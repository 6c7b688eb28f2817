#include "scene/memory.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "ir/module.h"
#include "ir/ops.h"

namespace strata {
namespace {

constexpr int32_t kForever = std::numeric_limits<int32_t>::max();

/// Foreign texts do not contain aliases, but operators imply them.
bool SharesFirstOperand(const Graph& graph, NodeId node) {
  if (graph.node(node).kind != NodeKind::kCall || graph.node(node).num_results != 1) return false;
  const std::string_view op = graph.op(node);
  const OpTraits traits = TraitsOf(op);
  return traits.view || traits.mutates || op == "_operator.getitem" ||
         op == "_c10d_functional.wait_tensor.default";
}

}  // namespace

ValueId StorageOf(const Graph& graph, ValueId value) {
  // Aliases cannot form a circle in a sound graph; a damaged one ends after as many steps as it
  // has values.
  for (int32_t step = 0; step < graph.value_bound(); ++step) {
    ValueId owner = graph.value(value).alias_of;
    if (!owner.valid() && SharesFirstOperand(graph, graph.value(value).def)) {
      const auto args = graph.args(graph.value(value).def);
      if (!args.empty() && args[0].is_value()) owner = args[0].value();
    }
    if (!owner.valid() || owner == value) return value;
    value = owner;
  }
  return value;
}

MemoryProfile ProfileMemory(const Graph& graph) {
  const auto values = static_cast<size_t>(graph.value_bound());
  std::vector<ValueId> owner(values);
  std::vector<int32_t> dies(values, -1);  // of owners: index of the last node that reads them
  std::vector<int64_t> bytes(values, 0);
  MemoryProfile profile;
  int32_t at = 0;
  for (NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    const bool given = node.kind == NodeKind::kPlaceholder || node.kind == NodeKind::kGetAttr;
    graph.ForEachOperand(id, [&](ValueId operand) {
      int32_t& last = dies[static_cast<size_t>(owner[static_cast<size_t>(operand.index)].index)];
      last = node.kind == NodeKind::kOutput ? kForever : std::max(last, at);
    });
    for (size_t i = 0; i < node.num_results; ++i) {
      const ValueId value = graph.result(id, i);
      const auto index = static_cast<size_t>(value.index);
      // Owners stand before their aliases, so theirs is known.
      const ValueId storage = StorageOf(graph, value);
      owner[index] = storage;
      if (storage != value) continue;
      dies[index] = given ? kForever : at;
      const TypeId type = graph.value(value).type;
      const auto size = type.valid() ? graph.module().types().Bytes(type) : std::nullopt;
      if (size) {
        bytes[index] = *size;
      } else if (node.returns_tuple ? graph.value(value).num_uses > 0 : !given) {
        ++profile.unknown;
      }
      if (given) profile.inputs += bytes[index];
    }
    ++at;
  }

  std::vector<int64_t> freed(static_cast<size_t>(at), 0);
  for (size_t i = 0; i < values; ++i) {
    if (dies[i] >= 0 && dies[i] != kForever) freed[static_cast<size_t>(dies[i])] += bytes[i];
  }
  int64_t live = profile.inputs;
  at = 0;
  for (NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::kPlaceholder && node.kind != NodeKind::kGetAttr) {
      for (size_t i = 0; i < node.num_results; ++i)
        live += bytes[static_cast<size_t>(graph.result(id, i).index)];
    }
    profile.live.push_back(live);
    if (live > profile.peak || profile.peak_at < 0) {
      profile.peak = live;
      profile.peak_at = at;
    }
    live -= freed[static_cast<size_t>(at)];
    ++at;
  }

  at = 0;
  for (NodeId id : graph.nodes()) {
    if (at > profile.peak_at) break;
    for (size_t i = 0; i < graph.node(id).num_results; ++i) {
      const ValueId value = graph.result(id, i);
      const auto index = static_cast<size_t>(value.index);
      if (bytes[index] > 0 && dies[index] >= profile.peak_at) {
        profile.holders.push_back({value, bytes[index]});
      }
    }
    ++at;
  }
  // Inputs alive throughout that stand after the peak are few, and belong to it as well.
  for (NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (--at >= 0) continue;
    if (node.kind != NodeKind::kPlaceholder && node.kind != NodeKind::kGetAttr) continue;
    const ValueId value = graph.result(id);
    const int64_t size = bytes[static_cast<size_t>(value.index)];
    if (size > 0) profile.holders.push_back({value, size});
  }
  std::ranges::stable_sort(profile.holders, std::ranges::greater(), &MemoryProfile::Holder::bytes);
  return profile;
}

}  // namespace strata
