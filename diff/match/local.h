#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "diff/graph/keyed.h"
#include "diff/graph/order.h"
#include "diff/match/equal_nodes.h"
#include "diff/match/matching.h"

namespace strata {

/// Neighbours of matched nodes, by what they have in common, until nothing more follows. Looks
/// around each pair of `matching` once per kind of evidence, also over several runs.
class LocalMatcher {
 public:
  explicit LocalMatcher(Matching& matching);
  /// REQUIRES: pairs made since the last run are of `scope`.
  void Run(const ScopePair& scope);

  /// By side; computed once per scope.
  const std::vector<EqualNodes>& EqualsOf(const ScopePair& scope);

 private:
  struct Tier;
  static const Tier kTiers[];
  static constexpr size_t kNumTiers = 20;
  /// The tiers before this one find most of what there is to find.
  static constexpr size_t kFirstWeak = 3;

  void TakeInNewPairs();
  /// Whether nothing is left to be found next to a pair.
  bool IsDone(EntityId before, EntityId after) const;
  /// The next pair to look around by a kind of evidence; none: nothing is to be found there.
  EntityId NextVisit(size_t tier);
  /// Fills `weaker_visits_`. Stronger evidence has been looked for: it leaves little.
  void FindWeakerVisits();
  /// The kinds of evidence, as bits, by which a visit may find anything now or later in this run:
  /// unmatched neighbours of the two have a label in common. Most pairs have none left.
  uint32_t TiersWorthwhile(EntityId before, EntityId after);
  void Visit(const Tier& tier, EntityId before, EntityId after);
  void Collect(const Tier& tier, Side side, EntityId center);
  /// Those that see none of the others on the way to their operand: of stacked nodes the first.
  std::vector<EntityId> Lowest(Side side, std::span<const EntityId> candidates) const;
  /// Unmatched nodes of a label below `i`, through unmatched unary nodes.
  int CountBelow(const Tier& tier, Side side, EntityId i, uint64_t label, int steps) const;
  /// Calls `fn(candidate, slot)` for unmatched users, `steps` unary nodes deep, and for unmatched
  /// operands.
  template <class Fn>
  void ForEachOpenUser(Side side, EntityId center, int steps, Fn&& fn) const;
  template <class Fn>
  void ForEachOpenOperand(Side side, EntityId center, int steps, Fn&& fn) const;
  void AddCandidate(const Tier& tier, Side side, EntityId candidate, int32_t slot);
  /// Hashes of all operands (users), unmatched unary nodes taken as their operand (users). 0: some
  /// are not known.
  uint64_t OperandsThroughUnary(Side side, EntityId i) const;
  /// The first matched node that computes the same value; none: there is none.
  EntityId MatchedEqual(Side side, EntityId i) const;
  uint64_t UsersThroughUnary(Side side, EntityId i, int steps) const;
  /// Matches pairs that prefer each other to all others.
  void Choose(const Tier& tier, std::vector<EntityId> before, std::vector<EntityId> after);
  /// How many unmatched users of the two have one label, and read them at one slot.
  int32_t NumKin(EntityId before, EntityId after) const;
  void Accept(const Tier& tier, EntityId before, EntityId after);
  /// Whether another unmatched node has the label of one of the two, and stands where that one
  /// does: by as many edges as `merit`, or more.
  bool HasRival(EntityId before, EntityId after, int merit) const;
  /// Whether an unmatched node looks exactly like one of the two, which see each other's operands
  /// only through others.
  bool HasDouble(EntityId before, EntityId after) const;
  const std::vector<Keyed>& ByType(Side side) const;
  bool HasRival(Side side, EntityId i, EntityId image, int merit) const;
  /// How many unmatched nodes of the same label stand above `i`, each an operand of the next.
  int StackHeight(Side side, EntityId i) const;
  const PositionMap& Positions();

  Matching& matching_;
  ScopePair scope_;
  std::vector<EqualNodes> equals_;  // by side, of scope_
  // Unmatched nodes by label, sorted; made when they are asked for first, and again when pairs were
  // taken back.
  mutable std::array<std::optional<std::vector<Keyed>>, 2> by_type_;
  uint32_t by_type_taken_back_ = 0;
  size_t taken_in_ = 0;  // of matching_.made()
  /// Pairs to look around, by their before entities: some several times.
  std::vector<EntityId> visits_;
  /// The same, as far as weaker kinds of evidence may find anything, with these kinds as bits.
  struct Turn {
    EntityId before;
    uint32_t tiers;
  };
  std::vector<Turn> weaker_visits_;
  size_t next_weaker_ = 0;                         // into visits_: which may be a weaker one
  std::array<size_t, kNumTiers> next_visit_{};     // into one of these two
  IdVector<EntityId, int32_t> open_when_visited_;  // of the before side, of repeated visits
  std::array<std::vector<Keyed>, 2> candidates_;
  std::array<std::vector<EntityId>, 2> around_;  // of TiersWorthwhile
  /// The last long lists of candidates that a tier looked at, and how many pairs there were then.
  struct Fruitless {
    size_t made = 0;
    std::array<std::vector<Keyed>, 2> candidates;
  };
  std::array<Fruitless, kNumTiers> fruitless_;
  PositionMap positions_{{}};
  size_t positions_made_ = 0;  // pairs that positions_ knows; 0: not made for this scope
};

}  // namespace strata
