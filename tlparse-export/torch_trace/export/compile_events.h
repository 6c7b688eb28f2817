#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/trace_reader.h"

namespace strata {

/// Something that went wrong in a compilation of torch.compile, or made it start again.
struct CompileEvent {
  std::string compile;   ///< "0/1"
  std::string what;      ///< "failed", "graph break", "restarted", "recompiled"
  std::string function;  ///< the Python function; "": not known
  std::string reason;    ///< one line
};

/// What the records `compilation_metrics` and `dynamo_graph_break_reason` of an imported log say,
/// in order of the log: failures (also of backends and passes, and hit limits), graph breaks and
/// other restarts, recompilations with the guard that failed. None for runs that are not imports.
Result<std::vector<CompileEvent>> ReadCompileEvents(TraceReader& trace, const StoredRun& run);

/// `1 compilation failed, 2 recompiled, 3 graph breaks`; "" of none.
std::string CompileEventsText(const std::vector<CompileEvent>& events);

/// The compilation that logged an imported snapshot, `0/1_2`; empty: none, or not imported.
std::string_view CompilationOf(const SnapshotInfo& snapshot);

}  // namespace strata
