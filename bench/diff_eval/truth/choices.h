#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "diff/match/labels.h"

namespace strata::bench {

/// Which nodes are which where structure leaves a choice: where nodes of one label changed places,
/// two answers describe one change, and `docs/diff.md` says which is better: the one with more
/// operands in common, then with more users, then in order; inputs go by order first. Pairs of a
/// claim that is at least as good as the lineage, and of one label with it; of others the lineage
/// holds.
///
///   before  a = f(x)  b = f(y)  c = g(a)  d = g(b)    lineage: c and d read the other one now;
///   after   a = f(x)  b = f(y)  c = g(b)  d = g(a)    as good: c and d have changed places
///
/// Nodes that change places together are judged together, and the others stay as they are: so what
/// leans on something that is wrong is wrong too. `claim`, `lineage`: the after node of each before
/// node; none: there is none.
std::vector<std::pair<EntityId, EntityId>> ChoicesAsGood(
    const Labels& before, const Labels& after, const IdVector<EntityId, EntityId>& claim,
    const IdVector<EntityId, EntityId>& lineage);

}  // namespace strata::bench
