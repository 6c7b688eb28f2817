#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "diff/graph/listing.h"
#include "store/trace_reader.h"
#include "tlparse-export/report/measures.h"

namespace strata {

/// Programs of ranks by snapshot: the fingerprint of the first rank that runs the same at one
/// place, apart from what follows from the rank. Only of snapshots for which it is another
/// fingerprint than their own. None when two runs are of one rank.
using RankPrograms = std::map<SnapshotId, Fingerprint>;
Result<RankPrograms> RankProgramsOf(TraceReader& trace);

/// How long the ranks took for one node.
struct RankTimes {
  int64_t least_ns = 0, median_ns = 0, most_ns = 0;
  int32_t slowest = -1;  ///< a rank; -1: fewer than two ranks were measured
};

/// Facts of the ranks about the entities of a graph.
struct RankFacts {
  /// Which ranks have an entity with nothing of its own changed: "ranks 0–2, 5"; "" where all have
  /// it. Empty when all ranks agree.
  IdVector<EntityId, std::string> sets;
  IdVector<EntityId, RankTimes> times;  ///< empty when nothing was measured on two ranks
  bool is_left_out = false;             ///< ranks differ, but comparing them is beyond the budget
};

/// Compares the graph of a run after a pass (null: its last one) with what the other ranks have
/// there, node by node where their programs differ. `of_ranks`: of this run. `budget`: nodes of
/// both sides that may still be compared. REQUIRES: `listing` is of that graph.
Result<RankFacts> RankFactsOf(TraceReader& trace, const StoredRun& run, const std::string& graph,
                              const StoredPass* pass, const Listing& listing,
                              const std::map<RunId, Measures>& measures,
                              const RankMeasures& of_ranks, const RankPrograms& programs,
                              int64_t& budget);

/// A place at which ranks have different programs, and two runs that do.
struct RankPair {
  std::string graph;
  const StoredPass* pass = nullptr;  ///< of `after`; null: the graph as no pass left it
  const StoredRun* before = nullptr;
  const StoredRun* after = nullptr;
  SnapshotId before_snapshot = SnapshotId::kNone, after_snapshot = SnapshotId::kNone;
};

/// Every two different programs that ranks have at one place, each named by the first run that has
/// it; places in the order of the first run. None when two runs are of one rank.
std::vector<RankPair> RankPairsOf(const TraceReader& trace, const RankPrograms& programs);

}  // namespace strata
