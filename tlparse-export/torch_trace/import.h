#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "store/trace.h"
#include "tlparse-export/torch_trace/log.h"

namespace strata {

struct ImportOptions {
  bool strict = false;  ///< the first unread token of a graph is an error
  std::string command;  ///< as the user typed it, kept in the runs
  int32_t world = 1;    ///< number of ranks that are imported together
};

/// What an import did, for people.
struct ImportSummary {
  int64_t runs = 0, records = 0, graphs = 0, snapshots = 0, passes = 0, unchanged_passes = 0;
  int64_t artifacts = 0;
  std::vector<std::string> warnings;  ///< the first 100
  int64_t num_warnings = 0;
};

/// Writes a log into a trace: a run per rank, its graphs with a snapshot per changed text, its
/// passes with what they changed, and every other record as an artifact:
///
///  - records with a payload by their names, kind "record", the payload as bytes;
///  - those without one, and events of a kind that comes by the thousand, together by their kind,
///    kind "records": the lines of the log as they stand, attribute `lines` where they stood;
///  - records with a graph together as "graphs", kind "moments": for each a line of JSON with the
///    record's attributes, its `snapshot`, and in `text` the artifact that keeps its text or 0;
///  - texts that printing the snapshot does not give again (forms of old versions, texts that could
///    not be read to their end), kind "graph", besides the snapshot;
///  - the string table, kind "strings": a JSON object.
///
/// So nothing of a log is lost. Attributes of snapshots and artifacts tell record, line,
/// compilation and envelope. Each distinct text is parsed once.
Status ImportLog(const LogContent& log, const ImportOptions& options, TraceWriter& trace,
                 ImportSummary& summary);

}  // namespace strata
