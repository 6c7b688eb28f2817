#include "diff/match/local.h"

#include <algorithm>
#include <iterator>

#include "diff/graph/large_arrays.h"
#include "diff/graph/parallel.h"
#include "diff/match/local_tier.h"

namespace strata {
// Weaker tiers get a turn only when stronger ones have nothing to do: see Run. Confidences, here
// and in the other stages: the share of right claims over the mutations of bench/diff_eval
// with seeds 1 to 3, rounded down; see docs/diff.md for their accuracy.
const LocalMatcher::Tier LocalMatcher::kTiers[] = {
    {Tier::Where::kBoth, Tier::Key::kAllEdges, false, LabelKind::kType, 0.999},
    {Tier::Where::kUsers, Tier::Key::kAllOperands, false, LabelKind::kType, 0.998},
    {Tier::Where::kOperands, Tier::Key::kAllUsers, false, LabelKind::kType, 0.999},
    {Tier::Where::kUsers, Tier::Key::kThroughOperands, false, LabelKind::kLiterals, 0.996},
    {Tier::Where::kUsers, Tier::Key::kThroughOperands, false, LabelKind::kOp, 0.99},
    {Tier::Where::kUsers, Tier::Key::kOperandSet, false, LabelKind::kType, 0.995},
    {Tier::Where::kBoth, Tier::Key::kAllEdges, false, std::nullopt, 0.995},
    {Tier::Where::kUsers, Tier::Key::kThroughOperands, false, LabelKind::kForm, 0.98},
    {Tier::Where::kBoth, Tier::Key::kAllEdges, true, LabelKind::kType, 0.98},
    {Tier::Where::kUsers, Tier::Key::kAllOperands, true, LabelKind::kType, 0.988},
    {Tier::Where::kOperands, Tier::Key::kAllUsers, true, LabelKind::kType, 0.96},
    {Tier::Where::kUsers, Tier::Key::kEdge, false, LabelKind::kType, 0.993},
    {Tier::Where::kOperands, Tier::Key::kEdge, false, LabelKind::kType, 0.975},
    {Tier::Where::kUsers, Tier::Key::kEdge, true, LabelKind::kType, 0.92},
    {Tier::Where::kOperands, Tier::Key::kEdge, true, LabelKind::kType, 0.95},
    {Tier::Where::kUsers, Tier::Key::kThroughOperands, true, LabelKind::kLiterals, 0.995},
    {Tier::Where::kOperands, Tier::Key::kAllUsers, false, LabelKind::kForm, 0.98},
    {Tier::Where::kUsers, Tier::Key::kAllOperands, true, LabelKind::kForm, 0.98},
    {Tier::Where::kBoth, Tier::Key::kEdge, true, LabelKind::kOp, 0.93},
    {Tier::Where::kOperands, Tier::Key::kThroughUsers, true, LabelKind::kOp, 0.93},
};

LocalMatcher::LocalMatcher(Matching& matching) : matching_(matching) {
  static_assert(std::size(kTiers) == kNumTiers);
}

void LocalMatcher::Run(const ScopePair& scope) {
  if (!(scope_ == scope)) positions_made_ = 0;
  if (!(scope_ == scope) || by_type_taken_back_ != matching_.taken_back()) by_type_ = {};
  by_type_taken_back_ = matching_.taken_back();
  EqualsOf(scope);
  TakeInNewPairs();
  for (size_t tier = 0; tier < kNumTiers;) {
    if (tier == kFirstWeak) FindWeakerVisits();
    const size_t num_visits = tier < kFirstWeak ? visits_.size() : weaker_visits_.size();
    if (next_visit_[tier] == num_visits) {
      ++tier;
      continue;
    }
    const EntityId before = NextVisit(tier);
    if (!before.valid()) continue;
    const size_t made = matching_.made().size();
    Visit(kTiers[tier], before, matching_.partner(kBefore, before));
    if (matching_.made().size() == made) continue;
    TakeInNewPairs();
    tier = 0;
  }
  // Pairs may be taken back before the next run.
  visits_.clear();
  weaker_visits_.clear();
  next_weaker_ = 0;
  next_visit_ = {};
}

bool LocalMatcher::IsDone(EntityId before, EntityId after) const {
  const auto is_done = [&](Side side, EntityId i) {
    return matching_.open_operands(side, i) + matching_.open_users(side, i) == 0;
  };
  return is_done(kBefore, before) || is_done(kAfter, after);
}

EntityId LocalMatcher::NextVisit(size_t tier) {
  const size_t next = next_visit_[tier]++;
  if (tier >= kFirstWeak) {
    const Turn& turn = weaker_visits_[next];
    return (turn.tiers >> tier & 1) != 0 ? turn.before : EntityId{};
  }
  const EntityId before = visits_[next];
  return IsDone(before, matching_.partner(kBefore, before)) ? EntityId{} : before;
}

void LocalMatcher::FindWeakerVisits() {
  for (; next_weaker_ < visits_.size(); ++next_weaker_) {
    const EntityId before = visits_[next_weaker_], after = matching_.partner(kBefore, before);
    if (IsDone(before, after)) continue;
    const uint32_t tiers = TiersWorthwhile(before, after);
    if (tiers >> kFirstWeak != 0) weaker_visits_.push_back({before, tiers});
  }
}

const std::vector<EqualNodes>& LocalMatcher::EqualsOf(const ScopePair& scope) {
  if (!(scope_ == scope)) {
    std::array<std::optional<EqualNodes>, 2> equals;
    const auto find = [&](Side side) { equals[side].emplace(matching_.labels(side), scope, side); };
    const auto size = scope.size(kBefore);
    AtOnce(size, [&] { find(kBefore); }, [&] { find(kAfter); });
    equals_ = {std::move(*equals[kBefore]), std::move(*equals[kAfter])};
  }
  scope_ = scope;
  return equals_;
}

void LocalMatcher::TakeInNewPairs() {
  // Not before: where cones match everything, or while neighbourhoods are hashed, it is not needed.
  if (open_when_visited_.empty())
    AssignLarge(open_when_visited_, matching_.labels(kBefore).size(), 0);
  // A new pair is a reason to look around it, and again around its neighbours that are nearly done:
  // what was ambiguous there may not be so any more.
  constexpr int32_t kNearlyDone = 8;
  const auto look_again = [&](const auto& edges) {
    for (const Labels::Edge& edge : edges.first(std::min(edges.size(), Matching::kMaxEdges))) {
      if (!matching_.matched(kBefore, edge.entity)) continue;
      const int32_t open = matching_.open_operands(kBefore, edge.entity) +
                           matching_.open_users(kBefore, edge.entity);
      int32_t& last_open = open_when_visited_[edge.entity];
      if (open == 0 || open > kNearlyDone || open == last_open) continue;
      last_open = open;
      visits_.push_back(edge.entity);
    }
  };
  for (; taken_in_ < matching_.made().size(); ++taken_in_) {
    const EntityId before = matching_.made()[taken_in_].before;
    if (!before.valid()) continue;
    visits_.push_back(before);
    look_again(matching_.labels(kBefore).operands(before));
    look_again(matching_.labels(kBefore).users(before));
  }
}

void LocalMatcher::Visit(const Tier& tier, EntityId before, EntityId after) {
  for (Side side : {kBefore, kAfter}) {
    const EntityId center = side == kBefore ? before : after;
    candidates_[side].clear();
    Collect(tier, side, center);
    if (candidates_[side].empty()) return;
  }
  // Mostly there is one on each side.
  if (candidates_[kBefore].size() == 1 && candidates_[kAfter].size() == 1) {
    const Keyed a = candidates_[kBefore][0], b = candidates_[kAfter][0];
    if (a.key == b.key) Accept(tier, a.entity, b.entity);
    return;
  }
  // Nodes between thousands of the same neighbours are the candidates of each of these.
  constexpr size_t kMany = 64;
  Fruitless& fruitless = fruitless_[static_cast<size_t>(&tier - kTiers)];
  const bool many = candidates_[kBefore].size() > kMany;
  if (many && fruitless.made == matching_.made().size() && fruitless.candidates == candidates_) {
    return;
  }
  if (many) {
    fruitless.made = matching_.made().size();
    fruitless.candidates = candidates_;
  }
  for (std::vector<Keyed>& found : candidates_) {
    // A node that is reached twice is one candidate.
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
  }
  ForEachCommonKey(candidates_[kBefore], candidates_[kAfter], [&](auto befores, auto afters) {
    if (befores.size() == 1 && afters.size() == 1) {
      Accept(tier, befores[0], afters[0]);
    } else if (tier.key == Tier::Key::kThroughOperands && !tier.choose) {
      const std::vector<EntityId> lowest_before = Lowest(kBefore, befores);
      const std::vector<EntityId> lowest_after = Lowest(kAfter, afters);
      const uint64_t label = matching_.labels(kBefore).Of(*tier.label, befores[0]);
      if (lowest_before.size() == 1 && lowest_after.size() == 1 &&
          CountBelow(tier, kBefore, before, label, Tier::kMaxStack) ==
              CountBelow(tier, kAfter, after, label, Tier::kMaxStack)) {
        Accept(tier, lowest_before[0], lowest_after[0]);
      }
    } else if (tier.choose && befores.size() * afters.size() <= kMaxChoices) {
      Choose(tier, {befores.begin(), befores.end()}, {afters.begin(), afters.end()});
    }
  });
}

std::vector<EntityId> LocalMatcher::Lowest(Side side, std::span<const EntityId> candidates) const {
  std::vector<EntityId> lowest;
  if (candidates.size() > Matching::kMaxEdges) return lowest;
  const Labels& labels = matching_.labels(side);
  for (EntityId i : candidates) {
    bool sees_another = false;
    EntityId at = i;
    for (int step = 0; step < Tier::kMaxSteps && labels.operands(at).size() == 1; ++step) {
      at = labels.operands(at)[0].entity;
      sees_another |= std::ranges::find(candidates, at) != candidates.end();
    }
    if (!sees_another) lowest.push_back(i);
  }
  return lowest;
}

int LocalMatcher::CountBelow(const Tier& tier, Side side, EntityId i, uint64_t label,
                             int steps) const {
  const Labels& labels = matching_.labels(side);
  if (steps == 0 || labels.users(i).size() > Matching::kMaxEdges) return 0;
  int count = 0;
  for (const Labels::Edge& user : labels.users(i)) {
    if (matching_.matched(side, user.entity) || labels.operands(user.entity).size() != 1) continue;
    count += labels.Of(*tier.label, user.entity) == label ? 1 : 0;
    count += CountBelow(tier, side, user.entity, label, steps - 1);
  }
  return count;
}

const PositionMap& LocalMatcher::Positions() {
  const size_t made = matching_.made().size();
  if (positions_made_ == 0 || made > positions_made_ + positions_made_ / 20 + 16) {
    std::vector<std::pair<int32_t, int32_t>> anchors;
    for (const auto& [before, after] : matching_.Anchors(scope_))
      anchors.emplace_back(before.index, after.index);
    positions_ = PositionMap(std::move(anchors));
    positions_made_ = made;
  }
  return positions_;
}

}  // namespace strata
