#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "diff/graph/parallel.h"
#include "diff/match/stages.h"

namespace strata {
namespace {

/// Steps that are taken through unmatched nodes with one operand: inserted casts, copies, waits.
constexpr int kMaxSteps = 3;
/// How far stacked nodes of one label are counted.
constexpr int kMaxStack = 8;

}  // namespace

/// One kind of evidence. Candidates are unmatched neighbours of a matched pair; those with equal
/// keys on both sides are the same node if there is one on each side.
struct LocalMatcher::Tier {
  enum class Where : uint8_t { kUsers, kOperands, kBoth };
  enum class Key : uint8_t {
    kAllEdges,  ///< all operands and all users are matched, and the same
    kAllOperands,
    kOperandSet,  ///< all operands, in any order
    kAllUsers,
    kThroughOperands,  ///< all operands, seen through unary nodes
    kThroughUsers,     ///< all users, seen through unary nodes
    kEdge,             ///< the edge to the matched pair alone
  };
  Where where;
  Key key;
  bool choose;  ///< several candidates: by agreeing edges, then by place in the order
  const std::vector<uint64_t> Labels::*label;  ///< null: any operator of the same kind
  double confidence;
};

// Weaker tiers get a turn only when stronger ones have nothing to do: see Run. Confidences, here
// and in the other stages: the share of right claims over the mutations of tests/bench/diff_eval
// with seeds 1 to 3, rounded down; see docs/diff.md for their accuracy.
const LocalMatcher::Tier LocalMatcher::kTiers[] = {
    {Tier::Where::kBoth, Tier::Key::kAllEdges, false, &Labels::type, 0.999},
    {Tier::Where::kUsers, Tier::Key::kAllOperands, false, &Labels::type, 0.998},
    {Tier::Where::kOperands, Tier::Key::kAllUsers, false, &Labels::type, 0.999},
    {Tier::Where::kUsers, Tier::Key::kThroughOperands, false, &Labels::literals, 0.996},
    {Tier::Where::kUsers, Tier::Key::kThroughOperands, false, &Labels::op, 0.99},
    {Tier::Where::kUsers, Tier::Key::kOperandSet, false, &Labels::type, 0.995},
    {Tier::Where::kBoth, Tier::Key::kAllEdges, false, nullptr, 0.995},
    {Tier::Where::kUsers, Tier::Key::kThroughOperands, false, &Labels::form, 0.98},
    {Tier::Where::kBoth, Tier::Key::kAllEdges, true, &Labels::type, 0.98},
    {Tier::Where::kUsers, Tier::Key::kAllOperands, true, &Labels::type, 0.988},
    {Tier::Where::kOperands, Tier::Key::kAllUsers, true, &Labels::type, 0.96},
    {Tier::Where::kUsers, Tier::Key::kEdge, false, &Labels::type, 0.993},
    {Tier::Where::kOperands, Tier::Key::kEdge, false, &Labels::type, 0.975},
    {Tier::Where::kUsers, Tier::Key::kEdge, true, &Labels::type, 0.92},
    {Tier::Where::kOperands, Tier::Key::kEdge, true, &Labels::type, 0.95},
    {Tier::Where::kUsers, Tier::Key::kThroughOperands, true, &Labels::literals, 0.995},
    {Tier::Where::kOperands, Tier::Key::kAllUsers, false, &Labels::form, 0.98},
    {Tier::Where::kUsers, Tier::Key::kAllOperands, true, &Labels::form, 0.98},
    {Tier::Where::kBoth, Tier::Key::kEdge, true, &Labels::op, 0.93},
    {Tier::Where::kOperands, Tier::Key::kThroughUsers, true, &Labels::op, 0.93},
};

LocalMatcher::LocalMatcher(Matching& matching)
    : matching_(matching),
      open_when_visited_(static_cast<size_t>(matching.labels(kBefore).size()), 0) {
  static_assert(std::size(kTiers) == kNumTiers);
}

void LocalMatcher::Run(const ScopePair& scope) {
  if (!(scope_ == scope)) positions_made_ = 0;
  if (!(scope_ == scope) || by_type_taken_back_ != matching_.taken_back()) by_type_ = {};
  by_type_taken_back_ = matching_.taken_back();
  EqualsOf(scope);
  TakeInNewPairs();
  for (size_t tier = 0; tier < kNumTiers;) {
    if (next_visit_[tier] == visits_.size()) {
      ++tier;
      continue;
    }
    Turn& turn = visits_[next_visit_[tier]++];
    if ((turn.tiers >> tier & 1) == 0 || !matching_.matched(kBefore, turn.before)) continue;
    const int32_t before = turn.before, after = matching_.partner(kBefore, before);
    // The strongest kinds find most of what there is to find.
    constexpr size_t kStrongest = 2;
    if (tier == kStrongest) turn.tiers = TiersWorthwhile(before, after);
    if ((turn.tiers >> tier & 1) == 0) continue;
    const size_t made = matching_.made().size();
    Visit(kTiers[tier], before, after);
    if (matching_.made().size() == made) continue;
    TakeInNewPairs();
    tier = 0;
  }
}

const std::vector<EqualNodes>& LocalMatcher::EqualsOf(const ScopePair& scope) {
  if (!(scope_ == scope)) {
    std::array<std::optional<EqualNodes>, 2> equals;
    const auto find = [&](Side side) { equals[side].emplace(matching_.labels(side), scope, side); };
    const auto size = static_cast<size_t>(scope.end[kBefore] - scope.begin[kBefore]);
    AtOnce(
        size, [&] { find(kBefore); }, [&] { find(kAfter); });
    equals_ = {std::move(*equals[kBefore]), std::move(*equals[kAfter])};
  }
  scope_ = scope;
  return equals_;
}

void LocalMatcher::TakeInNewPairs() {
  // A new pair is a reason to look around it, and again around its neighbours that are nearly done:
  // what was ambiguous there may not be so any more.
  constexpr int32_t kNearlyDone = 8;
  const auto look_again = [&](std::span<const Labels::Edge> edges) {
    for (const Labels::Edge& edge : edges.first(std::min(edges.size(), Matching::kMaxEdges))) {
      if (!matching_.matched(kBefore, edge.entity)) continue;
      const int32_t open = matching_.open_operands(kBefore, edge.entity) +
                           matching_.open_users(kBefore, edge.entity);
      int32_t& last_open = open_when_visited_[static_cast<size_t>(edge.entity)];
      if (open == 0 || open > kNearlyDone || open == last_open) continue;
      last_open = open;
      visits_.push_back({edge.entity});
    }
  };
  for (; taken_in_ < matching_.made().size(); ++taken_in_) {
    const int32_t before = matching_.made()[taken_in_].before;
    if (before < 0) continue;
    visits_.push_back({before});
    look_again(matching_.labels(kBefore).operands(before));
    look_again(matching_.labels(kBefore).users(before));
  }
}

void LocalMatcher::Visit(const Tier& tier, int32_t before, int32_t after) {
  for (Side side : {kBefore, kAfter}) {
    const int32_t center = side == kBefore ? before : after;
    candidates_[side].clear();
    if (matching_.open_operands(side, center) + matching_.open_users(side, center) == 0) return;
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
      const std::vector<int32_t> lowest_before = Lowest(kBefore, befores);
      const std::vector<int32_t> lowest_after = Lowest(kAfter, afters);
      const uint64_t label =
          (matching_.labels(kBefore).*tier.label)[static_cast<size_t>(befores[0])];
      if (lowest_before.size() == 1 && lowest_after.size() == 1 &&
          CountBelow(tier, kBefore, before, label, kMaxStack) ==
              CountBelow(tier, kAfter, after, label, kMaxStack)) {
        Accept(tier, lowest_before[0], lowest_after[0]);
      }
    } else if (tier.choose && befores.size() * afters.size() <= kMaxChoices) {
      Choose(tier, {befores.begin(), befores.end()}, {afters.begin(), afters.end()});
    }
  });
}

