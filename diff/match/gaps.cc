#include "diff/match/gaps.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "diff/graph/keyed.h"
#include "diff/graph/parallel.h"

namespace strata {
namespace {

/// Larger gaps are aligned by label only, without looking at edges.
constexpr size_t kMaxCells = size_t{64} * 64;

/// Unmatched nodes of both sides that have the same around them, in order: a stretch between
/// matched nodes, or a region.
struct Gap {
  std::span<const EntityId> before, after;
};

/// Calls `fn` with each gap, in order. It may match the gap's nodes.
template <class Fn>
void ForEachGap(const Matching& matching, const ScopePair& scope, Fn&& fn) {
  std::vector<std::pair<EntityId, EntityId>> anchors = matching.Anchors(scope);
  anchors.emplace_back(scope.end[kBefore], scope.end[kAfter]);
  const std::vector<EntityId> before = matching.Unmatched(kBefore, scope);
  const std::vector<EntityId> after = matching.Unmatched(kAfter, scope);
  const auto take = [](const std::vector<EntityId>& nodes, size_t& next, EntityId end) {
    const size_t begin = next;
    while (next < nodes.size() && nodes[next] < end)
      ++next;
    return std::span(nodes).subspan(begin, next - begin);
  };
  size_t i = 0, j = 0;
  for (const auto& [next_before, next_after] : anchors) {
    const Gap gap{take(before, i, next_before), take(after, j, next_after)};
    if (!gap.before.empty() && !gap.after.empty()) fn(gap);
  }
}

/// What the place in the order is worth, in edges that agree, for nodes with the same label.
enum class Place : uint8_t {
  kVague,   ///< in a large gap: nothing where an edge contradicts
  kShared,  ///< others of the same label are in the gap
  kAlone,   ///< the only ones of their label in the gap
};

/// How good it is to call two nodes the same; 0: they are not.
int32_t Merit(const Matching& matching, EntityId before, EntityId after, Place where) {
  const Labels& a = matching.labels(kBefore);
  const Labels& b = matching.labels(kAfter);
  if (a.op[before] != b.op[after] || matching.vetoed(before, after)) return 0;
  const Matching::EdgeScore score = matching.Score(before, after);
  const bool same_type = a.type[before] == b.type[after],
             same_literals = a.literals(before) == b.literals(after);
  // The place of inputs has been looked at already.
  const bool is_placed = same_type && a.kind[before] != EntityKind::kInput &&
                         (where != Place::kVague || score.contradict == 0);
  const int32_t place = !is_placed ? 0 : where == Place::kAlone ? 3 : 1;
  if (score.agree + place == 0 || score.agree + place < score.contradict) return 0;
  const int32_t label = same_type ? 6 : same_literals ? 4 : 2;
  return std::max(1, label + 4 * score.agree - 2 * score.contradict);
}

/// The alignment in order with the largest sum of merits.
void Align(Matching& matching, const Gap& gap) {
  const size_t n = gap.before.size(), m = gap.after.size();
  std::vector<int32_t> merit(n * m), best((n + 1) * (m + 1), 0);
  const auto at = [&](size_t i, size_t j) -> int32_t& { return best[i * (m + 1) + j]; };
  std::unordered_map<uint64_t, int32_t> count;
  for (EntityId i : gap.before)
    ++count[matching.labels(kBefore).type[i]];
  for (EntityId j : gap.after)
    ++count[matching.labels(kAfter).type[j]];
  for (size_t i = n; i-- > 0;) {
    const int32_t alike = count[matching.labels(kBefore).type[gap.before[i]]];
    const Place place = alike == 2 ? Place::kAlone : Place::kShared;
    for (size_t j = m; j-- > 0;) {
      const int32_t here = merit[i * m + j] = Merit(matching, gap.before[i], gap.after[j], place);
      at(i, j) = std::max(at(i + 1, j), at(i, j + 1));
      if (here > 0) at(i, j) = std::max(at(i, j), here + at(i + 1, j + 1));
    }
  }
  for (size_t i = 0, j = 0; i < n && j < m;) {
    const int32_t here = merit[i * m + j];
    if (here > 0 && at(i, j) == here + at(i + 1, j + 1)) {
      const double confidence = here >= 10 ? 0.98 : 0.965;
      matching.Match(gap.before[i++], gap.after[j++], Via::kOrder, confidence);
    } else {
      (at(i + 1, j) >= at(i, j + 1) ? i : j) += 1;
    }
  }
}

/// Whether the two sides of a gap are one region with other operators: as many nodes, which say and
/// read the same one by one, and are read by the same nodes around them.
bool IsSameRegion(const Matching& matching, const Gap& gap) {
  const Labels& a = matching.labels(kBefore);
  const Labels& b = matching.labels(kAfter);
  if (gap.before.size() != gap.after.size() || gap.before.size() < 2) return false;
  const auto image = [&](EntityId i) -> EntityId {
    if (const EntityId partner = matching.partner(kBefore, i); partner.valid()) return partner;
    const auto at = std::ranges::lower_bound(gap.before, i);
    if (at == gap.before.end() || *at != i) return {};
    return gap.after[static_cast<size_t>(at - gap.before.begin())];
  };
  const auto same_edges = [&](auto mine, auto theirs) {
    return std::ranges::equal(mine, theirs, [&](const auto& x, const auto& y) {
      return image(x.entity) == y.entity && x.slot == y.slot;
    });
  };
  for (size_t k = 0; k < gap.before.size(); ++k) {
    const EntityId i = gap.before[k], j = gap.after[k];
    const bool may_be = a.kind[i] == EntityKind::kCompute && a.form(i) == b.form(j) &&
                        a.users(i).size() <= Matching::kMaxEdges && !matching.vetoed(i, j);
    if (!may_be || a.operands(i).empty() || !same_edges(a.operands(i), b.operands(j)) ||
        !same_edges(a.users(i), b.users(j))) {
      return false;
    }
  }
  return true;
}

/// Matches nodes of large gaps with the same label, first with first. Between unrelated nodes, as
/// many edges contradict such pairs as agree with them: then the order says nothing, and all are
/// taken back.
class LabelAligner {
 public:
  explicit LabelAligner(Matching& matching) : matching_(matching) {}

