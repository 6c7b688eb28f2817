#include "diff/diff.h"

#include <algorithm>
#include <array>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <vector>

#include "diff/compare/contradictions.h"
#include "diff/compare/fields.h"
#include "diff/compare/provenance.h"
#include "diff/compare/relations.h"
#include "diff/compare/stated_paths.h"
#include "diff/graph/large_arrays.h"
#include "diff/graph/parallel.h"
#include "diff/match/labels.h"
#include "diff/match/matcher.h"
#include "diff/match/synonyms.h"
#include "diff/pattern/patterns.h"

namespace strata {
namespace {

/// Marks what changed its place. Nodes of one scope that are matched into one other scope are
/// compared in order; a node that went to another scope has moved anyway.
class MoveFinder {
 public:
  explicit MoveFinder(GraphDiff& diff, const Matching& matching)
      : diff_(diff), matching_(matching) {}

  void Run() {
    IdVector<ScopeId, std::vector<PairId>> pairs_of_scope(diff_.before.scopes().size());
    for (PairId id : IdsOf(diff_.pairs))
      pairs_of_scope[diff_.before.scope_of(diff_.pairs[id].before)].push_back(id);
    for (const std::vector<PairId>& pairs : pairs_of_scope)
      MarkScope(pairs);
  }

 private:
  void MarkScope(const std::vector<PairId>& pairs) {
    const ScopeId home = MainScope(pairs);
    std::vector<OrderPoint> points;
    std::vector<PairId> pair_of_point;
    for (PairId id : pairs) {
      Pair& pair = diff_.pairs[id];
      if (diff_.after.scope_of(pair.after) != home) {
        pair.status.moved = true;
        continue;
      }
      const uint64_t label =
          matching_.labels(kBefore).type[pair.before] + matching_.labels(kAfter).type[pair.after];
      points.push_back({pair.before.index, pair.after.index, static_cast<uint32_t>(label)});
      pair_of_point.push_back(id);
    }
    const std::vector<bool> kept = LargestOrderedSet(points);
    for (size_t i = 0; i < points.size(); ++i) {
      if (!kept[i]) diff_.pairs[pair_of_point[i]].status.moved = true;
    }
  }

  /// The scope of the other side that most of the pairs are in.
  ScopeId MainScope(const std::vector<PairId>& pairs) const {
    IdVector<ScopeId, int32_t> count(diff_.after.scopes().size(), 0);
    for (PairId id : pairs)
      ++count[diff_.after.scope_of(diff_.pairs[id].after)];
    return ScopeId{static_cast<int32_t>(std::ranges::max_element(count) - count.begin())};
  }

