#include <algorithm>
#include <limits>

#include "diff/stages.h"

namespace strata {
namespace {

/// How many more groups of equal nodes were merged than left where all were to be merged.
constexpr size_t kKeptApart = 4;

using Group = std::vector<int32_t>;

/// Nodes of a scope that compute the same value: equal operators over equal values.
std::vector<Group> EqualNodes(const Matching& matching, Side side, const ScopePair& scope) {
  const Labels& labels = matching.labels(side);
  const int32_t begin = scope.begin[side], end = scope.end[side];
  const auto at = [&](int32_t i) { return static_cast<size_t>(i - begin); };
  std::vector<uint64_t> numbers(at(end));
  std::vector<Keyed> keyed;
  for (int32_t i = begin; i < end; ++i) {
    const auto index = static_cast<size_t>(i);
    uint64_t number = labels.type[index];
    if (labels.kind[index] == EntityKind::kInput) number = Mix(number, index);
    for (const Labels::Edge& operand : labels.operands(i)) {
      const bool inside = operand.entity >= begin && operand.entity < end;
      number = Mix(number, inside ? numbers[at(operand.entity)] : 0);
    }
    numbers[at(i)] = number;
    if (labels.pure[index]) keyed.push_back({number, i});
  }
  std::ranges::sort(keyed, [](const Keyed& a, const Keyed& b) {
    return a.key != b.key ? a.key < b.key : a.entity < b.entity;
  });
  std::vector<Group> groups;
  for (size_t i = 0, j = 0; i < keyed.size(); i = j) {
    for (j = i + 1; j < keyed.size() && keyed[j].key == keyed[i].key;)
      ++j;
    if (j - i < 2) continue;
    Group group;
    for (size_t k = i; k < j; ++k)
      group.push_back(keyed[k].entity);
    groups.push_back(std::move(group));
  }
  return groups;
}

/// Whether users of the group's unmatched nodes read the partner of the matched one now.
struct Evidence {
  bool confirmed = false, contradicted = false;
};

Evidence LookAtUsers(const Matching& matching, Side side, const Group& group) {
  Evidence evidence;
  const int32_t partner = matching.partner(
      side, *std::ranges::find_if(group, [&](int32_t i) { return matching.matched(side, i); }));
  const Labels& others = matching.labels(1 - side);
  for (int32_t member : group) {
    if (matching.matched(side, member)) continue;
    for (const Labels::Edge& user : matching.labels(side).users(member)) {
      const int32_t image = matching.partner(side, user.entity);
      if (image < 0 || others.kind[static_cast<size_t>(image)] == EntityKind::kOutput) continue;
      const auto operands = others.operands(image);
      const auto slot = static_cast<size_t>(user.slot);
      const bool reads = slot < operands.size() && operands[slot].entity == partner;
      (reads ? evidence.confirmed : evidence.contradicted) = true;
    }
  }
  return evidence;
}

/// The pairs that are not in question and ascend in both orders, as sorted places of each side.
std::array<std::vector<int32_t>, 2> FixedPlaces(
    const Matching& matching, const ScopePair& scope,
    const std::array<std::vector<bool>, 2>& in_question) {
  std::array<std::vector<int32_t>, 2> places;
  for (const auto& [before, after] : matching.Anchors(scope)) {
    if (in_question[kBefore][static_cast<size_t>(before - scope.begin[kBefore])] ||
        in_question[kAfter][static_cast<size_t>(after - scope.begin[kAfter])]) {
      continue;
    }
    places[kBefore].push_back(before);
    places[kAfter].push_back(after);
  }
  return places;
}

}  // namespace

void SettleEquals(Matching& matching, const ScopePair& scope) {
  const std::array<std::vector<Group>, 2> groups{EqualNodes(matching, kBefore, scope),
                                                 EqualNodes(matching, kAfter, scope)};
  std::array<std::vector<bool>, 2> in_group;
  for (Side side : {kBefore, kAfter}) {
    in_group[side].assign(static_cast<size_t>(scope.end[side] - scope.begin[side]), false);
    for (const Group& group : groups[side]) {
      for (int32_t i : group)
        in_group[side][static_cast<size_t>(i - scope.begin[side])] = true;
    }
  }
  const std::array<std::vector<int32_t>, 2> places = FixedPlaces(matching, scope, in_group);
  const auto gap_of = [&](Side side, int32_t i) {
    return std::ranges::lower_bound(places[side], i) - places[side].begin();
  };
  for (Side side : {kBefore, kAfter}) {
    std::vector<Group> open;  // one of them has a partner
    size_t merged = 0, kept_apart = 0;
    for (const Group& group : groups[side]) {
      const auto count =
          std::ranges::count_if(group, [&](int32_t i) { return matching.matched(side, i); });
      kept_apart += count > 1 ? 1 : 0;
      if (count != 1) continue;
      const Evidence evidence = LookAtUsers(matching, side, group);
      if (evidence.contradicted) continue;
      merged += evidence.confirmed ? 1 : 0;
      open.push_back(group);
    }
    // Where a common subexpression elimination has been, the first of several is left. Otherwise
    // the others have gone for another reason, and the place in the order tells which.
    const bool first_is_kept = merged > kKeptApart * kept_apart;
    for (const Group& group : open) {
      const int32_t kept =
          *std::ranges::find_if(group, [&](int32_t i) { return matching.matched(side, i); });
      const int32_t partner = matching.partner(side, kept);
      int32_t best = kept;
      std::ptrdiff_t least = std::numeric_limits<std::ptrdiff_t>::max();
      for (int32_t member : group) {
        const int32_t before = side == kBefore ? member : partner;
        const int32_t after = side == kBefore ? partner : member;
        if (matching.forbidden(side, member) || matching.vetoed(before, after)) continue;
        const std::ptrdiff_t distance =
            first_is_kept ? 0 : std::abs(gap_of(kBefore, before) - gap_of(kAfter, after));
        if (distance >= least) continue;
        least = distance;
        best = member;
      }
      if (best != kept) matching.PassOn(side, kept, best);
    }
  }
}

}  // namespace strata
