#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "scene/lane_layouts.h"

namespace strata {

/// What `dot` says of a lane.
struct DotPlaces {
  IdVector<LaneNodeId, int32_t> rank;  ///< from the top
  IdVector<LaneNodeId, double> x;      ///< of the middle, in columns
};

/// Graphviz `dot` in a process of its own: it cannot be interrupted, may crash on a graph it does
/// not like, and is not safe beside other threads. The process starts with the first call and ends
/// with this object. Source of the layout: Gansner, Koutsofios, North, Vo, "A technique for drawing
/// directed graphs", 1993.
class DotWorker {
 public:
  explicit DotWorker(int32_t time_limit_ms) : time_limit_ms_(time_limit_ms) {}
  ~DotWorker();
  DotWorker(const DotWorker&) = delete;
  DotWorker& operator=(const DotWorker&) = delete;

  /// None: a crash, or no answer within the limit. After a few of these the worker is not started
  /// again. REQUIRES: HasGraphviz().
  std::optional<DotPlaces> Place(const LaneShape& shape);

 private:
  bool Start();
  void Stop();

  int32_t time_limit_ms_;
  int32_t failures_ = 0;
  int socket_ = -1, process_ = -1;
};

/// This build has Graphviz.
bool HasGraphviz();

}  // namespace strata
