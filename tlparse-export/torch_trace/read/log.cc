#include "tlparse-export/torch_trace/read/log.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "tlparse-export/torch_trace/read/header.h"
#include "tlparse-export/torch_trace/read/input_paths.h"
#include "tlparse-export/torch_trace/read/log_graphs.h"
#include "tlparse-export/torch_trace/read/log_reader.h"
#include "tlparse-export/torch_trace/read/log_runs.h"
#include "tlparse-export/torch_trace/read/symbol_hints.h"

namespace strata {
namespace {

constexpr size_t kMaxDiagnostics = 100;

/// Keeps all that is read.
class Collector final : public LogSink {
 public:
  Collector(std::string_view path, const LogOptions& options) : options_(options), runs_(path) {
    content_.path = path;
  }

  Result<LogContent> Read(std::string_view text) {
    LogReader reader(*this);
    reader.Feed(text);
    reader.Finish();
    if (error_) return *std::move(error_);
    for (size_t i = 0; i < content_.runs.size(); ++i) {
      content_.runs[i].rank = runs_.rank(i);
      AddOrphans(trackers_[i], content_.runs[i]);
    }
    std::ranges::stable_sort(content_.runs, {}, &LogRun::rank);
    return std::move(content_);
  }

 private:
  void OnRecord(LogRecord record, std::optional<int32_t> rank, std::string_view thread,
                const ReadPayload* payload) override {
    ++content_.num_records;
    const size_t index = runs_.RunOf(rank, thread);
    if (index == content_.runs.size()) {
      content_.runs.emplace_back();
      trackers_.emplace_back();
    }
    if (payload != nullptr) record.payload = AddPayload(*payload);
    LogRun& run = content_.runs[index];
    run.records.push_back(std::move(record));
    const LogRecord& added = run.records.back();
    if (!added.has_graph) return;
    const int32_t text = content_.payloads[static_cast<size_t>(added.payload)].graph_id;
    const GraphStep step =
        trackers_[index].Add(added.name, added.compile, text, added.takes_tangents);
    AddStep(step, trackers_[index], run);
  }

  void OnString(int64_t id, std::string text) override {
    ++content_.num_records;
    content_.strings[id] = std::move(text);
  }

  void OnDiagnostic(LogDiagnostic diagnostic) override {
    if (options_.strict && !error_) {
      error_ = Error("{}:{}: {}", content_.path, diagnostic.line, diagnostic.what);
    }
    if (++content_.num_diagnostics > kMaxDiagnostics) return;
    content_.diagnostics.push_back(std::move(diagnostic));
  }

  int32_t AddPayload(const ReadPayload& read) {
    const auto index = static_cast<int32_t>(content_.payloads.size());
    const auto [known, is_new] = payload_index_.Emplace(read.hash, index);
    if (!is_new) return *known;
    LogPayload& payload = content_.payloads.emplace_back();
    payload.is_graph = read.is_graph;
    payload.text = read.text;
    if (!read.is_graph) return index;
    const Hash128 hash = HashBytes(WithoutGraphId(read.text));
    payload.graph_id = *graph_index_.Emplace(hash, index).first;
    return index;
  }

  const LogOptions& options_;
  LogContent content_;
  std::optional<Error> error_;
  RunFinder runs_;
  std::vector<GraphTracker> trackers_;       // by run
  FlatMap<Hash128, int32_t> payload_index_;  // by text
  FlatMap<Hash128, int32_t> graph_index_;    // by text without its graph id
};

/// Whether the inputs of a graph may say which parameters they are, from its text.
bool StatesParameters(std::string_view text) {
  return text.find("PlainAOTInput(") != std::string_view::npos ||
         text.find("_parameters_") != std::string_view::npos ||
         text.find("_buffers_") != std::string_view::npos;
}

/// Which parameters the inputs of a compilation's graphs are.
InputPaths InputPathsOf(const LogContent& log, const LogRun& run, const std::string& compile) {
  InputPaths paths;
  if (compile.empty()) return paths;
  std::vector<int32_t> seen;
  for (const LogRecord& record : run.records) {
    if (!record.has_graph || record.compile != compile) continue;
    const LogPayload& payload = log.payloads[static_cast<size_t>(record.payload)];
    const bool is_known = std::ranges::find(seen, record.payload) != seen.end();
    if (is_known || !StatesParameters(payload.text)) continue;
    seen.push_back(record.payload);
    const Result<FxDocument> document = ParseFx(payload.text, {});
    if (document) paths.Learn(compile, document->module->graph(GraphId{0}));
  }
  return paths;
}

/// The hints of a compilation's symbols.
Hints HintsOf(const LogRun& run, const std::string& compile) {
  SymbolHints hints;
  for (const LogRecord& record : run.records) {
    if (record.kind == "create_symbol" && record.compile == compile)
      hints.Learn(compile, record.envelope);
  }
  return hints.Of(compile);
}

}  // namespace

Result<LogContent> ReadLog(std::string_view text, std::string_view path,
                           const LogOptions& options) {
  return Collector(path, options).Read(text);
}

LogContent LogOfFxText(std::string_view text, std::string_view path, std::string_view name) {
  LogContent log;
  log.path = path;
  log.num_records = 1;
  log.payloads.push_back({.text = std::string(text), .is_graph = true});
  LogRecord record;
  record.line = 1;
  record.kind = "fx";
  record.name = name;
  record.payload = 0;
  record.has_graph = true;
  LogRun run;
  run.rank = RankOfPath(path).value_or(0);
  run.records.push_back(std::move(record));
  log.payloads[0].graph_id = 0;
  GraphTracker tracker;
  AddStep(tracker.Add(name, {}, 0), tracker, run);
  log.runs.push_back(std::move(run));
  return log;
}

bool LooksLikeLog(std::string_view text) {
  constexpr int kLines = 50;
  for (int i = 0; i < kLines && !text.empty(); ++i) {
    if (ReadHeader(TakeLine(text))) return true;
  }
  return false;
}

std::string LogContent::Place(const LogRun& run, const LogSnapshot& snapshot) const {
  const LogRecord& record = run.records[snapshot.record];
  return fmt::format("{}:{} ({})", path, record.line, record.name);
}

Result<FxDocument> LogContent::Parse(const LogRun& run, const LogGraph& graph,
                                     const LogSnapshot& snapshot, FxOptions options) const {
  const LogRecord& record = run.records[snapshot.record];
  options.file = path;
  if (!record.prefix.empty()) options.place = {.lines = record.line, .columns = 1};
  options.graph_name = graph.name;
  STRATA_TRY(FxDocument document,
             ParseFx(payloads[static_cast<size_t>(snapshot.payload)].text, options));
  InputPathsOf(*this, run, record.compile).Apply(record.compile, *document.module);
  ApplyHints(HintsOf(run, record.compile), *document.module);
  return document;
}

}  // namespace strata
