#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "ir/graph.h"

namespace strata {

/// Counts of a graph at one snapshot: memory, arithmetic, operators, collectives.
struct GraphFacts {
  int64_t peak = 0;    ///< bytes, estimated from shapes
  int64_t inputs = 0;  ///< of inputs and constants
  int32_t unknown = 0;
  double flops = 0;
  std::vector<int64_t> live;  ///< bytes over the program, at most kPoints, each the most of a slice
  std::vector<std::string> live_at;  ///< the node of each point
  std::vector<std::pair<std::string, double>>
      phases;  ///< where a phase ends, from 0 to 1, in order; of programs that state phases

  struct Holder {
    std::string name, op, type, module, phase;
    int64_t bytes = 0;
  };
  std::vector<Holder> holders;                       ///< of the peak, most bytes first
  std::vector<std::pair<std::string, int32_t>> ops;  ///< by name

  struct Collective {
    std::string name, op, type, group, module, phase;
    std::string place = {};  ///< "model.py:12"; "": not known
  };
  std::vector<Collective> collectives;  ///< in program order

  static constexpr size_t kPoints = 480, kHolders = 24, kCollectives = 4000;
};
GraphFacts FactsOf(const Graph& graph);

void AppendJson(const GraphFacts& facts, JsonWriter& json);

}  // namespace strata
