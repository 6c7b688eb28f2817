#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/trace_writer.h"
#include "tlparse-export/torch_trace/import/import.h"

namespace strata {

/// Writes exchange files into a trace: a run (kind `opt`) per file, its graphs with a snapshot per
/// change, its passes with exact identity and provenance. Nodes keep their stable ids from pass to
/// pass and from graph to graph of a file.
///
/// What a killed process left is a trace too: the pass in flight is recorded as failed, and a last
/// line that was cut is ignored.
class ExchangeImporter {
 public:
  /// REQUIRES: all arguments outlive this.
  ExchangeImporter(const ImportOptions& options, TraceWriter& trace, ImportSummary& summary);
  ~ExchangeImporter();

  /// Announces a file; returns its number.
  size_t AddFile(std::string path);
  /// The next bytes of a file; lines may be cut anywhere. Errors: the store's, and with `strict`
  /// the first line that cannot be read.
  Status Feed(size_t file, std::string_view bytes);
  /// Ends the runs.
  Status Finish();

 private:
  class File;
  const ImportOptions& options_;
  TraceWriter& trace_;
  ImportSummary& summary_;
  uint64_t next_id_;
  std::vector<std::unique_ptr<File>> files_;
};

/// True for an exchange file, or a folder that holds some.
bool IsExchangeInput(const std::string& path);

/// The exchange files that a word of the command line names, sorted by name.
std::vector<std::string> ExchangeFilesOf(const std::string& word);

/// Imports exchange files one after the other. Errors: a file cannot be read; none holds a record.
Status ImportExchange(const std::vector<std::string>& words, const ImportOptions& options,
                      TraceWriter& trace, ImportSummary& summary);

/// Imports exchange files while they grow; files that appear in a folder are taken too.
///
/// `wait(ms)` sleeps, and returns true when it is time to stop; `idle_s` as in FollowOptions.
Status FollowExchange(const std::vector<std::string>& words, const ImportOptions& options,
                      std::optional<double> idle_s, const std::function<bool(int)>& wait,
                      TraceWriter& trace, ImportSummary& summary);

}  // namespace strata
