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

  void TakeInNewPairs();
  /// The kinds of evidence, as bits, by which a visit may find anything now or later in this run:
  /// unmatched neighbours of the two have a label in common. Most pairs have none left.
  uint32_t TiersWorthwhile(int32_t before, int32_t after);
  void Visit(const Tier& tier, int32_t before, int32_t after);
  void Collect(const Tier& tier, Side side, int32_t center);
  /// Those that see none of the others on the way to their operand: of stacked nodes the first.
  std::vector<int32_t> Lowest(Side side, std::span<const int32_t> candidates) const;
  /// Unmatched nodes of a label below `i`, through unmatched unary nodes.
  int CountBelow(const Tier& tier, Side side, int32_t i, uint64_t label, int steps) const;
  /// Calls `fn(candidate, slot)` for unmatched users, `steps` unary nodes deep, and for unmatched
  /// operands.
  template <class Fn>
  void ForEachOpenUser(Side side, int32_t center, int steps, Fn&& fn) const;
  template <class Fn>
  void ForEachOpenOperand(Side side, int32_t center, int steps, Fn&& fn) const;
  void AddCandidate(const Tier& tier, Side side, int32_t candidate, int32_t slot);
  /// Hashes of all operands (users), unmatched unary nodes taken as their operand (users). 0: some
  /// are not known.
  uint64_t OperandsThroughUnary(Side side, int32_t i) const;
  /// The first matched node that computes the same value; -1: there is none.
  int32_t MatchedEqual(Side side, int32_t i) const;
  uint64_t UsersThroughUnary(Side side, int32_t i, int steps) const;
  /// Matches pairs that prefer each other to all others.
  void Choose(const Tier& tier, std::vector<int32_t> before, std::vector<int32_t> after);
  /// How many unmatched users of the two have one label, and read them at one slot.
  int32_t NumKin(int32_t before, int32_t after) const;
  void Accept(const Tier& tier, int32_t before, int32_t after);
  /// Whether another unmatched node has the label of one of the two, and stands where that one
  /// does: by as many edges as `merit`, or more.
  bool HasRival(int32_t before, int32_t after, int merit) const;
  /// Whether an unmatched node looks exactly like one of the two, which see each other's operands
  /// only through others.
  bool HasDouble(int32_t before, int32_t after) const;
  const std::vector<Keyed>& ByType(Side side) const;
  bool HasRival(Side side, int32_t i, int32_t image, int merit) const;
  /// How many unmatched nodes of the same label stand above `i`, each an operand of the next.
  int StackHeight(Side side, int32_t i) const;
  const PositionMap& Positions();

  Matching& matching_;
  ScopePair scope_{{-1, -1}, {-1, -1}};
  std::vector<EqualNodes> equals_;  // by side, of scope_
  // Unmatched nodes by label, sorted; made when they are asked for first, and again when pairs were
  // taken back.
  mutable std::array<std::optional<std::vector<Keyed>>, 2> by_type_;
  uint32_t by_type_taken_back_ = 0;
  size_t taken_in_ = 0;  // of matching_.made()
  /// A pair, by its before entity, and the kinds of evidence to look for around it.
  struct Turn {
    int32_t before;
    uint32_t tiers = ~uint32_t{0};
  };
  std::vector<Turn> visits_;  // some pairs several times
  std::array<size_t, kNumTiers> next_visit_{};
  std::vector<int32_t> open_when_visited_;  // by before entity, of repeated visits
  std::array<std::vector<Keyed>, 2> candidates_;
  std::array<std::vector<int32_t>, 2> around_;  // of TiersWorthwhile
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
