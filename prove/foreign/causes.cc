#include "prove/foreign/causes.h"

#include <algorithm>

#include "ir/ops.h"

namespace strata::prove {
namespace {

Place PlaceIn(const Graph& graph, Part part, ValueId value) {
  const NodeId node = graph.value(value).def;
  for (size_t i = 0; i < graph.node(node).num_results; ++i)
    if (graph.result(node, i) == value) return {part, node, i};
  return {part, node, 0};
}

/// Whether a call only moves elements. What ranks have after a view that joins a cut dimension to
/// one before it is not a slice, though all that is read of it may be right.
bool OnlyMoves(const Graph& graph, NodeId node) {
  return TraitsOf(graph.op(node)).view || BaseName(graph.op(node)) == "_unsafe_view" ||
         BaseName(graph.op(node)) == "clone";
}

bool IsCall(const Graph& graph, NodeId node) {
  return graph.node(node).kind == NodeKind::kCall;
}

}  // namespace

Place CauseFinder::PlaceOf(Part part, ValueId value) const {
  return PlaceIn(GraphOf(rank_, part), part, value);
}

std::optional<ValueId> CauseFinder::SavedAs(NodeId placeholder) const {
  const std::string_view name = rank_.backward->name(placeholder);
  for (const ValueId value : rank_.forward->operands(rank_.forward->output()))
    if (rank_.forward->value_name(value) == name) return value;
  return std::nullopt;
}

void CauseFinder::Visit(Part part, ValueId value, Nodes& region) const {
  const Graph& graph = GraphOf(rank_, part);
  const Place place = PlaceOf(part, value);
  if (lineage_.OriginOf(place) != nullptr) return;
  const bool is_input = graph.node(place.node).kind == NodeKind::kPlaceholder;
  if (is_input && part == Part::kBackward) {
    if (const auto saved = SavedAs(place.node)) Visit(Part::kForward, *saved, region);
    return;
  }
  if (!region.emplace(part, place.node.index).second) return;
  for (const ValueId operand : graph.operands(place.node))
    Visit(part, operand, region);
}

bool CauseFinder::ReadsHeldValues(Part part, NodeId node) const {
  return std::ranges::all_of(GraphOf(rank_, part).operands(node), [&](ValueId operand) {
    return lineage_.OriginOf(PlaceOf(part, operand)) != nullptr;
  });
}

std::vector<Place> CauseFinder::OriginsOfOperands(Part part, NodeId node) const {
  std::vector<Place> places;
  for (const ValueId operand : GraphOf(rank_, part).operands(node))
    if (const auto* origin = lineage_.OriginOf(PlaceOf(part, operand)))
      places.push_back(origin->place);
  return places;
}

/// A node of one device with the same operator whose value ranks do not hold: the first one that
/// reads the same values, else the first one.
std::optional<Place> CauseFinder::TwinOf(Part part, NodeId node) const {
  const Graph& ours = GraphOf(rank_, part);
  const Graph& theirs = GraphOf(single_, part);
  if (!IsCall(ours, node)) return std::nullopt;
  const std::vector<Place> reads = OriginsOfOperands(part, node);
  std::optional<Place> first;
  for (const NodeId other : theirs.nodes()) {
    const Place place{part, other, 0};
    if (!IsCall(theirs, other) || lineage_.IsHeld(place)) continue;
    if (BaseName(theirs.op(other)) != BaseName(ours.op(node))) continue;
    std::vector<Place> others;
    for (const ValueId operand : theirs.operands(other))
      others.push_back(PlaceIn(theirs, part, operand));
    if (others == reads) return place;
    if (!first) first = place;
  }
  return first;
}

std::optional<Cause> CauseFinder::CauseOf(Part part, ValueId value) const {
  Nodes region;
  Visit(part, value, region);
  std::optional<Cause> first, first_view;
  // In program order: ids of nodes ascend in a graph that was read from a text.
  for (const auto& [of_part, index] : region) {
    const NodeId node{index};
    if (!ReadsHeldValues(of_part, node)) continue;
    const Cause cause{of_part, node, TwinOf(of_part, node)};
    const bool is_view = OnlyMoves(GraphOf(rank_, of_part), node);
    if (cause.twin && !is_view) return cause;
    if (cause.twin && !first_view) first_view = cause;
    if (!first) first = cause;
  }
  return first_view ? first_view : first;
}

}  // namespace strata::prove
