#include "diff/compare/contradictions.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "diff/match/labels.h"
#include "diff/match/matcher.h"

namespace strata {
namespace {

/// Structural claims below this confidence contradict nothing.
constexpr double kSure = 0.95;

/// The evidence for a pair: edges that agree, less those that do not, and equal labels.
int Merit(const Matching& matching, EntityId before, EntityId after) {
  const Matching::EdgeScore score = matching.Score(before, after);
  const bool same_label =
      matching.labels(kBefore).type[before] == matching.labels(kAfter).type[after];
  return score.agree - score.contradict + (same_label ? 1 : 0);
}

/// Nodes that structure may see otherwise than the ids do: those whose edges do not lead to where
/// their partner's lead, or that have no partner, and what is near them. Whose edges all agree
/// cannot do better with another partner, and ids that were exchanged all over some region show
/// where the region ends.
class Suspects {
 public:
  explicit Suspects(const Matching& by_id) : by_id_(by_id) {
    for (Side side : {kBefore, kAfter})
      is_suspect_[side].assign(by_id.labels(side).size(), false);
    std::vector<std::pair<Side, EntityId>> edge;
    for (Side side : {kBefore, kAfter}) {
      for (EntityId i : by_id.labels(side).ids()) {
        if (!EdgesAgree(side, i)) Add(side, i, edge);
      }
    }
    any_ = std::ranges::any_of(
        edge, [&](const auto& node) { return node.first == kBefore && HasRival(node.second); });
    for (int reach = 0; any_ && reach < kReach; ++reach) {
      std::vector<std::pair<Side, EntityId>> next;
      for (const auto& [side, i] : edge) {
        AddAll(side, by_id.labels(side).operands(i), next);
        AddAll(side, by_id.labels(side).users(i), next);
      }
      edge = std::move(next);
    }
  }

  /// False: there is nothing to look for.
  bool any() const { return any_; }
  bool Has(Side side, EntityId i) const { return is_suspect_[side][i]; }

 private:
  static constexpr int kReach = 3;

  bool EdgesAgree(Side side, EntityId i) const {
    const EntityId partner = by_id_.partner(side, i);
    const Side other = 1 - side;
    return partner.valid() && by_id_.open_operands(side, i) == 0 &&
           by_id_.open_users(side, i) == 0 &&
           by_id_.operand_sum(side, i) == by_id_.operand_sum(other, partner) &&
           by_id_.user_sum(side, i) == by_id_.user_sum(other, partner);
  }

  /// Whether another node stands where its neighbours' partners are, for which as much speaks as
  /// for its own partner. A region that structure would match otherwise has such a node where it
  /// meets the rest.
  bool HasRival(EntityId before) const {
    const Labels& labels = by_id_.labels(kBefore);
    const Labels& others = by_id_.labels(kAfter);
    const auto first = [](const auto& edges) {
      return edges.first(std::min(edges.size(), Matching::kMaxEdges));
    };
    for (const Labels::Edge& operand : first(labels.operands(before))) {
      const EntityId image = by_id_.partner(kBefore, operand.entity);
      if (!image.valid()) continue;
      for (const Labels::Edge& user : first(others.users(image))) {
        if (user.slot == operand.slot && IsRival(before, user.entity)) return true;
      }
    }
    for (const Labels::Edge& user : first(labels.users(before))) {
      const EntityId image = by_id_.partner(kBefore, user.entity);
      if (!image.valid()) continue;
      const auto operands = others.operands(image);
      const auto slot = static_cast<size_t>(user.slot);
      if (slot < operands.size() && IsRival(before, operands[slot].entity)) return true;
    }
    return false;
  }

  bool IsRival(EntityId before, EntityId after) const {
    const EntityId own = by_id_.partner(kBefore, before), origin = by_id_.partner(kAfter, after);
    if (after == own || by_id_.labels(kBefore).type[before] != by_id_.labels(kAfter).type[after])
      return false;
    const int merit = Merit(by_id_, before, after);
    return (!own.valid() || merit >= Merit(by_id_, before, own)) &&
           (!origin.valid() || merit >= Merit(by_id_, origin, after));
  }

  void AddAll(Side side, const auto& edges, std::vector<std::pair<Side, EntityId>>& added) {
    if (edges.size() > Matching::kMaxEdges) return;
    for (const Labels::Edge& neighbour : edges)
      Add(side, neighbour.entity, added);
  }

  void Add(Side side, EntityId i, std::vector<std::pair<Side, EntityId>>& added) {
    if (Has(side, i)) return;
    is_suspect_[side][i] = true;
    added.emplace_back(side, i);
    if (by_id_.matched(side, i)) Add(1 - side, by_id_.partner(side, i), added);
  }

