#include "diff/match/radius.h"

#include <algorithm>

#include "base/flat_map.h"
#include "diff/graph/keyed.h"
#include "diff/match/found_pairs.h"
#include "diff/match/neighbourhood.h"

namespace strata {
namespace {

double ConfidenceOf(LabelKind level) {
  switch (level) {
    case LabelKind::kType:
      return 0.9995;
    case LabelKind::kLiterals:
      return 0.99;
    case LabelKind::kOp:
      return 0.98;
    case LabelKind::kValue:
    case LabelKind::kForm:
      break;
  }
  return 0.93;
}

/// Whether unmatched nodes of both sides have a label in common.
bool ShareLabels(const Matching& matching, const ScopePair& scope, LabelKind labels_of) {
  const auto label_of = [&](Side side, EntityId i) {
    return matching.labels(side).Of(labels_of, i);
  };
  const std::vector<EntityId> before = matching.Unmatched(kBefore, scope);
  const std::vector<EntityId> after = matching.Unmatched(kAfter, scope);
  // A graph may have as many labels as nodes.
  HashFilter theirs(after.size());
  for (EntityId i : after)
    theirs.Add(label_of(kAfter, i));
  FlatMap<uint64_t, bool> labels;
  for (EntityId i : before) {
    if (theirs.MayHave(label_of(kBefore, i))) labels.Emplace(label_of(kBefore, i), true);
  }
  return std::ranges::any_of(after,
                             [&](EntityId i) { return labels.Contains(label_of(kAfter, i)); });
}

/// Whether unmatched nodes of one label have one label at the other level, too, and the reverse.
/// Says no where there are many.
bool SayTheSame(const Matching& matching, const ScopePair& scope, LabelKind a, LabelKind b) {
  std::array<FlatMap<uint64_t, uint64_t>, 2> known;
  const auto agrees = [&](size_t way, uint64_t key, uint64_t value) {
    return *known[way].Emplace(key, value).first == value;
  };
  for (const Side side : {kBefore, kAfter}) {
    const Labels& labels = matching.labels(side);
    for (const EntityId i : scope.ids(side)) {
      if (matching.matched(side, i)) continue;
      const uint64_t at_a = labels.Of(a, i), at_b = labels.Of(b, i);
      if (!agrees(0, at_a, at_b) || !agrees(1, at_b, at_a)) return false;
      if (known[0].size() > kMaxChoices) return false;
    }
  }
  return true;
}

/// Pairs of nodes that `is_wanted(side, node)` for, each alone with its hash on its side.
template <class IsWanted>
FoundPairs UniquePairs(CommonHashes& hashes, int radius, IsWanted&& is_wanted) {
  std::array<std::vector<Keyed>, 2> keys;
  for (Side side : {kBefore, kAfter})
    keys[side] = hashes.Take(radius, side, [&](EntityId i) { return is_wanted(side, i); });
  FoundPairs found;
  DropRepeated(keys[kBefore], keys[kAfter]);
  ForEachCommonKey(keys[kBefore], keys[kAfter], [&](auto befores, auto afters) {
    if (befores.size() == 1 && afters.size() == 1) found.Add(befores[0], afters[0]);
  });
  return found;
}

}  // namespace

void RadiusMatcher::Run(LabelKind level, int min_radius, int max_radius) {
  // A few new pairs are for those who look around them.
  constexpr size_t kFew = 1024;
  const size_t few = std::min(scope_.size(kBefore), scope_.size(kAfter)) / kFew;
  const bool is_little_new = last_ && matching_.made().size() - made_ <= few;
  if (is_little_new && SayTheSame(matching_, scope_, *last_, level)) return;
  last_ = level;
  made_ = matching_.made().size();
  if (!ShareLabels(matching_, scope_, level)) return;
  // Where the operator says nothing, the operands must: of a hub they are not looked at.
  const auto is_wanted = [&](Side side, EntityId i) {
    if (matching_.matched(side, i) || matching_.forbidden(side, i)) return false;
    return level != LabelKind::kValue ||
           matching_.labels(side).operands(i).size() <= Matching::kMaxEdges;
  };
  CommonHashes hashes(matching_, scope_, level, min_radius, max_radius);
  for (int radius = max_radius; radius >= min_radius; --radius) {
    const double confidence = ConfidenceOf(level) - (max_radius - radius) / 4096.0;
    FoundPairs found = UniquePairs(hashes, radius, is_wanted);
    // Types alone are rarely unique around a node, but by chance in a large graph.
    if (found.empty() || (level == LabelKind::kValue && found.AreShuffled())) continue;
    found.DropDisordered(matching_, scope_);
    found.MatchAll(matching_, Via::kRadius, confidence);
  }
}

}  // namespace strata
