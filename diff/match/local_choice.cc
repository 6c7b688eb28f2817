#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "diff/match/local_tier.h"

namespace strata {

void LocalMatcher::Choose(const Tier& tier, std::vector<EntityId> before,
                          std::vector<EntityId> after) {
  const PositionMap& positions = Positions();
  struct Merit {
    int32_t edges;
    int32_t kin;       // unmatched users that look alike
    int32_t lopsided;  // where a new node is read, an old one should be gone
    int64_t distance;  // in 1/1024 places, so that rounding does not decide
    bool Better(const Merit& other) const {
      if (edges != other.edges) return edges > other.edges;
      if (kin != other.kin) return kin > other.kin;
      return std::pair(lopsided, distance) < std::pair(other.lopsided, other.distance);
    }
    bool operator==(const Merit&) const = default;
  };
  // Best partner of each row and column; none if two are equally good.
  for (bool progress = true; progress && !before.empty() && !after.empty();) {
    const size_t n = before.size(), m = after.size();
    constexpr size_t kTie = ~size_t{0};
    constexpr Merit kWorst{std::numeric_limits<int32_t>::min(), 0, 0, 0};
    std::vector<Merit> best_of_row(n, kWorst), best_of_column(m, kWorst);
    std::vector<size_t> row_choice(n, kTie), column_choice(m, kTie);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < m; ++j) {
        if (matching_.vetoed(before[i], after[j])) continue;
        const Matching::EdgeScore score = matching_.Score(before[i], after[j]);
        const Merit merit{score.agree - score.contradict,
                          tier.label == LabelKind::kOp ? NumKin(before[i], after[j]) : 0,
                          score.lopsided,
                          std::llround(positions.Distance(before[i].index, after[j].index) * 1024)};
        const auto offer = [&](Merit& best, size_t& choice, size_t index) {
          if (merit.Better(best)) {
            best = merit;
            choice = index;
          } else if (merit == best) {
            choice = kTie;
          }
        };
        offer(best_of_row[i], row_choice[i], j);
        offer(best_of_column[j], column_choice[j], i);
      }
    }
    const size_t made = matching_.made().size();
    for (size_t i = 0; i < n; ++i) {
      if (row_choice[i] != kTie && column_choice[row_choice[i]] == i) {
        Accept(tier, before[i], after[row_choice[i]]);
      }
    }
    progress = matching_.made().size() > made;
    std::erase_if(before, [&](EntityId i) { return matching_.matched(kBefore, i); });
    std::erase_if(after, [&](EntityId i) { return matching_.matched(kAfter, i); });
  }
}

int32_t LocalMatcher::NumKin(EntityId before, EntityId after) const {
  const auto labels_of = [&](Side side, EntityId i) {
    std::vector<uint64_t> labels;
    const auto users = matching_.labels(side).users(i);
    if (users.size() > Matching::kMaxEdges) return labels;
    for (const Labels::Edge& user : users) {
      if (matching_.matched(side, user.entity)) continue;
      const uint64_t type = matching_.labels(side).type[user.entity];
      labels.push_back(Mix(type, static_cast<uint64_t>(matching_.SlotOfUser(side, user))));
    }
    std::ranges::sort(labels);
    return labels;
  };
  std::vector<uint64_t> common;
  std::ranges::set_intersection(labels_of(kBefore, before), labels_of(kAfter, after),
                                std::back_inserter(common));
  return static_cast<int32_t>(common.size());
}

void LocalMatcher::Accept(const Tier& tier, EntityId before, EntityId after) {
  // Another key of the same visit may have been first.
  if (matching_.matched(kBefore, before) || matching_.matched(kAfter, after)) return;
  if (!matching_.SameKind(before, after)) return;
  // Where one more node of the same label was put on top of another, users cannot show which of
  // them was there before; operands can, and count more.
  const bool by_users = tier.where != Tier::Where::kUsers && tier.key != Tier::Key::kAllEdges;
  if (by_users && StackHeight(kBefore, before) != StackHeight(kAfter, after)) return;
  if (tier.key == Tier::Key::kEdge) {
    const Matching::EdgeScore score = matching_.Score(before, after);
    if (score.agree <= score.contradict) return;
    const bool is_last_resort = tier.label == LabelKind::kOp;
    if (!is_last_resort && HasRival(before, after, score.agree - score.contradict)) return;
  }
  const bool same_type =
      matching_.labels(kBefore).type[before] == matching_.labels(kAfter).type[after];
  if (tier.key == Tier::Key::kThroughOperands && !tier.choose && !same_type &&
      (HasRival(before, after, 1) || HasDouble(before, after))) {
    return;
  }
  matching_.Match(before, after, Via::kLocal, tier.confidence);
}

