#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/trace_reader.h"

namespace strata {

/// A record of the log that a run was imported from, as the trace keeps it.
struct StoredRecord {
  int64_t line = 0;  ///< in the log, 1-based; events of one header have one line
  std::string name;  ///< as LogRecord has them
  std::string kind;
  std::string compile;   ///< "0/0", "1/2_1"; "": outside of compilations
  std::string prefix;    ///< of the header; "": the run was not read from a log
  std::string envelope;  ///< the JSON object
  bool has_payload = false;

  SnapshotId snapshot = SnapshotId::kNone;  ///< that the payload holds
  ArtifactId artifact = ArtifactId::kNone;  ///< with the payload's bytes
  std::string text;                         ///< the payload, when there is neither
};

/// All records of a run in order of the log; none for runs that are not imports.
Result<std::vector<StoredRecord>> ReadStoredRecords(TraceReader& trace, const StoredRun& run);

/// Those of one kind without the others, which are not read.
Result<std::vector<StoredRecord>> ReadStoredRecords(TraceReader& trace, const StoredRun& run,
                                                    std::string_view kind);

/// The compilation of a record that is an artifact of its own; "" for other artifacts.
std::string CompileOf(const ArtifactInfo& artifact);

/// Those of them that hold graphs, in the order in which these came.
Result<std::vector<StoredRecord>> ReadGraphRecords(TraceReader& trace, const StoredRun& run);

/// The bytes of a record's payload. A graph's text is the one that was read, or, which is the same,
/// the one that its snapshot prints.
Result<std::string> LoadPayload(TraceReader& trace, const StoredRecord& record);

/// The FX text of a snapshot.
Result<std::string> LoadFxText(TraceReader& trace, SnapshotId snapshot);

}  // namespace strata
