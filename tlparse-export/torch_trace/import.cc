#include "tlparse-export/torch_trace/import.h"

#include <algorithm>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "diff/diff.h"
#include "ir/json.h"

namespace strata {
namespace {

constexpr size_t kMaxWarnings = 100;

void Warn(ImportSummary& summary, std::string text) {
  if (++summary.num_warnings > static_cast<int64_t>(kMaxWarnings)) return;
  summary.warnings.push_back(std::move(text));
}

/// What a trace keeps of a record beside its payload.
void AddFields(const LogRecord& record, JsonWriter& json) {
  json.Field("record", record.name).Field("kind", record.kind);
  json.Field("line", static_cast<int64_t>(record.line));
  if (!record.compile.empty()) json.Field("compile", record.compile);
  json.Field("prefix", record.prefix).Field("envelope", record.envelope);
}

std::string Attributes(const LogRecord& record) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  AddFields(record, json);
  json.EndObject();
  return out;
}

/// Kinds of which a log has thousands, each of them small.
bool ComesInCrowds(const LogRecord& record) {
  return record.payload < 0 || record.kind == "chromium_event";
}

/// The record as it stood in the log.
void AppendLines(const LogContent& log, const LogRecord& record, std::string& out) {
  out += record.prefix;
  out += record.envelope;
  out += '\n';
  if (record.payload < 0) return;
  std::string_view payload = log.payloads[static_cast<size_t>(record.payload)].text;
  while (true) {
    const size_t end = payload.find('\n');
    out += '\t';
    out += payload.substr(0, end);
    out += '\n';
    if (end == std::string_view::npos) return;
    payload.remove_prefix(end + 1);
  }
}

/// Imports one run.
class RunImporter {
 public:
  RunImporter(const LogContent& log, const LogRun& run, const ImportOptions& options,
              TraceWriter& trace, ImportSummary& summary)
      : log_(log), run_(run), options_(options), trace_(trace), summary_(summary) {}

  Status Import() {
    RunInfo info;
    info.kind = RunKind::kImport;
    info.rank = run_.rank;
    info.world = std::max(options_.world, run_.rank + 1);
    info.source = log_.path;
    info.command = options_.command;
    STRATA_TRY(id_, trace_.BeginRun(info));
    STRATA_RETURN_IF_ERROR(AddGraphs());
    STRATA_RETURN_IF_ERROR(AddMoments());
    STRATA_RETURN_IF_ERROR(AddArtifacts());
    STRATA_RETURN_IF_ERROR(trace_.EndRun(id_, RunStatus::kFinished));
    ++summary_.runs;
    return Ok();
  }

 private:
  /// A place in the log where a graph or the end of a pass stands.
  struct Event {
    size_t record, graph, moment;
    const LogPass* ended = nullptr;
  };

  Status AddGraphs() {
    std::vector<Event> events;
    snapshots_.resize(run_.graphs.size());
    documents_.resize(run_.graphs.size());
    for (size_t g = 0; g < run_.graphs.size(); ++g) {
      const std::vector<LogMoment>& moments = run_.graphs[g].moments;
      snapshots_[g].resize(moments.size(), SnapshotId::kNone);
      for (size_t m = 0; m < moments.size(); ++m)
        events.push_back({moments[m].record, g, m});
    }
    std::map<std::pair<size_t, size_t>, const LogPass*> ends;
    for (const LogPass& pass : run_.passes)
      ends[{pass.graph, pass.after}] = &pass;
    for (Event& event : events) {
      const auto end = ends.find({event.graph, event.moment});
      if (end != ends.end()) event.ended = end->second;
    }
    std::ranges::sort(events, {}, &Event::record);
    for (const Event& event : events)
      STRATA_RETURN_IF_ERROR(AddMoment(event));
    summary_.graphs += static_cast<int64_t>(run_.graphs.size());
    return Ok();
  }

