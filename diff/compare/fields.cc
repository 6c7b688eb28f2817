#include "diff/compare/fields.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "diff/compare/literals.h"
#include "diff/graph/arguments.h"
#include "diff/graph/type_text.h"
#include "ir/module.h"

namespace strata {
namespace {

/// Adds a difference when the property is known on both sides and differs.
void CompareKnown(std::string_view path, const std::optional<std::string>& before,
                  const std::optional<std::string>& after, FieldDiffs& fields,
                  bool derived = false) {
  if (before && after && *before != *after) {
    fields.Add({path, before, after, derived});
  }
}

std::optional<std::string> Known(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional(std::string(text));
}

/// The printed nodes' own parts; an element shares those of its node.
struct Place {
  const Graph& graph;
  const Node& node;
  const Module& module;
};

Place PlaceOf(const Listing& listing, EntityId id) {
  const Graph& graph = listing.graph(id);
  return {graph, graph.node(listing[id].node), graph.module()};
}

/// The value that an operator writes, by ATen's rules: `out`, or its first operand. None: it writes
/// nothing.
EntityId WrittenBy(const Labels& labels, const Listing& listing, EntityId id) {
  if (!labels.mutates[id]) return {};
  const Place place = PlaceOf(listing, id);
  const NodeId node = listing[id].node;
  for (size_t i = 0; i < place.node.num_kwargs; ++i) {
    const NamedArg kwarg = place.graph.kwarg(node, i);
    if (place.module.str(kwarg.name) == "out" && kwarg.value.is_value()) {
      return listing.FindValue(listing[id].graph, kwarg.value.value());
    }
  }
  const std::span<const Arg> args = place.graph.args(node);
  if (args.empty() || !args[0].is_value()) return {};
  return listing.FindValue(listing[id].graph, args[0].value());
}

bool IsBodyAttribute(const Place& place, NodeId id) {
  const std::span<const Arg> args = place.graph.args(id);
  return place.node.kind == NodeKind::kGetAttr && !args.empty() &&
         args[0].kind() == ArgKind::kGraph;
}

void CompareLocations(const Place& a, const Place& b, FieldDiffs& fields) {
  if (!a.node.loc.valid() || !b.node.loc.valid()) return;
  const SourceLoc& x = a.module.loc(a.node.loc);
  const SourceLoc& y = b.module.loc(b.node.loc);
  const auto place = [](const Module& module, const SourceLoc& loc) {
    return fmt::format("{}:{}", module.str(loc.file), loc.line);
  };
  CompareKnown("meta.location", place(a.module, x), place(b.module, y), fields);
  CompareKnown("meta.function", Known(a.module.str(x.function)), Known(b.module.str(y.function)),
               fields);
  CompareKnown("meta.code", Known(a.module.str(x.code)), Known(b.module.str(y.code)), fields);
}

/// Attributes are tags that passes set, and a missing one is a difference; a foreign text may
/// just omit it.
void CompareAttributes(const Place& a, NodeId id_a, const Place& b, NodeId id_b,
                       FieldDiffs& fields) {
  std::map<std::string, std::pair<std::optional<std::string>, std::optional<std::string>>> tags;
  for (const auto& [key, value] : a.graph.attributes(id_a))
    tags[std::string(a.module.str(key))].first = a.module.str(value);
  for (const auto& [key, value] : b.graph.attributes(id_b))
    tags[std::string(b.module.str(key))].second = b.module.str(value);
  for (const auto& [key, values] : tags) {
    const bool known = values.first && values.second;
    if (values.first != values.second &&
        (known || !a.graph.is_foreign() || !b.graph.is_foreign())) {
      fields.Add({"meta." + key, values.first, values.second});
    }
  }
}

}  // namespace

FieldComparer::FieldComparer(const Listing& before, const Listing& after, const Matching& matching,
                             const std::vector<Relation>& relations, const SymbolNames& symbols,
                             const DiffOptions& options)
    : before_(before),
      after_(after),
      matching_(matching),
      symbols_(symbols),
      meta_(options.meta),
      module_is_meta_(before.root().is_foreign() || after.root().is_foreign()),
      relation_of_before_(before.ids().size()),
      relation_of_after_(after.ids().size()) {
  // A body is that to which its return went.
  const auto partners_of_bodies = [&](Side side, const Listing& listing, const Listing& other) {
    IdVector<ScopeId, ScopeId> partners;
    for (const Listing::Scope& scope : listing.scopes()) {
      const EntityId last{scope.ids.end_id().index - 1};
      const EntityId partner = scope.ids.size() == 0 ? EntityId{} : matching_.partner(side, last);
      partners.Add(partner.valid() ? other.scope_of(partner) : ScopeId{});
    }
    return partners;
  };
  body_of_before_ = partners_of_bodies(kBefore, before, after);
  body_of_after_ = partners_of_bodies(kAfter, after, before);
  for (const Relation& relation : relations) {
    if (relation.kind == RelationKind::kClone) continue;
    for (EntityId id : relation.before)
      relation_of_before_[id] = &relation;
    for (EntityId id : relation.after)
      relation_of_after_[id] = &relation;
  }
}

bool FieldComparer::BodiesDiffer(EntityId before, EntityId after) const {
  const auto body_of = [](const Listing& listing, EntityId id) {
    return listing.scope_of(listing.graph(id).args(listing[id].node)[0].graph());
  };
  const ScopeId a = body_of(before_, before), b = body_of(after_, after);
  const ScopeId image = body_of_before_[a], origin = body_of_after_[b];
  return (image.valid() && image != b) || (origin.valid() && origin != a);
}

bool FieldComparer::Joined(EntityId before, EntityId after) const {
  const Relation* relation = relation_of_before_[before];
  return relation != nullptr && relation == relation_of_after_[after];
}

bool FieldComparer::OperandsDiffer(EntityId before, EntityId after) const {
  const auto a = matching_.labels(kBefore).operands(before);
  const auto b = matching_.labels(kAfter).operands(after);
  return !std::ranges::equal(a, b, [&](const Labels::Edge& x, const Labels::Edge& y) {
    return ImageOf(x.entity) == y.entity;
  });
}

FieldDiffs FieldComparer::Compare(EntityId before, EntityId after) const {
  FieldDiffs fields;
  const bool same_label =
      matching_.labels(kBefore).type[before] == matching_.labels(kAfter).type[after];
  OperandPlaces places;
  if (!same_label) {
    CompareTarget(before, after, fields);
    const bool same_arguments =
        matching_.labels(kBefore).arguments[before] == matching_.labels(kAfter).arguments[after];
    if (!same_arguments) places = CompareLiterals(before, after, fields);
  }
  const bool same_operands = !OperandsDiffer(before, after);
  if (!same_operands) CompareOperands(before, after, places, fields);
  if (!same_label) CompareTypes(before, after, places, fields);
  CompareAlias(before, after, fields);
  if (!module_is_meta_ && !(same_label && same_operands)) CompareMutation(before, after, fields);
  CompareMetadata(before, after, fields);
  return fields;
}

void FieldComparer::CompareTarget(EntityId before, EntityId after, FieldDiffs& fields) const {
  const Place a = PlaceOf(before_, before), b = PlaceOf(after_, after);
  const bool bodies =
      IsBodyAttribute(a, before_[before].node) && IsBodyAttribute(b, after_[after].node);
  if (bodies && !BodiesDiffer(before, after)) return;
  const std::string_view target_a = before_.target(before), target_b = after_.target(after);
  if (target_a == target_b && a.node.kind == b.node.kind) return;
  const bool attributes = a.node.kind == NodeKind::kGetAttr && b.node.kind == NodeKind::kGetAttr;
  if (attributes && !bodies && AttributeStem(target_a) == AttributeStem(target_b)) return;
  fields.Add({"target", target_a, target_b});
}

OperandPlaces FieldComparer::CompareLiterals(EntityId before, EntityId after,
                                             FieldDiffs& fields) const {
  const size_t begin = fields.size();
  const ListedLeaves listed_before{before_, before}, listed_after{after_, after};
  OperandPlaces places(listed_before.leaves, listed_after.leaves,
                       [&](Side side, EntityId id) { return matching_.partner(side, id); });
  AddLiteralDiffs(listed_before, listed_after, places, symbols_, fields);
  const Labels& a = matching_.labels(kBefore);
  const Labels& b = matching_.labels(kAfter);
  const bool same_leaves = fields.size() == begin && a.op[before] == b.op[after] &&
                           a.operands(before).size() == b.operands(after).size();
  if (same_leaves && a.literals(before) != b.literals(after) && !before_[before].element.valid() &&
      !after_[after].element.valid()) {
    AddContainerDiffs(listed_before, listed_after, fields);
  }
  return places;
}

void FieldComparer::CompareOperands(EntityId before, EntityId after, const OperandPlaces& places,
                                    FieldDiffs& fields) const {
  const auto a = matching_.labels(kBefore).operands(before);
  const auto b = matching_.labels(kAfter).operands(after);
  places.ForEach(a.size(), b.size(), [&](std::optional<size_t> i, std::optional<size_t> j) {
    const bool have_both = i && j;
    if (have_both && ImageOf(a[*i].entity) == b[*j].entity) return;
    std::optional<std::string> name_before, name_after;
    if (i) name_before = before_.name(a[*i].entity);
    if (j) name_after = after_.name(b[*j].entity);
    fields.Add({fmt::format("operands[{}]", i ? *i : *j), name_before, name_after,
                have_both && Joined(a[*i].entity, b[*j].entity)});
  });
}

FieldComparer::Consequences FieldComparer::ConsequencesFor(EntityId before, EntityId after,
                                                           const OperandPlaces& places) const {
  Consequences result;
  const auto operands_before = matching_.labels(kBefore).operands(before);
  const auto operands_after = matching_.labels(kAfter).operands(after);
  const auto add = [&](std::optional<size_t> i, std::optional<size_t> j) {
    if (!i || !j) return;
    const EntityId a = operands_before[*i].entity, b = operands_after[*j].entity;
    result.operand |= Joined(a, b);
    // Equal labels are equal in all properties that both sides have.
    if (matching_.labels(kBefore).value[a] == matching_.labels(kAfter).value[b]) return;
    const TypeText type_a = TypeTextOf(before_, a), type_b = TypeTextOf(after_, b, symbols_);
    result.dtype |= Differ(type_a.dtype, type_b.dtype);
    result.shape |= Differ(type_a.shape, type_b.shape);
    result.strides |= Differ(type_a.strides, type_b.strides);
  };
  places.ForEach(operands_before.size(), operands_after.size(), add);
  // The type of a tuple is that of its elements: the same element of it follows from it.
  const bool same_element =
      before_.target(before) == "_operator.getitem" &&
      matching_.labels(kBefore).literals(before) == matching_.labels(kAfter).literals(after) &&
      !operands_before.empty() && ImageOf(operands_before[0].entity).valid();
  if (same_element && !before_.value(operands_before[0].entity).valid()) {
    result.dtype = result.shape = result.strides = true;
  }
  return result;
}

void FieldComparer::CompareTypes(EntityId before, EntityId after, const OperandPlaces& places,
                                 FieldDiffs& fields) const {
  // Equal labels are equal in all properties that both sides have.
  if (matching_.labels(kBefore).value[before] == matching_.labels(kAfter).value[after]) {
    return;
  }
  const TypeText a = TypeTextOf(before_, before), b = TypeTextOf(after_, after, symbols_);
  const Consequences why = ConsequencesFor(before, after, places);
  const auto compare = [&](std::string_view path, const std::optional<TypeProperty>& x,
                           const std::optional<TypeProperty>& y, bool derived) {
    if (Differ(x, y)) fields.Add({path, x->text, y->text, derived});
  };
  compare("dtype", a.dtype, b.dtype, why.operand || why.dtype);
  compare("shape", a.shape, b.shape, why.operand || why.shape);
  compare("strides", a.strides, b.strides, why.operand || why.shape || why.strides);
  compare("device", a.device, b.device, false);
  compare("placement", a.placement, b.placement, false);
}

void FieldComparer::CompareAlias(EntityId before, EntityId after, FieldDiffs& fields) const {
  const ValueId a = before_.value(before), b = after_.value(after);
  if (!a.valid() || !b.valid()) return;
  const ValueId alias_a = before_.graph(before).value(a).alias_of;
  const ValueId alias_b = after_.graph(after).value(b).alias_of;
  if (!alias_a.valid() || !alias_b.valid()) return;
  const EntityId of_a = before_.FindValue(before_[before].graph, alias_a);
  const EntityId of_b = after_.FindValue(after_[after].graph, alias_b);
  if (ImageOf(of_a) == of_b) return;
  fields.Add({"alias", before_.name(of_a), after_.name(of_b), Joined(of_a, of_b)});
}

void FieldComparer::CompareMutation(EntityId before, EntityId after, FieldDiffs& fields) const {
  const EntityId written_before = WrittenBy(matching_.labels(kBefore), before_, before);
  const EntityId written_after = WrittenBy(matching_.labels(kAfter), after_, after);
  const EntityId image = written_before.valid() ? ImageOf(written_before) : EntityId{};
  if (written_before.valid() == written_after.valid() && image == written_after) return;
  const auto name = [](const Listing& listing, EntityId id) {
    return id.valid() ? std::optional(listing.name(id)) : std::nullopt;
  };
  fields.Add(
      {"mutates", name(before_, written_before), name(after_, written_after),
       written_before.valid() && written_after.valid() && Joined(written_before, written_after)});
}

void FieldComparer::CompareMetadata(EntityId before, EntityId after, FieldDiffs& fields) const {
  const Place a = PlaceOf(before_, before), b = PlaceOf(after_, after);
  const auto phase_of = [](const Place& place) {
    return place.node.phase == Phase::kUnknown ? std::string_view() : ToString(place.node.phase);
  };
  if (!module_is_meta_) {
    const std::string_view module_a = a.module.str(a.node.module);
    const std::string_view module_b = b.module.str(b.node.module);
    if (module_a != module_b) CompareKnown("module", Known(module_a), Known(module_b), fields);
    if (a.node.phase != b.node.phase)
      CompareKnown("phase", Known(phase_of(a)), Known(phase_of(b)), fields);
  }
  if (!meta_) return;
  CompareKnown("meta.name", before_.name(before), after_.name(after), fields);
  if (module_is_meta_) {
    CompareKnown("meta.module", Known(a.module.str(a.node.module)),
                 Known(b.module.str(b.node.module)), fields);
    CompareKnown("meta.phase", Known(phase_of(a)), Known(phase_of(b)), fields);
  }
  const auto number = [](int64_t value, bool known) {
    return known ? std::optional(fmt::format("{}", value)) : std::nullopt;
  };
  CompareKnown("meta.seq_nr", number(a.node.seq_nr, a.node.seq_nr >= 0),
               number(b.node.seq_nr, b.node.seq_nr >= 0), fields);
  CompareKnown("meta.stream", number(a.node.stream, true), number(b.node.stream, true), fields);
  CompareLocations(a, b, fields);
  CompareAttributes(a, before_[before].node, b, after_[after].node, fields);
}

}  // namespace strata
