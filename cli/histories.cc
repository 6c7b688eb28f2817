#include "cli/histories.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/file.h"
#include "base/selector.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/import_files.h"
#include "diff/graph/hash.h"
#include "ir/fx/fx.h"
#include "store/trace_reader.h"
#include "tlparse-export/torch_trace/decompress.h"
#include "tlparse-export/torch_trace/log.h"
#include "tlparse-export/torch_trace/stored_records.h"

namespace strata::cli {
namespace {

/// Keeps the graphs that were loaded last; whoever compares moments in order loads each twice.
class RecentGraphs {
 public:
  /// `key`: equal for equal graphs.
  template <class Load>
  Result<LoadedGraph> Get(const std::string& key, Load&& load) {
    for (const auto& [known, graph] : graphs_) {
      if (known == key) return graph;
    }
    STRATA_TRY(LoadedGraph graph, load());
    constexpr size_t kKept = 4;
    if (graphs_.size() >= kKept) graphs_.erase(graphs_.begin());
    graphs_.emplace_back(key, graph);
    return graph;
  }

 private:
  std::vector<std::pair<std::string, LoadedGraph>> graphs_;
};

/// Gives steps their REFs. A graph without a pass is the last one of its name, so that an earlier
/// moment goes by an equal one that a pass names.
void SetRefs(History& history) {
  for (HistorySnapshot& moment : history.snapshots) {
    if (moment.ref.find(",pass=") != std::string::npos) continue;
    const auto equal = std::ranges::find_if(history.snapshots, [&](const HistorySnapshot& other) {
      return other.graph == moment.graph && other.content == moment.content &&
             other.ref.find(",pass=") != std::string::npos;
    });
    if (equal != history.snapshots.end()) moment.ref = equal->ref;
  }
  for (HistoryStep& step : history.steps) {
    step.ref = history.snapshot(step.after).ref;
    if (step.pass_index < 0) continue;
    step.ref = fmt::format("{},graph={},pass={}", history.ref, SelectorValue(history.GraphOf(step)),
                           step.pass_index);
  }
}

/// The records that the graphs of an imported run came with; none when it was not a log.
Result<std::vector<GraphRecord>> RecordsOf(TraceReader& trace, const StoredRun& run) {
  STRATA_TRY(const std::vector<StoredRecord> stored, ReadGraphRecords(trace, run));
  if (stored.empty()) return std::vector<GraphRecord>();
  std::map<SnapshotId, const StoredRecord*> first;
  for (const StoredRecord& record : stored)
    first.try_emplace(record.snapshot, &record);
  std::vector<GraphRecord> records;
  for (const StoredGraph& graph : run.graphs) {
    const auto found = first.find(graph.snapshots[0]);
    records.push_back(found == first.end()
                          ? GraphRecord{}
                          : GraphRecord{found->second->compile, found->second->name});
  }
  return records;
}

Result<History> OfRun(const std::shared_ptr<TraceReader>& trace, const StoredRun& run,
                      const std::string& file) {
  History history;
  history.ref = fmt::format("{}#run={}", file, static_cast<int64_t>(run.id));
  history.rank = run.info.rank;
  history.stable_ids = run.info.kind != RunKind::kImport;
  STRATA_TRY(history.records, RecordsOf(*trace, run));
  std::map<SnapshotId, int32_t> moments;
  std::vector<SnapshotId> snapshots;
  for (const StoredGraph& graph : run.graphs) {
    history.graphs.push_back(graph.name);
    for (SnapshotId id : graph.snapshots) {
      moments.emplace(id, 0);
      snapshots.push_back(id);
    }
  }
  std::ranges::sort(snapshots);
  std::set<SnapshotId> made_by_pass;
  for (const StoredPass& pass : run.passes) {
    if (pass.record.after != pass.record.before) made_by_pass.insert(pass.record.after);
  }
  const auto graph_index = [&](std::string_view name) {
    const auto found = std::ranges::find(run.graphs, name, &StoredGraph::name);
    return static_cast<int32_t>(found - run.graphs.begin());
  };
  for (size_t i = 0; i < snapshots.size(); ++i) {
    const SnapshotInfo& info = *trace->FindSnapshot(snapshots[i]);
    moments[info.id] = static_cast<int32_t>(i);
    // A selector names the first graph of its name, the last one, or one that a pass left.
    std::string ref = fmt::format("{},graph={}", history.ref, SelectorValue(info.graph));
    for (const StoredPass& pass : run.passes) {
      const bool is_before = pass.record.before == info.id;
      if (!is_before && pass.record.after != info.id) continue;
      ref += fmt::format(",pass={}:{}", pass.record.index, is_before ? "before" : "after");
      break;
    }
    history.snapshots.push_back(
        {graph_index(info.graph), std::move(ref), ToString(info.everything)});
  }
  std::vector<int32_t> last(run.graphs.size(), -1);
  const auto arrive = [&](int32_t moment) {
    const int32_t graph = history.snapshots[static_cast<size_t>(moment)].graph;
    HistoryStep step;
    step.graph = graph;
    step.before = std::exchange(last[static_cast<size_t>(graph)], moment);
    step.after = moment;
    const bool same = step.before >= 0 &&
                      history.snapshot(step.before).content == history.snapshot(moment).content;
    if (!same) history.steps.push_back(std::move(step));
  };
  size_t next = 0;
  const auto arrive_until = [&](SnapshotId end) {
    for (; next < snapshots.size() && snapshots[next] < end; ++next) {
      if (!made_by_pass.contains(snapshots[next])) arrive(static_cast<int32_t>(next));
    }
  };
  for (const StoredPass& stored : run.passes) {
    const PassRecord& pass = stored.record;
    if (pass.after == SnapshotId::kNone && pass.before == SnapshotId::kNone) continue;
    const SnapshotId after = pass.after == SnapshotId::kNone ? pass.before : pass.after;
    arrive_until(static_cast<SnapshotId>(static_cast<int64_t>(std::max(pass.before, after)) +
                                         (after == pass.before ? 1 : 0)));
    HistoryStep step;
    step.graph = graph_index(pass.graph);
    step.before = pass.before == SnapshotId::kNone ? -1 : moments.at(pass.before);
    step.after = moments.at(after);
    step.pass = pass.name;
    step.options = pass.options;
    step.pass_index = pass.index;
    step.failed = pass.outcome == PassOutcome::kFailed;
    step.id = static_cast<int64_t>(stored.id);
    last[static_cast<size_t>(step.graph)] = step.after;
    history.steps.push_back(std::move(step));
  }
  arrive_until(static_cast<SnapshotId>(std::numeric_limits<int64_t>::max()));
  SetRefs(history);

  const auto recent = std::make_shared<RecentGraphs>();
  history.load = [trace, snapshots, recent](int32_t moment) -> Result<LoadedGraph> {
    const auto i = static_cast<size_t>(moment);
    // Snapshots of equal content may have other stable ids.
    const std::string key = fmt::format("{}", static_cast<int64_t>(snapshots[i]));
    return recent->Get(key, [&]() -> Result<LoadedGraph> {
      STRATA_TRY(std::shared_ptr<const Module> module, trace->LoadSnapshot(snapshots[i]));
      return LoadedGraph{std::move(module), GraphId{0}};
    });
  };
  if (history.stable_ids) {
    // Births of a pass over several graphs stand in its first record.
    history.provenance = [trace,
                          id = run.id](const HistoryStep& step) -> Result<std::vector<Provenance>> {
      std::vector<Provenance> births;
      for (const StoredPass& pass : trace->FindRun(id)->passes) {
        if (pass.record.index != step.pass_index) continue;
        STRATA_TRY(std::vector<Provenance> some, trace->LoadBirths(pass.id));
        births.insert(births.end(), some.begin(), some.end());
      }
      return births;
    };
  } else {
    history.provenance = [](const HistoryStep&) { return std::vector<Provenance>(); };
  }
  return history;
}

Result<LogContent> ReadLogFile(const std::string& path) {
  STRATA_TRY(std::string bytes, ReadFile(path));
  STRATA_TRY(const std::string text, Decompress(std::move(bytes), path));
  return ReadLog(text, path);
}

/// A moment of a log's run.
struct LogPlace {
  size_t graph, moment;
};

/// The log that was read last stays; those of other ranks are read again when asked for.
using LastLog = std::shared_ptr<std::shared_ptr<const LogContent>>;

/// Parses graphs of one run of a log.
class LogLoader {
 public:
  LogLoader(std::string path, size_t run, std::vector<LogPlace> places, LastLog last)
      : path_(std::move(path)), run_(run), places_(std::move(places)), last_(std::move(last)) {}

