#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scene/memory.h"
#include "viewer/compare/comparison.h"

namespace strata::viewer {

/// How often both graphs of a comparison call an operator, and what the calls after the pass cost.
struct OperatorRow {
  std::string op;
  int32_t before = 0, after = 0;  ///< calls
  double flops = 0;               ///< from shapes
  double bytes = 0;               ///< of results, from shapes
  double time_ns = 0;             ///< measured, of a step; 0: not measured
  SceneNodeId first;              ///< the first node that calls it
};
/// Most calls first. Bodies count.
std::vector<OperatorRow> OperatorsOf(const Comparison& comparison);

/// Bytes alive over one graph of a comparison.
struct MemoryLine {
  MemoryProfile profile;
  std::vector<SceneNodeId> nodes;    ///< by index into `profile.live`
  std::vector<SceneNodeId> holders;  ///< nodes of `profile.holders`
};
struct MemoryLines {
  MemoryLine before, after;
  bool differ = false;
};
MemoryLines MemoryOf(const Comparison& comparison);

/// What runs where in the graph after, and when.
struct LaneSpan {
  SceneNodeId node;           ///< none: an action of a pipeline
  double begin = 0, end = 0;  ///< of a collective: from its launch to what waits for it
  size_t action = 0;          ///< index into LaneChart::actions
};
/// What a rank of a pipeline does.
struct LaneAction {
  std::string name;       ///< `2F0`
  std::string words;      ///< `rank 1: 2F0, 1.2 ms`
  std::string graph;      ///< that runs; "": none does
  float share = -1;       ///< of HeatOf, by kind; -1: communication
  bool is_short = false;  ///< a reception: the rank waits for most of it
};
struct Lane {
  std::string name;  ///< "stream 0", "forward", "in flight 1"
  bool collectives = false;
  std::vector<LaneSpan> spans;  ///< in order of `begin`; they do not overlap
};
struct LaneChart {
  double length = 0;  ///< where the last span ends
  std::string words;  ///< what is shown; or why there is nothing
  std::vector<Lane> lanes;
  std::vector<LaneAction> actions;  ///< of a pipeline
};
/// Calls in program order: positions are counted from 0.
LaneChart LanesInOrder(const Comparison& comparison);
/// Topologies that come with the program.
inline constexpr std::array<std::string_view, 5> kTopologies = {"h100", "h200", "b200", "a100",
                                                                "cpu"};
/// Streams of one rank as `strata simulate` estimates them on a topology ("h100"), in µs.
LaneChart SimulatedLanes(const Comparison& comparison, const std::string& topology);
/// Calls one after the other with the times that a step took, in µs. REQUIRES: has_measures().
LaneChart MeasuredLanes(const Comparison& comparison);

}  // namespace strata::viewer
