#include "diff/ranks/shard_choice.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "ir/ops.h"

namespace strata {
namespace {

template <size_t n>
bool IsOneOf(std::string_view op, const std::string_view (&names)[n]) {
  return std::ranges::find(names, BaseName(op)) != std::end(names);
}

bool Splits(std::string_view op) {
  static constexpr std::string_view kNames[] = {"chunk", "split", "split_with_sizes",
                                                "tensor_split", "unbind"};
  return IsOneOf(op, kNames);
}

bool MakesZeros(std::string_view op) {
  static constexpr std::string_view kNames[] = {"full",      "full_like", "new_full",
                                                "new_zeros", "zeros",     "zeros_like"};
  return IsOneOf(op, kNames);
}

bool HasOneUsedPart(const Graph& graph, NodeId node) {
  size_t parts = 0, uses = 0;
  for (size_t i = 0; i < graph.node(node).num_results; ++i) {
    const uint32_t count = graph.value(graph.result(node, i)).num_uses;
    parts += count > 0 ? 1 : 0;
    uses += count;
  }
  // A tuple that is one result is read by `getitem` nodes.
  return graph.node(node).returns_tuple ? parts == 1 : uses == 1;
}

}  // namespace

bool TakesOneShard(const Graph& graph, NodeId node) {
  const std::string_view op = graph.op(node);
  if (Splits(op)) return HasOneUsedPart(graph, node);
  if (BaseName(op) != "getitem") return false;
  const std::span<const Arg> args = graph.args(node);
  if (args.empty() || args[0].kind() != ArgKind::kValue) return false;
  const NodeId split = graph.value(args[0].value()).def;
  return Splits(graph.op(split)) && HasOneUsedPart(graph, split);
}

std::optional<ShardPlace> PlaceOfShard(const Graph& graph, NodeId node) {
  static constexpr std::string_view kNames[] = {"cat", "concat", "stack"};
  const std::span<const Arg> args = graph.args(node);
  if (args.empty() || args[0].kind() != ArgKind::kList || !IsOneOf(graph.op(node), kNames))
    return std::nullopt;
  std::optional<ShardPlace> place;
  const std::span<const Arg> parts = graph.elements(args[0]);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kind() != ArgKind::kValue) return std::nullopt;
    const ValueId value = parts[i].value();
    if (MakesZeros(graph.op(graph.value(value).def))) continue;
    if (place) return std::nullopt;
    place = {value, i};
  }
  return parts.size() < 2 ? std::nullopt : place;
}

}  // namespace strata