  Result<LoadedGraph> Load(size_t moment, const std::string& content) {
    return recent_.Get(content, [&]() -> Result<LoadedGraph> {
      if (*last_ == nullptr || (*last_)->path != path_) {
        STRATA_TRY(LogContent log, ReadLogFile(path_));
        *last_ = std::make_shared<const LogContent>(std::move(log));
      }
      const LogPlace place = places_[moment];
      const std::vector<LogRun>& runs = (*last_)->runs;
      if (run_ >= runs.size() || place.graph >= runs[run_].graphs.size() ||
          place.moment >= runs[run_].graphs[place.graph].moments.size()) {
        return Error("changed while it was read: {}: run the command again", path_);
      }
      const LogRun& run = runs[run_];
      const LogGraph& graph = run.graphs[place.graph];
      STRATA_TRY(FxDocument document, (*last_)->Parse(run, graph, graph.moments[place.moment]));
      const GraphId id = document.module->programs()[0];
      return LoadedGraph{std::move(document.module), id};
    });
  }

 private:
  const std::string path_;
  const size_t run_;
  const std::vector<LogPlace> places_;
  const LastLog last_;
  RecentGraphs recent_;
};

History OfLogRun(const LogContent& log, size_t index, const LastLog& kept) {
  const LogRun& run = log.runs[index];
  History history;
  history.ref = fmt::format("{}#run={}", log.path, index + 1);
  history.rank = run.rank;
  std::vector<LogPlace> places;
  std::vector<std::vector<int32_t>> moment_of(run.graphs.size());
  for (size_t g = 0; g < run.graphs.size(); ++g) {
    history.graphs.push_back(run.graphs[g].name);
    const LogRecord& record = run.records[run.graphs[g].moments[0].record];
    history.records.push_back({record.compile, record.name});
    for (size_t m = 0; m < run.graphs[g].moments.size(); ++m) {
      moment_of[g].push_back(static_cast<int32_t>(places.size()));
      places.push_back({g, m});
      const LogMoment& moment = run.graphs[g].moments[m];
      const std::string& text =
          log.payloads[static_cast<size_t>(
                           log.payloads[static_cast<size_t>(moment.payload)].graph_id)]
              .text;
      history.snapshots.push_back(
          {static_cast<int32_t>(g),
           fmt::format("{},graph={}", history.ref, SelectorValue(run.graphs[g].name)),
           fmt::format("{:x}-{}", HashText(text), text.size())});
    }
  }
  std::map<std::pair<size_t, size_t>, const LogPass*> ends;
  for (const LogPass& pass : run.passes) {
    ends[{pass.graph, pass.after}] = &pass;
    for (const auto& [moment, word] : {std::pair(pass.before, "before"), {pass.after, "after"}}) {
      history.snapshots[static_cast<size_t>(moment_of[pass.graph][moment])].ref =
          fmt::format("{},graph={},pass={}:{}", history.ref,
                      SelectorValue(run.graphs[pass.graph].name), pass.index, word);
    }
  }
  std::vector<size_t> order(places.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  const auto record_of = [&](size_t i) {
    return run.graphs[places[i].graph].moments[places[i].moment].record;
  };
  std::ranges::sort(order, {}, record_of);
  for (size_t i : order) {
    const auto [g, m] = places[i];
    HistoryStep step;
    step.graph = static_cast<int32_t>(g);
    step.before = m == 0 ? -1 : moment_of[g][m - 1];
    step.after = static_cast<int32_t>(i);
    const auto end = ends.find({g, m});
    const bool is_pass = end != ends.end();
    if (is_pass) {
      step.pass = end->second->name;
      step.pass_index = end->second->index;
    }
    const bool same =
        m > 0 && history.snapshot(step.before).content == history.snapshots[i].content;
    if (same && !is_pass) continue;  // where the next pass begins
    history.steps.push_back(std::move(step));
  }
  SetRefs(history);

  history.load = [loader = std::make_shared<LogLoader>(log.path, index, std::move(places), kept),
                  moments = history.snapshots](int32_t moment) {
    return loader->Load(static_cast<size_t>(moment), moments[static_cast<size_t>(moment)].content);
  };
  history.provenance = [](const HistoryStep&) { return std::vector<Provenance>(); };
  return history;
}

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
  SetRefs(history);
  LoadedGraph graph{std::shared_ptr<const Module>(std::move(snapshot.module)), snapshot.graph_id};
  history.load = [graph](int32_t) { return Result<LoadedGraph>(graph); };
  history.provenance = [](const HistoryStep&) { return std::vector<Provenance>(); };
  return history;
}

Status AddFile(const Ref& ref, const std::string& path, const LastLog& kept,
               std::vector<History>& histories) {
  if (LooksLikeTrace(path)) {
    STRATA_TRY(std::shared_ptr<TraceReader> trace, TraceReader::Open(path));
    for (const StoredRun& run : trace->runs()) {
      if (run.graphs.empty()) continue;
      STRATA_TRY(History history, OfRun(trace, run, path));
      histories.push_back(std::move(history));
    }
    return Ok();
  }
  STRATA_TRY(std::string bytes, ReadFile(path));
  STRATA_TRY(const std::string text, Decompress(std::move(bytes), path));
  if (!LooksLikeLog(text)) {
    if (path == "-") return Error("cannot be read twice: standard input: give a file or a log");
    STRATA_TRY(History history, OfText(ref));
    histories.push_back(std::move(history));
    return Ok();
  }
  STRATA_TRY(LogContent read, ReadLog(text, path));
  const auto log = std::make_shared<const LogContent>(std::move(read));
  // Standard input cannot be read again, so its log stays.
  const LastLog last =
      path == "-" ? std::make_shared<std::shared_ptr<const LogContent>>(log) : kept;
  for (size_t i = 0; i < log->runs.size(); ++i) {
    if (!log->runs[i].graphs.empty()) histories.push_back(OfLogRun(*log, i, last));
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
                      (!ref.rank || history.rank == *ref.rank);
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

}  // namespace strata::cli
