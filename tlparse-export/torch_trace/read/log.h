#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/fx/fx.h"

/// Logs that PyTorch writes when TORCH_TRACE is set: a header line per record (glog prefix, one
/// JSON object), then the record's payload, each line after a tab. Format: PyTorch
/// torch/_logging/_internal.py (TorchLogsFormatter, trace_structured).
namespace strata {

/// A part of a log that could not be used.
struct LogDiagnostic {
  size_t line = 0;  ///< 1-based
  std::string what;
};

/// A payload; equal ones of a log are one.
struct LogPayload {
  std::string text;
  bool is_graph = false;  ///< by content, see LooksLikeFxGraph
  /// Texts that differ in a trailing `# graph id: …` only have equal ids.
  int32_t graph_id = -1;
};

/// One event. A header with several event keys gives several records.
struct LogRecord {
  size_t line = 0;       ///< of the header, 1-based
  std::string kind;      ///< the event key: "artifact", "aot_joint_graph", "compilation_metrics", …
  std::string name;      ///< the name in its metadata; without one, the kind
  std::string compile;   ///< "0/0", "1/2_1" (attempt 1), "!3/0/0" (compiled autograd); "": outside
  std::string envelope;  ///< the JSON object as it stands
  std::string prefix;    ///< the header before it, "V1120 18:32:38.396000 14073 torch/x.py:10] "
  int32_t payload = -1;  ///< index into LogContent::payloads
  /// The payload is a graph. Not so for `dump_file`, the source that Python runs for one that was
  /// logged already.
  bool has_graph = false;
  bool takes_tangents = false;  ///< the graph does: it is the backward graph of its compilation
};

/// A graph at one snapshot.
struct LogSnapshot {
  size_t record = 0;  ///< index into LogRun::records
  int32_t payload = -1;
};

/// A graph over the passes that ran on it.
struct LogGraph {
  /// Unique in its run: the record's name (for passes without a graph before them, the name of the
  /// pass), with `@1/0` when an earlier compilation has one of that name, then `.2`, `.3`, ….
  std::string name;
  std::vector<LogSnapshot> snapshots;  ///< not empty
};

/// A pair of records `before_<name>` and `after_<name>`; or what changed before such a pair began:
/// then the name is that of the first record.
struct LogPass {
  int32_t index = 0;
  std::string name;
  size_t graph = 0;              ///< index into LogRun::graphs
  size_t before = 0, after = 0;  ///< indices into its snapshots
  bool unchanged = false;        ///< both snapshots have the same text
};

/// What one rank wrote.
struct LogRun {
  int32_t rank = 0;
  std::vector<LogRecord> records;  ///< in order of writing, `str` records left out
  std::vector<LogGraph> graphs;    ///< in order of first appearance
  std::vector<LogPass> passes;     ///< in order of their ends
};

struct LogOptions {
  bool strict = false;  ///< the first line that cannot be used is an error
};

/// A log, read.
struct LogContent {
  std::string path;
  std::vector<LogPayload> payloads;
  std::vector<LogRun> runs;                ///< one per rank, in order of rank
  std::map<int64_t, std::string> strings;  ///< file names of stack frames, by id
  std::vector<LogDiagnostic> diagnostics;  ///< the first 100
  size_t num_diagnostics = 0;
  size_t num_records = 0;

  /// A graph at one snapshot, under its graph's name. Messages say where the text stands in the
  /// log; of `options`, file and name are not read.
  Result<FxDocument> Parse(const LogRun& run, const LogGraph& graph, const LogSnapshot& snapshot,
                           FxOptions options = {}) const;
  /// `log.txt:12 (before_dce)`, for messages.
  std::string Place(const LogRun& run, const LogSnapshot& snapshot) const;
};

/// Reads a whole log. Damaged parts are reported in `diagnostics` and skipped: junk between
/// records, broken JSON, payloads that their md5 contradicts (they are kept), bytes that are not
/// UTF-8. Ranks are those of the records, else of the name `path`, else 0.
///
/// Errors: strict only: `path:line: what`.
Result<LogContent> ReadLog(std::string_view text, std::string_view path,
                           const LogOptions& options = {});

/// A log of one record and one graph: an FX text that is not in a log.
LogContent LogOfFxText(std::string_view text, std::string_view path, std::string_view name);

/// True when one of the first lines is the header of a record.
bool LooksLikeLog(std::string_view text);

}  // namespace strata
