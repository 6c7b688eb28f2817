#include <unordered_map>

#include "diff/neighbourhood.h"
#include "diff/stages.h"

namespace strata {
namespace {

/// Aligns the unmatched entities of one kind, inputs or constants.
class InputMatcher {
 public:
  InputMatcher(Matching& matching, const ScopePair& scope, EntityKind kind)
      : matching_(matching), scope_(scope), kind_(kind) {}

  void Run() {
    if (MatchEqualLists()) return;
    if (kind_ == EntityKind::kConstant) MatchBy(&InputMatcher::TypeKeys, 0.99);
    MatchBy(&InputMatcher::ContextKeys, 0.995);
    MatchBy(&InputMatcher::DownKeys, 0.99);
    for (radius_ = 4; radius_ >= 1; radius_ /= 2)
      MatchBy(&InputMatcher::RadiusKeys, 0.98);
    MatchBetween(/*same_type=*/true, 0.95);
    MatchBetween(/*same_type=*/false, 0.9);
  }

 private:
  std::vector<int32_t> Open(Side side) const {
    std::vector<int32_t> open;
    for (int32_t i = scope_.begin[side]; i < scope_.end[side]; ++i) {
      if (matching_.labels(side).kind[static_cast<size_t>(i)] == kind_ &&
          !matching_.matched(side, i)) {
        open.push_back(i);
      }
    }
    return open;
  }

  uint64_t TypeOf(Side side, int32_t i) const {
    return matching_.labels(side).type[static_cast<size_t>(i)];
  }

  /// Two lists with the same types are the same list.
  bool MatchEqualLists() {
    const std::vector<int32_t> before = Open(kBefore), after = Open(kAfter);
    if (before.empty() || after.empty()) return true;
    if (before.size() != after.size()) return false;
    for (size_t i = 0; i < before.size(); ++i) {
      if (TypeOf(kBefore, before[i]) != TypeOf(kAfter, after[i])) return false;
    }
    for (size_t i = 0; i < before.size(); ++i)
      matching_.Match(before[i], after[i], Via::kInput, 0.999);
    return true;
  }

  // Features that may tell inputs apart, strongest first. An input has no computation of its own:
  // its users with their computations stand for it.

  std::vector<Keyed> TypeKeys(Side side) const {
    std::vector<Keyed> keys;
    for (int32_t i : Open(side))
      keys.push_back({TypeOf(side, i), i});
    return keys;
  }

  std::vector<Keyed> ContextKeys(Side side) const {
    const std::vector<uint64_t> cones = UpCones(matching_, side, scope_, false);
    std::vector<Keyed> keys;
    for (int32_t i : Open(side)) {
      uint64_t users = 0;
      for (const Labels::Edge& user : matching_.labels(side).users(i)) {
        const auto slot = static_cast<uint64_t>(matching_.SlotOfUser(side, user));
        users += Mix(cones[static_cast<size_t>(user.entity - scope_.begin[side])], slot);
      }
      keys.push_back({Mix(TypeOf(side, i), users), i});
    }
    return keys;
  }

  std::vector<Keyed> DownKeys(Side side) const {
    return KeysOf(side, DownCones(matching_, side, scope_));
  }

  std::vector<Keyed> RadiusKeys(Side side) const {
    return KeysOf(side, RadiusHashes(matching_, side, scope_, &Labels::type, radius_).back());
  }

  std::vector<Keyed> KeysOf(Side side, const std::vector<uint64_t>& hashes) const {
    std::vector<Keyed> keys;
    for (int32_t i : Open(side))
      keys.push_back({hashes[static_cast<size_t>(i - scope_.begin[side])], i});
    return keys;
  }

  /// Matches what has a key in common; several of one key in order, if they are equally many.
  void MatchBy(std::vector<Keyed> (InputMatcher::*keys_of)(Side) const, double confidence) {
    std::vector<Keyed> before = (this->*keys_of)(kBefore), after = (this->*keys_of)(kAfter);
    if (before.empty() || after.empty()) return;
    ForEachCommonKey(before, after, [&](auto befores, auto afters) {
      if (befores.size() != afters.size()) return;
      for (size_t i = 0; i < befores.size(); ++i)
        matching_.Match(befores[i], afters[i], Via::kInput, confidence);
    });
  }

