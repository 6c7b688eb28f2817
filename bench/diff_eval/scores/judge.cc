#include "bench/diff_eval/scores/judge.h"

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "bench/diff_eval/scores/rand_index.h"

namespace strata::bench {
namespace {

/// As a reader of graphs would say it: a new name is nothing.
std::string StatusOf(const Pair& pair) {
  PairStatus status = pair.status;
  status.renamed = false;
  return ToString(status);
}

template <class Key>
void AddSets(const std::set<Key>& said, const std::set<Key>& is, Score& score) {
  for (const Key& key : said)
    ++(is.contains(key) ? score.right : score.wrong);
  for (const Key& key : is)
    score.missed += !said.contains(key);
}

}  // namespace

Judge::Judge(const Lineage& lineage, const GraphDiff& diff, const Truth& truth)
    : lineage_(lineage), diff_(diff), truth_(truth), orbits_(Orbits(truth.diff, false)) {}

void Judge::CountIdentity(const Partners& partners, Tally& tally) const {
  const Partners truth = PartnersOf(truth_.diff);
  for (size_t i = 0; i < partners.size(); ++i) {
    const int32_t claim = partners[i];
    Score score;
    if (claim >= 0 && (claim == truth[i] || Exchangeable(i, claim))) {
      score.right = 1;
    } else {
      score.wrong = claim >= 0;
      score.missed = truth[i] >= 0;
    }
    tally.identity.Add(score);
    const bool touched = truth_.touched_before[i] ||
                         (claim >= 0 && truth_.touched_after[static_cast<size_t>(claim)]);
    if (touched) tally.touched.Add(score);
  }
}

void Judge::CountOurs(Tally& tally) const {
  CountStatuses(tally);
  CountFields(tally);
  CountRelations(tally);
  CountHunks(tally);
  for (const Pair& pair : diff_.pairs) {
    const bool right = TruePartner(pair.before) == pair.after ||
                       Exchangeable(static_cast<size_t>(pair.before.index), pair.after.index);
    const auto percent = static_cast<int>(std::lround(pair.confidence * 100));
    auto& bin = tally.by_confidence[static_cast<size_t>(percent)];
    ++bin.first;
    bin.second += right;
    auto& tier = tally.by_tier[{std::string(ToString(pair.via)),
                                static_cast<int>(std::lround(pair.confidence * 1000))}];
    ++tier.first;
    tier.second += right;
  }
}

EntityId Judge::TruePartner(EntityId before) const {
  const PairId pair = truth_.diff.pair_of_before[before];
  return !pair.valid() ? EntityId{} : truth_.diff.pairs[pair].after;
}

bool Judge::Exchangeable(size_t before, int32_t claim) const {
  const PairId pair = truth_.diff.pair_of_after[EntityId{claim}];
  if (!pair.valid()) return false;
  const EntityId origin = truth_.diff.pairs[pair].before;
  return orbits_[static_cast<size_t>(origin.index)] == orbits_[before];
}

void Judge::CountStatuses(Tally& tally) const {
  const auto count = [&](bool right, bool touched) {
    ++tally.statuses;
    tally.right_statuses += right;
    tally.touched_statuses += touched;
    tally.right_touched_statuses += touched && right;
  };
  for (int32_t i = 0; i < diff_.before.size(); ++i) {
    const auto index = static_cast<size_t>(i);
    const PairId said = diff_.pair_of_before[EntityId{i}],
                 is = truth_.diff.pair_of_before[EntityId{i}];
    const std::string said_text = !said.valid() ? "deleted" : StatusOf(diff_.pairs[said]);
    const std::string is_text = !is.valid() ? "deleted" : StatusOf(truth_.diff.pairs[is]);
    count(said_text == is_text, is_text != "same" || truth_.touched_before[index]);
  }
  for (int32_t j = 0; j < diff_.after.size(); ++j) {
    const bool is_new = !truth_.diff.pair_of_after[EntityId{j}].valid();
    const bool said_new = !diff_.pair_of_after[EntityId{j}].valid();
    if (is_new || said_new) count(is_new == said_new, true);
  }
}

void Judge::CountFields(Tally& tally) const {
  using Key = std::tuple<int32_t, std::string, std::string, std::string, bool>;
  const auto keys_of = [](const GraphDiff& diff) {
    std::set<Key> keys;
    for (const Pair& pair : diff.pairs) {
      for (const FieldDiff& field : pair.fields) {
        keys.emplace(pair.before.index, field.path, field.before.value_or("\1"),
                     field.after.value_or("\1"), field.derived);
      }
    }
    return keys;
  };
  AddSets(keys_of(diff_), keys_of(truth_.diff), tally.fields);
}

void Judge::CountRelations(Tally& tally) const {
  using Key = std::tuple<RelationKind, int32_t, int32_t>;
  const auto keys_of = [](const std::vector<Relation>& relations) {
    std::set<Key> keys;
    for (const Relation& relation : relations) {
      for (EntityId a : relation.before) {
        for (EntityId b : relation.after)
          keys.emplace(relation.kind, a.index, b.index);
      }
    }
    return keys;
  };
  AddSets(keys_of(diff_.relations), keys_of(truth_.relations), tally.relations);
}

/// Hunks against rewrites, over nodes that are in one of each.
void Judge::CountHunks(Tally& tally) const {
  std::map<StableId, int> rewrite_of;
  for (size_t r = 0; r < lineage_.rewrites.size(); ++r) {
    for (StableId id : lineage_.rewrites[r])
      rewrite_of.emplace(id, static_cast<int>(r));
  }
  std::vector<int32_t> hunks, rewrites;
  std::set<StableId> seen;
  const auto add = [&](const Listing& listing, EntityId id, int hunk) {
    const Entity& entity = listing[id];
    if (entity.element.valid()) return;
    const StableId stable_id = listing.graph(id).node(entity.node).stable_id;
    const auto found = rewrite_of.find(stable_id);
    if (found == rewrite_of.end() || !seen.insert(stable_id).second) return;
    hunks.push_back(hunk);
    rewrites.push_back(found->second);
  };
  for (HunkId h : IdsOf(diff_.hunks)) {
    const int hunk = h.index;
    for (EntityId id : diff_.hunks[h].inserted)
      add(diff_.after, id, hunk);
    for (EntityId id : diff_.hunks[h].deleted)
      add(diff_.before, id, hunk);
    for (PairId pair : diff_.hunks[h].pairs)
      add(diff_.before, diff_.pairs[pair].before, hunk);
  }
  if (hunks.size() < 2) return;
  tally.rand_sum += AdjustedRandIndex(hunks, rewrites);
  ++tally.rand_cases;
}

}  // namespace strata::bench
