#include "passes/placement/value_copies.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "passes/placement/inputs.h"
#include "passes/placement/redistribution.h"

namespace strata {

ValueCopies::ValueCopies(PlacedValues& values, const PlacementPlan& plan,
                         const Dispatches& dispatches, Rewriter& rewriter, Reshard reshard)
    : values_(values),
      graph_(values.graph()),
      module_(values.module()),
      plan_(plan),
      dispatches_(dispatches),
      rewriter_(rewriter),
      kept_(KeptParameters(values.graph(), reshard)) {
  for (int32_t i = 0; i < graph_.value_bound(); ++i)
    first_root_.emplace(ValueId{i}, values.RootOf(ValueId{i}));
}

ValueId ValueCopies::ForReader(ValueId value, const Placements& wanted, NodeId reader) {
  const Phase phase = graph_.node(reader).phase;
  const bool is_gathered = values_.IsGathered(value, reader);
  if (!is_gathered && values_.PlacementsOf(value) == wanted) return value;
  for (const ValueId copy : values_.CopiesOf(value)) {
    if (!(values_.PlacementsOf(copy) == wanted)) continue;
    const bool is_backward = graph_.node(graph_.value(copy).def).phase == Phase::kBackward;
    if (is_gathered && IsResharded(value) && is_backward != (phase == Phase::kBackward)) continue;
    return copy;
  }
  if (values_.PlacementsOf(value) == wanted) return value;
  if (IsFill(value, wanted)) {
    rewriter_.SetType(value, WithPlacements(module_, graph_.value(value).type, wanted));
    return value;
  }
  if (const auto view = OfViewedRows(value, wanted, reader)) return *view;
  rewriter_.SetCursorBefore(reader);
  if (const auto shared = Shared(value, reader); shared && values_.PlacementsOf(*shared) == wanted)
    return *shared;
  const ValueId copy = MakeFor(is_gathered ? value : Nearest(value, wanted), wanted, reader);
  // A parameter has no module of its own: it is gathered for the one that reads it.
  if (is_gathered)
    rewriter_.SetModule(graph_.value(copy).def, module_.str(graph_.node(reader).module));
  values_.AddCopy(value, copy);
  return copy;
}

bool ValueCopies::IsFill(ValueId value, const Placements& wanted) const {
  constexpr std::array<std::string_view, 6> kFills = {"full",      "new_full", "new_ones",
                                                      "new_zeros", "ones",     "zeros"};
  const NodeId def = graph_.value(value).def;
  return std::ranges::count(kFills, BaseName(graph_.op(def))) > 0 &&
         std::ranges::none_of(wanted, IsPartial) && OnlyUserOf(graph_, def).valid() &&
         values_.KeyOf(def) == nullptr;
}

bool ValueCopies::IsResharded(ValueId value) const {
  const NodeId def = graph_.value(value).def;
  return !kept_.contains(IsCast(graph_, def) ? graph_.args(def)[0].value() : value);
}

std::optional<ValueId> ValueCopies::OfViewedRows(ValueId value, const Placements& wanted,
                                                 NodeId reader) {
  const NodeId view = graph_.value(value).def;
  if (!graph_.value(value).alias_of.valid() || graph_.node(view).num_results != 1) return {};
  const ShardingRule* rule = values_.RuleOf(view);
  const std::vector<ValueId> operands = graph_.operands(view);
  if (rule == nullptr || !rule->moves_elements || operands.size() != 1) return {};
  Placements source = values_.PlacementsOf(operands[0]);
  for (size_t axis = 0; axis < wanted.size(); ++axis) {
    const Placement now = values_.PlacementsOf(value)[axis];
    if (now == wanted[axis]) continue;
    if (!IsRows(now) || !IsRows(wanted[axis]) || !IsRows(source[axis])) return {};
    source[axis].split = wanted[axis].split;
  }
  const ValueId copy = ForReader(operands[0], source, reader);
  rewriter_.SetCursorBefore(reader);
  const NodeId again = rewriter_.Clone(view);
  rewriter_.SetPhase(again, graph_.node(reader).phase);
  rewriter_.SetSlot(again, graph_.node(again).args_begin, Arg(copy));
  const ValueId result = graph_.result(again);
  rewriter_.SetType(result, WithPlacements(module_, graph_.value(result).type, wanted));
  rewriter_.SetAlias(result, values_.RootOf(copy));
  first_root_.emplace(result, first_root_.at(value));
  values_.AddCopy(value, result);
  return result;
}

std::optional<ValueId> ValueCopies::Shared(ValueId value, NodeId reader) {
  const auto found = shared_.find(value);
  if (found == shared_.end()) return std::nullopt;
  const Placements shared = found->second;
  shared_.erase(found);
  if (values_.PlacementsOf(value) == shared) return std::nullopt;
  const ValueId copy = MakeFor(value, shared, reader);
  values_.AddCopy(value, copy);
  return copy;
}

ValueId ValueCopies::Nearest(ValueId value, const Placements& wanted) const {
  ValueId nearest = value;
  const auto cost = [&](ValueId from) {
    return RedistributionCost(values_.PlacementsOf(from), wanted, values_.BytesOf(value),
                              values_.mesh());
  };
  for (const ValueId copy : values_.CopiesOf(value))
    if (cost(copy) < cost(nearest)) nearest = copy;
  return nearest;
}

ValueId ValueCopies::CountsFor(ValueId value, const Placements& wanted) const {
  const Placements& now = values_.PlacementsOf(value);
  bool moves = false;
  for (size_t axis = 0; axis < now.size(); ++axis)
    moves = moves || (IsRows(now[axis]) && !(now[axis] == wanted[axis]));
  if (!moves) return {};
  while (graph_.op(graph_.value(value).def) == kRedistributeOp)
    value = graph_.args(graph_.value(value).def)[0].value();
  return dispatches_.CountsOf(value);
}

ValueId ValueCopies::Make(ValueId value, const Placements& wanted) {
  return Copy(WithRowsMoved(value, wanted), wanted);
}

ValueId ValueCopies::MakeFor(ValueId value, const Placements& wanted, NodeId reader) {
  const ValueId copy = Make(value, wanted);
  for (ValueId made = copy; made != value; made = graph_.args(graph_.value(made).def)[0].value())
    rewriter_.SetPhase(graph_.value(made).def, graph_.node(reader).phase);
  return copy;
}

ValueId ValueCopies::WithRowsMoved(ValueId value, const Placements& wanted) {
  const Placements now = values_.PlacementsOf(value);
  Placements smaller = now, moved = now;
  for (size_t axis = 0; axis < now.size(); ++axis) {
    if (now[axis] == wanted[axis]) continue;
    const bool is_rows = IsRows(now[axis]) || IsRows(wanted[axis]);
    if (!is_rows && IsCut(wanted[axis])) smaller[axis] = moved[axis] = wanted[axis];
    if (is_rows) moved[axis] = wanted[axis];
  }
  if (moved == smaller) return value;  // no rows move
  for (const Placements& step : {smaller, moved})
    if (!(step == values_.PlacementsOf(value)) && !(step == wanted)) value = Copy(value, step);
  return value;
}

ValueId ValueCopies::Copy(ValueId value, const Placements& wanted) {
  std::vector<Arg> args = {Arg(value),
                           Arg::String(module_.Intern(PlacementsText(module_, wanted)))};
  if (const ValueId counts = CountsFor(value, wanted); counts.valid()) args.emplace_back(counts);
  const TypeId types[] = {WithPlacements(module_, graph_.value(value).type, wanted)};
  const NodeId node = rewriter_.Create({.op = kRedistributeOp, .args = args, .results = types},
                                       From{graph_.value(value).def});
  first_root_.emplace(graph_.result(node), first_root_.at(value));
  return graph_.result(node);
}

void ValueCopies::FollowStorage(ValueId result, const std::vector<ValueId>& before,
                                const std::vector<ValueId>& after) {
  if (!graph_.value(result).alias_of.valid()) return;
  for (size_t i = 0; i < before.size(); ++i) {
    if (first_root_.at(before[i]) != first_root_.at(result)) continue;
    rewriter_.SetAlias(result, values_.RootOf(after[i]));
    return;
  }
}

ValueId ValueCopies::ForOutput(ValueId value, const Placements& wanted) {
  for (const ValueId copy : values_.CopiesOf(value))
    if (values_.PlacementsOf(copy) == wanted) return copy;
  const NodeId def = graph_.value(value).def;
  if (graph_.node(def).kind == NodeKind::kPlaceholder) {
    rewriter_.SetCursorToEnd();
  } else {
    rewriter_.SetCursorAfter(def);
  }
  const ValueId copy = Make(value, wanted);
  values_.AddCopy(value, copy);
  return copy;
}

void ValueCopies::DecideShared(NodeId node) {
  const NodeKey* key = values_.KeyOf(node);
  if (key == nullptr) return;
  for (size_t axis = 0; axis < values_.mesh().axes().size(); ++axis) {
    const std::vector<Placement> shared = plan_.Shared(module_, *key, axis);
    for (size_t i = 0; i < shared.size() && i < graph_.node(node).num_results; ++i) {
      const ValueId value = graph_.result(node, i);
      if (!values_.IsTensor(value)) continue;
      shared_.try_emplace(value, values_.PlacementsOf(value)).first->second[axis] = shared[i];
    }
  }
}

}  // namespace strata