  /// Matches what stands between the same matched inputs: the longest common sequence of types, or
  /// whole stretches of equal length whatever their types.
  void MatchBetween(bool same_type, double confidence) {
    std::vector<std::pair<int32_t, int32_t>> anchors;
    for (const auto& [before, after] : matching_.Anchors(scope_)) {
      if (matching_.labels(kBefore).kind[static_cast<size_t>(before)] == kind_) {
        anchors.emplace_back(before, after);
      }
    }
    anchors.emplace_back(scope_.end[kBefore], scope_.end[kAfter]);
    const std::vector<int32_t> before = Open(kBefore), after = Open(kAfter);
    size_t i = 0, j = 0;
    for (const auto& [next_before, next_after] : anchors) {
      std::vector<int32_t> befores, afters;
      while (i < before.size() && before[i] < next_before)
        befores.push_back(before[i++]);
      while (j < after.size() && after[j] < next_after)
        afters.push_back(after[j++]);
      if (same_type) {
        MatchCommonTypes(befores, afters, confidence);
      } else if (befores.size() == afters.size()) {
        for (size_t k = 0; k < befores.size(); ++k) {
          if (ShareUse(befores[k], afters[k])) {
            matching_.Match(befores[k], afters[k], Via::kInput, confidence);
          }
        }
      }
    }
  }

  void MatchCommonTypes(const std::vector<int32_t>& before, const std::vector<int32_t>& after,
                        double confidence) {
    constexpr size_t kMaxCells = 1 << 22;
    const size_t n = before.size(), m = after.size();
    if (n == 0 || m == 0 || n * m > kMaxCells) return;
    // length[i][j]: of the longest common sequence of before[i…] and after[j…].
    std::vector<int32_t> length((n + 1) * (m + 1), 0);
    const auto at = [&](size_t i, size_t j) -> int32_t& { return length[i * (m + 1) + j]; };
    const auto equal = [&](size_t i, size_t j) {
      return TypeOf(kBefore, before[i]) == TypeOf(kAfter, after[j]) &&
             ShareUse(before[i], after[j]);
    };
    for (size_t i = n; i-- > 0;) {
      for (size_t j = m; j-- > 0;)
        at(i, j) = equal(i, j) ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    }
    for (size_t i = 0, j = 0; i < n && j < m;) {
      if (equal(i, j) && at(i, j) == at(i + 1, j + 1) + 1) {
        matching_.Match(before[i++], after[j++], Via::kInput, confidence);
      } else {
        (at(i + 1, j) >= at(i, j + 1) ? i : j) += 1;
      }
    }
  }

  /// Whether some operator uses both at the same slot, or nothing uses one of them.
  bool ShareUse(int32_t before, int32_t after) const {
    const auto users_before = matching_.labels(kBefore).users(before);
    const auto users_after = matching_.labels(kAfter).users(after);
    if (users_before.empty() || users_after.empty()) return true;
    const auto first = [](std::span<const Labels::Edge> users) {
      return users.first(std::min(users.size(), Matching::kMaxEdges));
    };
    for (const Labels::Edge& a : first(users_before)) {
      for (const Labels::Edge& b : first(users_after)) {
        if (matching_.labels(kBefore).op[static_cast<size_t>(a.entity)] ==
                matching_.labels(kAfter).op[static_cast<size_t>(b.entity)] &&
            matching_.SlotOfUser(kBefore, a) == matching_.SlotOfUser(kAfter, b)) {
          return true;
        }
      }
    }
    return false;
  }

  Matching& matching_;
  const ScopePair& scope_;
  const EntityKind kind_;
  int radius_ = 4;
};

}  // namespace

void MatchInputs(Matching& matching, const ScopePair& scope) {
  for (EntityKind kind : {EntityKind::kInput, EntityKind::kConstant})
    InputMatcher(matching, scope, kind).Run();
}

}  // namespace strata
