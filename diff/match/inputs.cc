#include "diff/match/inputs.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "diff/match/input_stretches.h"
#include "diff/match/input_uses.h"
#include "diff/match/neighbourhood.h"

namespace strata {
namespace {

/// A list was rearranged, and its order is not evidence, if one pair in this many contradicts it.
constexpr size_t kInputDisorder = 10;

/// Aligns the unmatched entities of one kind, inputs or constants.
class InputMatcher {
 public:
  InputMatcher(Matching& matching, const ScopePair& scope, EntityKind kind)
      : matching_(matching), scope_(scope), kind_(kind), uses_(matching, scope) {
    for (Side side : {kBefore, kAfter}) {
      for (EntityId i : scope.ids(side)) {
        if (matching.labels(side).kind[i] == kind) entities_[side].push_back(i);
      }
      proposed_[side].assign(PlaceOf(side, scope.end[side]), false);
    }
  }

  void Run() {
    if (kind_ == EntityKind::kConstant) MatchByAttribute();
    if (MatchEqualLists() || MatchAroundBlock()) return;
    if (MatchCommonStretches()) return RunByPlace();
    if (kind_ == EntityKind::kConstant) ProposeBy(&InputMatcher::TypeKeys, true, 0.995);
    ProposeBy(&InputMatcher::DownKeys, true, 0.999);
    ProposeBy(&InputMatcher::ContextKeys, false, 0.998);
    ProposeByRadius();
    ProposeBy(&InputMatcher::UseKeys, false, 0.995);
    MatchProposed();
    RunByPlace();
  }

  /// What is left, between what is matched.
  void RunByPlace() {
    if (is_disordered_) return;
    MatchBetween(/*same_type=*/true, kInputByPlace);
    MatchBetween(/*same_type=*/false, 0.9);
  }

 private:
  /// A pair that is made unless it contradicts the order of the others.
  struct Proposal {
    EntityId before, after;
    bool in_any_order;
    double confidence;
    size_t set;  ///< that of all with its key
  };

  size_t PlaceOf(Side side, EntityId i) const { return scope_.PlaceOf(side, i); }

  /// Neither matched nor proposed.
  bool IsOpen(Side side, EntityId i) const {
    return !matching_.matched(side, i) && !matching_.forbidden(side, i) &&
           !proposed_[side][PlaceOf(side, i)];
  }
  std::vector<EntityId> Open(Side side) const {
    std::vector<EntityId> open;
    std::ranges::copy_if(entities_[side], std::back_inserter(open),
                         [&](EntityId i) { return IsOpen(side, i); });
    return open;
  }
  bool AnyOpen(Side side) const {
    return std::ranges::any_of(entities_[side], [&](EntityId i) { return IsOpen(side, i); });
  }

  uint64_t TypeOf(Side side, EntityId i) const { return matching_.labels(side).type[i]; }

  /// Attributes of the same names in another order: constants were moved, not traced anew, which
  /// would have numbered them in order.
  void MatchByAttribute() {
    const auto keys_of = [&](Side side) {
      std::vector<Keyed> keys;
      for (EntityId i : Open(side))
        keys.push_back({matching_.labels(side).attribute(i), i});
      return keys;
    };
    std::vector<Keyed> before = keys_of(kBefore), after = keys_of(kAfter);
    if (before.size() != after.size() ||
        std::ranges::equal(before, after, {}, &Keyed::key, &Keyed::key))
      return;
    std::ranges::sort(before);
    std::ranges::sort(after);
    if (!std::ranges::equal(before, after, {}, &Keyed::key, &Keyed::key)) return;
    for (size_t i = 0; i < before.size(); ++i) {
      if (TypeOf(kBefore, before[i].entity) != TypeOf(kAfter, after[i].entity)) return;
    }
    for (size_t i = 0; i < before.size(); ++i)
      matching_.Match(before[i].entity, after[i].entity, Via::kInput, 0.999);
  }

  /// Two lists with the same types are the same list.
  bool MatchEqualLists() {
    const std::vector<EntityId> before = Open(kBefore), after = Open(kAfter);
    if (before.empty() || after.empty()) return true;
    if (before.size() != after.size()) return false;
    for (size_t i = 0; i < before.size(); ++i) {
      if (TypeOf(kBefore, before[i]) != TypeOf(kAfter, after[i])) return false;
      if (matching_.vetoed(before[i], after[i])) return false;
    }
    for (size_t i = 0; i < before.size(); ++i)
      matching_.Match(before[i], after[i], Via::kInput, 0.999);
    return true;
  }

