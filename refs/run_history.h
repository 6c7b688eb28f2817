#pragma once
#include <memory>
#include <string>

#include "base/result.h"
#include "diff/history/history.h"
#include "store/trace_reader.h"

namespace strata {

/// The history of a run of a trace. `file` is the trace as the user named it. Graphs are read from
/// `trace` when they are loaded.
Result<History> HistoryOfRun(const std::shared_ptr<TraceReader>& trace, const StoredRun& run,
                             const std::string& file);

}  // namespace strata
