#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "diff/graph/hash.h"
#include "diff/graph/order.h"
#include "diff/match/labels.h"
#include "diff/model/graph_diff.h"

namespace strata {

/// 0: before, 1: after.
using Side = size_t;
inline constexpr Side kBefore = 0, kAfter = 1;

/// Ranges of entities that are matched with each other: a program with a program, a body with a
/// body.
struct ScopePair {
  std::array<EntityId, 2> begin, end;

  IdRange<EntityId> ids(Side side) const { return {begin[side], end[side]}; }
  size_t size(Side side) const { return ids(side).size(); }
  /// The place of an entity of the scope, from its first one.
  size_t PlaceOf(Side side, EntityId i) const {
    return static_cast<size_t>(i.index - begin[side].index);
  }
  friend bool operator==(const ScopePair&, const ScopePair&) = default;
};

/// The most pairs of candidates that a stage compares one by one. Larger sets wait for better
/// evidence.
inline constexpr size_t kMaxChoices = 1024;

/// Of a match that rests on the neighbours of a node alone (Via::kLocal).
inline constexpr double kLocalConfidence = 0.9;

/// A partial matching of two labelled listings, and the evidence that it gives about nodes that are
/// not matched yet. All updates cost the degree of the pair.
class Matching {
 public:
  struct Made {
    EntityId before, after;  ///< none: taken back
    Via via;
    double confidence;
  };

  Matching(const Labels& before, const Labels& after);

  const Labels& labels(Side side) const { return *labels_[side]; }
  EntityId partner(Side side, EntityId i) const { return partners_[side][i]; }
  bool matched(Side side, EntityId i) const { return partner(side, i).valid(); }
  bool SameKind(EntityId before, EntityId after) const {
    return labels_[kBefore]->kind[before] == labels_[kAfter]->kind[after];
  }

  /// The pair will not be made. A node that is matched with nothing is forbidden instead.
  void Veto(EntityId before, EntityId after) { vetoes_.insert(KeyOf(before, after)); }
  bool vetoed(EntityId before, EntityId after) const {
    return !vetoes_.empty() && vetoes_.contains(KeyOf(before, after));
  }

  /// Makes a pair, unless it is vetoed or one of the nodes is forbidden.
  /// REQUIRES: both are unmatched and of one kind.
  void Match(EntityId before, EntityId after, Via via, double confidence);
  /// Lets an unmatched node count as the value of `other`, which is matched: an input of a body as
  /// what the body is called with.
  void LendToken(Side side, EntityId i, EntityId other);
  /// Takes back a pair. REQUIRES: `before` is matched.
  void Unmatch(EntityId before);
  /// Gives the partner of `from` to `to`, both of `side`, with a new confidence.
  /// REQUIRES: `from` is matched and `to` is not, and they are of one kind.
  void PassOn(Side side, EntityId from, EntityId to, double confidence);
  /// How a matched node was matched.
  const Made& made(Side side, EntityId i) const {
    return made_[static_cast<size_t>(made_of_[side][i])];
  }
  Via via(Side side, EntityId i) const { return made_[static_cast<size_t>(made_of_[side][i])].via; }
  /// The node stays unmatched. REQUIRES: it is.
  void Forbid(Side side, EntityId i) { forbidden_[side][i] = true; }
  bool forbidden(Side side, EntityId i) const { return forbidden_[side][i]; }

  /// Counts changes: pairs that were made, and taken back.
  uint32_t clock() const { return clock_; }
  /// How often a node lost its partner.
  uint32_t taken_back() const { return taken_back_; }
  /// Whether the node, or one next to it, found or lost its partner after `since`, a time of
  /// `clock`. What was looked at in vain need not be looked at again before.
  bool ChangedSince(Side side, EntityId i, uint32_t since) const {
    return changed_[side][i] > since;
  }

  /// In order of making.
  const std::vector<Made>& made() const { return made_; }

  /// The same number on both sides of a pair, different for different pairs. 0: unmatched.
  uint64_t token(Side side, EntityId i) const { return TokenOf(made_of_[side][i]); }
  /// Edges whose other end is not matched.
  int32_t open_operands(Side side, EntityId i) const { return open_[side][i].operands; }
  int32_t open_users(Side side, EntityId i) const { return open_[side][i].users; }
  /// A hash of the matched operands with their slots; of the matched users with theirs. Those of
  /// hubs are kept, the others are found from the edges, no more than kMaxEdges.
  uint64_t operand_sum(Side side, EntityId i) const {
    return AreMany(labels(side).operands(i)) ? SumsOf(side, i).operands : SumOfOperands(side, i);
  }
  uint64_t user_sum(Side side, EntityId i) const {
    return AreMany(labels(side).users(i)) ? SumsOf(side, i).users : SumOfUsers(side, i);
  }
  /// The same of the matched operands in any order.
  uint64_t operand_set(Side side, EntityId i) const {
    return AreMany(labels(side).operands(i)) ? SumsOf(side, i).operand_set : SetOfOperands(side, i);
  }

  /// From here on the slots of `output`'s operands mean nothing: results were added or removed.
  /// REQUIRES: `output` is not matched yet.
  void ForgetSlotsOf(Side side, EntityId output) {
    slotless_[side][output] = any_slotless_[side] = true;
  }
  bool slotless(Side side, EntityId i) const { return any_slotless_[side] && slotless_[side][i]; }
  /// The slot as evidence: edge.entity uses something at edge.slot.
  int32_t SlotOfUser(Side side, const Labels::Edge& user) const {
    return slotless(side, user.entity) ? 0 : user.slot;
  }