  Status AddMoment(const Event& event) {
    const LogGraph& graph = run_.graphs[event.graph];
    const LogMoment& moment = graph.moments[event.moment];
    SnapshotId& snapshot = snapshots_[event.graph][event.moment];
    const bool is_same =
        event.moment > 0 && GraphIdOf(graph.moments[event.moment - 1]) == GraphIdOf(moment);
    std::shared_ptr<const FxDocument> before = documents_[event.graph];
    if (is_same) {
      snapshot = snapshots_[event.graph][event.moment - 1];
    } else {
      STRATA_TRY(documents_[event.graph], Load(graph, moment));
    }
    STRATA_RETURN_IF_ERROR(KeepText(run_.records[moment.record], *documents_[event.graph]));
    if (event.ended != nullptr) return AddPass(event, before, is_same);
    if (is_same) return Ok();
    STRATA_TRY(snapshot, trace_.AddSnapshot(id_, graph.name, documents_[event.graph]->graph(),
                                            Attributes(run_.records[moment.record])));
    ++summary_.snapshots;
    return Ok();
  }

  Status AddPass(const Event& event, const std::shared_ptr<const FxDocument>& before,
                 bool is_same) {
    const LogPass& pass = *event.ended;
    PassRecord record;
    record.index = pass.index;
    record.name = pass.name;
    record.graph = run_.graphs[pass.graph].name;
    record.before = snapshots_[pass.graph][pass.before];
    record.counts.emplace();
    const Graph* after = nullptr;
    if (!is_same) {
      after = &documents_[event.graph]->graph();
      STRATA_TRY(record.counts, Count(before->graph(), *after));
      ++summary_.snapshots;
    } else {
      record.after = snapshots_[event.graph][event.moment];
    }
    record.outcome = pass.unchanged ? PassOutcome::kUnchanged : PassOutcome::kOk;
    STRATA_TRY(const StoredPass stored, trace_.RecordPass(id_, std::move(record), after));
    snapshots_[event.graph][event.moment] = stored.record.after;
    ++summary_.passes;
    summary_.unchanged_passes += pass.unchanged ? 1 : 0;
    return Ok();
  }

  /// Consequences of other changes are changes of the graph too.
  static Result<ChangeCounts> Count(const Graph& before, const Graph& after) {
    STRATA_TRY(const GraphDiff diff, Diff(before, after));
    ChangeCounts counts;
    counts.inserted = diff.summary.inserted;
    counts.deleted = diff.summary.deleted;
    counts.changed = int64_t{diff.summary.changed} + diff.summary.derived;
    counts.moved = diff.summary.moved;
    return counts;
  }

  int32_t GraphIdOf(const LogMoment& moment) const {
    return log_.payloads[static_cast<size_t>(moment.payload)].graph_id;
  }

  /// Parses a text that was not parsed for this run before.
  Result<std::shared_ptr<const FxDocument>> Load(const LogGraph& graph, const LogMoment& moment) {
    FxOptions options;
    options.strict = options_.strict;
    options.first_stable_id = trace_.next_stable_id();
    STRATA_TRY(FxDocument document, log_.Parse(run_, graph, moment, options));
    if (document.num_diagnostics > 0) {
      const FxDiagnostic& first = document.diagnostics.front();
      Warn(summary_, fmt::format("{}:{}:{}: {}: {} of the graph's places could not be read",
                                 log_.Place(run_, moment), first.line, first.column, first.what,
                                 document.num_diagnostics));
    }
    return std::shared_ptr<const FxDocument>(std::make_shared<FxDocument>(std::move(document)));
  }

  /// Keeps a text that printing the graph, which was read from it, does not give again.
  /// REQUIRES: the texts of record and document differ in the graph id at most.
  Status KeepText(const LogRecord& record, const FxDocument& document) {
    const auto [text, is_new] = texts_.try_emplace(record.payload, ArtifactId::kNone);
    if (!is_new) return Ok();
    const bool is_whole = document.num_diagnostics == 0;
    if (is_whole && PrintFx(document.graph()) == Payload(record)) return Ok();
    STRATA_TRY(text->second,
               AddArtifact(record.name, "graph", Payload(record), Attributes(record)));
    return Ok();
  }

