#include "refs/histories.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "base/file.h"
#include "base/text.h"
#include "ir/fingerprint.h"
#include "refs/history/log_history.h"
#include "refs/history/run_history.h"
#include "refs/history/step_refs.h"
#include "refs/import_files.h"
#include "refs/source_trace.h"
#include "store/trace_reader.h"
#include "tlparse-export/torch_trace/read/decompress.h"
#include "tlparse-export/torch_trace/read/log.h"
#include "tlparse-export/torch_trace/read/pasted_text.h"

namespace strata {
namespace {

/// One graph that no pass ran on.
Result<History> OfText(const Ref& ref) {
  LoadOptions options;
  STRATA_TRY(Snapshot snapshot, LoadRef(ref.text, options));
  History history;
  history.ref = ref.file;
  history.graphs = {snapshot.graph_name};
  const Fingerprint everything = FingerprintOf(snapshot.graph(), FingerprintScope::kEverything);
  history.snapshots = {{0, ref.text, ToString(everything)}};
  history.steps.emplace_back();
  SetStepRefs(history);
  LoadedGraph graph{std::shared_ptr<const Module>(std::move(snapshot.module)), snapshot.graph_id};
  history.load = [graph](int32_t) { return Result<LoadedGraph>(graph); };
  history.provenance = [](const HistoryStep&) { return std::vector<Provenance>(); };
  return history;
}

Status AddTrace(const std::shared_ptr<TraceReader>& trace, const std::string& path,
                std::vector<History>& histories) {
  for (const StoredRun& run : trace->runs()) {
    if (run.graphs.empty()) continue;
    STRATA_TRY(History history, HistoryOfRun(trace, run, path));
    histories.push_back(std::move(history));
  }
  return Ok();
}

/// A folder of something else than logs and traces, imported into a temporary trace, which is
/// removed when the last history of it is gone.
Status AddFolder(const std::string& path, std::vector<History>& histories) {
  struct Held {
    SourceTrace source;
    std::unique_ptr<TraceReader> reader;
  };
  STRATA_TRY(SourceTrace source, SourceTrace::Open(path, "", {}));
  STRATA_TRY(std::unique_ptr<TraceReader> reader, TraceReader::Open(source.path()));
  const auto held = std::make_shared<Held>(std::move(source), std::move(reader));
  return AddTrace(std::shared_ptr<TraceReader>(held, held->reader.get()), path, histories);
}

Status AddFile(const Ref& ref, const std::string& path, const LastLog& kept,
               std::vector<History>& histories) {
  if (LooksLikeTrace(path)) {
    STRATA_TRY(std::shared_ptr<TraceReader> trace, TraceReader::Open(path));
    return AddTrace(trace, path, histories);
  }
  if (std::error_code error; std::filesystem::is_directory(path, error))
    return AddFolder(path, histories);
  STRATA_TRY(std::string bytes, ReadFile(path));
  STRATA_TRY(std::string read, Decompress(std::move(bytes), path));
  const std::string text = ReadPasted(std::move(read)).text;
  if (!LooksLikeLog(text)) {
    if (path == "-") return Error("cannot be read twice: standard input: give a file or a log");
    STRATA_TRY(History history, OfText(ref));
    histories.push_back(std::move(history));
    return Ok();
  }
  STRATA_TRY(LogContent content, ReadLog(text, path));
  const auto log = std::make_shared<const LogContent>(std::move(content));
  // Standard input cannot be read again, so its log stays.
  const LastLog last =
      path == "-" ? std::make_shared<std::shared_ptr<const LogContent>>(log) : kept;
  for (size_t i = 0; i < log->runs.size(); ++i) {
    if (!log->runs[i].graphs.empty()) histories.push_back(HistoryOfLogRun(*log, i, last));
  }
  return Ok();
}

/// The traces of a folder, or else its logs; anything else is itself.
Result<std::vector<std::string>> FilesOf(const std::string& word) {
  std::vector<std::string> traces;
  std::error_code error;
  if (std::filesystem::is_directory(word, error)) {
    for (const auto& entry : std::filesystem::directory_iterator(word, error)) {
      if (entry.path().extension() == ".strata") traces.push_back(entry.path().string());
    }
  }
  if (traces.empty()) return LogFilesOf(word);
  std::ranges::sort(traces);
  return traces;
}

std::vector<std::string> RefsOf(const std::vector<History>& histories) {
  std::vector<std::string> refs;
  for (const History& history : histories)
    refs.push_back(history.ref);
  return refs;
}

}  // namespace

Result<std::vector<History>> LoadHistories(std::string_view text) {
  STRATA_TRY(const Ref ref, ParseRef(text));
  STRATA_TRY(const std::vector<std::string> files, FilesOf(ref.file));
  std::vector<History> all;
  const auto kept = std::make_shared<LastLog::element_type>();
  for (const std::string& file : files)
    STRATA_RETURN_IF_ERROR(AddFile(ref, file, kept, all));
  if (all.empty()) {
    return Error("no graphs: {}: give traces or logs that hold some", ref.file);
  }
  std::vector<History> chosen;
  for (History& history : all) {
    const bool fits = (!ref.run || history.ref.ends_with(fmt::format("#run={}", *ref.run))) &&
                      (!ref.rank || history.HasRank(*ref.rank));
    if (fits) chosen.push_back(std::move(history));
  }
  if (chosen.empty()) {
    std::vector<std::string> runs;
    for (const History& history : all)
      runs.push_back(fmt::format("{} (rank {})", history.ref, history.rank));
    return Error(ErrorCode::kNotFound, "no such run: {}: there are {}", ref.text, Enumerate(runs));
  }
  return chosen;
}

Result<History> LoadHistory(std::string_view text) {
  STRATA_TRY(std::vector<History> histories, LoadHistories(text));
  if (histories.size() == 1) return std::move(histories[0]);
  std::string list;
  for (const std::string& ref : RefsOf(histories))
    list += "\n  " + ref;
  return Error("REF names several runs: {}: say which one:{}", text, list);
}

}  // namespace strata
