#include "bench/diff_eval/truth/truth.h"

#include <algorithm>
#include <set>

#include "bench/diff_eval/truth/choices.h"
#include "bench/diff_eval/truth/identity.h"
#include "bench/diff_eval/truth/layers.h"
#include "diff/compare/fields.h"
#include "diff/diff.h"
#include "diff/graph/hash.h"
#include "diff/match/labels.h"
#include "diff/match/matching.h"

namespace strata::bench {
namespace {

/// Pairs that are known, each node in one of them at most.
struct PinList {
  std::vector<std::pair<std::string, std::string>> pins;
  std::set<std::string> before, after;

  bool Add(const std::string& a, const std::string& b) {
    if (before.contains(a) || after.contains(b)) return false;
    before.insert(a);
    after.insert(b);
    pins.emplace_back(a, b);
    return true;
  }
};

class TruthMaker {
 public:
  TruthMaker(const Module& before, const Module& after, const Lineage& lineage,
             const GraphDiff& claim)
      : before_(before.graph({0})),
        after_(after.graph({0})),
        lineage_(lineage),
        claim_(claim),
        ids_before_(claim.before),
        ids_after_(claim.after) {}

  Result<Truth> Run(bool choices) {
    DiffOptions options;
    options.stable_ids = true;
    if (choices) options.pins = Choices();
    STRATA_TRY(GraphDiff diff, Diff(before_, after_, options));
    Truth truth{std::move(diff), {}, {}, {}};
    AddRelations(truth);
    Recompare(truth);
    FindTouched(truth);
    return truth;
  }

 private:
  /// Pairs of the claim that choose among the copies of a node, or among merged equals.
  std::vector<std::pair<std::string, std::string>> Choices() const {
    PinList pins;
    for (const auto& [before, after] : ChosenLayers(lineage_, claim_, ids_before_, ids_after_))
      pins.Add(claim_.before.name(before), claim_.after.name(after));
    for (const Lineage::Relation& relation : lineage_.relations) {
      if (relation.kind != RelationKind::kClone && relation.kind != RelationKind::kMerge) continue;
      for (StableId before_id : relation.before) {
        const EntityId before = ids_before_.Find(before_id);
        if (!before.valid()) continue;
        const PairId pair = claim_.pair_of_before[before];
        if (!pair.valid()) continue;
        const EntityId image = claim_.pairs[pair].after;
        const bool is_choice = std::ranges::any_of(
            relation.after, [&](StableId id) { return ids_after_.Find(id) == image; });
        if (!is_choice) continue;
        if (pins.Add(claim_.before.name(before), claim_.after.name(image))) break;
      }
    }
    AddEquals(pins);
    AddPreferred(pins);
    return std::move(pins.pins);
  }

  /// A copy of one of several nodes that compute the same value is one of each of them.
  void AddEquals(PinList& pins) const {
    const Labels labels(claim_.before, KnownTypeFields(claim_.before));
    IdVector<EntityId, uint64_t> values;
    for (EntityId i : labels.ids()) {
      uint64_t value = labels.type[i];
      if (labels.kind[i] == EntityKind::kInput) value = Mix(value, static_cast<uint64_t>(i.index));
      for (const Labels::Edge& operand : labels.operands(i))
        value = Mix(value, values[operand.entity]);
      values.Add(value);
    }
    for (const Lineage::Relation& relation : lineage_.relations) {
      if (relation.kind != RelationKind::kClone) continue;
      const EntityId original = ids_before_.Find(relation.before[0]);
      if (!original.valid()) continue;
      for (StableId id : relation.after) {
        const EntityId after = ids_after_.Find(id);
        if (!after.valid()) continue;
        const PairId pair = claim_.pair_of_after[after];
        if (!pair.valid()) continue;
        const EntityId before = claim_.pairs[pair].before;
        if (values[before] == values[original]) {
          pins.Add(claim_.before.name(before), claim_.after.name(after));
        }
      }
    }
  }

  /// Of nodes of one label that changed places there may be several right answers.
  void AddPreferred(PinList& pins) const {
    const TypeFields fields = KnownTypeFields(claim_.before).And(KnownTypeFields(claim_.after));
    const SymbolNames symbols(claim_.before, claim_.after);
    const Labels a(claim_.before, fields), b(claim_.after, fields, symbols);
    IdVector<EntityId, EntityId> claim, lineage;
    for (EntityId id : claim_.before.ids()) {
      const PairId pair = claim_.pair_of_before[id];
      claim.Add(pair.valid() ? claim_.pairs[pair].after : EntityId{});
      lineage.Add(ids_after_.ImageOf(ids_before_, id));
    }
    for (const auto& [i, j] : ChoicesAsGood(a, b, claim, lineage))
      pins.Add(claim_.before.name(i), claim_.after.name(j));
  }

