#include "tlparse-export/torch_trace/import/import.h"

#include <algorithm>
#include <list>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "tlparse-export/torch_trace/import/count_by_diff.h"
#include "tlparse-export/torch_trace/read/header.h"
#include "tlparse-export/torch_trace/read/input_paths.h"
#include "tlparse-export/torch_trace/read/log_graphs.h"

namespace strata {
namespace {

constexpr int64_t kMaxWarnings = 100;
constexpr size_t kMomentsBytes = size_t{1} << 20;

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

/// Graphs of texts, read. Keeps those that were used last: a pass begins with what the one before
/// it left.
class GraphCache {
 public:
  const Graph* Find(int32_t text) {
    const auto found = std::ranges::find(entries_, text, &Entry::text);
    if (found == entries_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found);
    return &entries_.front().module->graph(GraphId{0});
  }

  const Graph& Add(int32_t text, std::unique_ptr<Module> module) {
    size_t nodes = 0;
    for (size_t i = 0; i < module->num_graphs(); ++i)
      nodes += static_cast<size_t>(module->graph(GraphId{static_cast<int32_t>(i)}).num_nodes());
    nodes_ += nodes;
    entries_.push_front({text, nodes, std::move(module)});
    while (entries_.size() > kAlways && (nodes_ > kMaxNodes || entries_.size() > kMaxGraphs)) {
      nodes_ -= entries_.back().nodes;
      entries_.pop_back();
    }
    return entries_.front().module->graph(GraphId{0});
  }

 private:
  static constexpr size_t kAlways = 2;  // before and after
  static constexpr size_t kMaxNodes = 100'000, kMaxGraphs = 24;
  struct Entry {
    int32_t text;
    size_t nodes;
    std::unique_ptr<Module> module;
  };
  std::list<Entry> entries_;  // used last first
  size_t nodes_ = 0;
};

}  // namespace

class LogImporter::Impl {
 public:
  Impl(const ImportOptions& options, TraceWriter& trace, ImportSummary& summary)
      : options_(options), trace_(trace), summary_(summary) {}

  size_t AddLog(std::string path) {
    logs_.push_back({.path = std::move(path)});
    return logs_.size() - 1;
  }

  Status Take(size_t number, LogBatch batch, const std::function<Status(double)>& on_item) {
    Log& log = logs_[number];
    for (std::string& warning : batch.warnings) {
      if (static_cast<int64_t>(summary_.warnings.size()) == kMaxWarnings) break;
      summary_.warnings.push_back(std::move(warning));
    }
    summary_.num_warnings += batch.num_warnings;
    summary_.records += batch.num_records;
    log.strings.merge(batch.strings);
    for (auto& [id, text] : batch.strings)  // a later definition holds
      log.strings[id] = std::move(text);
    STRATA_RETURN_IF_ERROR(UpdateRuns(log, batch.runs));
    double taken = 0;
    for (LogItem& item : batch.items) {
      STRATA_RETURN_IF_ERROR(TakeItem(log.runs[item.run], item));
      if (on_item)
        STRATA_RETURN_IF_ERROR(on_item(++taken / static_cast<double>(batch.items.size())));
    }
    return Ok();
  }

  Status FinishLog(size_t number) {
    Log& log = logs_[number];
    for (Run& run : log.runs) {
      for (const GraphTracker::Orphan& orphan : run.tracker.TakeOrphans()) {
        const Moment moment = run.graphs[orphan.graph][orphan.snapshot];
        run.graphs.emplace_back();
        STRATA_TRY(
            [[maybe_unused]] const SnapshotId snapshot,
            trace_.AddSnapshotOf(run.id, run.tracker.name(orphan.new_graph), moment.snapshot));
        ++summary_.snapshots;
      }
      summary_.graphs += static_cast<int64_t>(run.graphs.size());
      run.graphs = {};
      STRATA_RETURN_IF_ERROR(FlushMoments(run));
    }
    if (log.strings.empty() || log.runs.empty()) return Ok();
    std::string strings;
    JsonWriter json(strings);
    json.BeginObject();
    for (const auto& [id, text] : log.strings)
      json.Field(std::to_string(id), text);
    json.EndObject();
    for (const Run& run : log.runs)
      STRATA_RETURN_IF_ERROR(AddArtifact(run, "str", "strings", strings));
    log.strings.clear();
    return Ok();
  }

  Status Flush() {
    for (Log& log : logs_) {
      for (Run& run : log.runs)
        STRATA_RETURN_IF_ERROR(FlushMoments(run));
    }
    return Ok();
  }

  Status Finish() {
    for (Log& log : logs_) {
      for (Run& run : log.runs) {
        // The number of ranks is known when all were seen.
        if (run.info.world != world_) {
          run.info.world = world_;
          STRATA_RETURN_IF_ERROR(trace_.UpdateRun(run.id, run.info));
        }
        STRATA_RETURN_IF_ERROR(trace_.EndRun(run.id, RunStatus::kFinished));
        ++summary_.runs;
      }
    }
    return Ok();
  }

