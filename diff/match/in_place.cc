#include "diff/match/in_place.h"

#include <algorithm>
#include <string>

#include "ir/ops.h"

namespace strata {
namespace {

constexpr double kInPlaceConfidence = 0.95;

/// Operators that were replaced in place while something else happened next to them: what they read
/// is the same as far as it is known, and so is who reads them.
class InPlaceFinder {
 public:
  InPlaceFinder(const Listing& before, const Listing& after, const Matching& matching,
                const ScopePair& scope)
      : before_(before), after_(after), matching_(matching), scope_(scope) {}

  /// Pairs of nodes without other candidates, next to pairs from the `since`th on.
  std::vector<std::pair<EntityId, EntityId>> Find(size_t since) const {
    std::vector<std::pair<EntityId, EntityId>> pairs;
    for (EntityId i : UnmatchedNextTo(since)) {
      const std::vector<EntityId> candidates = Candidates(kBefore, i);
      if (candidates.size() != 1) continue;
      if (Candidates(kAfter, candidates[0]).size() == 1) pairs.emplace_back(i, candidates[0]);
    }
    return pairs;
  }

 private:
  static size_t Index(int32_t i) { return static_cast<size_t>(i); }

  /// Of the before side. A chain may be found link by link: not all nodes can be asked each time.
  std::vector<EntityId> UnmatchedNextTo(size_t since) const {
    std::vector<EntityId> nodes;
    const Labels& labels = matching_.labels(kBefore);
    const auto add = [&](const auto& edges) {
      for (const Labels::Edge& edge : edges.first(std::min(edges.size(), Matching::kMaxEdges))) {
        const EntityId i = edge.entity;
        const bool inside = scope_.ids(kBefore).Contains(i);
        if (inside && !matching_.matched(kBefore, i) && !matching_.forbidden(kBefore, i)) {
          nodes.push_back(i);
        }
      }
    };
    for (const Matching::Made& made : std::span(matching_.made()).subspan(since)) {
      if (!made.before.valid()) continue;
      add(labels.operands(made.before));
      add(labels.users(made.before));
    }
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
  }

  /// What the images of a node's users read in its place.
  std::vector<EntityId> Candidates(Side side, EntityId i) const {
    std::vector<EntityId> candidates;
    const Labels& labels = matching_.labels(side);
    const auto users = labels.users(i);
    for (const Labels::Edge& user : users.first(std::min(users.size(), Matching::kMaxEdges))) {
      const EntityId image = matching_.partner(side, user.entity);
      if (!image.valid() || matching_.slotless(side, user.entity)) continue;
      const auto operands = matching_.labels(1 - side).operands(image);
      if (Index(user.slot) < operands.size()) {
        candidates.push_back(operands[Index(user.slot)].entity);
      }
    }
    std::ranges::sort(candidates);
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    std::erase_if(candidates, [&](EntityId j) {
      return side == kBefore ? !StandsInPlace(i, j) : !StandsInPlace(j, i);
    });
    return candidates;
  }

  bool StandsInPlace(EntityId i, EntityId j) const {
    const Labels& a = matching_.labels(kBefore);
    const Labels& b = matching_.labels(kAfter);
    if (matching_.matched(kBefore, i) || matching_.forbidden(kBefore, i) ||
        matching_.matched(kAfter, j) || matching_.forbidden(kAfter, j) || matching_.vetoed(i, j) ||
        a.kind[i] != EntityKind::kCompute || b.kind[j] != EntityKind::kCompute) {
      return false;
    }
    if (a.operands(i).size() != b.operands(j).size()) return DifferInOwnInputs(i, j);
    if (a.form(i) != b.form(j)) return false;
    size_t agreeing = 0, open = 0;
    for (size_t slot = 0; slot < a.operands(i).size(); ++slot) {
      const EntityId x = a.operands(i)[slot].entity, y = b.operands(j)[slot].entity;
      const bool both_open = !matching_.matched(kBefore, x) && !matching_.matched(kAfter, y);
      if (matching_.partner(kBefore, x) == y) {
        ++agreeing;
      } else if (both_open && a.value[x] == b.value[y] && !IsNamedAfter(j, i, x)) {
        ++open;
      } else {
        return false;
      }
    }
    const Matching::EdgeScore score = matching_.Score(i, j);
    return agreeing > 0 && score.agreeing_users > 0 &&
           (open == 0 || score.contradicting_users == 0);
  }

  /// Whether the two read the same, in order, but for inputs that no other operator reads, and all
  /// known users read the same of both: a layer norm became an RMS norm, which has no bias.
  bool DifferInOwnInputs(EntityId i, EntityId j) const {
    const Labels& a = matching_.labels(kBefore);
    const Labels& b = matching_.labels(kAfter);
    const auto is_own = [&](Side side, EntityId operand) {
      const Labels& labels = side == kBefore ? a : b;
      const bool is_input = labels.kind[operand] == EntityKind::kInput ||
                            labels.kind[operand] == EntityKind::kConstant;
      const uint64_t op = labels.op[side == kBefore ? i : j];
      return is_input && !matching_.matched(side, operand) &&
             labels.users(operand).size() <= Matching::kMaxEdges &&
             std::ranges::all_of(labels.users(operand), [&](const Labels::Edge& user) {
               return labels.op[user.entity] == op;
             });
    };
    if (a.value[i] != b.value[j]) return false;
    const auto mine = a.operands(i), theirs = b.operands(j);
    size_t x = 0, y = 0, agreeing = 0;
    while (x < mine.size() || y < theirs.size()) {
      const bool both = x < mine.size() && y < theirs.size();
      if (both && matching_.partner(kBefore, mine[x].entity) == theirs[y].entity) {
        ++agreeing, ++x, ++y;
      } else if (x < mine.size() && is_own(kBefore, mine[x].entity)) {
        ++x;
      } else if (y < theirs.size() && is_own(kAfter, theirs[y].entity)) {
        ++y;
      } else {
        return false;
      }
    }
    const Matching::EdgeScore score = matching_.Score(i, j);
    return agreeing > 0 && score.agreeing_users > 0 && score.contradicting_users == 0;
  }

  /// Whether the operator of `after` is named after that of `before` and that of `other` too, as
  /// `fused_add_mul` is: then it stands for both.
  bool IsNamedAfter(EntityId after, EntityId before, EntityId other) const {
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
                  const ScopePair& scope, size_t since) {
  const auto pairs = InPlaceFinder(before, after, matching, scope).Find(since);
  for (const auto& [i, j] : pairs)
    matching.Match(i, j, Via::kLocal, kInPlaceConfidence);
  return !pairs.empty();
}

}  // namespace strata
