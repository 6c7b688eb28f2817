#pragma once
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "diff/graph/listing.h"

namespace strata::bench {

/// The entities of a listing by the StableIds of their nodes.
class Identities {
 public:
  explicit Identities(const Listing& listing) : listing_(listing) {
    for (EntityId id : listing.ids()) {
      const Entity& entity = listing[id];
      const StableId node = listing.graph(id).node(entity.node).stable_id;
      if (entity.element.valid()) {
        elements_[node][listing.graph(id).result_index(entity.element)] = id;
      } else {
        nodes_.emplace(node, id);
      }
    }
  }

  const Listing& listing() const { return listing_; }
  /// The node; none: it is not there.
  EntityId Find(StableId id) const {
    const auto found = nodes_.find(id);
    return found == nodes_.end() ? EntityId{} : found->second;
  }
  /// The printed elements of a node, by index.
  const std::map<uint32_t, EntityId>& ElementsOf(StableId id) const {
    static const std::map<uint32_t, EntityId> none;
    const auto found = elements_.find(id);
    return found == elements_.end() ? none : found->second;
  }
  /// What an entity of `other` is here: a node by its id, an element by its index too.
  EntityId ImageOf(const Identities& other, EntityId id) const {
    const Entity& entity = other.listing_[id];
    const Graph& graph = other.listing_.graph(id);
    const StableId node = graph.node(entity.node).stable_id;
    if (!entity.element.valid()) return Find(node);
    const auto& elements = ElementsOf(node);
    const auto found = elements.find(graph.result_index(entity.element));
    return found == elements.end() ? EntityId{} : found->second;
  }

 private:
  const Listing& listing_;
  std::unordered_map<StableId, EntityId> nodes_;
  std::map<StableId, std::map<uint32_t, EntityId>> elements_;
};

}  // namespace strata::bench