bool LocalMatcher::HasDouble(EntityId before, EntityId after) const {
  const auto direct = [&](Side side, EntityId i) { return matching_.open_operands(side, i) == 0; };
  if (direct(kBefore, before) && direct(kAfter, after)) return false;
  const auto has_double = [&](Side side, EntityId image) {
    const uint64_t type = matching_.labels(1 - side).type[image];
    return std::ranges::any_of(
        std::ranges::equal_range(ByType(side), type, {}, &Keyed::key),
        [&](const Keyed& keyed) { return !matching_.matched(side, keyed.entity); });
  };
  return has_double(kBefore, after) || has_double(kAfter, before);
}

const std::vector<Keyed>& LocalMatcher::ByType(Side side) const {
  std::optional<std::vector<Keyed>>& by_type = by_type_[side];
  if (!by_type) {
    by_type.emplace();
    for (EntityId i : matching_.Unmatched(side, scope_))
      by_type->push_back({matching_.labels(side).type[i], i});
    SortKeys(*by_type);
  }
  return *by_type;
}

bool LocalMatcher::HasRival(EntityId before, EntityId after, int merit) const {
  return HasRival(kBefore, before, after, merit) || HasRival(kAfter, after, before, merit);
}

bool LocalMatcher::HasRival(Side side, EntityId i, EntityId image, int merit) const {
  const Labels& mine = matching_.labels(side);
  const Labels& others = matching_.labels(1 - side);
  const auto is_rival = [&](EntityId rival) {
    if (rival == i || matching_.matched(side, rival) || matching_.forbidden(side, rival) ||
        mine.type[rival] != others.type[image]) {
      return false;
    }
    const Matching::EdgeScore score =
        side == kBefore ? matching_.Score(rival, image) : matching_.Score(image, rival);
    return score.agree - score.contradict >= merit;
  };
  const auto operands = others.operands(image);
  for (const Labels::Edge& edge : operands.first(std::min(operands.size(), Matching::kMaxEdges))) {
    const EntityId source = matching_.partner(1 - side, edge.entity);
    if (!source.valid() || mine.users(source).size() > Matching::kMaxEdges) continue;
    for (const Labels::Edge& user : mine.users(source)) {
      if (user.slot == edge.slot && is_rival(user.entity)) return true;
    }
  }
  const auto users = others.users(image);
  for (const Labels::Edge& edge : users.first(std::min(users.size(), Matching::kMaxEdges))) {
    const EntityId user = matching_.partner(1 - side, edge.entity);
    if (!user.valid() || matching_.slotless(side, user)) continue;
    const auto read = mine.operands(user);
    const auto slot = static_cast<size_t>(edge.slot);
    if (slot < read.size() && is_rival(read[slot].entity)) return true;
  }
  return false;
}

int LocalMatcher::StackHeight(Side side, EntityId i) const {
  const Labels& labels = matching_.labels(side);
  const uint64_t type = labels.type[i];
  int height = 0;
  for (int step = 0; step < Tier::kMaxStack; ++step) {
    const auto operands = labels.operands(i);
    if (operands.size() > Matching::kMaxEdges) return height;
    const auto below = std::ranges::find_if(operands, [&](const Labels::Edge& operand) {
      return !matching_.matched(side, operand.entity) && labels.type[operand.entity] == type;
    });
    if (below != operands.end()) {
      i = (*below).entity;
      ++height;
      continue;
    }
    // Others may stand between the two.
    if (operands.size() != 1 || matching_.matched(side, operands[0].entity)) return height;
    i = operands[0].entity;
  }
  return height;
}

}  // namespace strata
