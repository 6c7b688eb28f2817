#include "diff/match/repair.h"

#include <algorithm>

namespace strata {
namespace {

constexpr int kRepairSweeps = 2;

/// Gives unmatched nodes the partner of another node where more edges agree with it.
class Repairer {
 public:
  Repairer(Matching& matching, const ScopePair& scope, HopelessNodes& hopeless)
      : matching_(matching), scope_(scope), hopeless_(hopeless) {}

  bool Run(uint32_t since) {
    bool any = false;
    // All again in each sweep: the evidence for a node may have changed at its rival.
    for (int sweep = 0; sweep < kRepairSweeps; ++sweep) {
      bool progress = false;
      for (Side side : {kBefore, kAfter}) {
        for (EntityId i : matching_.Unmatched(side, scope_)) {
          const uint32_t last = std::max(since, hopeless_.since(side, i));
          const bool look = !matching_.matched(side, i) && matching_.ChangedSince(side, i, last);
          progress |= look && FindPartner(side, i);
        }
      }
      if (!progress) break;
      any = true;
    }
    return any;
  }

 private:
  static size_t Index(int32_t i) { return static_cast<size_t>(i); }

  bool SameType(Side side, EntityId i, EntityId candidate) const {
    return matching_.labels(side).type[i] == matching_.labels(1 - side).type[candidate];
  }

  bool SameOperands(Side side, EntityId i, EntityId candidate) const {
    return side == kBefore ? matching_.SameOperands(i, candidate)
                           : matching_.SameOperands(candidate, i);
  }

  /// Edges that agree, less those that contradict; a node's own label counts less than an edge. All
  /// users together count as one edge: one change redirects them all.
  int Merit(Side side, EntityId i, EntityId candidate) const {
    const EntityId before = side == kBefore ? i : candidate;
    const EntityId after = side == kBefore ? candidate : i;
    const Matching::EdgeScore score = matching_.Score(before, after);
    const int operands =
        score.agree - score.agreeing_users - (score.contradict - score.contradicting_users);
    const int users = std::clamp(score.agreeing_users - score.contradicting_users, -1, 1);
    return 2 * (operands + users) + (SameType(side, i, candidate) ? 1 : 0);
  }

  bool MayMatch(Side side, EntityId i, EntityId candidate) const {
    const EntityId before = side == kBefore ? i : candidate;
    const EntityId after = side == kBefore ? candidate : i;
    return matching_.labels(kBefore).op[before] == matching_.labels(kAfter).op[after] &&
           matching_.labels(kBefore).kind[before] == EntityKind::kCompute &&
           !matching_.forbidden(1 - side, candidate) && !matching_.vetoed(before, after);
  }

  /// Nodes of the other side that stand where `i` would, by a matched operand or user.
  std::vector<EntityId> Candidates(Side side, EntityId i) const {
    const Labels& mine = matching_.labels(side);
    const Labels& others = matching_.labels(1 - side);
    std::vector<EntityId> candidates;
    const auto add = [&](EntityId candidate) {
      if (MayMatch(side, i, candidate)) candidates.push_back(candidate);
    };
    const auto operands = mine.operands(i);
    for (const Labels::Edge& edge :
         operands.first(std::min(operands.size(), Matching::kMaxEdges))) {
      const EntityId image = matching_.partner(side, edge.entity);
      if (!image.valid() || others.users(image).size() > Matching::kMaxEdges) continue;
      for (const Labels::Edge& user : others.users(image)) {
        if (user.slot == edge.slot) add(user.entity);
      }
    }
    const auto users = mine.users(i);
    for (const Labels::Edge& edge : users.first(std::min(users.size(), Matching::kMaxEdges))) {
      const EntityId image = matching_.partner(side, edge.entity);
      if (!image.valid() || matching_.slotless(side, edge.entity)) continue;
      const auto theirs = others.operands(image);
      if (Index(edge.slot) < theirs.size()) add(theirs[Index(edge.slot)].entity);
    }
    std::ranges::sort(candidates);
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    return candidates;
  }