  /// False for the output of a graph that returns more, or less, on the other side.
  /// REQUIRES: `user` is matched.
  bool SlotsAgree(Side side, EntityId user) const {
    return labels(side).kind[user] != EntityKind::kOutput ||
           labels(side).operands(user).size() ==
               labels(1 - side).operands(partner(side, user)).size();
  }

  /// How many edges of an unmatched pair agree with the matches around it, and how many contradict
  /// them. An operand at another slot does neither, and so does a neighbour that has one of the two
  /// as its partner: it would lose it. Looks at no more than kMaxEdges edges of each kind.
  struct EdgeScore {
    int32_t agree = 0, contradict = 0;
    /// Operands of which one side's is matched and the other's is not, or not there.
    int32_t lopsided = 0;
    int32_t agreeing_users = 0, contradicting_users = 0;  ///< those among them
  };
  EdgeScore Score(EntityId before, EntityId after) const;
  static constexpr size_t kMaxEdges = 24;

  /// Whether the two read the same values, and some: what counts before all users.
  bool SameOperands(EntityId before, EntityId after) const;

  /// The node of the other side that the partners of all users of `i` read where these read `i`;
  /// None: they disagree, or there are none.
  EntityId StandIn(Side side, EntityId i) const;

  /// Frees what the search for pairs, `made` of a node and `Score` need. Pairs stay; no more are
  /// made.
  void ForgetEvidence() {
    made_of_ = {};
    changed_ = {};
    open_ = {};
    hub_of_ = {};
    sums_ = {};
  }
  /// Frees `made()`.
  void ForgetMade() { made_ = std::vector<Made>(); }  // `{}` would keep the memory

  /// Entities of a scope pair that may be matched yet, ascending.
  std::vector<EntityId> Unmatched(Side side, const ScopePair& scope) const;
  bool AnyUnmatched(Side side, const ScopePair& scope) const;
  /// Matched pairs of a scope pair that ascend in both orders: (before, after).
  std::vector<std::pair<EntityId, EntityId>> Anchors(const ScopePair& scope) const;

 private:
  struct OpenEdges {
    int32_t operands = 0, users = 0;
  };
  /// Of a hub: a node with more than kMaxEdges operands, or users.
  struct Sums {
    uint64_t operands = 0, operand_set = 0, users = 0;
  };
  static uint64_t TokenOf(int32_t made) {
    return made < 0 ? 0 : Mix(static_cast<uint64_t>(made), 0x7061697273ull) | 1;
  }
  static uint64_t KeyOf(EntityId before, EntityId after) {
    return static_cast<uint64_t>(static_cast<uint32_t>(before.index)) << 32 |
           static_cast<uint32_t>(after.index);
  }
  static bool AreMany(const auto& edges) { return edges.size() > kMaxEdges; }
  /// REQUIRES: `i` has many operands, or users.
  Sums& SumsOf(Side side, EntityId i) { return sums_[side][hub_of_[side][i]]; }
  const Sums& SumsOf(Side side, EntityId i) const { return sums_[side][hub_of_[side][i]]; }
  /// What an edge adds to a sum, with the token of its other end; 0: that one is not matched.
  uint64_t TermOf(uint64_t token, Side side, EntityId user, int32_t slot) const {
    return token == 0 ? 0 : Mix(token, static_cast<uint64_t>(SlotOfUser(side, {user, slot})));
  }
  uint64_t SumOfOperands(Side side, EntityId i) const {
    uint64_t sum = 0;
    for (const Labels::Edge& operand : labels(side).operands(i))
      sum += TermOf(token(side, operand.entity), side, i, operand.slot);
    return sum;
  }
  uint64_t SumOfUsers(Side side, EntityId i) const {
    uint64_t sum = 0;
    for (const Labels::Edge& user : labels(side).users(i))
      sum += TermOf(token(side, user.entity), side, user.entity, user.slot);
    return sum;
  }
  uint64_t SetOfOperands(Side side, EntityId i) const {
    uint64_t sum = 0;
    for (const Labels::Edge& operand : labels(side).operands(i))
      sum += token(side, operand.entity);
    return sum;
  }
  /// Informs the neighbours of a node about its new or removed pair.
  void Announce(Side side, EntityId i, bool is_new);

  std::array<const Labels*, 2> labels_;
  // Each apart: most stages ask one of them about all nodes.
  std::array<IdVector<EntityId, EntityId>, 2> partners_;
  std::array<IdVector<EntityId, bool>, 2> forbidden_, slotless_;
  std::array<bool, 2> any_slotless_{};
  std::array<IdVector<EntityId, int32_t>, 2> made_of_;  // its pair, or the one that lends its token
  std::array<IdVector<EntityId, uint32_t>, 2> changed_;  // when
  std::array<IdVector<EntityId, OpenEdges>, 2> open_;
  std::array<IdVector<EntityId, uint32_t>, 2> hub_of_;  // into sums_; empty: there are no hubs
  std::array<std::vector<Sums>, 2> sums_;
  std::vector<Made> made_;
  uint32_t clock_ = 0, taken_back_ = 0;
  std::unordered_set<uint64_t> vetoes_;
};

}  // namespace strata
