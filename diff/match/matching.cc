#include "diff/match/matching.h"

#include <algorithm>
#include <span>

#include "base/result.h"
#include "diff/graph/large_arrays.h"

namespace strata {

Matching::Matching(const Labels& before, const Labels& after) : labels_{&before, &after} {
  // Growth would copy it, and it is large.
  ReserveLarge(made_, std::min(before.size(), after.size()));
  for (Side side : {kBefore, kAfter}) {
    const Labels& labels = *labels_[side];
    AssignLarge(partners_[side], labels.size(), EntityId{});
    forbidden_[side].assign(labels.size(), false);
    slotless_[side].assign(labels.size(), false);
    AssignLarge(made_of_[side], labels.size(), -1);
    AssignLarge(changed_[side], labels.size(), 0u);
    AssignLarge(open_[side], labels.size(), OpenEdges{});
    for (EntityId i : labels.ids()) {
      const auto operands = labels.operands(i);
      const auto users = labels.users(i);
      open_[side][i] = {static_cast<int32_t>(operands.size()), static_cast<int32_t>(users.size())};
      if (!AreMany(operands) && !AreMany(users)) continue;
      if (sums_[side].empty()) hub_of_[side].resize(labels.size());
      hub_of_[side][i] = static_cast<uint32_t>(sums_[side].size());
      sums_[side].emplace_back();
    }
  }
}

void Matching::Match(EntityId before, EntityId after, Via via, double confidence) {
  STRATA_CHECK(!matched(kBefore, before) && !matched(kAfter, after) && SameKind(before, after));
  if (vetoed(before, after) || forbidden(kBefore, before) || forbidden(kAfter, after)) return;
  partners_[kBefore][before] = after;
  partners_[kAfter][after] = before;
  made_of_[kBefore][before] = made_of_[kAfter][after] = static_cast<int32_t>(made_.size());
  made_.push_back({before, after, via, confidence});
  Announce(kBefore, before, true);
  Announce(kAfter, after, true);
}

void Matching::LendToken(Side side, EntityId i, EntityId other) {
  STRATA_CHECK(!matched(side, i) && token(side, i) == 0 && matched(side, other));
  made_of_[side][i] = made_of_[side][other];
  Announce(side, i, true);
}

void Matching::Unmatch(EntityId before) {
  STRATA_CHECK(matched(kBefore, before));
  ++taken_back_;
  const std::array<EntityId, 2> pair{before, partner(kBefore, before)};
  Made& made = made_[static_cast<size_t>(made_of_[kBefore][before])];
  made.before = made.after = {};
  for (Side side : {kBefore, kAfter}) {
    Announce(side, pair[side], false);
    partners_[side][pair[side]] = {};
    made_of_[side][pair[side]] = -1;
  }
}

void Matching::PassOn(Side side, EntityId from, EntityId to, double confidence) {
  STRATA_CHECK(matched(side, from) && !matched(side, to));
  ++taken_back_;
  Announce(side, from, false);
  std::swap(partners_[side][from], partners_[side][to]);
  std::swap(made_of_[side][from], made_of_[side][to]);
  Announce(side, to, true);
  partners_[1 - side][partner(side, to)] = to;
  Made& made = made_[static_cast<size_t>(made_of_[side][to])];
  (side == kBefore ? made.before : made.after) = to;
  made.confidence = confidence;
}

void Matching::Announce(Side side, EntityId i, bool is_new) {
  const uint64_t token = this->token(side, i);
  changed_[side][i] = ++clock_;
  // What has left is subtracted: sums wrap around.
  const int32_t one = is_new ? 1 : -1;
  const uint64_t sign = is_new ? 1 : ~uint64_t{0};
  for (const Labels::Edge& user : labels_[side]->users(i)) {
    changed_[side][user.entity] = clock_;
    open_[side][user.entity].operands -= one;
    if (!AreMany(labels_[side]->operands(user.entity))) continue;
    Sums& sums = SumsOf(side, user.entity);
    sums.operands += sign * TermOf(token, side, user.entity, user.slot);
    sums.operand_set += sign * token;
  }
  for (const Labels::Edge& operand : labels_[side]->operands(i)) {
    changed_[side][operand.entity] = clock_;
    open_[side][operand.entity].users -= one;
    if (!AreMany(labels_[side]->users(operand.entity))) continue;
    SumsOf(side, operand.entity).users += sign * TermOf(token, side, i, operand.slot);
  }
}

Matching::EdgeScore Matching::Score(EntityId before, EntityId after) const {
  EdgeScore score;
  const auto operands_before = labels_[kBefore]->operands(before);
  const auto operands_after = labels_[kAfter]->operands(after);
  const size_t slots = std::min({operands_before.size(), operands_after.size(), kMaxEdges});
  for (size_t slot = 0; slot < slots; ++slot) {
    const EntityId image = partner(kBefore, operands_before[slot].entity);
    if (image == operands_after[slot].entity) {
      ++score.agree;
    } else if (image.valid() && image != after && matched(kAfter, operands_after[slot].entity) &&
               partner(kAfter, operands_after[slot].entity) != before) {
      const bool elsewhere =
          std::ranges::any_of(operands_after.first(std::min(operands_after.size(), kMaxEdges)),
                              [&](const Labels::Edge& operand) { return operand.entity == image; });
      score.contradict += elsewhere ? 0 : 1;
    } else if (image.valid() || matched(kAfter, operands_after[slot].entity)) {
      ++score.lopsided;
    }
  }
  score.lopsided += static_cast<int32_t>(std::max(operands_before.size(), operands_after.size()) -
                                         std::min(operands_before.size(), operands_after.size()));
  if (labels_[kBefore]->users(before).size() > kMaxEdges ||
      labels_[kAfter]->users(after).size() > kMaxEdges) {
    return score;
  }
  // A user that reads a new node now contradicts nothing; one that reads another old node does.
  std::array<int32_t, 2> contradict{0, 0};
  for (Side side : {kBefore, kAfter}) {
    const EntityId mine = side == kBefore ? before : after,
                   other = side == kBefore ? after : before;
    for (const Labels::Edge& user : labels_[side]->users(mine)) {
      const EntityId image = partner(side, user.entity);
      if (!image.valid() || image == other) continue;
      const auto operands = labels_[1 - side]->operands(image);
      const auto slot = static_cast<size_t>(user.slot);
      if (slotless(side, user.entity)) {
        score.agreeing_users += side == kBefore && labels_[kAfter]->Reads(image, other) ? 1 : 0;
      } else if (slot < operands.size() && operands[slot].entity == other) {
        score.agreeing_users += side == kBefore ? 1 : 0;
      } else if (slot < operands.size() && matched(1 - side, operands[slot].entity) &&
                 partner(1 - side, operands[slot].entity) != mine) {
        ++contradict[side];
      }
    }
  }
  score.contradicting_users = std::max(contradict[kBefore], contradict[kAfter]);
  score.agree += score.agreeing_users;
  score.contradict += score.contradicting_users;
  return score;
}

bool Matching::SameOperands(EntityId before, EntityId after) const {
  const auto a = labels_[kBefore]->operands(before), b = labels_[kAfter]->operands(after);
  return !a.empty() && a.size() == b.size() && !slotless(kBefore, before) &&
         std::ranges::equal(a, b, [&](const Labels::Edge& x, const Labels::Edge& y) {
           return partner(kBefore, x.entity) == y.entity;
         });
}

EntityId Matching::StandIn(Side side, EntityId i) const {
  EntityId stand_in;
  const auto users = labels_[side]->users(i);
  for (const Labels::Edge& user : users.first(std::min(users.size(), kMaxEdges))) {
    const EntityId image = partner(side, user.entity);
    if (!image.valid() || slotless(side, user.entity)) continue;
    const auto operands = labels_[1 - side]->operands(image);
    if (static_cast<size_t>(user.slot) >= operands.size()) return {};
    const EntityId here = operands[static_cast<size_t>(user.slot)].entity;
    if (stand_in.valid() && here != stand_in) return {};
    stand_in = here;
  }
  return stand_in;
}

std::vector<EntityId> Matching::Unmatched(Side side, const ScopePair& scope) const {
  const std::span<const EntityId> partners =
      std::span(partners_[side].values())
          .subspan(static_cast<size_t>(scope.begin[side].index), scope.size(side));
  std::vector<EntityId> unmatched;
  ReserveLarge(unmatched, static_cast<size_t>(std::ranges::count(partners, EntityId{})));
  for (EntityId i : scope.ids(side)) {
    if (!matched(side, i) && !forbidden(side, i)) unmatched.push_back(i);
  }
  return unmatched;
}

bool Matching::AnyUnmatched(Side side, const ScopePair& scope) const {
  for (EntityId i : scope.ids(side)) {
    if (!matched(side, i) && !forbidden(side, i)) return true;
  }
  return false;
}

std::vector<std::pair<EntityId, EntityId>> Matching::Anchors(const ScopePair& scope) const {
  std::vector<OrderPoint> points;
  for (EntityId i : scope.ids(kBefore)) {
    const EntityId image = partner(kBefore, i);
    // A pin may join nodes of different bodies.
    if (image >= scope.begin[kAfter] && image < scope.end[kAfter])
      points.push_back({i.index, image.index});
  }
  const std::vector<bool> kept = LargestOrderedSet(points);
  std::vector<std::pair<EntityId, EntityId>> anchors;
  for (size_t i = 0; i < points.size(); ++i) {
    if (kept[i]) anchors.emplace_back(EntityId{points[i].before}, EntityId{points[i].after});
  }
  return anchors;
}

}  // namespace strata