std::vector<int32_t> LocalMatcher::Lowest(Side side, std::span<const int32_t> candidates) const {
  std::vector<int32_t> lowest;
  if (candidates.size() > Matching::kMaxEdges) return lowest;
  const Labels& labels = matching_.labels(side);
  for (int32_t i : candidates) {
    bool sees_another = false;
    for (int32_t at = i, step = 0; step < kMaxSteps && labels.operands(at).size() == 1; ++step) {
      at = labels.operands(at)[0].entity;
      sees_another |= std::ranges::find(candidates, at) != candidates.end();
    }
    if (!sees_another) lowest.push_back(i);
  }
  return lowest;
}

int LocalMatcher::CountBelow(const Tier& tier, Side side, int32_t i, uint64_t label,
                             int steps) const {
  const Labels& labels = matching_.labels(side);
  if (steps == 0 || labels.users(i).size() > Matching::kMaxEdges) return 0;
  int count = 0;
  for (const Labels::Edge& user : labels.users(i)) {
    if (matching_.matched(side, user.entity) || labels.operands(user.entity).size() != 1) continue;
    count += (labels.*tier.label)[static_cast<size_t>(user.entity)] == label ? 1 : 0;
    count += CountBelow(tier, side, user.entity, label, steps - 1);
  }
  return count;
}

