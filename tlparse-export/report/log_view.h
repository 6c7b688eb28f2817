#pragma once
#include <string>
#include <vector>

#include "store/trace_reader.h"
#include "tlparse-export/report/log_tables.h"
#include "tlparse-export/report/report_model.h"

namespace strata {

/// What the page shows of the log that a run was imported from, and of the artifacts of every run:
///
///  - `log-<run>`: the string table of stacks, how each compilation ended, tables of compilations,
///  and the records in order of the log, each a list of
///    line, compilation, kind, name, header, metadata (JSON, as text), bytes of the payload (-1:
///    none), part and place of the payload in it (-1: not here), REF and nodes of a graph, number
///    of records (descriptions of tensors stand together, by compilation and kind);
///  - `log-<run>-<part>`: payloads, a list of texts of about 256 KB, decoded when one is looked at;
///  - `log-<run>-events`: the payloads of `chromium_event`, a list of texts.
///
/// Texts of graphs are those of the page's scenes and not here, unless printing does not give them.
struct LogView {
  std::vector<ReportPart> parts;
  std::vector<std::string> left_out;  ///< what `max_bytes` had no room for, largest last
  LogFacts facts;                     ///< for CompareLogs
};

/// None of the parts for a run without records and artifacts. Small payloads come first; those that
/// make the parts larger than `max_bytes` together, as they stand in the page, are left out by
/// name.
Result<LogView> MakeLogView(TraceReader& trace, const StoredRun& run, size_t max_bytes);

}  // namespace strata
