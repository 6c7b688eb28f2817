#pragma once
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "diff/history/history.h"
#include "store/trace_reader.h"

namespace strata {

/// Loads a graph of a trace.
using SnapshotSource = std::function<Result<std::shared_ptr<const Module>>(SnapshotId)>;

/// The history of a run of a trace. `file` is the trace as the user named it. Graphs are loaded
/// from `source`, or, without one, read from `trace`; the last few stay.
Result<History> HistoryOfRun(const std::shared_ptr<TraceReader>& trace, const StoredRun& run,
                             const std::string& file, SnapshotSource source = {});

}  // namespace strata
