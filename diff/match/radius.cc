#include "diff/match/radius.h"

#include <algorithm>

#include "base/flat_map.h"
#include "diff/graph/keyed.h"
#include "diff/match/found_pairs.h"
#include "diff/match/neighbourhood.h"

namespace strata {
namespace {

LabelVector VectorOf(LabelLevel level) {
  switch (level) {
    case LabelLevel::kType:
      return &Labels::type;
    case LabelLevel::kLiterals:
      return &Labels::literals;
    case LabelLevel::kOp:
      return &Labels::op;
    case LabelLevel::kValue:
      break;
  }
  return &Labels::value;
}

double ConfidenceOf(LabelLevel level) {
  switch (level) {
    case LabelLevel::kType:
      return 0.9995;
    case LabelLevel::kLiterals:
      return 0.99;
    case LabelLevel::kOp:
      return 0.98;
    case LabelLevel::kValue:
      break;
  }
  return 0.93;
}

/// Whether unmatched nodes of both sides have a label in common.
bool ShareLabels(const Matching& matching, const ScopePair& scope, LabelVector labels_of) {
  FlatMap<uint64_t, bool> labels;
  for (EntityId i : matching.Unmatched(kBefore, scope))
    labels.Emplace((matching.labels(kBefore).*labels_of)[i], true);
  return std::ranges::any_of(matching.Unmatched(kAfter, scope), [&](EntityId i) {
    return labels.Contains((matching.labels(kAfter).*labels_of)[i]);
  });
}

}  // namespace

void MatchRadius(Matching& matching, const ScopePair& scope, LabelLevel level, int min_radius,
                 int max_radius) {
  if (!ShareLabels(matching, scope, VectorOf(level))) return;
  // Where the operator says nothing, the operands must: of a hub they are not looked at.
  const auto says_something = [&](Side side, EntityId i) {
    return level != LabelLevel::kValue ||
           matching.labels(side).operands(i).size() <= Matching::kMaxEdges;
  };
  auto hashes = CommonRadiusHashes(matching, scope, VectorOf(level), max_radius);
  for (int radius = max_radius; radius >= min_radius; --radius) {
    const double confidence = ConfidenceOf(level) - (max_radius - radius) / 4096.0;
    std::array<std::vector<Keyed>, 2>& keys = hashes[static_cast<size_t>(radius)];
    for (Side side : {kBefore, kAfter}) {
      std::erase_if(keys[side], [&](const Keyed& keyed) {
        return matching.matched(side, keyed.entity) || matching.forbidden(side, keyed.entity) ||
               !says_something(side, keyed.entity);
      });
    }
    FoundPairs found;
    ForEachCommonKey(keys[kBefore], keys[kAfter], [&](auto befores, auto afters) {
      if (befores.size() == 1 && afters.size() == 1) found.Add(befores[0], afters[0]);
    });
    if (found.empty()) continue;
    found.DropDisordered(matching, scope);
    found.MatchAll(matching, Via::kRadius, confidence);
  }
}

}  // namespace strata
