#include "diff/match/prefer_operands.h"

#include <algorithm>

namespace strata {
namespace {

/// Two nodes of one label give each other their partners where both have more operands in common
/// with the other one's.
///
///   before  a = f(x)   b = f(y)   c = g(a, b)        a -> b', b -> a', for what c' reads
///   after   b' = f(y)  a' = f(x)  c' = g(b', a')     becomes  a -> a', b -> b'
class OperandExchanger {
 public:
  OperandExchanger(Matching& matching, const ScopePair& scope)
      : matching_(matching), scope_(scope) {}

  bool Run() {
    bool any = false;
    // From operands to users: what one exchange changes for those below is seen there.
    for (EntityId i : scope_.ids(kBefore)) {
      if (!IsFree(i) || matching_.SameOperands(i, matching_.partner(kBefore, i))) continue;
      const EntityId rival = FindRival(i);
      if (!rival.valid()) continue;
      const EntityId mine = matching_.partner(kBefore, i);
      const EntityId theirs = matching_.partner(kBefore, rival);
      matching_.Unmatch(i);
      matching_.Unmatch(rival);
      matching_.Match(i, theirs, Via::kLocal, kLocalConfidence);
      matching_.Match(rival, mine, Via::kLocal, kLocalConfidence);
      any = true;
    }
    return any;
  }

 private:
  bool IsFree(EntityId before) const {
    return matching_.labels(kBefore).kind[before] == EntityKind::kCompute &&
           matching_.matched(kBefore, before) && matching_.via(kBefore, before) > Via::kId;
  }

  bool MayMatch(EntityId before, EntityId after) const {
    return matching_.labels(kBefore).type[before] == matching_.labels(kAfter).type[after] &&
           !matching_.vetoed(before, after);
  }

  /// How many operands the two have in common, twice; those at other slots count half if there is
  /// no other one.
  int InCommon(EntityId before, EntityId after) const {
    const auto a = matching_.labels(kBefore).operands(before);
    const auto b = matching_.labels(kAfter).operands(after);
    const size_t slots = std::min(a.size(), b.size());
    int count = 0;
    for (size_t slot = 0; slot < slots; ++slot)
      count += matching_.partner(kBefore, a[slot].entity) == b[slot].entity ? 2 : 0;
    const bool same_set =
        matching_.open_operands(kBefore, before) == 0 &&
        matching_.open_operands(kAfter, after) == 0 &&
        matching_.operand_set(kBefore, before) == matching_.operand_set(kAfter, after);
    return same_set ? std::max(count, static_cast<int>(slots)) : count;
  }

  /// The node with which `i` should exchange partners: its partner reads something that `i` reads.
  /// None: there is none.
  EntityId FindRival(EntityId i) const {
    const EntityId partner = matching_.partner(kBefore, i);
    if (!MayMatch(i, partner)) return {};
    const int now = InCommon(i, partner);
    const auto operands = matching_.labels(kBefore).operands(i);
    EntityId best;
    int most = 0;
    for (const Labels::Edge& operand :
         operands.first(std::min(operands.size(), Matching::kMaxEdges))) {
      const EntityId read = matching_.partner(kBefore, operand.entity);
      if (!read.valid()) continue;
      const auto users = matching_.labels(kAfter).users(read);
      if (users.size() > Matching::kMaxEdges) continue;
      for (const Labels::Edge& user : users) {
        const EntityId image = user.entity;
        const EntityId rival = matching_.partner(kAfter, image);
        if (!rival.valid() || rival == i || !IsFree(rival) || !MayMatch(i, image) ||
            !MayMatch(rival, partner)) {
          continue;
        }
        const int mine = InCommon(i, image) - now;
        const int theirs = InCommon(rival, partner) - InCommon(rival, image);
        if (mine <= 0 || theirs <= 0 || mine + theirs <= most) continue;
        best = rival;
        most = mine + theirs;
      }
    }
    return best;
  }

  Matching& matching_;
  const ScopePair& scope_;
};

}  // namespace

bool PreferOperands(Matching& matching, const ScopePair& scope) {
  return OperandExchanger(matching, scope).Run();
}

}  // namespace strata
