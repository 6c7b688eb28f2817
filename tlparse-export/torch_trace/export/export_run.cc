#include "tlparse-export/torch_trace/export/export_run.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "ir/graph.h"
#include "ir/module.h"
#include "tlparse-export/torch_trace/export/stored_records.h"

namespace strata {
namespace {

constexpr int64_t kNanosecondsPerMicrosecond = 1000;

class OwnRun {
 public:
  OwnRun(TraceReader& trace, const StoredRun& run, const ExportSelection& selection, LogWriter& log,
         ExportSummary& summary)
      : trace_(trace), run_(run), selection_(selection), log_(log), summary_(summary) {}

  Status Write() {
    // The string table holds the one file that stacks name.
    STRATA_RETURN_IF_ERROR(log_.AddString(0, run_.info.source));
    if (!selection_.graph) STRATA_RETURN_IF_ERROR(WriteDescription());
    for (size_t i = 0; i < run_.graphs.size(); ++i) {
      if (!IsSelected(run_.graphs[i].name)) continue;
      compile_ = fmt::format(", \"frame_id\": 0, \"frame_compile_id\": {}, \"attempt\": 0", i);
      STRATA_RETURN_IF_ERROR(WriteGraph(run_.graphs[i]));
    }
    compile_.clear();
    return selection_.graph ? Ok() : WriteRest();
  }

 private:
  bool IsSelected(const std::string& graph) const {
    return !selection_.graph || *selection_.graph == graph;
  }

  /// Times are those of the passes, from midnight on.
  std::string Prefix() const {
    const int64_t us = clock_ns_ / kNanosecondsPerMicrosecond;
    const int64_t seconds = us / 1'000'000;
    return fmt::format("V0101 {:02}:{:02}:{:02}.{:06} 1 strata/{}:1] ", seconds / 3600 % 24,
                       seconds / 60 % 60, seconds % 60, us % 1'000'000, ToString(run_.info.kind));
  }

  Status Event(std::string_view kind, std::string_view metadata,
               std::optional<std::string_view> payload = std::nullopt) {
    return log_.AddRecord(Prefix(), fmt::format("{{\"{}\": {}{}}}", kind, metadata, compile_),
                          payload);
  }

  /// `more`: further fields of the metadata, as `, "options": "…"`.
  Status Artifact(std::string_view name, std::string_view encoding, std::string_view payload,
                  std::string_view more = {}) {
    std::string metadata = "{\"name\": ";
    AppendJsonString(name, metadata);
    fmt::format_to(std::back_inserter(metadata), ", \"encoding\": \"{}\"{}}}", encoding, more);
    return Event("artifact", metadata, payload);
  }

  Status WriteDescription() {
    const RunInfo& info = run_.info;
    std::string text;
    JsonWriter json(text);
    json.BeginObject().Field("kind", ToString(info.kind)).Field("status", ToString(run_.status));
    json.Field("rank", info.rank).Field("world", info.world).Field("source", info.source);
    json.Field("command", info.command).Field("pipeline", info.pipeline).EndObject();
    STRATA_RETURN_IF_ERROR(Artifact("strata_run", "json", text));
    if (!info.config.empty()) {
      STRATA_RETURN_IF_ERROR(Artifact("strata_config", "string", info.config));
    }
    return Ok();
  }

  Status WriteGraph(const StoredGraph& graph) {
    ++summary_.graphs;
    std::string frame = "{\"stack\": [{\"line\": 1, \"name\": ";
    AppendJsonString(graph.name, frame);
    frame += ", \"filename\": 0}]}";
    STRATA_RETURN_IF_ERROR(Event("dynamo_start", frame));
    STRATA_RETURN_IF_ERROR(WriteText(graph.name, graph.snapshots.front()));
    const int64_t start_ns = clock_ns_;
    for (const StoredPass& pass : run_.passes) {
      if (pass.record.graph == graph.name) STRATA_RETURN_IF_ERROR(WritePass(pass.record));
    }
    STRATA_RETURN_IF_ERROR(WriteExecuted(graph));
    return WriteMetrics(graph, clock_ns_ - start_ns);
  }

  Status WriteText(const std::string& name, SnapshotId snapshot, std::string_view more = {}) {
    if (text_of_ != snapshot) {
      STRATA_TRY(text_, LoadFxText(trace_, snapshot));
      text_of_ = snapshot;
    }
    return Artifact(name, "string", text_, more);
  }

  Status WritePass(const PassRecord& pass) {
    ++summary_.passes;
    std::string more;
    if (!pass.options.empty()) {
      more = ", \"options\": ";
      AppendJsonString(pass.options, more);
    }
    if (pass.before != SnapshotId::kNone) {
      STRATA_RETURN_IF_ERROR(WriteText("before_" + pass.name, pass.before, more));
    }
    STRATA_RETURN_IF_ERROR(ChromeEvent("pass", pass.name, clock_ns_, pass.wall_ns));
    clock_ns_ += pass.wall_ns;
    if (pass.after != SnapshotId::kNone) {
      STRATA_RETURN_IF_ERROR(WriteText("after_" + pass.name, pass.after, more));
    }
    if (pass.outcome != PassOutcome::kFailed) return Ok();
    std::string text;
    JsonWriter json(text);
    json.BeginObject().Field("pass", pass.name).Field("error", pass.error);
    json.Field("reproduce", pass.reproduce).EndObject();
    return Artifact("failed_" + pass.name, "json", text);
  }

