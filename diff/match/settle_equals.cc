#include "diff/match/settle_equals.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "diff/match/equal_nodes.h"

namespace strata {
namespace {

/// How many more groups of equal nodes were merged than left where all were to be merged.
constexpr size_t kKeptApart = 4;

/// Whether users of the group's unmatched nodes read the partner of the matched one now.
struct Evidence {
  bool confirmed = false, contradicted = false;
};

Evidence LookAtUsers(const Matching& matching, Side side, const EqualNodes::Group& group) {
  Evidence evidence;
  const EntityId partner = matching.partner(
      side, *std::ranges::find_if(group, [&](EntityId i) { return matching.matched(side, i); }));
  const Labels& others = matching.labels(1 - side);
  for (EntityId member : group) {
    if (matching.matched(side, member)) continue;
    for (const Labels::Edge& user : matching.labels(side).users(member)) {
      const EntityId image = matching.partner(side, user.entity);
      if (!image.valid() || others.kind[image] == EntityKind::kOutput) continue;
      const auto operands = others.operands(image);
      const auto slot = static_cast<size_t>(user.slot);
      const bool reads = slot < operands.size() && operands[slot].entity == partner;
      (reads ? evidence.confirmed : evidence.contradicted) = true;
    }
  }
  return evidence;
}

/// The pairs of nodes without equals that ascend in both orders, as sorted places of each side.
std::array<std::vector<EntityId>, 2> FixedPlaces(const Matching& matching, const ScopePair& scope,
                                                 const std::vector<EqualNodes>& equals) {
  std::array<std::vector<EntityId>, 2> places;
  for (const auto& [before, after] : matching.Anchors(scope)) {
    if (equals[kBefore].GroupOf(before) != nullptr) continue;
    if (equals[kAfter].GroupOf(after) != nullptr) continue;
    places[kBefore].push_back(before);
    places[kAfter].push_back(after);
  }
  return places;
}

/// The partners that the users of a group's matched nodes ask for, in order of the nodes; else
/// those that they have. Empty: they have these, or may not have all of them.
std::vector<std::pair<EntityId, EntityId>> AskedFor(const Matching& matching,
                                                    const EqualNodes::Group& group,
                                                    const EqualNodes& others) {
  std::vector<std::pair<EntityId, EntityId>> asked;
  bool any_other = false;
  for (EntityId i : group) {
    const EntityId partner = matching.partner(kBefore, i);
    if (!partner.valid()) continue;
    const EqualNodes::Group* theirs = others.GroupOf(partner);
    if (theirs == nullptr || matching.via(kBefore, i) <= Via::kId) return {};
    EntityId wanted = matching.StandIn(kBefore, i);
    if (!wanted.valid() || others.GroupOf(wanted) != theirs) wanted = partner;
    // New nodes among equal ones shift the others, and do not exchange them.
    if (!asked.empty() && asked.back().second >= wanted) return {};
    const EntityId rival = matching.partner(kAfter, wanted);
    const bool is_free = !rival.valid() || std::ranges::binary_search(group, rival);
    if (!is_free || matching.forbidden(kAfter, wanted) || matching.vetoed(i, wanted)) return {};
    any_other |= wanted != partner;
    asked.emplace_back(i, wanted);
  }
  return any_other ? asked : std::vector<std::pair<EntityId, EntityId>>();
}

}  // namespace

bool ShiftEquals(Matching& matching, const std::vector<EqualNodes>& equals) {
  // The users of a group first: what it reads may be equal, too, and follows.
  std::vector<const EqualNodes::Group*> groups;
  for (const EqualNodes::Group& group : equals[kBefore].groups())
    groups.push_back(&group);
  std::ranges::sort(groups, std::greater<>(),
                    [](const EqualNodes::Group* group) { return group->back(); });
  bool any = false;
  for (const EqualNodes::Group* group : groups) {
    const auto asked = AskedFor(matching, *group, equals[kAfter]);
    std::vector<Matching::Made> shifted;
    for (const auto& [before, after] : asked) {
      if (matching.partner(kBefore, before) == after) continue;
      const Matching::Made& made = matching.made(kBefore, before);
      shifted.push_back({before, after, made.via, made.confidence});
      matching.Unmatch(before);
    }
    for (const Matching::Made& made : shifted)
      matching.Match(made.before, made.after, made.via, made.confidence);
    any |= !shifted.empty();
  }
  return any;
}

bool SettleEquals(Matching& matching, const ScopePair& scope,
                  const std::vector<EqualNodes>& equals) {
  bool any = false;
  const std::array<std::vector<EntityId>, 2> places = FixedPlaces(matching, scope, equals);
  const auto gap_of = [&](Side side, EntityId i) {
    return std::ranges::lower_bound(places[side], i) - places[side].begin();
  };
  for (Side side : {kBefore, kAfter}) {
    std::vector<EqualNodes::Group> open;  // one of them has a partner
    size_t merged = 0, kept_apart = 0;
    for (const EqualNodes::Group& group : equals[side].groups()) {
      const auto count =
          std::ranges::count_if(group, [&](EntityId i) { return matching.matched(side, i); });
      kept_apart += count > 1 ? 1 : 0;
      if (count != 1) continue;
      const Evidence evidence = LookAtUsers(matching, side, group);
      if (evidence.contradicted) continue;
      merged += evidence.confirmed ? 1 : 0;
      open.push_back(group);
    }
    // Where a common subexpression elimination has been, the first of several is left. Otherwise
    // the others have gone for another reason, and the position in the order shows which.
    const bool first_is_kept = merged > kKeptApart * kept_apart;
    for (const EqualNodes::Group& group : open) {
      const EntityId kept =
          *std::ranges::find_if(group, [&](EntityId i) { return matching.matched(side, i); });
      const EntityId partner = matching.partner(side, kept);
      EntityId best = kept;
      std::ptrdiff_t least = std::numeric_limits<std::ptrdiff_t>::max();
      for (EntityId member : group) {
        const EntityId before = side == kBefore ? member : partner;
        const EntityId after = side == kBefore ? partner : member;
        if (matching.forbidden(side, member) || matching.vetoed(before, after)) continue;
        const std::ptrdiff_t distance =
            first_is_kept ? 0 : std::abs(gap_of(kBefore, before) - gap_of(kAfter, after));
        if (distance >= least) continue;
        least = distance;
        best = member;
      }
      if (best == kept) continue;
      matching.PassOn(side, kept, best, kLocalConfidence);
      any = true;
    }
  }
  return any;
}

}  // namespace strata
