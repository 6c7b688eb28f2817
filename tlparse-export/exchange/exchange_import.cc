#include "tlparse-export/exchange/exchange_import.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "diff/diff.h"
#include "tlparse-export/exchange/exchange_graph.h"
#include "tlparse-export/torch_trace/import/count_by_diff.h"

namespace strata {
namespace {

constexpr size_t kMaxWarnings = 100;

Origin OriginOf(std::string_view how) {
  if (how == "clone") return Origin::kCloned;
  return how == "replace" ? Origin::kReplaced : Origin::kCreated;
}

}  // namespace

/// One file: a run of the trace.
class ExchangeImporter::File {
 public:
  File(std::string path, const ImportOptions& options, TraceWriter& trace, ImportSummary& summary,
       uint64_t& next_id)
      : path_(std::move(path)),
        options_(options),
        trace_(trace),
        summary_(summary),
        ids_(next_id) {}

  Status Feed(std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      if (end == std::string_view::npos) {
        cut_ += bytes;
        break;
      }
      std::string whole;
      std::string_view line = bytes.substr(0, end);
      if (!cut_.empty()) {
        whole = std::exchange(cut_, {}).append(line);
        line = whole;
      }
      bytes.remove_prefix(end + 1);
      ++line_;
      STRATA_RETURN_IF_ERROR(TakeLine(line));
    }
    return Ok();
  }

  Status Finish(int32_t world) {
    if (run_ == RunId::kNone) return Ok();
    // The process ended inside these.
    const bool was_killed = !passes_.empty() || !has_tail_;
    while (!passes_.empty()) {
      ExchangeRecord end;
      end.kind = ExchangeKind::kEnd;
      end.id = passes_.begin()->first;
      end.when = "failed";
      end.error = "the process ended during this pass";
      STRATA_RETURN_IF_ERROR(EndPass(std::move(end)));
    }
    if (info_.world < world) {
      info_.world = world;
      STRATA_RETURN_IF_ERROR(trace_.UpdateRun(run_, info_));
    }
    ++summary_.runs;
    return trace_.EndRun(run_, was_killed ? RunStatus::kFailed : RunStatus::kFinished);
  }

  int32_t rank() const { return info_.rank; }

 private:
  struct GraphState {
    explicit GraphState(std::string name) : graph(std::move(name)) {}
    ExchangeGraph graph;
    SnapshotId last = SnapshotId::kNone;
    std::unique_ptr<Module> last_module;  // null: there was no snapshot
  };
  struct Pass {
    ExchangeRecord begin;
    std::vector<Provenance> births;
    std::vector<int64_t> changed;  // graphs with a snapshot after it
  };

  void Warn(std::string_view what) {
    ++summary_.num_warnings;
    if (summary_.warnings.size() < kMaxWarnings) {
      summary_.warnings.push_back(fmt::format("{}:{}: {}", path_, line_, what));
    }
  }

  Status TakeLine(std::string_view line) {
    if (line.empty()) return Ok();
    Result<ExchangeRecord> record = ReadExchangeRecord(line);
    if (!record) return Refuse(record.error().message());
    if (record->kind != ExchangeKind::kHead && run_ == RunId::kNone) {
      return Refuse("a record before the head");
    }
    ++summary_.records;
    return Take(*std::move(record));
  }

  /// What cannot be read is left out, unless the import is strict.
  Status Refuse(std::string_view what) {
    if (options_.strict) return Error("cannot read: {}:{}: {}", path_, line_, what);
    Warn(what);
    return Ok();
  }

  Status Take(ExchangeRecord record) {
    switch (record.kind) {
      case ExchangeKind::kHead:
        return BeginRun(record);
      case ExchangeKind::kText:
        texts_.insert_or_assign(record.id, std::move(record.name));
        return Ok();
      case ExchangeKind::kGraph:
        return AddGraph(record);
      case ExchangeKind::kBegin:
        passes_.insert_or_assign(record.id, Pass{std::move(record), {}, {}});
        return Ok();
      case ExchangeKind::kSnap:
        return TakeSnap(std::move(record));
      case ExchangeKind::kEdge:
        return TakeEdge(record);
      case ExchangeKind::kEnd:
        return EndPass(std::move(record));
      case ExchangeKind::kArtifact:
        return AddArtifact(record);
      case ExchangeKind::kDrop:
        Warn(fmt::format("the recorder left out {} ({} times)", record.name, record.count));
        return Ok();
      case ExchangeKind::kTail:
        has_tail_ = true;
        return Ok();
      case ExchangeKind::kOther:
        return Ok();
    }
    return Ok();
  }

