#pragma once
#include <map>
#include <string>
#include <vector>

#include "store/trace_reader.h"
#include "tlparse-export/torch_trace/export/compile_events.h"
#include "tlparse-export/torch_trace/export/export.h"

namespace strata::cli {

/// What ReadCompileEvents found, by run.
using CompileEventsOfRuns = std::map<RunId, std::vector<CompileEvent>>;

/// The runs of a trace for people: graphs, passes with what they did, executed plans, what went
/// wrong in compilations, artifacts.
std::string ListText(const TraceReader& trace, const CompileEventsOfRuns& events = {});

/// The same as `strata.ls/1` (docs/json.md). `ref_of` makes REFs; empty: into the trace.
std::string ListJson(const TraceReader& trace, const CompileEventsOfRuns& events = {},
                     const RefOf& ref_of = {});

}  // namespace strata::cli
