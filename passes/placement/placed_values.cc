#include "passes/placement/placed_values.h"

#include <algorithm>

#include "ir/ops.h"
#include "passes/placement/inputs.h"
#include "passes/placement/strategies.h"

namespace strata {

PlacedValues::PlacedValues(Graph& graph, const PlacementPlan& plan)
    : graph_(graph),
      module_(graph.module()),
      mesh_(plan.mesh()),
      replicated_(plan.Replicated()),
      call_rules_(graph) {
  takes_gradients_ = std::ranges::any_of(graph.placeholders(), [&](NodeId node) {
    return KindOf(graph, node) == PlacedInput::kGradient;
  });
  has_gradients_ = std::ranges::any_of(
      graph.nodes(), [&](NodeId node) { return graph.node(node).phase == Phase::kBackward; });
  if (plan.decides_nodes() && HasGradients()) keys_ = NodeKeysOf(graph);
}

void PlacedValues::AddBatch(const Placements& placements) {
  for (size_t axis = 0; axis < placements.size(); ++axis)
    if (IsCut(placements[axis])) batch_axes_.insert(axis);
}

const Placements& PlacedValues::PlacementsOfOutput(ValueId value, size_t index) const {
  if (!IsStep() && graph_.node(graph_.value(RootOf(value)).def).kind == NodeKind::kPlaceholder)
    return PlacementsOf(RootOf(value));
  if (IsStep() && index >= 1 && index <= parameters_.size() && HasGradients())
    return PlacementsOf(parameters_[index - 1]);
  if (!IsStep() && parameters_.empty() && index < gradients_.size())
    return PlacementsOf(gradients_[index]);
  return replicated_;
}

void PlacedValues::AddCast(ValueId cast, ValueId parameter) {
  if (const auto read = read_as_.find(parameter); read != read_as_.end() && IsStep())
    read_as_.emplace(cast, read->second);
}

const std::vector<ValueId>& PlacedValues::CopiesOf(ValueId value) const {
  static const std::vector<ValueId> none;
  const auto copies = copies_.find(value);
  return copies == copies_.end() ? none : copies->second;
}

void PlacedValues::ForgetCopies(ValueId written) {
  const ValueId root = RootOf(written);
  std::erase_if(copies_, [&](const auto& entry) { return RootOf(entry.first) == root; });
}

const NodeKey* PlacedValues::KeyOf(NodeId node) const {
  const auto key = keys_.find(node);
  return key == keys_.end() ? nullptr : &key->second;
}

const Placements& PlacedValues::PlacementsOf(ValueId value) const {
  const TypeId type = graph_.value(value).type;
  if (!type.valid() || module_.types()[type].placements.empty()) return replicated_;
  return module_.types()[type].placements;
}

double PlacedValues::BytesOf(ValueId value) const {
  const TypeId id = graph_.value(value).type;
  if (!id.valid()) return 0;
  const Type& type = module_.types()[id];
  return NumElements(module_, type) * static_cast<double>(ByteSize(type.dtype));
}

bool PlacedValues::IsTensor(ValueId value) const {
  const TypeId type = graph_.value(value).type;
  return type.valid() && module_.types()[type].kind == TypeKind::kTensor;
}

bool PlacedValues::IsPlaced(ValueId value) const {
  const TypeId type = graph_.value(value).type;
  return type.valid() && !module_.types()[type].placements.empty();
}

ValueId PlacedValues::RootOf(ValueId value) const {
  while (graph_.value(value).alias_of.valid())
    value = graph_.value(value).alias_of;
  return value;
}

bool PlacedValues::IsGathered(ValueId value, NodeId reader) const {
  return read_as_.contains(value) && IsStep() && !IsCast(graph_, reader);
}

bool PlacedValues::IsPinned(ValueId value, NodeId reader) const {
  return IsGathered(value, reader) || parameter_views_.contains(value);
}

std::vector<Placements> PlacedValues::Available(ValueId value, NodeId reader) const {
  if (IsGathered(value, reader)) return {read_as_.at(value)};
  std::vector<Placements> all{PlacementsOf(value)};
  for (const ValueId copy : CopiesOf(value))
    all.push_back(PlacementsOf(copy));
  return all;
}

std::optional<Placements> PlacedValues::ReadAs(ValueId value) {
  if (!IsStep()) return std::nullopt;
  while (graph_.op(graph_.value(value).def) == kRedistributeOp)  // gathered already
    value = graph_.args(graph_.value(value).def)[0].value();
  if (const auto read = read_as_.find(value); read != read_as_.end()) return read->second;
  const NodeId def = graph_.value(value).def;
  if (graph_.node(def).kind != NodeKind::kCall) return std::nullopt;
  const std::vector<ValueId> operands = graph_.operands(def);
  const ShardingRule* rule = RuleOf(def);
  if (rule == nullptr || operands.size() != 1) return std::nullopt;
  const bool is_padded = BaseName(graph_.op(def)) == "constant_pad_nd";
  if (!rule->moves_elements && !is_padded && !IsCast(graph_, def)) return std::nullopt;
  const auto source = ReadAs(operands[0]);
  if (!source) return std::nullopt;
  Placements placements = replicated_;
  for (size_t axis = 0; axis < placements.size(); ++axis) {
    for (const AxisStrategy& strategy : AxisStrategies(module_, *rule, FactorSizes(module_, *rule),
                                                       mesh_.axes()[axis].size, {(*source)[axis]}))
      if (strategy.operands[0] == (*source)[axis]) placements[axis] = strategy.results[0];
  }
  return placements;
}

const ShardingRule* PlacedValues::RuleOf(NodeId node) {
  auto found = rules_.find(node);
  if (found == rules_.end()) {
    auto rule = call_rules_.Of(node);
    found = rules_.emplace(node, rule ? std::optional(*std::move(rule)) : std::nullopt).first;
  }
  return found->second ? &*found->second : nullptr;
}

}  // namespace strata