  /// Whether `i` is more like `candidate` than `rival` is, which has it.
  bool IsBetter(Side side, EntityId i, EntityId rival, EntityId candidate, int merit) const {
    if (matching_.via(side, rival) <= Via::kId) return false;  // given, not found
    const bool same_type = SameType(side, i, candidate);
    if (SameType(side, rival, candidate) && !same_type) return false;
    // Operands count before users, however many these are.
    const bool mine = same_type && SameOperands(side, i, candidate);
    const bool theirs = SameType(side, rival, candidate) && SameOperands(side, rival, candidate);
    if (mine != theirs) return mine;
    return merit > Merit(side, rival, candidate);
  }

  /// The unmatched node that alone reads, at the same slot, what `i` alone reads: it is `i`,
  /// however much is different around it, as in a layer that was moved. None: there is none, or
  /// two.
  EntityId OnlyReader(Side side, EntityId i) const {
    const Labels& others = matching_.labels(1 - side);
    const auto operands = matching_.labels(side).operands(i);
    EntityId reader;
    for (const Labels::Edge& edge :
         operands.first(std::min(operands.size(), Matching::kMaxEdges))) {
      const EntityId image = matching_.partner(side, edge.entity);
      if (!image.valid() || matching_.labels(side).users(edge.entity).size() != 1) continue;
      const auto users = others.users(image);
      if (users.size() != 1 || users[0].slot != edge.slot) continue;
      const EntityId candidate = users[0].entity;
      if (matching_.matched(1 - side, candidate) || !MayMatch(side, i, candidate) ||
          !SameType(side, i, candidate)) {
        continue;
      }
      if (reader.valid() && candidate != reader) return {};
      reader = candidate;
    }
    return reader;
  }

  /// Where `i` stood stands another node now, where that one stood a third one, and so on: all of
  /// one label, each for what it reads. The place that is free in the end; none: there is none.
  EntityId FreePlace(Side side, EntityId i) const {
    constexpr int kMost = 32;
    EntityId at = i;
    for (int step = 0; step < kMost; ++step) {
      const EntityId place = matching_.StandIn(side, at);
      if (!place.valid() || !MayMatch(side, i, place) || !SameType(side, i, place)) return {};
      at = matching_.partner(1 - side, place);
      if (!at.valid()) return place;
      if (at == i) return {};
    }
    return {};
  }

  bool FindPartner(Side side, EntityId i) {
    EntityId best;
    int most = 0;
    const std::vector<EntityId> candidates = Candidates(side, i);
    // A node that is not a candidate is neither an only reader nor at a free position.
    if (candidates.empty()) {
      hopeless_.Add(side, i, matching_.clock());
      return false;
    }
    for (EntityId candidate : candidates) {
      const int merit = Merit(side, i, candidate);
      const EntityId rival = matching_.partner(1 - side, candidate);
      if (merit <= most || (rival.valid() && !IsBetter(side, i, rival, candidate, merit))) continue;
      best = candidate;
      most = merit;
    }
    if (!best.valid()) best = OnlyReader(side, i);
    if (!best.valid()) best = FreePlace(side, i);
    if (!best.valid()) return false;
    if (const EntityId rival = matching_.partner(1 - side, best); rival.valid()) {
      matching_.Unmatch(side == kBefore ? rival : best);
    }
    matching_.Match(side == kBefore ? i : best, side == kBefore ? best : i, Via::kLocal,
                    kLocalConfidence);
    return true;
  }

  Matching& matching_;
  const ScopePair& scope_;
  HopelessNodes& hopeless_;
};

}  // namespace

bool Repair(Matching& matching, const ScopePair& scope, HopelessNodes& hopeless, uint32_t since) {
  return Repairer(matching, scope, hopeless).Run(since);
}

}  // namespace strata
