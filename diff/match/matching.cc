#include "diff/match/matching.h"

#include <algorithm>

#include "base/result.h"

namespace strata {

Matching::Matching(const Labels& before, const Labels& after) : labels_{&before, &after} {
  for (Side side : {kBefore, kAfter}) {
    const Labels& labels = *labels_[side];
    nodes_[side].resize(static_cast<size_t>(labels.size()));
    partners_[side].assign(static_cast<size_t>(labels.size()), -1);
    for (int32_t i = 0; i < labels.size(); ++i) {
      NodeState& node = nodes_[side][Index(i)];
      node.open_operands = static_cast<int32_t>(labels.operands(i).size());
      node.open_users = static_cast<int32_t>(labels.users(i).size());
    }
  }
}

void Matching::Match(int32_t before, int32_t after, Via via, double confidence) {
  STRATA_CHECK(!matched(kBefore, before) && !matched(kAfter, after) && SameKind(before, after));
  if (vetoed(before, after) || forbidden(kBefore, before) || forbidden(kAfter, after)) return;
  partners_[kBefore][Index(before)] = after;
  partners_[kAfter][Index(after)] = before;
  const uint64_t token = Mix(static_cast<uint64_t>(made_.size()), 0x7061697273ull) | 1;
  nodes_[kBefore][Index(before)].token = token;
  nodes_[kAfter][Index(after)].token = token;
  nodes_[kBefore][Index(before)].made = nodes_[kAfter][Index(after)].made =
      static_cast<int32_t>(made_.size());
  made_.push_back({before, after, via, confidence});
  Announce(kBefore, before, true);
  Announce(kAfter, after, true);
}

void Matching::LendToken(Side side, int32_t i, int32_t other) {
  STRATA_CHECK(!matched(side, i) && token(side, i) == 0 && matched(side, other));
  nodes_[side][Index(i)].token = token(side, other);
  Announce(side, i, true);
}

void Matching::Unmatch(int32_t before) {
  STRATA_CHECK(matched(kBefore, before));
  ++taken_back_;
  const std::array<int32_t, 2> pair{before, partner(kBefore, before)};
  Made& made = made_[Index(nodes_[kBefore][Index(before)].made)];
  made.before = made.after = -1;
  for (Side side : {kBefore, kAfter}) {
    Announce(side, pair[side], false);
    NodeState& node = nodes_[side][Index(pair[side])];
    partners_[side][Index(pair[side])] = node.made = -1;
    node.token = 0;
  }
}

void Matching::PassOn(Side side, int32_t from, int32_t to, double confidence) {
  NodeState& old_node = nodes_[side][Index(from)];
  NodeState& new_node = nodes_[side][Index(to)];
  STRATA_CHECK(matched(side, from) && !matched(side, to));
  ++taken_back_;
  Announce(side, from, false);
  std::swap(partners_[side][Index(from)], partners_[side][Index(to)]);
  std::swap(old_node.token, new_node.token);
  std::swap(old_node.made, new_node.made);
  Announce(side, to, true);
  partners_[1 - side][Index(partner(side, to))] = to;
  Made& made = made_[Index(new_node.made)];
  (side == kBefore ? made.before : made.after) = to;
  made.confidence = confidence;
}

void Matching::Announce(Side side, int32_t i, bool is_new) {
  const uint64_t token = nodes_[side][Index(i)].token;
  nodes_[side][Index(i)].changed = ++clock_;
  // What has left is subtracted: sums wrap around.
  const int32_t one = is_new ? 1 : -1;
  const uint64_t sign = is_new ? 1 : ~uint64_t{0};
  for (const Labels::Edge& user : labels_[side]->users(i)) {
    NodeState& node = nodes_[side][Index(user.entity)];
    node.changed = clock_;
    node.open_operands -= one;
    node.operand_sum += sign * Mix(token, node.slotless ? 0 : static_cast<uint64_t>(user.slot));
    node.operand_set += sign * token;
  }
  const bool slotless = nodes_[side][Index(i)].slotless;
  for (const Labels::Edge& operand : labels_[side]->operands(i)) {
    NodeState& node = nodes_[side][Index(operand.entity)];
    node.changed = clock_;
    node.open_users -= one;
    node.user_sum += sign * Mix(token, slotless ? 0 : static_cast<uint64_t>(operand.slot));
  }
}

Matching::EdgeScore Matching::Score(int32_t before, int32_t after) const {
  EdgeScore score;
  const auto operands_before = labels_[kBefore]->operands(before);
  const auto operands_after = labels_[kAfter]->operands(after);
  const size_t slots = std::min({operands_before.size(), operands_after.size(), kMaxEdges});
  for (size_t slot = 0; slot < slots; ++slot) {
    const int32_t image = partner(kBefore, operands_before[slot].entity);
    if (image == operands_after[slot].entity) {
      ++score.agree;
    } else if (image >= 0 && image != after && matched(kAfter, operands_after[slot].entity) &&
               partner(kAfter, operands_after[slot].entity) != before) {
      const bool elsewhere =
          std::ranges::any_of(operands_after.first(std::min(operands_after.size(), kMaxEdges)),
                              [&](const Labels::Edge& operand) { return operand.entity == image; });
      score.contradict += elsewhere ? 0 : 1;
    } else if (image >= 0 || matched(kAfter, operands_after[slot].entity)) {
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
    const int32_t mine = side == kBefore ? before : after, other = side == kBefore ? after : before;
    for (const Labels::Edge& user : labels_[side]->users(mine)) {
      const int32_t image = partner(side, user.entity);
      if (image < 0 || image == other) continue;
      const auto operands = labels_[1 - side]->operands(image);
      const auto slot = Index(user.slot);
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

bool Matching::SameOperands(int32_t before, int32_t after) const {
  const auto a = labels_[kBefore]->operands(before), b = labels_[kAfter]->operands(after);
  return !a.empty() && a.size() == b.size() && !slotless(kBefore, before) &&
         std::ranges::equal(a, b, [&](const Labels::Edge& x, const Labels::Edge& y) {
           return partner(kBefore, x.entity) == y.entity;
         });
}

int32_t Matching::StandIn(Side side, int32_t i) const {
  int32_t stand_in = -1;
  const auto users = labels_[side]->users(i);
  for (const Labels::Edge& user : users.first(std::min(users.size(), kMaxEdges))) {
    const int32_t image = partner(side, user.entity);
    if (image < 0 || slotless(side, user.entity)) continue;
    const auto operands = labels_[1 - side]->operands(image);
    if (Index(user.slot) >= operands.size()) return -1;
    const int32_t here = operands[Index(user.slot)].entity;
    if (stand_in >= 0 && here != stand_in) return -1;
    stand_in = here;
  }
  return stand_in;
}

std::vector<int32_t> Matching::Unmatched(Side side, const ScopePair& scope) const {
  std::vector<int32_t> unmatched;
  for (int32_t i = scope.begin[side]; i < scope.end[side]; ++i) {
    if (!matched(side, i) && !forbidden(side, i)) unmatched.push_back(i);
  }
  return unmatched;
}

bool Matching::AnyUnmatched(Side side, const ScopePair& scope) const {
  for (int32_t i = scope.begin[side]; i < scope.end[side]; ++i) {
    if (!matched(side, i) && !forbidden(side, i)) return true;
  }
  return false;
}

std::vector<std::pair<int32_t, int32_t>> Matching::Anchors(const ScopePair& scope) const {
  std::vector<OrderPoint> points;
  for (int32_t i = scope.begin[kBefore]; i < scope.end[kBefore]; ++i) {
    const int32_t image = partner(kBefore, i);
    // A pin may join nodes of different bodies.
    if (image >= scope.begin[kAfter] && image < scope.end[kAfter]) points.push_back({i, image});
  }
  const std::vector<bool> kept = LargestOrderedSet(points);
  std::vector<std::pair<int32_t, int32_t>> anchors;
  for (size_t i = 0; i < points.size(); ++i) {
    if (kept[i]) anchors.emplace_back(points[i].before, points[i].after);
  }
  return anchors;
}

}  // namespace strata
