#pragma once
#include <span>

#include "base/result.h"
#include "diff/model/diff_options.h"
#include "diff/model/graph_diff.h"
#include "ir/graph.h"

namespace strata {

/// Matches the nodes of two graphs by structure and reports what changed. Names decide nothing, so
/// new names are not a difference. Deterministic; near linear in nodes and edges.
///
/// REQUIRES: both graphs outlive the result and stay as they are.
/// Errors: a pin or veto that names an unknown node, a pin of one node twice, of nodes of different
/// kinds, or of a vetoed pair.
/// Ideas from BinDiff (unique features first), XLA hlo_diff (typed matchers), Weisfeiler-Lehman
/// refinement and patience diff; docs/diff.md explains the algorithm.
Result<GraphDiff> Diff(const Graph& before, const Graph& after, const DiffOptions& options = {});

/// Whether StableIds relate two snapshots of a run. They do not where a pass traced the program
/// again: nothing between inputs and outputs is from before, or has an origin there in
/// `provenance`. True without provenance records.
bool IdsRelate(const Graph& before, const Graph& after, std::span<const Provenance> provenance);

}  // namespace strata