  /// One list is the other with some more in one place: what stands before it, and after it.
  bool MatchAroundBlock() {
    const std::vector<EntityId> before = Open(kBefore), after = Open(kAfter);
    const size_t n = before.size(), m = after.size(), fewer = std::min(n, m);
    constexpr size_t kFew = 3;
    if (fewer < kFew || n == m) return false;
    const auto same = [&](size_t i, size_t j) {
      return TypeOf(kBefore, before[i]) == TypeOf(kAfter, after[j]) &&
             !matching_.vetoed(before[i], after[j]);
    };
    size_t head = 0, tail = 0;
    while (head < fewer && same(head, head))
      ++head;
    while (head + tail < fewer && same(n - 1 - tail, m - 1 - tail))
      ++tail;
    if (head + tail < fewer) return false;
    std::vector<std::pair<EntityId, EntityId>> pairs;
    for (size_t i = 0; i < head; ++i)
      pairs.emplace_back(before[i], after[i]);
    for (size_t i = 0; i < tail; ++i)
      pairs.emplace_back(before[n - 1 - i], after[m - 1 - i]);
    // Inputs of a part of a graph are used otherwise, and their types agree by chance.
    const auto alike = static_cast<size_t>(std::ranges::count_if(
        pairs, [&](const auto& pair) { return uses_.ShareUse(pair.first, pair.second); }));
    if (10 * alike < 9 * fewer) return false;
    for (const auto& [i, j] : pairs)
      matching_.Match(i, j, Via::kInput, 0.998);
    return true;
  }

  /// A list that repeats few stretches, in which some inputs were added or removed:
  /// what stands next to an input identifies it.
  bool MatchCommonStretches() {
    const std::vector<EntityId> before = Open(kBefore), after = Open(kAfter);
    const auto pairs = CommonStretches(matching_, before, after);
    if (pairs.empty() || 4 * pairs.size() < 3 * std::min(before.size(), after.size())) return false;
    for (const auto& [i, j] : pairs)
      matching_.Match(i, j, Via::kInput, 0.998);
    return true;
  }

  // Features that may distinguish inputs, strongest first. An input has no computation of its own:
  // its users with their computations stand for it.

  std::vector<Keyed> TypeKeys(Side side) const {
    std::vector<Keyed> keys;
    for (EntityId i : Open(side))
      keys.push_back({TypeOf(side, i), i});
    return keys;
  }

  std::vector<Keyed> ContextKeys(Side side) const {
    const std::vector<uint64_t> cones = UpCones(matching_, side, scope_, false);
    std::vector<Keyed> keys;
    for (EntityId i : Open(side)) {
      uint64_t users = 0;
      for (const Labels::Edge& user : matching_.labels(side).users(i)) {
        const auto slot = static_cast<uint64_t>(matching_.SlotOfUser(side, user));
        users += Mix(cones[scope_.PlaceOf(side, user.entity)], slot);
      }
      keys.push_back({Mix(TypeOf(side, i), users), i});
    }
    return keys;
  }

  std::vector<Keyed> DownKeys(Side side) const {
    return KeysOf(side, DownCones(matching_, side, scope_));
  }

  /// What becomes of an input, where all else that its users read may have been replaced.
  std::vector<Keyed> UseKeys(Side side) const {
    constexpr int kSteps = 3;
    return KeysOf(side, UseHashes(matching_, side, scope_, kSteps));
  }

  std::vector<Keyed> KeysOf(Side side, const std::vector<uint64_t>& hashes) const {
    std::vector<Keyed> keys;
    for (EntityId i : Open(side))
      keys.push_back({hashes[scope_.PlaceOf(side, i)], i});
    return keys;
  }

  void ProposeBy(std::vector<Keyed> (InputMatcher::*keys_of)(Side) const, bool in_any_order,
                 double confidence) {
    if (!AnyOpen(kBefore) || !AnyOpen(kAfter)) return;
    Propose((this->*keys_of)(kBefore), (this->*keys_of)(kAfter), in_any_order, confidence);
  }

  /// By what is around inputs: the larger radius first. Hashes of both grow together.
  void ProposeByRadius() {
    constexpr int kNear = 2, kFar = 4;
    if (!AnyOpen(kBefore) || !AnyOpen(kAfter)) return;
    std::array<std::vector<Keyed>, 2> near, far;
    for (Side side : {kBefore, kAfter}) {
      GrowingRadius growing(matching_, side, scope_, LabelKind::kType);
      const std::vector<EntityId> nodes = NotMatched(matching_, side, scope_), open = Open(side);
      for (int radius = 1; radius <= kFar; ++radius) {
        growing.Grow(radius < kFar ? nodes : open);
        if (radius != kNear && radius != kFar) continue;
        for (EntityId i : open)
          (radius == kNear ? near : far)[side].push_back({growing.hash(i), i});
      }
    }
    Propose(std::move(far[kBefore]), std::move(far[kAfter]), false, 0.995);
    for (Side side : {kBefore, kAfter})
      std::erase_if(near[side], [&](const Keyed& keyed) { return !IsOpen(side, keyed.entity); });
    Propose(std::move(near[kBefore]), std::move(near[kAfter]), false, 0.995);
  }