  const Matching& by_id_;
  std::array<IdVector<EntityId, bool>, 2> is_suspect_;
  bool any_ = false;
};

class Finder {
 public:
  Finder(const GraphDiff& by_ids, const Matching& found, std::span<const Provenance> provenance)
      : by_ids_(by_ids),
        before_(found.labels(kBefore)),
        after_(found.labels(kAfter)),
        found_(found) {
    for (const Provenance& record : provenance)
      provenance_.emplace(record.node, &record);
  }

  std::vector<Contradiction> Run() const {
    std::vector<Contradiction> contradictions;
    for (const Matching::Made& pair : found_.made()) {
      if (!pair.before.valid() || pair.via == Via::kId || !IsSure(pair)) continue;
      const EntityId before{pair.before}, after{pair.after};
      const EntityId by_id = PartnerOf(by_ids_.pair_of_before, before, &Pair::after);
      if (by_id == after) continue;
      const EntityId origin = PartnerOf(by_ids_.pair_of_after, after, &Pair::before);
      const int merit = Merit(found_, pair.before, pair.after);
      const bool beats_partner = !by_id.valid() || merit > Merit(found_, pair.before, by_id);
      const bool beats_origin = !origin.valid() || merit > Merit(found_, origin, pair.after);
      if (!beats_partner || !beats_origin) continue;
      // Deleted and made anew: from that very node, or so they say.
      if (!by_id.valid() && !origin.valid() && !DeniesProvenance(pair)) continue;
      contradictions.push_back({before, by_id, after, origin, pair.confidence});
    }
    std::ranges::sort(contradictions, {}, &Contradiction::before);
    return contradictions;
  }

 private:
  EntityId PartnerOf(const IdVector<EntityId, PairId>& pair_of, EntityId id,
                     EntityId Pair::* other) const {
    const PairId pair = pair_of[id];
    return pair.valid() ? by_ids_.pairs[pair].*other : EntityId{};
  }

  bool IsSure(const Matching::Made& pair) const {
    const EntityId before{pair.before};
    return pair.confidence >= kSure && pair.via != Via::kOrder &&
           by_ids_.before[before].kind == EntityKind::kCompute &&
           !by_ids_.before[before].element.valid() &&
           before_.type[pair.before] == after_.type[pair.after];
  }

  /// The after node has ancestors, and neither the before node nor its neighbours are among them: a
  /// rewrite of several nodes may name any of them.
  bool DeniesProvenance(const Matching::Made& pair) const {
    std::set<uint64_t> ancestors;
    std::vector<StableId> queue{IdOf(by_ids_.after, {pair.after})};
    constexpr size_t kMost = 256;
    for (size_t i = 0; i < queue.size() && i < kMost; ++i) {
      const auto record = provenance_.find(queue[i]);
      if (record == provenance_.end()) continue;
      for (StableId from : record->second->from) {
        if (ancestors.insert(static_cast<uint64_t>(from)).second) queue.push_back(from);
      }
    }
    if (ancestors.empty()) return false;
    const auto is_ancestor = [&](EntityId i) {
      return ancestors.contains(static_cast<uint64_t>(IdOf(by_ids_.before, {i})));
    };
    const auto any = [&](const auto& edges) {
      return std::ranges::any_of(
          edges, [&](const Labels::Edge& edge) { return is_ancestor(edge.entity); });
    };
    return !is_ancestor(pair.before) && !any(before_.operands(pair.before)) &&
           !any(before_.users(pair.before));
  }

  static StableId IdOf(const Listing& listing, EntityId id) {
    return listing.graph(id).node(listing[id].node).stable_id;
  }

  const GraphDiff& by_ids_;
  const Labels &before_, &after_;
  const Matching& found_;
  std::unordered_map<StableId, const Provenance*> provenance_;
};

}  // namespace

std::vector<Contradiction> FindContradictions(const GraphDiff& by_ids, const Matching& by_id,
                                              std::span<const Provenance> provenance) {
  const Suspects suspects(by_id);
  if (!suspects.any()) return {};
  Matching found(by_id.labels(kBefore), by_id.labels(kAfter));
  for (const Pair& pair : by_ids.pairs) {
    if (!suspects.Has(kBefore, pair.before)) found.Match(pair.before, pair.after, Via::kId, 1);
  }
  const Status matched = MatchListings(by_ids.before, by_ids.after, {}, found);
  STRATA_CHECK(matched, "nothing was asked for that can fail");
  return Finder(by_ids, found, provenance).Run();
}

std::string ToString(const GraphDiff& by_ids, const Contradiction& contradiction) {
  const std::string structure = by_ids.after.name(contradiction.by_structure);
  std::string text = contradiction.by_id.valid()
                         ? fmt::format("by id it is {}, by structure {}",
                                       by_ids.after.name(contradiction.by_id), structure)
                         : fmt::format("by id it is gone, by structure it is {}", structure);
  if (contradiction.origin.valid()) {
    text += fmt::format(", which by id was {}", by_ids.before.name(contradiction.origin));
  } else if (!contradiction.by_id.valid()) {
    text += ", which says that it was made from others";
  }
  return text;
}

}  // namespace strata
