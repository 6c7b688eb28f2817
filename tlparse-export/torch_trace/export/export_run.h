#pragma once
#include "tlparse-export/torch_trace/export/export.h"
#include "tlparse-export/torch_trace/export/log_writer.h"

namespace strata {

/// Writes a run that was not read from a log as a log; see ExportTorchTrace.
Status WriteOwnRun(TraceReader& trace, const StoredRun& run, const ExportSelection& selection,
                   LogWriter& log, ExportSummary& summary);

}  // namespace strata
