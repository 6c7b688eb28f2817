#include "bench/diff_eval/truth/layers.h"

#include <algorithm>
#include <map>

#include "diff/match/labels.h"

namespace strata::bench {
namespace {

using Roles = std::vector<StableId>;

/// Per layer of the before side the one of the after side that most of its nodes went to; -1: none.
std::vector<int> ImagesOf(const Lineage& lineage, const GraphDiff& claim, const Identities& before,
                          const Identities& after) {
  std::map<EntityId, int> layer_of;
  for (size_t k = 0; k < lineage.layers_after.size(); ++k) {
    for (StableId id : lineage.layers_after[k])
      layer_of[after.Find(id)] = static_cast<int>(k);
  }
  std::vector<int> images;
  for (const Roles& roles : lineage.layers_before) {
    std::map<int, int> votes;
    for (StableId id : roles) {
      const EntityId node = before.Find(id);
      const PairId pair = claim.pair_of_before[node];
      if (!pair.valid()) continue;
      const auto found = layer_of.find(claim.pairs[pair].after);
      if (found != layer_of.end()) ++votes[found->second];
    }
    const auto most = std::ranges::max_element(
        votes, {}, [](const std::pair<const int, int>& vote) { return vote.second; });
    const bool is_clear = most != votes.end() && 2 * most->second > static_cast<int>(roles.size());
    images.push_back(is_clear ? most->first : -1);
  }
  return images;
}

bool KeepsAllInOrder(const std::vector<int>& images, size_t most) {
  int last = -1;
  size_t kept = 0;
  for (int image : images) {
    if (image < 0) continue;
    if (image <= last) return false;
    last = image;
    ++kept;
  }
  return kept == most;
}

}  // namespace

std::vector<std::pair<EntityId, EntityId>> ChosenLayers(const Lineage& lineage,
                                                        const GraphDiff& claim,
                                                        const Identities& before,
                                                        const Identities& after) {
  const std::vector<int> images = ImagesOf(lineage, claim, before, after);
  const size_t most = std::min(images.size(), lineage.layers_after.size());
  if (most == 0 || !KeepsAllInOrder(images, most)) return {};
  const TypeFields fields = KnownTypeFields(claim.before).And(KnownTypeFields(claim.after));
  const Labels labels_before(claim.before, fields), labels_after(claim.after, fields);
  std::vector<std::pair<EntityId, EntityId>> chosen;
  for (size_t k = 0; k < images.size(); ++k) {
    if (images[k] < 0) continue;
    const Roles& mine = lineage.layers_before[k];
    const Roles& theirs = lineage.layers_after[static_cast<size_t>(images[k])];
    if (mine == theirs) continue;
    if (mine.size() != theirs.size()) return {};
    for (size_t role = 0; role < mine.size(); ++role) {
      const EntityId a = before.Find(mine[role]), b = after.Find(theirs[role]);
      if (labels_before.type[a] != labels_after.type[b]) {
        return {};
      }
      chosen.emplace_back(a, b);
      const auto& elements = after.ElementsOf(theirs[role]);
      for (const auto& [index, element] : before.ElementsOf(mine[role])) {
        if (const auto found = elements.find(index); found != elements.end()) {
          chosen.emplace_back(element, found->second);
        }
      }
    }
  }
  return chosen;
}

}  // namespace strata::bench
