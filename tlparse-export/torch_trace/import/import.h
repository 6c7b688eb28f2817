#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/trace_writer.h"
#include "tlparse-export/torch_trace/read/byte_source.h"
#include "tlparse-export/torch_trace/read/log_splitter.h"

namespace strata {

struct ImportOptions {
  bool strict = false;  ///< the first thing that cannot be read is an error
  std::string command;  ///< as the user typed it, kept in the runs
  int threads = 0;      ///< that read logs; 1: none but the caller's, 0: as many as pay
  /// Learns between records what share of the logs is imported, 0 to 1. Its error ends the import.
  std::function<Status(double share)> on_progress = {};
};

/// What an import did, for people.
struct ImportSummary {
  int64_t runs = 0, records = 0, graphs = 0, snapshots = 0, passes = 0, unchanged_passes = 0;
  int64_t artifacts = 0;
  std::vector<std::string> warnings;  ///< the first 100
  int64_t num_warnings = 0;
};

/// Writes logs into a trace: a run per rank of each log, its graphs with a snapshot per changed
/// text, its passes with what they changed and how long they took, and every other record as an
/// artifact:
///
///  - records with a payload by their names, kind "record", the payload as bytes;
///  - those without one, and events of a kind that comes by the thousand, together by their kind,
///    kind "records": the lines of the log as they stand, attribute `lines` where they stood;
///  - records with a graph together as "graphs", kind `"moments"`: for each a line of JSON with the
///    record's attributes, its `snapshot`, and in `text` the artifact that keeps its text or 0;
///  - texts that printing the snapshot does not give again (forms of old versions, texts that could
///    not be read to their end), kind "graph", besides the snapshot;
///  - the string table, kind "strings": a JSON object.
///
/// `"records"` and `"moments"` come in parts: several artifacts of a name. Nothing of a log is
/// lost. Attributes of snapshots and artifacts contain record, line, compilation and envelope. A
/// text that several records, compilations or ranks show is stored once. What is held in memory
/// does not grow with the logs, but for some bytes per graph.
class LogImporter {
 public:
  /// REQUIRES: all arguments outlive this.
  LogImporter(const ImportOptions& options, TraceWriter& trace, ImportSummary& summary);
  ~LogImporter();

  /// Announces a log; returns its number.
  size_t AddLog(std::string path);
  /// `on_item` learns what share of the batch is taken; its error is returned.
  Status Take(size_t log, LogBatch batch, const std::function<Status(double share)>& on_item = {});
  /// Nothing follows of this log.
  Status FinishLog(size_t log);
  /// Shows to readers of a live trace what was held back to be stored together.
  Status Flush();
  /// Ends all runs.
  Status Finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// A log, or the text of one graph, that is to be read.
struct LogInput {
  std::string path;                   ///< for names and messages
  std::unique_ptr<ByteSource> bytes;  ///< decompressed
};

/// Opens an input when its turn comes.
class LogInputs {
 public:
  virtual ~LogInputs() = default;
  virtual size_t size() const = 0;
  /// Of all together, for messages.
  virtual std::string name() const = 0;
  virtual Result<LogInput> Open(size_t index) = 0;
};

/// Imports inputs side by side, each read by a thread of its own, and ends the runs. The trace does
/// not depend on the number of threads. Empty ones are passed over with a warning; when all are,
/// that is an error, as it is for a single one that holds neither records nor a graph.
Status ImportLogs(LogInputs& inputs, const ImportOptions& options, TraceWriter& trace,
                  ImportSummary& summary);

}  // namespace strata
