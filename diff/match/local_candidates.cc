#include <algorithm>
#include <array>

#include "diff/match/local_tier.h"

namespace strata {

template <class Fn>
void LocalMatcher::ForEachOpenUser(Side side, EntityId center, int steps, Fn&& fn) const {
  if (matching_.open_users(side, center) == 0) return;
  const Labels& labels = matching_.labels(side);
  for (const Labels::Edge& user : labels.users(center)) {
    if (matching_.matched(side, user.entity) || matching_.forbidden(side, user.entity)) continue;
    fn(user.entity, matching_.SlotOfUser(side, user));
    if (steps > 0 && labels.operands(user.entity).size() == 1 &&
        labels.users(user.entity).size() <= Matching::kMaxEdges) {
      ForEachOpenUser(side, user.entity, steps - 1, fn);
    }
  }
}

template <class Fn>
void LocalMatcher::ForEachOpenOperand(Side side, EntityId center, int steps, Fn&& fn) const {
  // To be one of many results proves nothing.
  if (matching_.open_operands(side, center) == 0 || matching_.slotless(side, center)) return;
  const Labels& labels = matching_.labels(side);
  for (const Labels::Edge& operand : labels.operands(center)) {
    EntityId candidate = operand.entity;
    for (int step = 0; !matching_.matched(side, candidate) && !matching_.forbidden(side, candidate);
         ++step) {
      fn(candidate, ~operand.slot);
      if (step == steps || labels.operands(candidate).size() != 1) break;
      candidate = labels.operands(candidate)[0].entity;
    }
  }
}

void LocalMatcher::Collect(const Tier& tier, Side side, EntityId center) {
  const auto add = [&](EntityId candidate, int32_t slot) {
    AddCandidate(tier, side, candidate, slot);
  };
  if (tier.where != Tier::Where::kOperands) {
    ForEachOpenUser(side, center, tier.key == Tier::Key::kThroughOperands ? Tier::kMaxSteps : 0,
                    add);
  }
  if (tier.where != Tier::Where::kUsers) {
    ForEachOpenOperand(side, center, tier.key == Tier::Key::kThroughUsers ? Tier::kMaxSteps : 0,
                       add);
  }
}

uint32_t LocalMatcher::TiersWorthwhile(EntityId before, EntityId after) {
  uint32_t worthwhile = 0;
  for (const Tier::Where where : {Tier::Where::kUsers, Tier::Where::kOperands}) {
    for (Side side : {kBefore, kAfter}) {
      const EntityId center = side == kBefore ? before : after;
      around_[side].clear();
      const auto add = [&](EntityId candidate, int32_t) { around_[side].push_back(candidate); };
      if (where == Tier::Where::kUsers) {
        ForEachOpenUser(side, center, Tier::kMaxSteps, add);
      } else {
        ForEachOpenOperand(side, center, Tier::kMaxSteps, add);
      }
      if (around_[side].empty()) break;
    }
    if (around_[kBefore].empty() || around_[kAfter].empty()) continue;
    // One bit per label: two labels seldom share one, and then a visit is in vain. A form counts
    // where it is specific.
    const auto have_in_common = [&](LabelKind label) {
      std::array<uint64_t, 2> bits{};
      for (Side side : {kBefore, kAfter}) {
        for (EntityId i : around_[side]) {
          if (label == LabelKind::kForm && !matching_.labels(side).telling[i]) continue;
          bits[side] |= uint64_t{1} << (matching_.labels(side).Of(label, i) >> 58);
        }
      }
      return (bits[kBefore] & bits[kAfter]) != 0;
    };
    const bool op = have_in_common(LabelKind::kOp), form = have_in_common(LabelKind::kForm);
    const bool type = op && have_in_common(LabelKind::kType);
    for (size_t k = 0; k < kNumTiers; ++k) {
      const auto label = kTiers[k].label;
      const bool common = !label                      ? true
                          : label == LabelKind::kType ? type
                          : label == LabelKind::kForm ? form
                                                      : op;
      const bool looks = kTiers[k].where == where || kTiers[k].where == Tier::Where::kBoth;
      if (common && looks) worthwhile |= uint32_t{1} << k;
    }
  }
  return worthwhile;
}

void LocalMatcher::AddCandidate(const Tier& tier, Side side, EntityId candidate, int32_t slot) {
  const Labels& labels = matching_.labels(side);
  if (tier.label == LabelKind::kForm && !labels.telling[candidate]) return;
  const int32_t open_operands = matching_.open_operands(side, candidate);
  const int32_t open_users = matching_.open_users(side, candidate);
  uint64_t key = 0;
  switch (tier.key) {
    case Tier::Key::kAllEdges:
      if (open_operands > 0 || open_users > 0) return;
      // Without its operator, only a node between others is known by its edges.
      if (!tier.label && (labels.operands(candidate).empty() || labels.users(candidate).empty())) {
        return;
      }
      key = Mix(matching_.operand_sum(side, candidate), matching_.user_sum(side, candidate));
      break;
    case Tier::Key::kAllOperands:
      if (open_operands > 0) return;
      key = matching_.operand_sum(side, candidate);
      break;
    case Tier::Key::kOperandSet:
      if (open_operands > 0) return;
      key = matching_.operand_set(side, candidate);
      break;
    case Tier::Key::kAllUsers:
      if (open_users > 0) return;
      key = matching_.user_sum(side, candidate);
      break;
    case Tier::Key::kThroughOperands:
      key = OperandsThroughUnary(side, candidate);
      if (key == 0) return;
      break;
    case Tier::Key::kThroughUsers:
      // All inputs have one label: what was computed from one may be another input now.
      if (labels.kind[candidate] == EntityKind::kInput) return;
      key = UsersThroughUnary(side, candidate, Tier::kMaxSteps);
      if (key == 0) return;
      break;
    case Tier::Key::kEdge:
      key = Spread(static_cast<uint64_t>(static_cast<uint32_t>(slot)));
      break;
  }
  const uint64_t label = tier.label ? labels.Of(*tier.label, candidate)
                                    : static_cast<uint64_t>(labels.kind[candidate]);
  candidates_[side].push_back({Mix(label, key), candidate});
}

uint64_t LocalMatcher::OperandsThroughUnary(Side side, EntityId i) const {
  const Labels& labels = matching_.labels(side);
  const auto operands = labels.operands(i);
  if (operands.size() > Matching::kMaxEdges) return 0;
  uint64_t sum = 1;
  for (const Labels::Edge& operand : operands) {
    EntityId source = operand.entity;
    for (int step = 0; !matching_.matched(side, source); ++step) {
      if (const EntityId equal = MatchedEqual(side, source); equal.valid()) {
        source = equal;
        break;
      }
      if (step == Tier::kMaxSteps || labels.operands(source).size() != 1) return 0;
      source = labels.operands(source)[0].entity;
    }
    sum += Mix(matching_.token(side, source), static_cast<uint64_t>(operand.slot));
  }
  return sum;
}

EntityId LocalMatcher::MatchedEqual(Side side, EntityId i) const {
  const EqualNodes::Group* group = equals_[side].GroupOf(i);
  if (group == nullptr) return {};
  const auto found =
      std::ranges::find_if(*group, [&](EntityId j) { return matching_.matched(side, j); });
  return found == group->end() ? EntityId{} : *found;
}

uint64_t LocalMatcher::UsersThroughUnary(Side side, EntityId i, int steps) const {
  const Labels& labels = matching_.labels(side);
  const auto users = labels.users(i);
  if (users.empty() || users.size() > Matching::kMaxEdges) return 0;
  uint64_t sum = 0;
  for (const Labels::Edge& user : users) {
    if (matching_.matched(side, user.entity)) {
      const auto slot = static_cast<uint64_t>(matching_.SlotOfUser(side, user));
      sum += Mix(matching_.token(side, user.entity), slot);
      continue;
    }
    if (steps == 0 || labels.operands(user.entity).size() != 1) return 0;
    const uint64_t beyond = UsersThroughUnary(side, user.entity, steps - 1);
    if (beyond == 0) return 0;
    sum += beyond;
  }
  return sum;
}

}  // namespace strata