  /// Which record holds which snapshot.
  Status AddMoments() {
    std::map<size_t, std::string> lines;  // by record
    for (size_t g = 0; g < run_.graphs.size(); ++g) {
      const std::vector<LogMoment>& moments = run_.graphs[g].moments;
      for (size_t m = 0; m < moments.size(); ++m) {
        const LogRecord& record = run_.records[moments[m].record];
        std::string& line = lines[moments[m].record];
        JsonWriter json(line);
        json.BeginObject();
        AddFields(record, json);
        json.Field("snapshot", static_cast<int64_t>(snapshots_[g][m]));
        json.Field("text", static_cast<int64_t>(texts_[record.payload]));
        json.EndObject();
        line += '\n';
      }
    }
    if (lines.empty()) return Ok();
    std::string all;
    for (const auto& [record, line] : lines)
      all += line;
    return Add("graphs", "moments", all);
  }

  const std::string& Payload(const LogRecord& record) const {
    return log_.payloads[static_cast<size_t>(record.payload)].text;
  }

  Result<ArtifactId> AddArtifact(std::string_view name, std::string_view kind,
                                 std::string_view bytes, std::string_view attributes = {}) {
    STRATA_TRY(const ArtifactId id, trace_.AddArtifact(id_, name, kind, bytes, attributes));
    ++summary_.artifacts;
    return id;
  }
  Status Add(std::string_view name, std::string_view kind, std::string_view bytes,
             std::string_view attributes = {}) {
    STRATA_TRY([[maybe_unused]] const ArtifactId id, AddArtifact(name, kind, bytes, attributes));
    return Ok();
  }

  Status AddArtifacts() {
    struct Crowd {
      std::string text;
      std::vector<size_t> lines;
    };
    std::map<std::string, Crowd> crowds;
    for (const LogRecord& record : run_.records) {
      ++summary_.records;
      if (ComesInCrowds(record)) {
        Crowd& crowd = crowds[record.kind];
        AppendLines(log_, record, crowd.text);
        crowd.lines.push_back(record.line);
        continue;
      }
      if (record.has_graph) continue;
      STRATA_RETURN_IF_ERROR(Add(record.name, "record", Payload(record), Attributes(record)));
    }
    for (const auto& [kind, crowd] : crowds) {
      STRATA_RETURN_IF_ERROR(Add(kind, "records", crowd.text,
                                 fmt::format("{{\"lines\":[{}]}}", fmt::join(crowd.lines, ","))));
    }
    if (log_.strings.empty()) return Ok();
    std::string strings;
    JsonWriter json(strings);
    json.BeginObject();
    for (const auto& [number, text] : log_.strings)
      json.Field(std::to_string(number), text);
    json.EndObject();
    return Add("str", "strings", strings);
  }

  const LogContent& log_;
  const LogRun& run_;
  const ImportOptions& options_;
  TraceWriter& trace_;
  ImportSummary& summary_;
  RunId id_ = RunId::kNone;
  std::vector<std::vector<SnapshotId>> snapshots_;            // by graph and moment
  std::map<int32_t, ArtifactId> texts_;                       // by payload; none: printing gives it
  std::vector<std::shared_ptr<const FxDocument>> documents_;  // by graph: its last moment
};

}  // namespace

Status ImportLog(const LogContent& log, const ImportOptions& options, TraceWriter& trace,
                 ImportSummary& summary) {
  for (const LogDiagnostic& diagnostic : log.diagnostics)
    Warn(summary, fmt::format("{}:{}: {}", log.path, diagnostic.line, diagnostic.what));
  summary.num_warnings += static_cast<int64_t>(log.num_diagnostics - log.diagnostics.size());
  for (const LogRun& run : log.runs)
    STRATA_RETURN_IF_ERROR(RunImporter(log, run, options, trace, summary).Import());
  return Ok();
}

}  // namespace strata
