#include <algorithm>

#include "diff/graph/flat_map.h"
#include "diff/graph/parallel.h"
#include "diff/match/neighbourhood.h"
#include "diff/match/stages.h"

namespace strata {
namespace {

constexpr double kConeConfidence = 0.999;
constexpr double kEqualValueConfidence = 0.95;
/// A graph was rearranged, and its order is not evidence, if one pair in this many contradicts it.
constexpr size_t kDisorder = 10;

/// Unmatched entities of a side with their hashes.
std::vector<Keyed> Keys(const Matching& matching, Side side, const ScopePair& scope,
                        const std::vector<uint64_t>& hashes) {
  std::vector<Keyed> keys;
  for (int32_t i : matching.Unmatched(side, scope))
    keys.push_back({hashes[static_cast<size_t>(i - scope.begin[side])], i});
  return keys;
}

/// Pairs that were found in the order of their hashes, to be matched in the order of the graph.
class FoundPairs {
 public:
  void Add(int32_t before, int32_t after) { pairs_.emplace_back(before, after); }
  bool empty() const { return pairs_.empty(); }
  /// Leaves out what is against the order that nearly all others have, these and earlier ones.
  void DropDisordered(const Matching& matching, const ScopePair& scope) {
    std::ranges::sort(pairs_);
    std::vector<OrderPoint> points;
    std::vector<bool> is_found;
    const auto add = [&](int32_t before, int32_t after, bool found) {
      points.push_back({before, after});
      is_found.push_back(found);
    };
    auto next = pairs_.begin();
    for (int32_t i = scope.begin[kBefore]; i < scope.end[kBefore]; ++i) {
      const int32_t image = matching.partner(kBefore, i);
      const bool inside = image >= scope.begin[kAfter] && image < scope.end[kAfter];
      if (inside) add(i, image, false);
      for (; next != pairs_.end() && next->first == i; ++next)
        add(next->first, next->second, true);
    }
    const std::vector<bool> in_order = LargestOrderedSet(points);
    const auto kept = static_cast<size_t>(std::ranges::count(in_order, true));
    if (kept == points.size() || kDisorder * (points.size() - kept) > points.size()) return;
    std::vector<bool> keep;
    for (size_t i = 0; i < points.size(); ++i) {
      if (is_found[i]) keep.push_back(in_order[i]);
    }
    size_t at = 0;
    std::erase_if(pairs_, [&](const auto&) { return !keep[at++]; });
  }
  void MatchAll(Matching& matching, Via via, double confidence) {
    std::ranges::sort(pairs_);
    for (const auto& [before, after] : pairs_) {
      if (matching.SameKind(before, after)) matching.Match(before, after, via, confidence);
    }
  }

 private:
  std::vector<std::pair<int32_t, int32_t>> pairs_;
};

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
  FlatMap<bool> labels;
  for (int32_t i : matching.Unmatched(kBefore, scope))
    labels.Emplace((matching.labels(kBefore).*labels_of)[static_cast<size_t>(i)], true);
  return std::ranges::any_of(matching.Unmatched(kAfter, scope), [&](int32_t i) {
    return labels.Contains((matching.labels(kAfter).*labels_of)[static_cast<size_t>(i)]);
  });
}

}  // namespace

void MatchCones(Matching& matching, const ScopePair& scope) {
  std::array<std::vector<uint64_t>, 2> down;
  std::array<std::vector<Keyed>, 2> keys;
  const auto look = [&](Side side) {
    down[side] = DownCones(matching, side, scope);
    keys[side] = Keys(matching, side, scope, UpCones(matching, side, scope, true));
    SortKeys(keys[side]);
  };
  const auto size = static_cast<size_t>(scope.end[kBefore] - scope.begin[kBefore]);
  AtOnce(size, [&] { look(kBefore); }, [&] { look(kAfter); });
  FoundPairs found;
  std::vector<Keyed> by_use_before, by_use_after;
  ForEachCommonKey(keys[kBefore], keys[kAfter], [&](auto befores, auto afters) {
    if (befores.size() == 1 && afters.size() == 1) return found.Add(befores[0], afters[0]);
    const auto by_use = [&](Side side, std::span<const int32_t> entities) {
      std::vector<Keyed> result;
      for (int32_t i : entities)
        result.push_back({down[side][static_cast<size_t>(i - scope.begin[side])], i});
      return result;
    };
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
  found.MatchAll(matching, Via::kCone, kConeConfidence);
}

void MatchEqualValues(Matching& matching, const ScopePair& scope) {
  std::array<std::vector<Keyed>, 2> keys;
  for (Side side : {kBefore, kAfter})
    keys[side] = Keys(matching, side, scope, UpCones(matching, side, scope, true));
  FoundPairs found;
  ForEachCommonKey(keys[kBefore], keys[kAfter], [&](auto befores, auto afters) {
    if (befores.size() != afters.size()) return;
    for (size_t i = 0; i < befores.size(); ++i) {
      if (matching.labels(kBefore).kind[static_cast<size_t>(befores[i])] == EntityKind::kCompute)
        found.Add(befores[i], afters[i]);
    }
  });
  found.MatchAll(matching, Via::kCone, kEqualValueConfidence);
}

void MatchRadius(Matching& matching, const ScopePair& scope, LabelLevel level, int min_radius,
                 int max_radius) {
  if (!ShareLabels(matching, scope, VectorOf(level))) return;
  // Where the operator says nothing, the operands must: of a hub they are not looked at.
  const auto says_something = [&](Side side, int32_t i) {
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
