#include "diff/contradictions.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "diff/match/labels.h"
#include "diff/match/matching.h"

namespace strata {
namespace {

/// Claims of structure that are less sure speak against nothing.
constexpr double kSure = 0.95;

class Finder {
 public:
  Finder(const GraphDiff& told, const GraphDiff& found, std::span<const Provenance> births)
      : told_(told),
        found_(found),
        symbols_(told.before, told.after),
        fields_(KnownTypeFields(told.before).And(KnownTypeFields(told.after))),
        before_(told.before, fields_),
        after_(told.after, fields_, symbols_),
        matching_(before_, after_) {
    for (const Pair& pair : found.pairs)
      matching_.Match(pair.before.index, pair.after.index, pair.via, pair.confidence);
    for (const Provenance& birth : births)
      births_.emplace(birth.node, &birth);
  }

  std::vector<Contradiction> Run() const {
    std::vector<Contradiction> contradictions;
    for (const Pair& pair : found_.pairs) {
      const EntityId by_id = PartnerOf(told_.pair_of_before, pair.before, &Pair::after);
      if (by_id == pair.after || !IsSure(pair)) continue;
      const EntityId origin = PartnerOf(told_.pair_of_after, pair.after, &Pair::before);
      const int merit = Merit(pair.before, pair.after);
      const bool beats_partner = !by_id.valid() || merit > Merit(pair.before, by_id);
      const bool beats_origin = !origin.valid() || merit > Merit(origin, pair.after);
      if (!beats_partner || !beats_origin) continue;
      // Deleted and made anew: from that very node, or so they say.
      if (!by_id.valid() && !origin.valid() && !DeniesBirth(pair)) continue;
      contradictions.push_back({pair.before, by_id, pair.after, origin, pair.confidence});
    }
    return contradictions;
  }

 private:
  EntityId PartnerOf(const std::vector<int32_t>& pair_of, EntityId id,
                     EntityId Pair::* other) const {
    const int32_t pair = pair_of[static_cast<size_t>(id.index)];
    return pair < 0 ? EntityId{} : told_.pairs[static_cast<size_t>(pair)].*other;
  }

  bool IsSure(const Pair& pair) const {
    const EntityKind kind = told_.before[pair.before].kind;
    return pair.confidence >= kSure && pair.via != Via::kOrder && kind == EntityKind::kCompute &&
           !told_.before[pair.before].element.valid() &&
           before_.type[static_cast<size_t>(pair.before.index)] ==
               after_.type[static_cast<size_t>(pair.after.index)];
  }

  int Merit(EntityId before, EntityId after) const {
    const Matching::EdgeScore score = matching_.Score(before.index, after.index);
    const bool same_label = before_.type[static_cast<size_t>(before.index)] ==
                            after_.type[static_cast<size_t>(after.index)];
    return score.agree - score.contradict + (same_label ? 1 : 0);
  }

  /// The after node has ancestors, of which the before node is none, nor are its neighbours: a
  /// rewrite of several nodes may name any of them.
  bool DeniesBirth(const Pair& pair) const {
    std::set<uint64_t> ancestors;
    std::vector<StableId> queue{IdOf(told_.after, pair.after)};
    constexpr size_t kMost = 256;
    for (size_t i = 0; i < queue.size() && i < kMost; ++i) {
      const auto birth = births_.find(queue[i]);
      if (birth == births_.end()) continue;
      for (StableId from : birth->second->from) {
        if (ancestors.insert(static_cast<uint64_t>(from)).second) queue.push_back(from);
      }
    }
    if (ancestors.empty()) return false;
    const auto is_ancestor = [&](int32_t i) {
      return ancestors.contains(static_cast<uint64_t>(IdOf(told_.before, {i})));
    };
    const auto any = [&](std::span<const Labels::Edge> edges) {
      return std::ranges::any_of(
          edges, [&](const Labels::Edge& edge) { return is_ancestor(edge.entity); });
    };
    return !is_ancestor(pair.before.index) && !any(before_.operands(pair.before.index)) &&
           !any(before_.users(pair.before.index));
  }

  static StableId IdOf(const Listing& listing, EntityId id) {
    return listing.graph(id).node(listing[id].node).stable_id;
  }

  const GraphDiff& told_;
  const GraphDiff& found_;
  const SymbolNames symbols_;
  const TypeFields fields_;
  const Labels before_, after_;
  Matching matching_;
  std::unordered_map<StableId, const Provenance*> births_;
};

}  // namespace

Result<std::vector<Contradiction>> FindContradictions(const GraphDiff& told,
                                                      std::span<const Provenance> births) {
  STRATA_TRY(const GraphDiff found, Diff(told.before.root(), told.after.root()));
  return Finder(told, found, births).Run();
}

std::string ToString(const GraphDiff& told, const Contradiction& contradiction) {
  const std::string structure = told.after.name(contradiction.by_structure);
  std::string text = contradiction.by_id.valid()
                         ? fmt::format("by id it is {}, by structure {}",
                                       told.after.name(contradiction.by_id), structure)
                         : fmt::format("by id it is gone, by structure it is {}", structure);
  if (contradiction.origin.valid()) {
    text += fmt::format(", which by id was {}", told.before.name(contradiction.origin));
  } else if (!contradiction.by_id.valid()) {
    text += ", which says that it was made from others";
  }
  return text;
}

}  // namespace strata
