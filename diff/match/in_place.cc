#include <algorithm>
#include <map>
#include <string>

#include "diff/match/stages.h"
#include "ir/ops.h"

namespace strata {
namespace {

constexpr double kConfidence = 0.95;

/// Operators that were replaced in place while something else happened next to them: what they read
/// is the same as far as it is known, and so is who reads them.
class InPlaceFinder {
 public:
  InPlaceFinder(const Listing& before, const Listing& after, const Matching& matching,
                const ScopePair& scope)
      : before_(before), after_(after), matching_(matching), scope_(scope) {}

  /// Pairs of nodes that have nobody else to be paired with.
  std::vector<std::pair<int32_t, int32_t>> Find() const {
    std::vector<std::pair<int32_t, int32_t>> pairs;
    std::map<int32_t, int> times;  // by after node
    for (int32_t i : matching_.Unmatched(kBefore, scope_)) {
      const std::vector<int32_t> candidates = Candidates(i);
      for (int32_t j : candidates)
        ++times[j];
      if (candidates.size() == 1) pairs.emplace_back(i, candidates[0]);
    }
    std::erase_if(pairs, [&](const auto& pair) { return times[pair.second] != 1; });
    return pairs;
  }

 private:
  static size_t Index(int32_t i) { return static_cast<size_t>(i); }

  /// What the images of a node's users read in its place.
  std::vector<int32_t> Candidates(int32_t i) const {
    std::vector<int32_t> candidates;
    const Labels& labels = matching_.labels(kBefore);
    const auto users = labels.users(i);
    for (const Labels::Edge& user : users.first(std::min(users.size(), Matching::kMaxEdges))) {
      const int32_t image = matching_.partner(kBefore, user.entity);
      if (image < 0 || matching_.slotless(kBefore, user.entity)) continue;
      const auto operands = matching_.labels(kAfter).operands(image);
      if (Index(user.slot) < operands.size()) {
        candidates.push_back(operands[Index(user.slot)].entity);
      }
    }
    std::ranges::sort(candidates);
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    std::erase_if(candidates, [&](int32_t j) { return !StandsInPlace(i, j); });
    return candidates;
  }

  bool StandsInPlace(int32_t i, int32_t j) const {
    const Labels& a = matching_.labels(kBefore);
    const Labels& b = matching_.labels(kAfter);
    if (matching_.matched(kAfter, j) || matching_.forbidden(kAfter, j) || matching_.vetoed(i, j) ||
        a.kind[Index(i)] != EntityKind::kCompute || b.kind[Index(j)] != EntityKind::kCompute ||
        a.form[Index(i)] != b.form[Index(j)] || a.operands(i).size() != b.operands(j).size()) {
      return false;
    }
    size_t agreeing = 0, open = 0;
    for (size_t slot = 0; slot < a.operands(i).size(); ++slot) {
      const int32_t x = a.operands(i)[slot].entity, y = b.operands(j)[slot].entity;
      const bool both_open = !matching_.matched(kBefore, x) && !matching_.matched(kAfter, y);
      if (matching_.partner(kBefore, x) == y) {
        ++agreeing;
      } else if (both_open && a.value[Index(x)] == b.value[Index(y)] && !IsNamedAfter(j, i, x)) {
        ++open;
      } else {
        return false;
      }
    }
    const Matching::EdgeScore score = matching_.Score(i, j);
    return agreeing > 0 && score.agreeing_users > 0 &&
           (open == 0 || score.contradicting_users == 0);
  }

  /// Whether the operator of `after` is named after that of `before` and that of `other` too, as
  /// `fused_add_mul` is: then it stands for both.
  bool IsNamedAfter(int32_t after, int32_t before, int32_t other) const {
    std::string name(BaseName(after_.target({after})));
    const std::string_view own = BaseName(before_.target({before}));
    if (const size_t at = name.rfind(own); at != std::string::npos)
      name.replace(at, own.size(), " ");
    return name.find(BaseName(before_.target({other}))) != std::string::npos;
  }

  const Listing& before_;
  const Listing& after_;
  const Matching& matching_;
  const ScopePair& scope_;
};

}  // namespace

bool MatchInPlace(const Listing& before, const Listing& after, Matching& matching,
                  const ScopePair& scope) {
  const auto pairs = InPlaceFinder(before, after, matching, scope).Find();
  for (const auto& [i, j] : pairs)
    matching.Match(i, j, Via::kLocal, kConfidence);
  return !pairs.empty();
}

}  // namespace strata