 private:
  /// A graph of a run as one record shows it.
  struct Moment {
    SnapshotId snapshot = SnapshotId::kNone;
    int32_t text = -1;
    int64_t time_ns = -1;
  };
  struct Run {
    RunId id = RunId::kNone;
    RunInfo info;
    GraphTracker tracker;
    InputPaths input_paths;
    std::vector<std::vector<Moment>> graphs;
    std::string moments;  // lines that are not stored yet
    int32_t passes = 0;
    int64_t start_ns = -1;
  };
  struct Log {
    std::string path;
    std::vector<Run> runs = {};
    std::map<int64_t, std::string> strings = {};
  };

  Status UpdateRuns(Log& log, const std::vector<LogBatch::Run>& runs) {
    for (size_t i = 0; i < runs.size(); ++i) {
      world_ = std::max(world_, runs[i].rank + 1);
      if (i < log.runs.size()) {
        RunInfo& info = log.runs[i].info;
        if (info.rank == runs[i].rank) continue;
        info.rank = runs[i].rank;
        info.world = world_;
        STRATA_RETURN_IF_ERROR(trace_.UpdateRun(log.runs[i].id, info));
        continue;
      }
      Run& run = log.runs.emplace_back();
      run.info.kind = RunKind::kImport;
      run.info.rank = runs[i].rank;
      run.info.world = world_;
      run.info.source = log.path;
      run.info.command = options_.command;
      run.start_ns = TimeOf(runs[i].start);
      STRATA_TRY(run.id, trace_.BeginRun(run.info));
    }
    return Ok();
  }

  Status TakeItem(Run& run, LogItem& item) {
    switch (item.kind) {
      case LogItem::Kind::kGraph:
        return TakeGraph(run, item);
      case LogItem::Kind::kRecord:
        return AddArtifact(run, item.record.name, "record", item.text, Attributes(item.record));
      case LogItem::Kind::kCrowd:
        return AddArtifact(run, item.record.kind, "records", item.text,
                           fmt::format("{{\"lines\":[{}]}}", fmt::join(item.lines, ",")));
    }
    return Ok();
  }

  Status TakeGraph(Run& run, LogItem& item) {
    STRATA_TRY(const int32_t text, TextOf(item));
    const GraphStep step =
        run.tracker.Add(item.record.name, item.record.compile, text, item.record.takes_tangents);
    if (step.graph == run.graphs.size()) run.graphs.emplace_back();
    std::vector<Moment>& moments = run.graphs[step.graph];
    if (step.continued) {
      const auto [graph, snapshot] = *step.continued;
      Moment first = run.graphs[graph][snapshot];
      STRATA_TRY(first.snapshot,
                 trace_.AddSnapshotOf(run.id, run.tracker.name(step.graph), first.snapshot));
      ++summary_.snapshots;
      moments.push_back(first);
    }
    Moment moment;
    moment.text = text;
    moment.time_ns = TimeOf(item.record.prefix);
    if (step.is_same) {
      moment.snapshot = moments.back().snapshot;
    } else {
      STRATA_TRY(moment.snapshot, AddSnapshot(run, run.tracker.name(step.graph), text, item));
    }
    moments.push_back(moment);
    STRATA_RETURN_IF_ERROR(AddMoment(run, item, moment.snapshot));
    for (const GraphStep::Pass& pass : step.ended) {
      const std::string& graph = run.tracker.name(step.graph);
      STRATA_RETURN_IF_ERROR(AddPass(run, graph, pass, moments[pass.before], moments[pass.after]));
    }
    return Ok();
  }

  /// The number of the text; a new one is kept as it stands if printing does not give it again.
  Result<int32_t> TextOf(LogItem& item) {
    const auto next = static_cast<int32_t>(texts_.size());
    const auto [text, is_new] = text_index_.Emplace(item.plain_hash, next);
    if (is_new) {
      STRATA_CHECK(item.parsed != nullptr);
      texts_.push_back({item.plain_hash, std::move(item.parsed)});
    }
    return *text;
  }

  Result<SnapshotId> AddSnapshot(Run& run, const std::string& name, int32_t number,
                                 const LogItem& item) {
    Text& text = texts_[static_cast<size_t>(number)];
    ++summary_.snapshots;
    const std::string attributes = Attributes(item.record);
    if (text.snapshot != SnapshotId::kNone) {
      return trace_.AddSnapshotOf(run.id, name, text.snapshot, attributes);
    }
    std::unique_ptr<Module> module = std::move(text.parsed->document.module);
    text.parsed.reset();
    // It was read before the ids of the trace were known.
    module->ShiftStableIds(trace_.next_stable_id() - 1);
    module->RenameGraph(GraphId{0}, name);
    run.input_paths.Learn(item.record.compile, module->graph(GraphId{0}));
    run.input_paths.Apply(item.record.compile, *module);
    ApplyHints(item.hints, *module);
    const Graph& graph = cache_.Add(number, std::move(module));
    STRATA_TRY(text.snapshot, trace_.AddSnapshot(run.id, name, graph, attributes));
    return text.snapshot;
  }

