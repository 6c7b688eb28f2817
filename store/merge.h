#pragma once
#include "store/trace_reader.h"
#include "store/trace_writer.h"

namespace strata {

/// Copies a run with everything that belongs to it into another trace: graphs, passes with
/// provenance, executed ranges, steps, artifacts, events. `info` is what the new run says of
/// itself.
///
/// Nodes keep their StableIds, so ranks of one program share their nodes in the file; the ids of
/// different runs have nothing to do with each other, as always.
/// A run that has not ended is copied as interrupted. Errors: damage, a full disk.
Result<RunId> CopyRun(TraceReader& from, const StoredRun& run, const RunInfo& info,
                      TraceWriter& to);

}  // namespace strata
