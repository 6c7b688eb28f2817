#pragma once
#include "base/result.h"
#include "refs/ref.h"
#include "store/trace_reader.h"
#include "tlparse-export/torch_trace/export/export.h"

namespace strata {

/// The runs and the graph that `ref` selects in `trace` for an export. Errors: nothing has that
/// name; `ref` names a pass.
Result<ExportSelection> SelectForExport(const Ref& ref, const TraceReader& trace);

/// Makes REFs into the file that the user named: the trace itself, or the logs that were imported
/// into a temporary trace. REQUIRES: `ref` and `trace` outlive the result.
RefOf RefsForExport(const Ref& ref, const TraceReader& trace, bool is_imported);

}  // namespace strata
