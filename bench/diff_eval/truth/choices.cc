#include "bench/diff_eval/truth/choices.h"

#include <algorithm>
#include <compare>

namespace strata::bench {
namespace {

using Partners = IdVector<EntityId, EntityId>;

Partners Inverse(const Partners& partners, size_t size) {
  Partners inverse(size);
  for (EntityId i : IdsOf(partners)) {
    if (partners[i].valid()) inverse[partners[i]] = i;
  }
  return inverse;
}

class Chooser {
 public:
  Chooser(const Labels& before, const Labels& after, const Partners& claim, const Partners& lineage)
      : before_(before), after_(after), claim_(claim), lineage_(lineage), chosen_(lineage) {}

  std::vector<std::pair<EntityId, EntityId>> Run() {
    std::vector<std::vector<EntityId>> open = Exchanges();
    for (const std::vector<EntityId>& nodes : open)
      Choose(nodes, claim_);
    // What falls may have held others.
    for (size_t last = open.size() + 1; open.size() < last;) {
      last = open.size();
      std::erase_if(open, [&](const std::vector<EntityId>& nodes) {
        const Worth claimed = WorthOf(nodes);
        Choose(nodes, lineage_);
        if (WorthOf(nodes) > claimed) return true;
        Choose(nodes, claim_);
        return false;
      });
    }
    std::vector<std::pair<EntityId, EntityId>> pairs;
    for (const std::vector<EntityId>& nodes : open) {
      for (EntityId i : nodes) {
        if (claim_[i].valid()) pairs.emplace_back(i, claim_[i]);
      }
    }
    return pairs;
  }

 private:
  /// Sets of before nodes of one label that have each other's partners, and no others.
  std::vector<std::vector<EntityId>> Exchanges() const {
    const Partners claimed_by = Inverse(claim_, after_.size());
    const Partners came_from = Inverse(lineage_, after_.size());
    IdVector<EntityId, bool> seen(claim_.size(), false);
    std::vector<std::vector<EntityId>> exchanges;
    for (EntityId i : before_.ids()) {
      if (seen[i] || claim_[i] == lineage_[i]) continue;
      std::vector<EntityId> nodes{i};
      seen[i] = true;
      const auto reach = [&](EntityId node) {
        if (!node.valid() || seen[node]) return;
        seen[node] = true;
        nodes.push_back(node);
      };
      for (size_t next = 0; next < nodes.size(); ++next) {
        const EntityId mine = claim_[nodes[next]], theirs = lineage_[nodes[next]];
        if (mine.valid()) reach(came_from[mine]);
        if (theirs.valid()) reach(claimed_by[theirs]);
      }
      if (AreAlike(nodes)) exchanges.push_back(std::move(nodes));
    }
    return exchanges;
  }

  bool AreAlike(const std::vector<EntityId>& nodes) const {
    const uint64_t type = before_.type[nodes[0]];
    int pairs = 0;
    for (EntityId i : nodes) {
      if (before_.type[i] != type) return false;
      for (const EntityId j : {claim_[i], lineage_[i]}) {
        if (j.valid() && after_.type[j] != type) return false;
      }
      pairs += (claim_[i].valid() ? 1 : 0) - (lineage_[i].valid() ? 1 : 0);
    }
    return pairs == 0;
  }

  void Choose(const std::vector<EntityId>& nodes, const Partners& partners) {
    for (EntityId i : nodes)
      chosen_[i] = partners[i];
  }

  struct Worth {
    int place = 0, operands = 0, users = 0, in_order = 0;
    friend auto operator<=>(const Worth&, const Worth&) = default;
  };

  Worth WorthOf(const std::vector<EntityId>& nodes) const {
    Worth worth;
    for (EntityId i : nodes) {
      const EntityId j = chosen_[i];
      if (!j.valid()) continue;
      const auto theirs = after_.operands(j);
      for (const Labels::Edge& operand : before_.operands(i)) {
        const EntityId image = chosen_[operand.entity];
        const auto slot = static_cast<size_t>(operand.slot);
        const auto reads = [&](const Labels::Edge& edge) { return edge.entity == image; };
        // At another slot is better than not at all.
        if (image.valid() && slot < theirs.size() && theirs[slot].entity == image) {
          worth.operands += 2;
        } else if (image.valid() && std::ranges::any_of(theirs, reads)) {
          worth.operands += 1;
        }
      }
      for (const Labels::Edge& user : before_.users(i)) {
        const EntityId image = chosen_[user.entity];
        if (!image.valid()) continue;
        const auto read = after_.operands(image);
        const auto slot = static_cast<size_t>(user.slot);
        worth.users += slot < read.size() && read[slot].entity == j ? 1 : 0;
      }
    }
    for (const EntityId a : nodes) {
      for (const EntityId b : nodes) {
        const EntityId x = chosen_[a], y = chosen_[b];
        worth.in_order += a < b && x.valid() && x < y ? 1 : 0;
      }
    }
    // Inputs are what they are by their place.
    if (before_.kind[nodes[0]] != EntityKind::kCompute) worth.place = worth.in_order;
    return worth;
  }

  const Labels& before_;
  const Labels& after_;
  const Partners& claim_;
  const Partners& lineage_;
  Partners chosen_;
};

}  // namespace

std::vector<std::pair<EntityId, EntityId>> ChoicesAsGood(const Labels& before, const Labels& after,
                                                         const Partners& claim,
                                                         const Partners& lineage) {
  return Chooser(before, after, claim, lineage).Run();
}

}  // namespace strata::bench