  Status BeginRun(const ExchangeRecord& head) {
    if (run_ != RunId::kNone) return Refuse("a second head");
    info_.kind = RunKind::kOpt;
    info_.rank = static_cast<int32_t>(head.rank);
    info_.world = std::max(info_.rank + 1, static_cast<int32_t>(head.world));
    info_.source = head.source.empty() ? path_ : head.source;
    info_.command = head.command.empty() ? options_.command : head.command;
    STRATA_TRY(run_, trace_.BeginRun(info_));
    return Ok();
  }

  Status AddGraph(const ExchangeRecord& record) {
    std::string name = record.name.empty() ? "graph" : record.name;
    const auto is_taken = [&](const std::string& candidate) {
      return std::ranges::any_of(
          graphs_, [&](const auto& graph) { return graph.second.graph.name() == candidate; });
    };
    for (int suffix = 1; is_taken(name); ++suffix)
      name = fmt::format("{}_{}", record.name, suffix);
    const auto parent = graphs_.find(record.from);
    const auto [place, is_new] = graphs_.try_emplace(record.id, name);
    if (!is_new) return Refuse("a graph twice");
    ++summary_.graphs;
    if (parent == graphs_.end() || parent->second.last == SnapshotId::kNone) return Ok();
    GraphState& state = place->second;
    state.graph.StartFrom(parent->second.graph);
    STRATA_TRY(state.last, trace_.AddSnapshotOf(run_, name, parent->second.last));
    ++summary_.snapshots;
    return Ok();
  }

  Status AddArtifact(const ExchangeRecord& record) {
    if (record.name.empty()) return Refuse("an artifact without a name");
    STRATA_TRY([[maybe_unused]] const ArtifactId id,
               trace_.AddArtifact(run_, record.name, "python", record.content));
    return Ok();
  }

  Status TakeSnap(ExchangeRecord record) {
    const auto found = graphs_.find(record.id);
    if (found == graphs_.end()) return Refuse("a snapshot of an unknown graph");
    GraphState& state = found->second;
    const int64_t graph = record.id, pass = record.pass;
    const bool is_before = record.when == "before";
    state.graph.Apply(std::move(record));
    const auto running = passes_.find(pass);
    if (!is_before && running != passes_.end()) {
      std::vector<int64_t>& changed = running->second.changed;
      if (std::ranges::find(changed, graph) == changed.end()) changed.push_back(graph);
      return Ok();  // stored with its pass
    }
    STRATA_TRY(std::unique_ptr<Module> module, BuildGraph(state));
    if (module == nullptr) return Ok();
    STRATA_TRY(state.last, trace_.AddSnapshot(run_, state.graph.name(), module->graph(GraphId{0})));
    state.last_module = std::move(module);
    ++summary_.snapshots;
    return Ok();
  }

  /// Null when the graph cannot be read, which is a warning.
  Result<std::unique_ptr<Module>> BuildGraph(const GraphState& state) {
    Result<ExchangeGraph::Built> built = state.graph.Build(texts_, ids_);
    if (!built) {
      STRATA_RETURN_IF_ERROR(Refuse(built.error().message()));
      return std::unique_ptr<Module>();
    }
    for (const std::string& warning : built->warnings)
      STRATA_RETURN_IF_ERROR(Refuse(fmt::format("graph '{}': {}", state.graph.name(), warning)));
    return std::move(built->module);
  }

  Status TakeEdge(const ExchangeRecord& record) {
    const auto running = passes_.find(record.id);
    if (running == passes_.end()) return Refuse("an edge outside of a pass");
    Provenance birth;
    birth.origin = record.old_ids.empty() ? Origin::kTraced : OriginOf(record.when);
    if (birth.origin == Origin::kCloned && record.old_ids.size() != 1) {
      birth.origin = Origin::kCreated;
    }
    for (const int64_t id : record.old_ids)
      birth.from.push_back(ids_.Of(id));
    for (const int64_t id : record.new_ids) {
      birth.node = ids_.Of(id);
      running->second.births.push_back(birth);
    }
    return Ok();
  }

  Status EndPass(ExchangeRecord end) {
    const auto running = passes_.find(end.id);
    if (running == passes_.end()) return Refuse("the end of an unknown pass");
    Pass pass = std::move(running->second);
    passes_.erase(running);
    PassRecord record;
    record.index = num_passes_++;
    record.name = pass.begin.name.empty() ? "pass" : pass.begin.name;
    record.options = pass.begin.options;
    record.wall_ns = end.ns;
    record.error = end.error;
    record.births = pass.births;
    const bool failed = end.when == "failed";
    bool is_recorded = false;
    for (const int64_t graph : pass.changed) {
      STRATA_TRY(const bool stored, StorePass(record, graphs_.at(graph), pass.births, failed));
      is_recorded |= stored;
      // Provenance belongs to the pass: its first record holds it.
      if (stored) record.births.clear();
    }
    if (!is_recorded) STRATA_RETURN_IF_ERROR(StoreUnchanged(record, pass.begin.graph, failed));
    ++summary_.passes;
    return AddEvent(record, pass.begin, end);
  }