  /// Proposes what has a key in common; several of one key in order, if they are equally many.
  void Propose(std::vector<Keyed> before, std::vector<Keyed> after, bool in_any_order,
               double confidence) {
    ForEachCommonKey(before, after, [&](auto befores, auto afters) {
      if (befores.size() != afters.size()) return;
      ++num_sets_;
      for (size_t i = 0; i < befores.size(); ++i) {
        proposals_.push_back({befores[i], afters[i], in_any_order, confidence, num_sets_ - 1});
        proposed_[kBefore][PlaceOf(kBefore, befores[i])] = true;
        proposed_[kAfter][PlaceOf(kAfter, afters[i])] = true;
      }
    });
  }

  /// Layers are alike, above all where a graph begins in the middle of another. So a neighbourhood
  /// proves nothing against the order of most inputs. Of several with one neighbourhood the order
  /// is all there is: they are matched if it holds for all of them.
  void MatchProposed() {
    std::ranges::sort(proposals_, {}, &Proposal::before);
    std::vector<OrderPoint> points;
    for (const Proposal& proposal : proposals_)
      points.push_back(
          {proposal.before.index, proposal.after.index, proposal.in_any_order ? 1u : 0u});
    const std::vector<bool> in_order = LargestOrderedSet(points);
    const auto num_in_order = static_cast<size_t>(std::ranges::count(in_order, true));
    is_disordered_ = kInputDisorder * (points.size() - num_in_order) > points.size();
    std::vector<bool> set_in_order(num_sets_, true);
    for (size_t i = 0; i < proposals_.size(); ++i) {
      if (!in_order[i]) set_in_order[proposals_[i].set] = false;
    }
    for (const Proposal& proposal : proposals_) {
      if (!set_in_order[proposal.set] && !proposal.in_any_order) continue;
      matching_.Match(proposal.before, proposal.after, Via::kInput, proposal.confidence);
    }
    proposals_.clear();
    for (Side side : {kBefore, kAfter})
      proposed_[side].assign(proposed_[side].size(), false);
  }

  /// Matched entities of this kind that ascend on both sides.
  std::vector<std::pair<EntityId, EntityId>> Anchors() const {
    std::vector<std::pair<EntityId, EntityId>> anchors = matching_.Anchors(scope_);
    std::erase_if(anchors, [&](const auto& anchor) {
      return matching_.labels(kBefore).kind[anchor.first] != kind_;
    });
    return anchors;
  }

  /// Matches what stands between the same matched inputs: the longest common sequence of types, or
  /// whole stretches of equal length whatever their types.
  void MatchBetween(bool same_type, double confidence) {
    const std::vector<EntityId> before = Open(kBefore), after = Open(kAfter);
    if (before.empty() || after.empty()) return;
    std::vector<std::pair<EntityId, EntityId>> anchors = Anchors();
    anchors.emplace_back(scope_.end[kBefore], scope_.end[kAfter]);
    size_t i = 0, j = 0;
    for (const auto& [next_before, next_after] : anchors) {
      std::vector<EntityId> befores, afters;
      while (i < before.size() && before[i] < next_before)
        befores.push_back(before[i++]);
      while (j < after.size() && after[j] < next_after)
        afters.push_back(after[j++]);
      if (same_type) {
        MatchCommonTypes(befores, afters, confidence);
      } else if (befores.size() == afters.size()) {
        for (size_t k = 0; k < befores.size(); ++k) {
          const bool equal = TypeOf(kBefore, befores[k]) == TypeOf(kAfter, afters[k]);
          if (equal || uses_.ShareUse(befores[k], afters[k])) {
            matching_.Match(befores[k], afters[k], Via::kInput, confidence);
          }
        }
      }
    }
  }

  using Entities = std::span<const EntityId>;

  /// All types together, or, of long lists, each type for itself.
  void MatchCommonTypes(Entities before, Entities after, double confidence) {
    if (AlignAlike(before, after, confidence)) return;
    std::vector<Keyed> keys_before, keys_after;
    for (EntityId i : before)
      keys_before.push_back({TypeOf(kBefore, i), i});
    for (EntityId i : after)
      keys_after.push_back({TypeOf(kAfter, i), i});
    ForEachCommonKey(keys_before, keys_after, [&](auto befores, auto afters) {
      if (AlignAlike(befores, afters, confidence)) return;
      for (size_t i = 0; i < std::min(befores.size(), afters.size()); ++i) {
        if (!uses_.ShareUse(befores[i], afters[i])) continue;
        matching_.Match(befores[i], afters[i], Via::kInput, confidence);
      }
    });
  }