  void Run(const Gap& gap) {
    Align(gap, LabelKind::kType);
    Align(gap, LabelKind::kOp);
  }

  bool is_chance() const { return is_chance_; }
  void TakeBack() {
    for (const EntityId i : made_)
      matching_.Unmatch(i);
    made_.clear();
  }

 private:
  /// Contradictions that are enough to judge.
  static constexpr size_t kEnough = 1024;

  void Align(const Gap& gap, LabelKind label) {
    if (is_chance_) return;
    std::vector<Keyed> before = Keys(kBefore, gap.before, label);
    std::vector<Keyed> after = Keys(kAfter, gap.after, label);
    ForEachCommonKey(before, after, [&](auto befores, auto afters) {
      for (size_t i = 0; i < std::min(befores.size(), afters.size()) && !is_chance_; ++i)
        Try(befores[i], afters[i]);
    });
  }

  std::vector<Keyed> Keys(Side side, std::span<const EntityId> entities, LabelKind label) const {
    std::vector<Keyed> keys;
    keys.reserve(entities.size());
    for (EntityId i : entities) {
      if (!matching_.matched(side, i)) keys.push_back({matching_.labels(side).Of(label, i), i});
    }
    return keys;
  }

  void Try(EntityId before, EntityId after) {
    const Matching::EdgeScore score = matching_.Score(before, after);
    agree_ += static_cast<size_t>(score.agree);
    contradict_ += static_cast<size_t>(score.contradict);
    is_chance_ = contradict_ >= kEnough && contradict_ >= agree_;
    if (is_chance_ || Merit(matching_, before, after, Place::kVague) == 0) return;
    matching_.Match(before, after, Via::kOrder, 0.9);
    if (matching_.partner(kBefore, before) == after) made_.push_back(before);
  }

  Matching& matching_;
  std::vector<EntityId> made_;  // of the before side
  size_t agree_ = 0, contradict_ = 0;
  bool is_chance_ = false;
};

/// Whether most nodes have the label of one on the other side: a node that was decomposed is none
/// of its parts.
bool AreAlike(const Matching& matching, const Gap& gap) {
  std::vector<uint64_t> before, after, common;
  for (EntityId i : gap.before)
    before.push_back(matching.labels(kBefore).type[i]);
  for (EntityId j : gap.after)
    after.push_back(matching.labels(kAfter).type[j]);
  std::ranges::sort(before);
  std::ranges::sort(after);
  std::ranges::set_intersection(before, after, std::back_inserter(common));
  return 2 * common.size() > std::max(before.size(), after.size());
}

}  // namespace

// Two that are alike have more than half as many nodes as the other: larger ones have too many
// cells.
static_assert((Regions::kMostNodes + 1) * ((Regions::kMostNodes + 1) / 2 + 1) > kMaxCells);

RegionMatcher::RegionMatcher(Matching& matching, const ScopePair& scope)
    : matching_(matching),
      size_(scope.size(kBefore)),
      regions_{Regions(matching, scope, kBefore), Regions(matching, scope, kAfter)} {}

void RegionMatcher::Run() {
  std::array<std::vector<uint64_t>, 2> changed;  // by what is around them
  AtOnce(
      size_, [&] { regions_[kBefore].Update(changed[kBefore]); },
      [&] { regions_[kAfter].Update(changed[kAfter]); });
  // Two that did not match before do not match until one of them changes, or becomes the only one.
  std::vector<uint64_t>& arounds = changed[kBefore];
  arounds.insert(arounds.end(), changed[kAfter].begin(), changed[kAfter].end());
  std::ranges::sort(arounds);
  arounds.erase(std::unique(arounds.begin(), arounds.end()), arounds.end());
  std::vector<Gap> gaps;
  for (const uint64_t around : arounds) {
    const std::span<const EntityId> before = regions_[kBefore].Only(around);
    const std::span<const EntityId> after = regions_[kAfter].Only(around);
    if (before.empty() || after.empty()) continue;
    gaps.push_back({before, after});
  }
  std::ranges::sort(gaps, {}, [](const Gap& gap) { return gap.before[0]; });
  for (const Gap& gap : gaps) {
    if (gap.before.size() * gap.after.size() <= kMaxCells && AreAlike(matching_, gap)) {
      Align(matching_, gap);
    }
  }
}

bool MatchGaps(Matching& matching, const ScopePair& scope, bool by_label) {
  LabelAligner by_order(matching);
  ForEachGap(matching, scope, [&](const Gap& gap) {
    if (IsSameRegion(matching, gap)) {
      for (size_t k = 0; k < gap.before.size(); ++k)
        matching.Match(gap.before[k], gap.after[k], Via::kOrder, 0.93);
    } else if (gap.before.size() * gap.after.size() <= kMaxCells) {
      Align(matching, gap);
    } else if (by_label) {
      by_order.Run(gap);
    }
  });
  if (by_order.is_chance()) by_order.TakeBack();
  return !by_order.is_chance();
}

}  // namespace strata