  /// True when the graph changed, and its snapshot and the pass were stored.
  Result<bool> StorePass(PassRecord record, GraphState& state,
                         std::span<const Provenance> provenance, bool failed) {
    STRATA_TRY(std::unique_ptr<Module> module, BuildGraph(state));
    if (module == nullptr) return false;
    const Graph& graph = module->graph(GraphId{0});
    if (state.last != SnapshotId::kNone &&
        trace_.snapshot(state.last).everything ==
            FingerprintOf(graph, FingerprintScope::kEverything)) {
      return false;
    }
    record.graph = state.graph.name();
    record.before = record.after = state.last;
    record.outcome = failed ? PassOutcome::kFailed : PassOutcome::kOk;
    STRATA_TRY(record.counts, CountByStructure(state, graph, provenance));
    STRATA_TRY(const StoredPass stored, trace_.RecordPass(run_, std::move(record), &graph));
    state.last = stored.record.after;
    state.last_module = std::move(module);
    ++summary_.snapshots;
    return true;
  }

  /// Of a pass that traced the program again, whose ids count nothing; otherwise none.
  static Result<std::optional<ChangeCounts>> CountByStructure(
      const GraphState& state, const Graph& after, std::span<const Provenance> provenance) {
    if (state.last_module == nullptr) return std::optional<ChangeCounts>();
    const Graph& before = state.last_module->graph(GraphId{0});
    if (IdsRelate(before, after, provenance)) return std::optional<ChangeCounts>();
    STRATA_TRY(const ChangeCounts counts, CountByDiff(before, after));
    return std::optional(counts);
  }

  Status StoreUnchanged(PassRecord record, int64_t graph, bool failed) {
    const auto found = graphs_.find(graph);
    // A pass over no graph has nothing to show: it is an event.
    if (found == graphs_.end() || found->second.last == SnapshotId::kNone) return Ok();
    record.graph = found->second.graph.name();
    record.before = record.after = found->second.last;
    record.outcome = failed ? PassOutcome::kFailed : PassOutcome::kUnchanged;
    record.births.clear();
    STRATA_TRY([[maybe_unused]] const StoredPass stored,
               trace_.RecordPass(run_, std::move(record)));
    ++summary_.unchanged_passes;
    return Ok();
  }

  /// Where the pass stands in the user's source, and what ran inside.
  Status AddEvent(const PassRecord& record, const ExchangeRecord& begin,
                  const ExchangeRecord& end) {
    EventRecord event;
    event.kind = "pass";
    event.name = record.name;
    event.start_ns = begin.ns;
    event.duration_ns = end.ns;
    JsonWriter json(event.attributes);
    json.BeginObject().Field("index", record.index);
    if (!begin.file.empty()) json.Field("file", begin.file).Field("line", begin.line);
    if (end.when != "ok" && !end.when.empty()) json.Field("status", end.when);
    if (!end.inner.empty()) {
      json.Key("inner").BeginArray();
      for (const std::string& name : end.inner)
        json.String(name);
      json.EndArray();
    }
    json.EndObject();
    return trace_.AddEvents(run_, {&event, 1});
  }

  std::string path_;
  const ImportOptions& options_;
  TraceWriter& trace_;
  ImportSummary& summary_;
  ExchangeIds ids_;
  ExchangeTexts texts_;
  std::map<int64_t, GraphState> graphs_;
  std::map<int64_t, Pass> passes_;  // that run
  RunInfo info_;
  RunId run_ = RunId::kNone;
  std::string cut_;  // a line whose end has not come
  int64_t line_ = 0;
  int32_t num_passes_ = 0;
  bool has_tail_ = false;
};

ExchangeImporter::ExchangeImporter(const ImportOptions& options, TraceWriter& trace,
                                   ImportSummary& summary)
    : options_(options), trace_(trace), summary_(summary), next_id_(trace.next_stable_id()) {}
ExchangeImporter::~ExchangeImporter() = default;

size_t ExchangeImporter::AddFile(std::string path) {
  files_.push_back(std::make_unique<File>(std::move(path), options_, trace_, summary_, next_id_));
  return files_.size() - 1;
}

Status ExchangeImporter::Feed(size_t file, std::string_view bytes) {
  return files_[file]->Feed(bytes);
}

Status ExchangeImporter::Finish() {
  int32_t world = 1;
  for (const auto& file : files_)
    world = std::max(world, file->rank() + 1);
  for (const auto& file : files_)
    STRATA_RETURN_IF_ERROR(file->Finish(world));
  return Ok();
}

}  // namespace strata