  /// The elements of a node that replaces others, or is replaced, are part of it.
  static void AddMembers(const Identities& known, const std::vector<StableId>& ids,
                         bool with_elements, std::vector<EntityId>& members) {
    for (StableId id : ids) {
      const EntityId node = known.Find(id);
      if (!node.valid()) continue;
      members.push_back(node);
      if (!with_elements) continue;
      for (const auto& [index, element] : known.ElementsOf(id))
        members.push_back(element);
    }
  }

  void AddRelations(Truth& truth) const {
    for (const Lineage::Relation& lineage : lineage_.relations) {
      Relation relation{lineage.kind, {}, {}};
      const bool with_elements = relation.kind == RelationKind::kReplace;
      AddMembers(ids_before_, lineage.before, with_elements, relation.before);
      AddMembers(ids_after_, lineage.after, with_elements, relation.after);
      // A later mutation may have undone an earlier one.
      if (relation.before.empty() || relation.after.empty()) continue;
      if (relation.kind == RelationKind::kClone && relation.after.size() < 2) continue;
      if (relation.kind == RelationKind::kMerge && relation.before.size() < 2) continue;
      truth.relations.push_back(std::move(relation));
    }
  }

  /// Fields once more, with consequences by the true relations.
  void Recompare(Truth& truth) const {
    GraphDiff& diff = truth.diff;
    const TypeFields fields = KnownTypeFields(diff.before).And(KnownTypeFields(diff.after));
    const SymbolNames symbols(diff.before, diff.after);
    const Labels a(diff.before, fields), b(diff.after, fields, symbols);
    Matching matching(a, b);
    for (const Pair& pair : diff.pairs)
      matching.Match(pair.before, pair.after, Via::kId, 1);
    const FieldComparer comparer(diff.before, diff.after, matching, truth.relations, symbols, {});
    for (Pair& pair : diff.pairs) {
      pair.fields = comparer.Compare(pair.before, pair.after);
      bool own = false, derived = false;
      for (const FieldDiff& field : pair.fields)
        (field.derived ? derived : own) = true;
      pair.status.changed = own;
      pair.status.derived = derived && !own;
    }
    truth.touched_before.assign(static_cast<size_t>(diff.before.size()), false);
    truth.touched_after.assign(static_cast<size_t>(diff.after.size()), false);
    const auto touch_around = [](const Labels& labels, EntityId id, std::vector<bool>& touched) {
      constexpr size_t kHub = 24;
      for (const Labels::Edge& edge : labels.operands(id))
        touched[static_cast<size_t>(edge.entity.index)] = true;
      if (labels.users(id).size() > kHub) return;
      for (const Labels::Edge& edge : labels.users(id))
        touched[static_cast<size_t>(edge.entity.index)] = true;
    };
    for (EntityId id : diff.deleted)
      touch_around(a, id, truth.touched_before);
    for (EntityId id : diff.inserted)
      touch_around(b, id, truth.touched_after);
  }

  static void FindTouched(Truth& truth) {
    for (const Pair& pair : truth.diff.pairs) {
      const auto i = static_cast<size_t>(pair.before.index),
                 j = static_cast<size_t>(pair.after.index);
      if (pair.status.differs() || truth.touched_before[i] || truth.touched_after[j]) {
        truth.touched_before[i] = truth.touched_after[j] = true;
      }
    }
  }

  const Graph& before_;
  const Graph& after_;
  const Lineage& lineage_;
  const GraphDiff& claim_;
  const Identities ids_before_, ids_after_;
};

}  // namespace

Result<Truth> MakeTruth(const Module& before, const Module& after, const Lineage& lineage,
                        const GraphDiff& claim, bool choices) {
  return TruthMaker(before, after, lineage, claim).Run(choices);
}

std::vector<uint64_t> Orbits(const GraphDiff& diff, bool after_side) {
  const Listing& listing = after_side ? diff.after : diff.before;
  const Labels labels(listing, KnownTypeFields(listing));
  IdVector<EntityId, uint64_t> colours(labels.size());
  for (EntityId i : labels.ids()) {
    // Inputs have a place and are not exchangeable.
    const bool is_input = labels.kind[i] == EntityKind::kInput;
    colours[i] = Mix(labels.type[i], is_input ? static_cast<uint64_t>(i.index) + 1 : 0);
  }
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    IdVector<EntityId, uint64_t> next(colours.size());
    for (EntityId i : labels.ids()) {
      uint64_t hash = colours[i];
      for (const Labels::Edge& edge : labels.operands(i))
        hash = Mix(hash, colours[edge.entity]);
      uint64_t users = 0;
      for (const Labels::Edge& edge : labels.users(i))
        users += Mix(colours[edge.entity], static_cast<uint64_t>(edge.slot));
      next[i] = Mix(hash, users);
    }
    colours = std::move(next);
  }
  return std::move(colours.values());
}

}  // namespace strata::bench
