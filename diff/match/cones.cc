#include "diff/match/cones.h"

#include <algorithm>

#include "diff/graph/large_arrays.h"
#include "diff/graph/parallel.h"
#include "diff/match/found_pairs.h"
#include "diff/match/neighbourhood.h"

namespace strata {
namespace {

constexpr double kConeConfidence = 0.999;
constexpr double kEqualValueConfidence = 0.95;

/// Unmatched entities of a side with their hashes.
std::vector<Keyed> Keys(const Matching& matching, Side side, const ScopePair& scope,
                        const std::vector<uint64_t>& hashes) {
  const std::vector<EntityId> unmatched = matching.Unmatched(side, scope);
  std::vector<Keyed> keys;
  ReserveLarge(keys, unmatched.size());
  for (EntityId i : unmatched)
    keys.push_back({hashes[scope.PlaceOf(side, i)], i});
  return keys;
}

FoundPairs CommonCones(const Matching& matching, const ScopePair& scope) {
  std::array<std::vector<Keyed>, 2> keys;
  const auto at_once = [&](size_t size, auto&& fn) {
    AtOnce(size, [&] { fn(kBefore); }, [&] { fn(kAfter); });
  };
  at_once(scope.size(kBefore), [&](Side side) {
    keys[side] = Keys(matching, side, scope, UpCones(matching, side, scope, true));
  });
  // Unrelated graphs have little in common: sort that alone.
  DropForeign(keys[kBefore], keys[kAfter]);
  at_once(keys[kBefore].size(), [&](Side side) { SortKeys(keys[side]); });
  std::array<std::vector<uint64_t>, 2> down;  // where several nodes have one cone
  const auto find_down = [&] {
    if (!down[kBefore].empty()) return;
    at_once(scope.size(kBefore), [&](Side side) { down[side] = DownCones(matching, side, scope); });
  };
  FoundPairs found;
  std::vector<Keyed> by_use_before, by_use_after;
  ForEachCommonKey(keys[kBefore], keys[kAfter], [&](auto befores, auto afters) {
    if (befores.size() == 1 && afters.size() == 1) return found.Add(befores[0], afters[0]);
    const auto by_use = [&](Side side, std::span<const EntityId> entities) {
      std::vector<Keyed> result;
      for (EntityId i : entities)
        result.push_back({down[side][scope.PlaceOf(side, i)], i});
      return result;
    };
    find_down();
    by_use_before = by_use(kBefore, befores);
    by_use_after = by_use(kAfter, afters);
    ForEachCommonKey(by_use_before, by_use_after, [&](auto same_before, auto same_after) {
      // Of a few, the position in the order may show later which ones are new.
      const bool equally_many = same_before.size() == same_after.size();
      if (!equally_many && same_before.size() * same_after.size() <= kMaxChoices) return;
      for (size_t i = 0; i < std::min(same_before.size(), same_after.size()); ++i)
        found.Add(same_before[i], same_after[i]);
    });
  });
  return found;
}

}  // namespace

void MatchCones(Matching& matching, const ScopePair& scope) {
  CommonCones(matching, scope).MatchAll(matching, Via::kCone, kConeConfidence);
}

void MatchEqualValues(Matching& matching, const ScopePair& scope) {
  std::array<std::vector<Keyed>, 2> keys;
  for (Side side : {kBefore, kAfter})
    keys[side] = Keys(matching, side, scope, UpCones(matching, side, scope, true));
  FoundPairs found;
  ForEachCommonKey(keys[kBefore], keys[kAfter], [&](auto befores, auto afters) {
    if (befores.size() != afters.size()) return;
    for (size_t i = 0; i < befores.size(); ++i) {
      if (matching.labels(kBefore).kind[befores[i]] == EntityKind::kCompute)
        found.Add(befores[i], afters[i]);
    }
  });
  found.MatchAll(matching, Via::kCone, kEqualValueConfidence);
}

}  // namespace strata