  GraphDiff& diff_;
  const Matching& matching_;
};

/// Fills in pairs, and nodes without one.
void FillPairs(const Matching& matching, GraphDiff& diff) {
  diff.pair_of_before.resize(diff.before.ids().size());
  diff.pair_of_after.resize(diff.after.ids().size());
  IdVector<EntityId, const Matching::Made*> made_of(diff.before.ids().size(), nullptr);
  size_t num_pairs = 0;
  for (const Matching::Made& made : matching.made()) {
    if (!made.before.valid()) continue;
    made_of[made.before] = &made;
    ++num_pairs;
  }
  ReserveLarge(diff.pairs, num_pairs);
  for (EntityId id : diff.before.ids()) {
    const Matching::Made* made = made_of[id];
    if (made == nullptr) {
      diff.deleted.push_back(id);
      continue;
    }
    diff.pair_of_before[id] = diff.pair_of_after[made->after] =
        diff.pairs.Add({id, made->after, {}, made->via, made->confidence, {}});
  }
  for (EntityId id : diff.after.ids()) {
    if (!diff.pair_of_after[id].valid()) diff.inserted.push_back(id);
  }
}

/// Fills in what differs about the nodes of each pair.
void CompareFields(const Matching& matching, const SymbolNames& symbols, const DiffOptions& options,
                   GraphDiff& diff) {
  const FieldComparer comparer(diff.before, diff.after, matching, diff.relations, symbols, options);
  const auto compare = [&](std::span<Pair> pairs) {
    for (Pair& pair : pairs) {
      pair.fields = comparer.Compare(pair.before, pair.after);
      pair.status.renamed = !SameName(diff.before, pair.before, diff.after, pair.after);
      bool own = false, derived = false;
      for (const FieldDiff& field : pair.fields) {
        if (field.path.starts_with("meta.")) continue;
        (field.derived ? derived : own) = true;
      }
      pair.status.changed = own;
      pair.status.derived = derived && !own;
    }
  };
  const std::span<Pair> pairs(diff.pairs.values());
  const size_t half = pairs.size() / 2;
  AtOnce(half, [&] { compare(pairs.first(half)); }, [&] { compare(pairs.subspan(half)); });
}

/// Provenance records have priority over structure.
void UseProvenance(const Matching& matching, std::span<const Provenance> provenance,
                   GraphDiff& diff) {
  std::vector<Relation> exact =
      RelationsOfProvenance(diff.before, diff.after, matching, provenance);
  std::array<std::set<EntityId>, 2> told;
  for (const Relation& relation : exact) {
    told[kBefore].insert(relation.before.begin(), relation.before.end());
    told[kAfter].insert(relation.after.begin(), relation.after.end());
  }
  for (Relation& relation : diff.relations) {
    // Originals and partners may be in several.
    const bool has_pair =
        relation.kind == RelationKind::kClone || relation.kind == RelationKind::kMerge;
    const auto known = [&](Side side, const std::vector<EntityId>& members) {
      return std::ranges::any_of(members | std::views::drop(has_pair ? 1 : 0),
                                 [&](EntityId id) { return told[side].contains(id); });
    };
    if (relation.kind == RelationKind::kReplace || known(kBefore, relation.before) ||
        known(kAfter, relation.after)) {
      continue;
    }
    exact.push_back(std::move(relation));
  }
  std::ranges::stable_sort(exact, {},
                           [](const Relation& relation) { return relation.before[0].index; });
  diff.relations = std::move(exact);
}

DiffSummary Summarize(const GraphDiff& diff) {
  DiffSummary summary;
  for (const Pair& pair : diff.pairs) {
    summary.same += pair.status.same();
    summary.renamed += pair.status.renamed;
    summary.moved += pair.status.moved;
    summary.changed += pair.status.changed;
    summary.derived += pair.status.derived;
  }
  summary.inserted = static_cast<int32_t>(diff.inserted.size());
  summary.deleted = static_cast<int32_t>(diff.deleted.size());
  for (const Relation& relation : diff.relations) {
    const auto before = static_cast<int32_t>(relation.before.size());
    const auto after = static_cast<int32_t>(relation.after.size());
    switch (relation.kind) {
      case RelationKind::kReplace:
        summary.replaced += before;
        break;
      case RelationKind::kClone:
        summary.cloned += after - 1;
        break;
      case RelationKind::kMerge:
        summary.merged += before - 1;
        break;
      case RelationKind::kBecameInput:
        ++summary.became_input;
        break;
      case RelationKind::kBecameCompute:
        ++summary.became_compute;
        break;
    }
  }
  return summary;
}

Result<GraphDiff> DiffAsAdvised(const Graph& before, const Graph& after,
                                const DiffOptions& options) {
  GraphDiff diff{Listing(before), Listing(after), {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  constexpr int32_t kLarge = 100'000;
  const bool is_large = std::max(diff.before.size(), diff.after.size()) >= kLarge;
  const auto end_phase = [&] {
    if (is_large) ReturnFreedMemory();
  };
  end_phase();
  LabelledSides labels = LabelSides(diff.before, diff.after);
  // Made after synonyms were found: both are large.
  std::optional<Matching> made;
  // Finding contradictions begins anew with the labels.
  const bool has_contradictions = options.stable_ids && options.contradictions;
  {
    const SynonymScope synonyms(labels.before, labels.after);
    if (!has_contradictions) {
      labels.before.ForgetNames();
      labels.after.ForgetNames();
    }
    end_phase();
    made.emplace(labels.before, labels.after);
    STRATA_RETURN_IF_ERROR(MatchListings(diff.before, diff.after, options, *made));
  }
  Matching& matching = *made;
  diff.relations = FindRelations(diff.before, diff.after, matching);
  if (options.stable_ids && !options.provenance.empty())
    UseProvenance(matching, options.provenance, diff);
  // Of a large graph, what is not needed any more would be a third of the memory.
  if (!has_contradictions) matching.ForgetEvidence();
  FillPairs(matching, diff);
  if (!has_contradictions) matching.ForgetMade();
  end_phase();
  CompareFields(matching, labels.symbols, options, diff);
  if (!has_contradictions) {
    labels.before.ForgetDetails();
    labels.after.ForgetDetails();
  }
  MoveFinder(diff, matching).Run();
  end_phase();
  FindPatterns(matching, has_contradictions ? nullptr : &labels, diff);
  diff.summary = Summarize(diff);
  if (has_contradictions) {
    const SynonymScope synonyms(labels.before, labels.after);
    diff.contradictions = FindContradictions(diff, matching, options.provenance);
  }
  return diff;
}

}  // namespace

bool IdsRelate(const Graph& before, const Graph& after, std::span<const Provenance> provenance) {
  const auto ids_of = [](const Graph& graph) {
    std::vector<StableId> ids;
    for (const NodeId id : graph.nodes()) {
      const NodeKind kind = graph.node(id).kind;
      if (kind != NodeKind::kPlaceholder && kind != NodeKind::kOutput)
        ids.push_back(graph.node(id).stable_id);
    }
    std::ranges::sort(ids);
    return ids;
  };
  const std::vector<StableId> old = ids_of(before), now = ids_of(after);
  const auto is_old = [&](StableId id) { return std::ranges::binary_search(old, id); };
  if (provenance.empty() || old.empty() || now.empty() || std::ranges::any_of(now, is_old))
    return true;
  std::set<StableId> related;  // also nodes that are gone again; origins are born first
  for (const Provenance& made : provenance) {
    if (std::ranges::any_of(made.from,
                            [&](StableId id) { return is_old(id) || related.contains(id); }))
      related.insert(made.node);
  }
  return std::ranges::any_of(now, [&](StableId id) { return related.contains(id); });
}

Result<GraphDiff> Diff(const Graph& before, const Graph& after, const DiffOptions& given) {
  DiffOptions options = given;
  if (options.stable_ids && !IdsRelate(before, after, options.provenance))
    options.stable_ids = false;
  STRATA_TRY(GraphDiff diff, DiffAsAdvised(before, after, options));
  if (options.stable_ids) return diff;
  // Layers are alike: which one was added follows from the names of parameters, unless structure
  // contradicts them. That is so when more changes if they are believed.
  const auto by_inputs = PairsOfPaths(diff, PathEvidence::kInputs);
  const auto by_readers = PairsOfPaths(diff, PathEvidence::kReaders);
  const auto believe = [&](const PinnedPairs& pins, int32_t (*count)(const GraphDiff&)) {
    if (pins.empty()) return;
    DiffOptions named = options;
    named.pins.insert(named.pins.end(), pins.begin(), pins.end());
    Result<GraphDiff> other = DiffAsAdvised(before, after, named);
    if (!other || count(*other) > count(diff)) return;
    MarkAsInputs(pins, *other);
    diff = std::move(*other);
  };
  believe(by_inputs, CountChanges);
  believe(by_readers, CountTouched);
  return diff;
}

}  // namespace strata
