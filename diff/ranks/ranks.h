#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "diff/history/bisect.h"
#include "diff/history/history.h"
#include "diff/ranks/collectives.h"

namespace strata {

/// Ranks that run the same program, apart from what is theirs by right (see RankForm).
struct RankClass {
  std::vector<int32_t> ranks;
  std::string ref;        ///< the run of its first rank
  bool identical = true;  ///< not even constants differ
};

using RankClassId = Id<struct RankClassTag>;

/// Where a class leaves the largest class.
struct RankDifference {
  RankClassId rank_class;   ///< of RanksReport::classes
  int32_t position = 0;     ///< index of the step of the largest class
  int32_t pass_index = -1;  ///< -1: a graph that came different
  std::string pass, graph, node, what;
  std::string ref_most, ref_other;  ///< the graphs that differ first
};

/// A value that differs from rank to rank, as it may.
struct RankConstant {
  std::string graph, node, path;
  std::string formula;  ///< `32·rank`
};

/// A mismatch, and in which graph.
struct GraphMismatch {
  std::string graph;
  CollectiveMismatch mismatch;
};

struct RanksReport {
  IdVector<RankClassId, RankClass> classes;  ///< in order of their first ranks
  RankClassId largest;
  std::vector<RankDifference> differences;  ///< of each class but the largest; the earliest first
  std::vector<GraphMismatch> collectives;   ///< of the graphs as passes left them
  std::vector<RankConstant> constants;      ///< of these graphs; each once
  std::vector<int32_t> cached;  ///< ranks that took from a compiler cache what others compiled

  bool Equal() const { return classes.size() == 1 && collectives.empty(); }
  /// Ranks of all classes that part at the earliest place. REQUIRES: there are differences.
  std::vector<int32_t> FirstRanks() const;
};

/// Compares what ranks did, one history per rank. Passes that a rank took from a compiler cache
/// are left out on the others, too. Every distinct graph is loaded and hashed once;
/// node by node are compared one rank per class. REQUIRES: ranks differ.
/// Errors: a graph that cannot be loaded.
Result<RanksReport> CompareRanks(const std::vector<History>& histories);

}  // namespace strata
