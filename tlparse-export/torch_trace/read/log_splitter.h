#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ir/fx/fx.h"
#include "store/database/hash.h"
#include "tlparse-export/torch_trace/read/log_reader.h"
#include "tlparse-export/torch_trace/read/log_runs.h"
#include "tlparse-export/torch_trace/read/symbol_hints.h"

namespace strata {

/// A text of a graph, read. Texts that differ in a graph id only are one.
struct ParsedText {
  FxDocument document;
  bool is_readable = false;   ///< there is a graph in it
  bool is_canonical = false;  ///< printing gives the text, without graph id and line end
};

/// Texts of graphs that were read, over all logs that are imported together: each is read once, by
/// who meets it first. Threads may share one.
class ParsedTexts {
 public:
  /// `hash` is of the text without its graph id.
  std::shared_ptr<ParsedText> Get(const Hash128& hash, std::string_view text,
                                  const FxOptions& options);

 private:
  struct Slot {
    std::once_flag once;
    ParsedText text;
  };
  std::mutex mutex_;
  FlatMap<Hash128, std::shared_ptr<Slot>> slots_;
};

/// What becomes of a record, or of a crowd of small ones.
struct LogItem {
  enum class Kind : uint8_t {
    kGraph,   ///< a record with a graph
    kRecord,  ///< one with another payload
    kCrowd,   ///< records of one kind, `record.kind`, as they stood in the log
  };
  Kind kind = Kind::kRecord;
  size_t run = 0;  ///< of its log
  LogRecord record;
  /// The payload, or the lines of a crowd. Of a graph: only what printing the graph does not give
  /// again, when its log shows it for the first time.
  std::string text;
  std::vector<size_t> lines;           ///< of a crowd: where each record stood
  Hash128 hash, plain_hash;            ///< of a graph's text, and of it without its graph id
  std::shared_ptr<ParsedText> parsed;  ///< of a graph that its log shows for the first time
  Hints hints;                         ///< of its symbols, as far as the log says them
};

/// A part of a log, ready to be stored.
struct LogBatch {
  struct Run {
    int32_t rank = 0;
    std::string start;  ///< header of its first record
  };
  std::vector<Run> runs;  ///< all that the log has had so far
  std::vector<LogItem> items;
  std::vector<std::string> warnings;
  int64_t num_warnings = 0;  ///< at least those
  int64_t num_records = 0;
  std::map<int64_t, std::string> strings;  ///< new ones
  double share = 0;                        ///< of the log that was read with it, 0 to 1; 0: unknown
};

struct SplitOptions {
  bool strict = false;                    ///< the first thing that cannot be read is an error
  fx::KnownLines* known_lines = nullptr;  ///< see FxOptions
};

/// Reads one log into batches: splits it, verifies payloads, reads graphs.
class LogSplitter final : private LogSink {
 public:
  /// REQUIRES: `texts` outlives this.
  LogSplitter(std::string path, const SplitOptions& options, ParsedTexts& texts)
      : path_(std::move(path)), options_(options), texts_(texts), runs_(path_), reader_(*this) {}

  /// Errors: strict only.
  Status Feed(std::string_view bytes);
  Status Finish();
  /// A log that may go on stands still: its last record is there if it is whole, and so are crowds
  /// if `with_crowds`.
  Status Pause(bool with_crowds);
  /// The file begins anew.
  Status Restart();
  /// The text of one graph that is in no log, as a record `name`.
  Status AddFxText(std::string_view text, std::string_view name);
  /// What was read since the last call.
  LogBatch Take();
  /// A record of a run came.
  bool has_runs() const { return runs_.size() > 0; }

 private:
  struct Crowd {
    std::string text;
    std::vector<size_t> lines;
  };

  void OnRecord(LogRecord record, std::optional<int32_t> rank, std::string_view thread,
                const ReadPayload* payload) override;
  void OnString(int64_t id, std::string text) override;
  void OnDiagnostic(LogDiagnostic diagnostic) override;

  void AddGraph(size_t run, LogRecord record, const ReadPayload& payload);
  void AddRecord(size_t run, LogRecord record, std::string_view text);
  void AddToCrowd(size_t run, const LogRecord& record, const ReadPayload* payload);
  void FlushCrowds(size_t limit);
  void WarnOf(const LogRecord& record, const ParsedText& parsed);
  void Warn(std::string text);
  Status status() const { return error_ ? Status(*error_) : Ok(); }

  std::string path_;
  SplitOptions options_;
  ParsedTexts& texts_;
  RunFinder runs_;
  LogReader reader_;
  LogBatch batch_;
  std::vector<std::string> starts_;                         // by run
  std::vector<SymbolHints> hints_;                          // by run
  std::map<std::pair<size_t, std::string>, Crowd> crowds_;  // by run and kind
  size_t crowd_bytes_ = 0;
  FlatMap<Hash128, bool> seen_texts_, seen_plain_, unreadable_;
  std::optional<Error> error_;
};

}  // namespace strata
