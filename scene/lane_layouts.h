#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/id.h"

/// Where the nodes of one lane of an open slab stand, in rows and half columns. Two ways: rows by
/// longest paths, each node under what it reads (linear, always there, and steady when a node comes
/// or goes), and Graphviz `dot`. Both are measured; `dot` must cost a fifth less.
namespace strata {

/// A node of a lane, from the first in execution order on.
using LaneNodeId = Id<struct LaneNodeTag>;

/// A lane without its nodes' names: lanes of equal shape look the same.
struct LaneShape {
  int32_t nodes = 0;
  std::vector<std::pair<LaneNodeId, LaneNodeId>> edges;  ///< from < to, sorted, each once
  int32_t columns = 2;                                   ///< nodes that may stand side by side
};

struct LanePlaces {
  IdVector<LaneNodeId, int32_t> row,
      x;  ///< x: the middle of a node, in half columns from the lane's
  int32_t rows = 0;
};

/// What is bad about places, as a reader of the picture would count it.
struct LaneCost {
  int64_t crossings = 0;  ///< pairs of edges, as straight lines
  int64_t covered = 0;    ///< boxes that an edge runs through, as a straight line
  int64_t length = 0;     ///< half columns that edges go sideways
  int64_t rows = 0;

  int64_t total() const { return 4 * (crossings + covered) + length + rows; }
  LaneCost& operator+=(const LaneCost& other);
};
LaneCost CostOf(const LaneShape& shape, const LanePlaces& places);

/// Linear in nodes and edges but for sorting a row.
LanePlaces PlaceByPaths(const LaneShape& shape);

class DotWorker;

/// Chooses the places of lanes and remembers them by shape. Same shapes in the same order, same
/// places: what is given to `dot` is bounded by counts, not by time. Use from one thread.
class LaneLayouts {
 public:
  struct Options {
    bool dot = true;          ///< false: PlaceByPaths alone; so too in a build without Graphviz
    int32_t max_nodes = 400;  ///< of a lane that `dot` is asked for
    int32_t budget = 3'000;   ///< nodes that `dot` is asked for in all
    int32_t time_limit_ms = 2'500;  ///< of one lane: a safety net; then the lane goes without
  };
  LaneLayouts();
  explicit LaneLayouts(const Options& options);
  ~LaneLayouts();

  const LanePlaces& Of(const LaneShape& shape);

  /// Of the distinct shapes that both ways placed.
  struct Statistics {
    int64_t shapes = 0, lanes = 0;  ///< distinct; asked for
    int64_t compared = 0, by_dot = 0, failed = 0;
    LaneCost paths, dot, chosen;
  };
  const Statistics& statistics() const { return statistics_; }

 private:
  LanePlaces Choose(const LaneShape& shape);

  Options options_;
  int32_t spent_ = 0;
  std::unique_ptr<DotWorker> worker_;
  std::unordered_map<std::string, LanePlaces> known_;  // by the shape's bytes
  Statistics statistics_;
};

}  // namespace strata
