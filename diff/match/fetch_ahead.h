#pragma once
#include "diff/match/labels.h"

// Neighbours of a node are in any part of memory, and a loop over the nodes of a large graph would
// wait for each: it prefetches what it needs of the neighbours of later nodes.
namespace strata {

/// Distance of prefetching, in nodes.
inline constexpr int32_t kAhead = 12;

/// Prefetches `address_of(entity)` of the other ends of edges. Ignores hubs.
template <class Edges, class AddressOf>
void FetchAhead(const Edges& edges, AddressOf&& address_of) {
  constexpr size_t kMaxEdges = 24;
  if (edges.size() > kMaxEdges) return;
  for (const Labels::Edge& edge : edges)
    __builtin_prefetch(address_of(edge.entity));
}

}  // namespace strata