  /// The text that steps executed, for each one that there was.
  Status WriteExecuted(const StoredGraph& graph) {
    for (const ExecutedRange& range : run_.executed) {
      if (range.graph != graph.name) continue;
      const auto snapshot = std::ranges::find_if(
          graph.snapshots.rbegin(), graph.snapshots.rend(), [&](SnapshotId id) {
            const SnapshotInfo* info = trace_.FindSnapshot(id);
            return info != nullptr && info->fingerprint == range.fingerprint;
          });
      if (snapshot == graph.snapshots.rend()) continue;
      const std::string steps =
          fmt::format(", \"first_step\": {}, \"last_step\": {}", range.first_step, range.last_step);
      STRATA_RETURN_IF_ERROR(WriteText("executed_" + graph.name, *snapshot, steps));
    }
    return Ok();
  }

  /// What tlparse's index and its page of metrics show of a compilation.
  Status WriteMetrics(const StoredGraph& graph, int64_t duration_ns) {
    STRATA_TRY(const std::unique_ptr<Module> module, trace_.LoadSnapshot(graph.snapshots.back()));
    const Graph& last = module->graph(GraphId{0});
    int64_t inputs = 0, calls = 0;
    for (NodeId id : last.nodes()) {
      const NodeKind kind = last.node(id).kind;
      inputs += kind == NodeKind::kPlaceholder ? 1 : 0;
      calls +=
          kind == NodeKind::kCall || kind == NodeKind::kCallMethod || kind == NodeKind::kCallModule
              ? 1
              : 0;
    }
    std::string text;
    JsonWriter json(text);
    json.BeginObject().Field("co_name", graph.name).Field("co_filename", run_.info.source);
    json.Field("co_firstlineno", int64_t{1}).Field("graph_op_count", calls);
    json.Field("graph_node_count", trace_.FindSnapshot(graph.snapshots.back())->nodes);
    json.Field("graph_input_count", inputs);
    json.Field("entire_frame_compile_time_s", static_cast<double>(duration_ns) / 1e9);
    const auto failed = std::ranges::find_if(run_.passes, [&](const StoredPass& pass) {
      return pass.record.graph == graph.name && pass.record.outcome == PassOutcome::kFailed;
    });
    if (failed != run_.passes.end()) {
      json.Field("fail_type", "pass " + failed->record.name);
      json.Field("fail_reason", failed->record.error);
    }
    json.EndObject();
    return Event("compilation_metrics", text);
  }

  Status ChromeEvent(std::string_view category, std::string_view name, int64_t start_ns,
                     int64_t duration_ns, std::string_view args = {}) {
    std::string text;
    JsonWriter json(text);
    json.BeginObject().Field("name", name).Field("cat", category).Field("ph", "X");
    json.Field("ts", static_cast<double>(start_ns) / 1e3);
    json.Field("dur", static_cast<double>(duration_ns) / 1e3);
    json.Field("pid", run_.info.rank).Field("tid", int64_t{0}).EndObject();
    if (!args.empty()) text.insert(text.size() - 1, fmt::format(", \"args\": {}", args));
    return Event("chromium_event", "{}", text);
  }

  /// What belongs to no graph.
  Status WriteRest() {
    STRATA_TRY(const std::vector<StepRecord> steps, trace_.LoadSteps(run_.id));
    std::string lines;
    for (const StepRecord& step : steps) {
      JsonWriter json(lines);
      json.BeginObject().Field("step", step.step).Field("loss", step.loss);
      json.Field("grad_norm", step.grad_norm).EndObject();
      lines += '\n';
    }
    if (!lines.empty()) STRATA_RETURN_IF_ERROR(Artifact("strata_steps", "string", lines));
    STRATA_TRY(const std::vector<EventRecord> events, trace_.LoadEvents(run_.id));
    for (const EventRecord& event : events) {
      STRATA_RETURN_IF_ERROR(
          ChromeEvent(event.kind, event.name, event.start_ns, event.duration_ns, event.attributes));
    }
    for (const ArtifactInfo& artifact : run_.artifacts) {
      STRATA_TRY(const std::string bytes, trace_.LoadArtifact(artifact.id));
      std::string more = ", \"kind\": ";
      AppendJsonString(artifact.kind, more);
      STRATA_RETURN_IF_ERROR(Artifact(artifact.name, "string", bytes, more));
    }
    return Ok();
  }

  TraceReader& trace_;
  const StoredRun& run_;
  const ExportSelection& selection_;
  LogWriter& log_;
  ExportSummary& summary_;
  std::string compile_;  // the compile id of what is being written, as it stands in envelopes
  int64_t clock_ns_ = 0;
  SnapshotId text_of_ = SnapshotId::kNone;
  std::string text_;  // of the last snapshot: passes begin with what the one before left
};

}  // namespace

Status WriteOwnRun(TraceReader& trace, const StoredRun& run, const ExportSelection& selection,
                   LogWriter& log, ExportSummary& summary) {
  return OwnRun(trace, run, selection, log, summary).Write();
}

}  // namespace strata
