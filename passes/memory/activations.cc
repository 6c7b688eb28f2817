#include "passes/memory/activations.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "ir/ops.h"
#include "passes/core/written_memory.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

std::string PolicyText(const Graph& graph, NodeId node) {
  const std::optional<MemoryTag> tag = MemoryTagOf(graph, node);
  if (!tag) return "SAVE*";
  switch (*tag) {
    case MemoryTag::kMustSave:
      return "SAVE";
    case MemoryTag::kPreferRecompute:
      return "RECOMPUTE";
    case MemoryTag::kMustRecompute:
      return "RECOMPUTE!";
    case MemoryTag::kMustCpuOffload:
      break;
  }
  return "OFFLOAD";
}

/// Through waits to what they wait for.
NodeId ProducerOf(const Graph& graph, NodeId node) {
  while (IsOverloadOf(graph.op(node), "_c10d_functional.wait_tensor") &&
         !graph.args(node).empty() && graph.args(node)[0].is_value()) {
    node = graph.value(graph.args(node)[0].value()).def;
  }
  return node;
}

bool IsReadByBackward(const Graph& graph, ValueId value) {
  for (const Use use : graph.uses(value))
    if (IsBackward(graph, use.user)) return true;
  return false;
}

/// The type with every symbol named S: `f32[s0*4, 8]` is `f32[S*4, 8]`.
std::string PatternOf(const Graph& graph, ValueId value) {
  const TypeId type = graph.value(value).type;
  if (!type.valid()) return "?";
  std::string pattern;
  const std::string text = graph.module().types().ToString(type);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (size_t i = 0; i < text.size(); ++i) {
    const bool starts_word = i == 0 || std::isalnum(static_cast<unsigned char>(text[i - 1])) == 0;
    const bool is_symbol = starts_word && (text[i] == 's' || text[i] == 'u') &&
                           i + 1 < text.size() && is_digit(text[i + 1]) && i > 0;
    pattern += is_symbol ? 'S' : text[i];
    while (is_symbol && i + 1 < text.size() && is_digit(text[i + 1]))
      ++i;
  }
  return pattern;
}

}  // namespace

std::vector<Activation> ListActivations(const Graph& graph) {
  std::vector<Activation> activations;
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kCall || IsBackward(graph, node)) continue;
    for (size_t i = 0; i < graph.node(node).num_results; ++i) {
      const ValueId value = graph.result(node, i);
      if (!IsReadByBackward(graph, value)) continue;
      const TypeId type = graph.value(value).type;
      activations.push_back(
          {.value = value,
           .owner = OwnerOf(graph, value),
           .op = std::string(graph.op(ProducerOf(graph, node))),
           .policy = PolicyText(graph, node),
           .bytes = type.valid() ? graph.module().types().Bytes(type) : std::nullopt});
    }
  }
  return activations;
}

std::map<ValueId, int64_t> SavedStorages(const Graph& graph,
                                         const std::vector<Activation>& activations) {
  std::map<ValueId, int64_t> storages;
  for (const Activation& activation : activations) {
    if (graph.node(graph.value(activation.owner).def).kind != NodeKind::kCall) continue;
    int64_t& bytes = storages[activation.owner];
    bytes = std::max(bytes, activation.bytes.value_or(0));
  }
  return storages;
}

int64_t SavedBytes(const Graph& graph, const std::vector<Activation>& activations) {
  int64_t sum = 0;
  for (const auto& [owner, bytes] : SavedStorages(graph, activations))
    sum += bytes;
  return sum;
}

std::vector<ActivationGroup> GroupByLayer(const Graph& graph,
                                          const std::vector<Activation>& activations) {
  std::map<int64_t, std::vector<Activation>> layers;
  for (const Activation& activation : activations) {
    const NodeId node = graph.value(activation.value).def;
    layers[LayerNumber(ModuleOf(graph, node))].push_back(activation);
  }
  std::vector<ActivationGroup> groups;
  std::map<std::string, size_t> by_pattern;
  for (auto& [layer, members] : layers) {
    if (layer == kNotInLayers) continue;
    std::string pattern;
    for (const Activation& member : members)
      pattern += member.op + " " + PatternOf(graph, member.value) + " " + member.policy + "\n";
    const auto [place, is_new] = by_pattern.try_emplace(std::move(pattern), groups.size());
    if (is_new) {
      const int64_t bytes = SavedBytes(graph, members);
      groups.push_back({.layers = {}, .activations = std::move(members), .bytes = bytes});
    }
    groups[place->second].layers.push_back(layer);
  }
  if (const auto outside = layers.find(kNotInLayers); outside != layers.end()) {
    const int64_t bytes = SavedBytes(graph, outside->second);
    groups.push_back({.layers = {}, .activations = std::move(outside->second), .bytes = bytes});
  }
  return groups;
}

}  // namespace strata
