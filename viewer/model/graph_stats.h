#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "scene/memory.h"
#include "viewer/model/comparison.h"

namespace strata::viewer {

/// How often both graphs of a comparison call an operator, and what the calls after the pass cost.
struct OperatorRow {
  std::string op;
  int32_t before = 0, after = 0;  ///< calls
  double flops = 0;               ///< from shapes
  double bytes = 0;               ///< of results, from shapes
  double time_ns = 0;             ///< measured, of a step; 0: not measured
  int32_t first = -1;             ///< the first node that calls it
};
/// Most calls first. Bodies count.
std::vector<OperatorRow> OperatorsOf(const Comparison& comparison);

/// Bytes alive over one graph of a comparison.
struct MemoryLine {
  MemoryProfile profile;
  std::vector<int32_t> nodes;    ///< of the scene, by index into `profile.live`; -1: none
  std::vector<int32_t> holders;  ///< nodes of `profile.holders`; -1: none
};
struct MemoryLines {
  MemoryLine before, after;
  bool differ = false;
};
MemoryLines MemoryOf(const Comparison& comparison);

/// What runs where, in program order of the graph after: positions of calls are counted from 0.
struct LaneSpan {
  int32_t node = 0;            ///< of the scene
  int32_t begin = 0, end = 0;  ///< of a collective: from its launch to what waits for it
};
struct Lane {
  std::string name;  ///< "stream 0", "forward", "in flight 1"
  bool collectives = false;
  std::vector<LaneSpan> spans;  ///< in order of `begin`; they do not overlap
};
struct LaneChart {
  int32_t length = 0;  ///< calls
  int32_t collectives = 0;
  std::vector<Lane> lanes;
};
LaneChart LanesOf(const Comparison& comparison);

}  // namespace strata::viewer