  Status AddMoment(Run& run, const LogItem& item, SnapshotId snapshot) {
    const auto [odd, is_new] =
        odd_index_.Emplace(item.hash, static_cast<uint32_t>(odd_texts_.size()));
    if (is_new) {
      odd_texts_.push_back(ArtifactId::kNone);
      if (!item.text.empty()) {
        STRATA_TRY(odd_texts_.back(), trace_.AddArtifact(run.id, item.record.name, "graph",
                                                         item.text, Attributes(item.record)));
        ++summary_.artifacts;
      }
    }
    JsonWriter json(run.moments);
    json.BeginObject();
    AddFields(item.record, json);
    json.Field("snapshot", static_cast<int64_t>(snapshot));
    json.Field("text", static_cast<int64_t>(odd_texts_[*odd]));
    json.EndObject();
    run.moments += '\n';
    return run.moments.size() < kMomentsBytes ? Ok() : FlushMoments(run);
  }

  Status FlushMoments(Run& run) {
    if (run.moments.empty()) return Ok();
    return AddArtifact(run, "graphs", "moments", std::exchange(run.moments, {}));
  }

  Status AddPass(Run& run, const std::string& graph, const GraphStep::Pass& pass,
                 const Moment& before, const Moment& after) {
    PassRecord record;
    record.index = run.passes++;
    record.name = pass.name;
    record.graph = graph;
    record.before = before.snapshot;
    record.after = pass.is_unchanged ? before.snapshot : after.snapshot;
    record.outcome = pass.is_unchanged ? PassOutcome::kUnchanged : PassOutcome::kOk;
    STRATA_TRY(record.counts, Count(before.text, after.text));
    // A log has no year: at New Year's Eve time goes backwards.
    const bool has_times = before.time_ns >= 0 && after.time_ns >= before.time_ns;
    if (has_times) record.wall_ns = after.time_ns - before.time_ns;
    EventRecord event{.kind = "pass",
                      .name = record.name,
                      .start_ns = before.time_ns - run.start_ns,
                      .duration_ns = record.wall_ns,
                      .node = StableId::kNone,
                      .attributes = fmt::format("{{\"index\": {}}}", record.index)};
    STRATA_TRY([[maybe_unused]] const StoredPass stored, trace_.RecordPass(run.id, record));
    ++summary_.passes;
    summary_.unchanged_passes += pass.is_unchanged ? 1 : 0;
    if (!has_times || run.start_ns < 0 || event.start_ns < 0) return Ok();
    return trace_.AddEvents(run.id, {&event, 1});
  }

  Result<ChangeCounts> Count(int32_t before, int32_t after) {
    ChangeCounts& counts = counts_[{before, after}];
    if (before == after || counts != ChangeCounts{}) return counts;
    STRATA_TRY([[maybe_unused]] const Graph* first, GraphOf(before));
    STRATA_TRY(const Graph* b, GraphOf(after));
    STRATA_TRY(const Graph* a, GraphOf(before));
    STRATA_TRY(counts, CountByDiff(*a, *b));
    return counts;
  }

  /// Valid until the next call but one.
  Result<const Graph*> GraphOf(int32_t text) {
    if (const Graph* known = cache_.Find(text)) return known;
    const SnapshotId snapshot = texts_[static_cast<size_t>(text)].snapshot;
    STRATA_TRY(std::unique_ptr<Module> module, trace_.LoadSnapshot(snapshot));
    return &cache_.Add(text, std::move(module));
  }

  Status AddArtifact(const Run& run, std::string_view name, std::string_view kind,
                     std::string_view bytes, std::string_view attributes = {}) {
    STRATA_TRY([[maybe_unused]] const ArtifactId id,
               trace_.AddArtifact(run.id, name, kind, bytes, attributes));
    ++summary_.artifacts;
    return Ok();
  }

  /// A text without its graph id.
  struct Text {
    Hash128 hash;
    std::shared_ptr<ParsedText> parsed;  // until it is stored
    SnapshotId snapshot = SnapshotId::kNone;
  };

  const ImportOptions& options_;
  TraceWriter& trace_;
  ImportSummary& summary_;
  std::vector<Log> logs_;
  int32_t world_ = 1;
  FlatMap<Hash128, int32_t> text_index_;
  ContentIndex odd_index_;
  std::vector<Text> texts_;
  std::vector<ArtifactId> odd_texts_;  // by text with its graph id; none: printing gives it
  GraphCache cache_;
  std::map<std::pair<int32_t, int32_t>, ChangeCounts> counts_;
};

LogImporter::LogImporter(const ImportOptions& options, TraceWriter& trace, ImportSummary& summary)
    : impl_(std::make_unique<Impl>(options, trace, summary)) {}
LogImporter::~LogImporter() = default;

size_t LogImporter::AddLog(std::string path) {
  return impl_->AddLog(std::move(path));
}
Status LogImporter::Take(size_t log, LogBatch batch, const std::function<Status(double)>& on_item) {
  return impl_->Take(log, std::move(batch), on_item);
}
Status LogImporter::FinishLog(size_t log) {
  return impl_->FinishLog(log);
}
Status LogImporter::Flush() {
  return impl_->Flush();
}
Status LogImporter::Finish() {
  return impl_->Finish();
}

}  // namespace strata
