#include "diff/history/descent.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "diff/graph/hash.h"
#include "diff/graph/listing.h"

namespace strata {
namespace {

/// Keys of the computations of a graph, sorted, each once. A node that was made from one other has
/// that one's key.
std::vector<uint64_t> KeysOf(const Graph& graph, bool stable_ids,
                             const std::vector<Provenance>& provenance = {}) {
  std::unordered_map<StableId, StableId> origins;
  for (const Provenance& record : provenance)
    if (record.from.size() == 1) origins.emplace(record.node, record.from.front());
  const auto id_of = [&](StableId id) {
    const auto origin = origins.find(id);
    return static_cast<uint64_t>(origin == origins.end() ? id : origin->second);
  };
  std::vector<uint64_t> keys;
  const Listing listing(graph);
  for (EntityId id : listing.ids()) {
    const Entity& entity = listing[id];
    if (entity.kind != EntityKind::kCompute || entity.element.valid()) continue;
    keys.push_back(stable_ids ? id_of(listing.graph(id).node(entity.node).stable_id)
                              : Mix(HashText(listing.name(id)), HashText(listing.target(id))));
  }
  std::ranges::sort(keys);
  keys.erase(std::ranges::unique(keys).begin(), keys.end());
  return keys;
}

size_t CountCommon(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  std::vector<uint64_t> common;
  std::ranges::set_intersection(a, b, std::back_inserter(common));
  return common.size();
}

}  // namespace

Result<std::vector<Descent>> FindDescents(const History& history, int32_t graph) {
  std::vector<Descent> descents(history.graphs.size());
  const auto record = [&](int32_t g) -> const GraphRecord& {
    return history.records[static_cast<size_t>(g)];
  };
  const bool is_log = !history.records.empty();
  if (!history.stable_ids && (!is_log || record(graph).compilation.empty())) return descents;

  struct Known {
    int32_t graph, step;         // the last one
    std::vector<uint64_t> keys;  // after it
  };
  std::vector<Known> known;
  for (size_t s = 0; s < history.steps.size(); ++s) {
    const HistoryStep& step = history.steps[s];
    if (is_log && record(step.graph).compilation != record(graph).compilation) continue;
    STRATA_TRY(const LoadedGraph loaded, history.load(step.after));
    std::vector<uint64_t> keys = KeysOf(loaded.graph(), history.stable_ids);
    const auto self = std::ranges::find(known, step.graph, &Known::graph);
    if (self != known.end()) {
      self->step = static_cast<int32_t>(s);
      self->keys = std::move(keys);
      continue;
    }
    STRATA_TRY(const std::vector<Provenance> provenance, history.provenance(step));
    const std::vector<uint64_t> origins =
        KeysOf(loaded.graph(), history.stable_ids, provenance);  // where the graph appears
    std::tuple<size_t, int64_t, bool, int32_t> best;
    for (const Known& other : known) {
      if (is_log && record(other.graph).name == record(step.graph).name) continue;
      const size_t common = CountCommon(origins, other.keys);
      if (common == 0 || common * 2 < origins.size()) continue;
      const bool has_child = std::ranges::any_of(known, [&](const Known& third) {
        const int32_t parent = descents[static_cast<size_t>(third.graph)].parent;
        return is_log && parent == other.graph &&
               record(third.graph).name == record(step.graph).name;
      });
      const std::tuple candidate(common, -static_cast<int64_t>(other.keys.size()), !has_child,
                                 other.step);
      if (candidate <= best) continue;
      best = candidate;
      descents[static_cast<size_t>(step.graph)] = {other.graph, other.step};
    }
    known.push_back({step.graph, static_cast<int32_t>(s), std::move(keys)});
  }
  return descents;
}

}  // namespace strata