  /// The alignment in order of inputs of one type that are used alike. False: it would cost too
  /// much, and nothing was done.
  bool AlignAlike(Entities before, Entities after, double confidence) {
    constexpr size_t kMaxCells = 1 << 20;
    const size_t n = before.size(), m = after.size();
    if (n == 0 || m == 0) return true;
    if (n * m > kMaxCells) return false;
    // merit[i][j]: of the best common subsequence of before[i…] and after[j…]. One pair that is
    // used alike counts more than several that are not.
    const auto sketches_before = uses_.SketchesOf(kBefore, before);
    const auto sketches_after = uses_.SketchesOf(kAfter, after);
    constexpr int32_t kPair = 64;
    std::vector<int32_t> own(n * m, 0), merit((n + 1) * (m + 1), 0);
    const auto at = [&](size_t i, size_t j) -> int32_t& { return merit[i * (m + 1) + j]; };
    for (size_t i = n; i-- > 0;) {
      for (size_t j = m; j-- > 0;) {
        at(i, j) = std::max(at(i + 1, j), at(i, j + 1));
        if (TypeOf(kBefore, before[i]) != TypeOf(kAfter, after[j]) ||
            matching_.vetoed(before[i], after[j]) || !uses_.ShareUse(before[i], after[j])) {
          continue;
        }
        own[i * m + j] = kPair + InputUses::Likeness(sketches_before[i], sketches_after[j]);
        at(i, j) = std::max(at(i, j), own[i * m + j] + at(i + 1, j + 1));
      }
    }
    for (size_t i = 0, j = 0; i < n && j < m;) {
      if (own[i * m + j] > 0 && at(i, j) == own[i * m + j] + at(i + 1, j + 1)) {
        matching_.Match(before[i++], after[j++], Via::kInput, confidence);
      } else {
        (at(i + 1, j) >= at(i, j + 1) ? i : j) += 1;
      }
    }
    return true;
  }

  Matching& matching_;
  const ScopePair& scope_;
  const EntityKind kind_;
  std::vector<Proposal> proposals_;
  size_t num_sets_ = 0;
  bool is_disordered_ = false;
  std::array<std::vector<EntityId>, 2> entities_;  // of the kind
  std::array<std::vector<bool>, 2> proposed_;      // by place in the scope
  const InputUses uses_;
};

/// Whether all users of an unmatched input are unmatched, and there are some.
bool LostItsUsers(const Matching& matching, Side side, EntityId i) {
  const auto users = matching.labels(side).users(i);
  return !users.empty() && std::ranges::none_of(users, [&](const Labels::Edge& user) {
    return matching.matched(side, user.entity);
  });
}

/// An input is known by its type if it is the only one of it on both sides, and all that was done
/// with it is done otherwise now: then nothing contradicts it.
void MatchLoneInputs(Matching& matching, const ScopePair& scope) {
  std::array<std::vector<Keyed>, 2> by_type;
  for (Side side : {kBefore, kAfter}) {
    const Labels& labels = matching.labels(side);
    for (EntityId i : scope.ids(side)) {
      if (labels.kind[i] == EntityKind::kInput) by_type[side].push_back({labels.type[i], i});
    }
  }
  std::vector<std::pair<EntityId, EntityId>> lone;
  ForEachCommonKey(by_type[kBefore], by_type[kAfter], [&](auto befores, auto afters) {
    if (befores.size() != 1 || afters.size() != 1) return;
    const EntityId before = befores[0], after = afters[0];
    if (matching.matched(kBefore, before) || matching.matched(kAfter, after)) return;
    if (LostItsUsers(matching, kBefore, before) && LostItsUsers(matching, kAfter, after))
      lone.emplace_back(before, after);
  });
  std::ranges::sort(lone);
  for (const auto& [before, after] : lone)
    matching.Match(before, after, Via::kInput, kInputByPlace);
}

}  // namespace

void MatchInputsLeft(Matching& matching, const ScopePair& scope) {
  for (EntityKind kind : {EntityKind::kInput, EntityKind::kConstant})
    InputMatcher(matching, scope, kind).RunByPlace();
  MatchLoneInputs(matching, scope);
}

void MatchInputs(Matching& matching, const ScopePair& scope) {
  for (EntityKind kind : {EntityKind::kInput, EntityKind::kConstant})
    InputMatcher(matching, scope, kind).Run();
}

}  // namespace strata
