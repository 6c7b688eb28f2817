#include "diff/match/chunks.h"

#include <map>
#include <set>
#include <tuple>

#include "diff/graph/parallel.h"

namespace strata {
namespace {

/// Longer bodies that were cut into parts keep their identity: one copy is the original, cut in
/// place. A short one has little in common with any of its parts, and was replaced.
constexpr size_t kMaxLevels = 3;

/// Copies of a few nodes, one per part of a value: `s = split(x)`, then `f(s[0])`, `f(s[1])`, ….
struct Parts {
  std::vector<std::vector<EntityId>> levels;  ///< copies of one node each
};

class PartFinder {
 public:
  PartFinder(const Matching& matching, Side side, const ScopePair& scope)
      : matching_(matching), labels_(matching.labels(side)), side_(side), scope_(scope) {}

  std::vector<Parts> Find() const {
    std::vector<Parts> found;
    for (EntityId i : scope_.ids(side_)) {
      if (labels_.users(i).size() > Matching::kMaxEdges) continue;
      // Pieces of one value differ in a literal only.
      std::map<uint64_t, std::vector<EntityId>> pieces;
      for (const Labels::Edge& user : labels_.users(i)) {
        const bool is_piece = IsOpen(user.entity) && labels_.piece[user.entity] &&
                              labels_.operands(user.entity).size() == 1;
        if (is_piece) pieces[labels_.op[user.entity]].push_back(user.entity);
      }
      for (const auto& [op, members] : pieces) {
        if (members.size() < 2 || !LiteralsDiffer(members)) continue;
        Parts parts = Follow(members);
        if (!parts.levels.empty() && parts.levels.size() <= kMaxLevels) {
          found.push_back(std::move(parts));
        }
      }
    }
    return found;
  }

 private:
  bool IsOpen(EntityId i) const { return !matching_.matched(side_, i); }

  bool LiteralsDiffer(const std::vector<EntityId>& members) const {
    std::set<uint64_t> literals;
    for (EntityId member : members)
      literals.insert(labels_.literals(member));
    return literals.size() == members.size();
  }

  /// The levels below `pieces`, down to where the copies meet again.
  Parts Follow(const std::vector<EntityId>& pieces) const {
    Parts parts;
    std::vector<EntityId> level = pieces;
    while (parts.levels.size() <= kMaxLevels) {
      std::vector<EntityId> next;
      for (EntityId i : level) {
        if (labels_.users(i).size() != 1) return {};
        next.push_back(labels_.users(i)[0].entity);
      }
      if (std::ranges::all_of(next, [&](EntityId i) { return i == next[0]; })) return parts;
      if (std::set<EntityId>(next.begin(), next.end()).size() < next.size()) return parts;
      if (!AreCopies(level, next)) return {};
      parts.levels.push_back(next);
      level = std::move(next);
    }
    return parts;
  }

  /// The same operator with the same operands, but for one from the level above.
  bool AreCopies(const std::vector<EntityId>& above, const std::vector<EntityId>& copies) const {
    const auto first = labels_.operands(copies[0]);
    for (size_t k = 0; k < copies.size(); ++k) {
      if (!IsOpen(copies[k])) return false;
      if (labels_.literals(copies[k]) != labels_.literals(copies[0])) return false;
      const auto operands = labels_.operands(copies[k]);
      if (operands.size() != first.size()) return false;
      for (size_t slot = 0; slot < operands.size(); ++slot) {
        const bool is_part = first[slot].entity == above[0];
        if (operands[slot].entity != (is_part ? above[k] : first[slot].entity)) return false;
      }
    }
    return true;
  }

  const Matching& matching_;
  const Labels& labels_;
  const Side side_;
  const ScopePair& scope_;
};

}  // namespace

void ForbidChunks(Matching& matching, const ScopePair& scope) {
  std::array<std::vector<Parts>, 2> parts;
  const auto find = [&](Side side) { parts[side] = PartFinder(matching, side, scope).Find(); };
  const auto size = scope.size(kBefore);
  AtOnce(size, [&] { find(kBefore); }, [&] { find(kAfter); });
  // What both sides cut into as many parts was not cut by this change.
  const auto shape_of = [&](Side side, const Parts& of) {
    return std::tuple(matching.labels(side).op[of.levels[0][0]], of.levels.size(),
                      of.levels[0].size());
  };
  std::array<std::set<std::tuple<uint64_t, size_t, size_t>>, 2> shapes;
  for (Side side : {kBefore, kAfter}) {
    for (const Parts& of : parts[side])
      shapes[side].insert(shape_of(side, of));
  }
  for (Side side : {kBefore, kAfter}) {
    for (const Parts& of : parts[side]) {
      if (shapes[1 - side].contains(shape_of(side, of))) continue;
      for (const std::vector<EntityId>& level : of.levels) {
        for (EntityId i : level)
          matching.Forbid(side, i);
      }
    }
  }
}

}  // namespace strata