template <class Fn>
void LocalMatcher::ForEachOpenUser(Side side, int32_t center, int steps, Fn&& fn) const {
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
void LocalMatcher::ForEachOpenOperand(Side side, int32_t center, int steps, Fn&& fn) const {
  // To be one of many results proves nothing.
  if (matching_.open_operands(side, center) == 0 || matching_.slotless(side, center)) return;
  const Labels& labels = matching_.labels(side);
  for (const Labels::Edge& operand : labels.operands(center)) {
    int32_t candidate = operand.entity;
    for (int step = 0; !matching_.matched(side, candidate) && !matching_.forbidden(side, candidate);
         ++step) {
      fn(candidate, ~operand.slot);
      if (step == steps || labels.operands(candidate).size() != 1) break;
      candidate = labels.operands(candidate)[0].entity;
    }
  }
}

void LocalMatcher::Collect(const Tier& tier, Side side, int32_t center) {
  const auto add = [&](int32_t candidate, int32_t slot) {
    AddCandidate(tier, side, candidate, slot);
  };
  if (tier.where != Tier::Where::kOperands) {
    ForEachOpenUser(side, center, tier.key == Tier::Key::kThroughOperands ? kMaxSteps : 0, add);
  }
  if (tier.where != Tier::Where::kUsers) {
    ForEachOpenOperand(side, center, tier.key == Tier::Key::kThroughUsers ? kMaxSteps : 0, add);
  }
}

uint32_t LocalMatcher::TiersWorthwhile(int32_t before, int32_t after) {
  uint32_t worthwhile = 0;
  for (const Tier::Where where : {Tier::Where::kUsers, Tier::Where::kOperands}) {
    for (Side side : {kBefore, kAfter}) {
      const int32_t center = side == kBefore ? before : after;
      around_[side].clear();
      const auto add = [&](int32_t candidate, int32_t) { around_[side].push_back(candidate); };
      if (where == Tier::Where::kUsers) {
        ForEachOpenUser(side, center, kMaxSteps, add);
      } else {
        ForEachOpenOperand(side, center, kMaxSteps, add);
      }
      if (around_[side].empty()) break;
    }
    if (around_[kBefore].empty() || around_[kAfter].empty()) continue;
    // One bit per label: two labels seldom share one, and then a visit is in vain. A form counts
    // where it is specific.
    const auto have_in_common = [&](const std::vector<uint64_t> Labels::*label) {
      std::array<uint64_t, 2> bits{};
      for (Side side : {kBefore, kAfter}) {
        for (int32_t i : around_[side]) {
          if (label == &Labels::form && !matching_.labels(side).telling[static_cast<size_t>(i)])
            continue;
          bits[side] |= uint64_t{1}
                        << ((matching_.labels(side).*label)[static_cast<size_t>(i)] >> 58);
        }
      }
      return (bits[kBefore] & bits[kAfter]) != 0;
    };
    const bool op = have_in_common(&Labels::op), form = have_in_common(&Labels::form);
    const bool type = op && have_in_common(&Labels::type);
    for (size_t k = 0; k < kNumTiers; ++k) {
      const auto label = kTiers[k].label;
      const bool common = label == nullptr         ? true
                          : label == &Labels::type ? type
                          : label == &Labels::form ? form
                                                   : op;
      const bool looks = kTiers[k].where == where || kTiers[k].where == Tier::Where::kBoth;
      if (common && looks) worthwhile |= uint32_t{1} << k;
    }
  }
  return worthwhile;
}

void LocalMatcher::AddCandidate(const Tier& tier, Side side, int32_t candidate, int32_t slot) {
  const Labels& labels = matching_.labels(side);
  const auto index = static_cast<size_t>(candidate);
  if (tier.label == &Labels::form && !labels.telling[index]) return;
  const int32_t open_operands = matching_.open_operands(side, candidate);
  const int32_t open_users = matching_.open_users(side, candidate);
  uint64_t key = 0;
  switch (tier.key) {
    case Tier::Key::kAllEdges:
      if (open_operands > 0 || open_users > 0) return;
      // Without its operator, only a node between others is known by its edges.
      if (tier.label == nullptr &&
          (labels.operands(candidate).empty() || labels.users(candidate).empty())) {
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
      if (labels.kind[index] == EntityKind::kInput) return;
      key = UsersThroughUnary(side, candidate, kMaxSteps);
      if (key == 0) return;
      break;
    case Tier::Key::kEdge:
      key = Spread(static_cast<uint64_t>(static_cast<uint32_t>(slot)));
      break;
  }
  const uint64_t label = tier.label != nullptr ? (labels.*tier.label)[index]
                                               : static_cast<uint64_t>(labels.kind[index]);
  candidates_[side].push_back({Mix(label, key), candidate});
}

uint64_t LocalMatcher::OperandsThroughUnary(Side side, int32_t i) const {
  const Labels& labels = matching_.labels(side);
  const auto operands = labels.operands(i);
  if (operands.size() > Matching::kMaxEdges) return 0;
  uint64_t sum = 1;
  for (const Labels::Edge& operand : operands) {
    int32_t source = operand.entity;
    for (int step = 0; !matching_.matched(side, source); ++step) {
      if (const int32_t equal = MatchedEqual(side, source); equal >= 0) {
        source = equal;
        break;
      }
      if (step == kMaxSteps || labels.operands(source).size() != 1) return 0;
      source = labels.operands(source)[0].entity;
    }
    sum += Mix(matching_.token(side, source), static_cast<uint64_t>(operand.slot));
  }
  return sum;
}

int32_t LocalMatcher::MatchedEqual(Side side, int32_t i) const {
  const EqualNodes::Group* group = equals_[side].GroupOf(i);
  if (group == nullptr) return -1;
  const auto found =
      std::ranges::find_if(*group, [&](int32_t j) { return matching_.matched(side, j); });
  return found == group->end() ? -1 : *found;
}

uint64_t LocalMatcher::UsersThroughUnary(Side side, int32_t i, int steps) const {
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

void LocalMatcher::Choose(const Tier& tier, std::vector<int32_t> before,
                          std::vector<int32_t> after) {
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
                          tier.label == &Labels::op ? NumKin(before[i], after[j]) : 0,
                          score.lopsided,
                          std::llround(positions.Distance(before[i], after[j]) * 1024)};
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
    std::erase_if(before, [&](int32_t i) { return matching_.matched(kBefore, i); });
    std::erase_if(after, [&](int32_t i) { return matching_.matched(kAfter, i); });
  }
}

int32_t LocalMatcher::NumKin(int32_t before, int32_t after) const {
  const auto labels_of = [&](Side side, int32_t i) {
    std::vector<uint64_t> labels;
    const auto users = matching_.labels(side).users(i);
    if (users.size() > Matching::kMaxEdges) return labels;
    for (const Labels::Edge& user : users) {
      if (matching_.matched(side, user.entity)) continue;
      const uint64_t type = matching_.labels(side).type[static_cast<size_t>(user.entity)];
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

void LocalMatcher::Accept(const Tier& tier, int32_t before, int32_t after) {
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
    const bool is_last_resort = tier.label == &Labels::op;
    if (!is_last_resort && HasRival(before, after, score.agree - score.contradict)) return;
  }
  const bool same_type = matching_.labels(kBefore).type[static_cast<size_t>(before)] ==
                         matching_.labels(kAfter).type[static_cast<size_t>(after)];
  if (tier.key == Tier::Key::kThroughOperands && !tier.choose && !same_type &&
      (HasRival(before, after, 1) || HasDouble(before, after))) {
    return;
  }
  matching_.Match(before, after, Via::kLocal, tier.confidence);
}

bool LocalMatcher::HasDouble(int32_t before, int32_t after) const {
  const auto direct = [&](Side side, int32_t i) { return matching_.open_operands(side, i) == 0; };
  if (direct(kBefore, before) && direct(kAfter, after)) return false;
  const auto has_double = [&](Side side, int32_t image) {
    const uint64_t type = matching_.labels(1 - side).type[static_cast<size_t>(image)];
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
    for (int32_t i : matching_.Unmatched(side, scope_))
      by_type->push_back({matching_.labels(side).type[static_cast<size_t>(i)], i});
    SortKeys(*by_type);
  }
  return *by_type;
}

bool LocalMatcher::HasRival(int32_t before, int32_t after, int merit) const {
  return HasRival(kBefore, before, after, merit) || HasRival(kAfter, after, before, merit);
}

bool LocalMatcher::HasRival(Side side, int32_t i, int32_t image, int merit) const {
  const Labels& mine = matching_.labels(side);
  const Labels& others = matching_.labels(1 - side);
  const auto is_rival = [&](int32_t rival) {
    if (rival == i || matching_.matched(side, rival) || matching_.forbidden(side, rival) ||
        mine.type[static_cast<size_t>(rival)] != others.type[static_cast<size_t>(image)]) {
      return false;
    }
    const Matching::EdgeScore score =
        side == kBefore ? matching_.Score(rival, image) : matching_.Score(image, rival);
    return score.agree - score.contradict >= merit;
  };
  const auto operands = others.operands(image);
  for (const Labels::Edge& edge : operands.first(std::min(operands.size(), Matching::kMaxEdges))) {
    const int32_t source = matching_.partner(1 - side, edge.entity);
    if (source < 0 || mine.users(source).size() > Matching::kMaxEdges) continue;
    for (const Labels::Edge& user : mine.users(source)) {
      if (user.slot == edge.slot && is_rival(user.entity)) return true;
    }
  }
  const auto users = others.users(image);
  for (const Labels::Edge& edge : users.first(std::min(users.size(), Matching::kMaxEdges))) {
    const int32_t user = matching_.partner(1 - side, edge.entity);
    if (user < 0 || matching_.slotless(side, user)) continue;
    const auto read = mine.operands(user);
    const auto slot = static_cast<size_t>(edge.slot);
    if (slot < read.size() && is_rival(read[slot].entity)) return true;
  }
  return false;
}

int LocalMatcher::StackHeight(Side side, int32_t i) const {
  const Labels& labels = matching_.labels(side);
  const uint64_t type = labels.type[static_cast<size_t>(i)];
  int height = 0;
  for (int step = 0; step < kMaxStack; ++step) {
    const auto operands = labels.operands(i);
    if (operands.size() > Matching::kMaxEdges) return height;
    const auto below = std::ranges::find_if(operands, [&](const Labels::Edge& operand) {
      return !matching_.matched(side, operand.entity) &&
             labels.type[static_cast<size_t>(operand.entity)] == type;
    });
    if (below != operands.end()) {
      i = below->entity;
      ++height;
      continue;
    }
    // Others may stand between the two.
    if (operands.size() != 1 || matching_.matched(side, operands[0].entity)) return height;
    i = operands[0].entity;
  }
  return height;
}

const PositionMap& LocalMatcher::Positions() {
  const size_t made = matching_.made().size();
  if (positions_made_ == 0 || made > positions_made_ + positions_made_ / 20 + 16) {
    positions_ = PositionMap(matching_.Anchors(scope_));
    positions_made_ = made;
  }
  return positions_;
}

}  // namespace strata
