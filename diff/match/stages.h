#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "diff/graph/keyed.h"
#include "diff/match/equal_nodes.h"
#include "diff/match/matching.h"
#include "diff/match/regions.h"

// The stages of the matcher, from strong evidence to weak. Each matches what it is sure of and
// leaves the rest.
namespace strata {

/// Pairs of candidates that are compared one by one; larger sets wait for better evidence.
inline constexpr size_t kMaxChoices = 1024;

/// Inputs and constants by place and type; where the lists differ, by what uses them.
void MatchInputs(Matching& matching, const ScopePair& scope);

/// Takes back pairs of inputs that were made for their place and type alone, where the nodes around
/// them show that they are not the same. Returns true if there were any.
bool ReviseInputs(Matching& matching, const ScopePair& scope);

/// Inputs that are left, by place and type.
void MatchInputsLeft(Matching& matching, const ScopePair& scope);

/// Nodes whose whole computation (everything above them) is the same; where that leaves a choice,
/// those with the same use of the result (everything below them) too.
void MatchCones(Matching& matching, const ScopePair& scope);

/// Computations that are left and compute the same values, as many on both sides: in order,
/// whoever reads them.
void MatchEqualValues(Matching& matching, const ScopePair& scope);

/// How much of a node itself a hash of its neighbourhood takes in; see Labels.
enum class LabelLevel : uint8_t { kType, kLiterals, kOp, kValue };

/// Nodes whose neighbourhood is the same, and unique, up to a distance: the largest one first.
void MatchRadius(Matching& matching, const ScopePair& scope, LabelLevel level, int min_radius,
                 int max_radius);

/// Forbids nodes that are copies of a few nodes, one per part of a value that only one side cuts
/// into parts: `f(x)` has become `cat(f(x0), f(x1))`, and is neither of the two.
void ForbidParts(Matching& matching, const ScopePair& scope);

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

/// What is left between matched nodes, in order.
void MatchGaps(Matching& matching, const ScopePair& scope);

/// What is left in regions that have the same around them, wherever they stand: in order.
/// REQUIRES: no pair is removed during its lifetime.
class RegionMatcher {
 public:
  RegionMatcher(Matching& matching, const ScopePair& scope);
  /// Looks where something changed since the last time.
  void Run();

 private:
  Matching& matching_;
  size_t size_;  // of the scope
  std::array<Regions, 2> regions_;
};

/// Nodes that stood nowhere where a node of their operator stands on the other side, and when that
/// was: until something changes around them, repair need not ask again.
class HopelessNodes {
 public:
  explicit HopelessNodes(const Matching& matching) {
    for (Side side : {kBefore, kAfter})
      since_[side].resize(static_cast<size_t>(matching.labels(side).size()));
  }
  void Add(Side side, int32_t i, uint32_t now) { since_[side][static_cast<size_t>(i)] = now; }
  /// 0: it is not one.
  uint32_t since(Side side, int32_t i) const { return since_[side][static_cast<size_t>(i)]; }

 private:
  std::array<std::vector<uint32_t>, 2> since_;  // by entity
};

/// Gives unmatched nodes a partner with which most edges agree, also one that is another node's
/// where more edges agree with the new one. Looks where something changed after `since`, a time of
/// `matching.clock()`; 0: everywhere. Returns true if any pair is new.
bool Repair(Matching& matching, const ScopePair& scope, HopelessNodes& hopeless,
            uint32_t since = 0);

/// Lets matched nodes exchange their partners, chains of them too, where more edges agree then.
/// Looks where something changed after `since`, as above. Returns true if any did.
bool Exchange(Matching& matching, const ScopePair& scope, uint32_t since = 0);

/// Operands count before users: two nodes of one label give each other their partners where both
/// have more operands in common with the other one's. Returns true if any did.
bool PreferOperands(Matching& matching, const ScopePair& scope);

/// Nodes whose operator was replaced between what they read and who reads them, not all of which is
/// known. Looks next to pairs from the `since`th of `matching.made()` on. Returns true if there
/// were any.
bool MatchInPlace(const Listing& before, const Listing& after, Matching& matching,
                  const ScopePair& scope, size_t since);

/// Of several equal nodes of which the other side has one, the one that stands where it stands is
/// its partner, unless users decide otherwise. `equals`: by side. Returns true if another one is it
/// now.
bool SettleEquals(Matching& matching, const ScopePair& scope,
                  const std::vector<EqualNodes>& equals);

}  // namespace strata
