#pragma once
#include <cstdint>
#include <map>
#include <unordered_map>

#include "base/result.h"
#include "store/node_statistics.h"
#include "store/trace_reader.h"

namespace strata {

/// What was measured of nodes, by stable id; `time_ns` is of one step.
using Measures = std::unordered_map<uint64_t, NodeStatistics>;

/// From the statistics and the events of a run. Errors: an artifact that is damaged.
Result<Measures> LoadMeasures(TraceReader& trace, const StoredRun& run);

/// By rank, of a run whose graphs are those of all ranks; empty if one was measured at most.
using RankMeasures = std::map<int32_t, Measures>;
Result<RankMeasures> LoadRankMeasures(TraceReader& trace, const StoredRun& run);

}  // namespace strata
