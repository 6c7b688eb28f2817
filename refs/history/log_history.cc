#include "refs/history/log_history.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/selector.h"
#include "diff/code/code_diff.h"
#include "diff/graph/hash.h"
#include "ir/fx/fx.h"
#include "refs/history/generated_code.h"
#include "refs/history/recent_graphs.h"
#include "refs/history/step_refs.h"
#include "tlparse-export/torch_trace/read/decompress.h"
#include "tlparse-export/torch_trace/read/log_graphs.h"
#include "tlparse-export/torch_trace/read/pasted_text.h"
#include "tlparse-export/torch_trace/read/torch_logs.h"

namespace strata {
namespace {

Result<LogContent> ReadLogFile(const std::string& path) {
  STRATA_TRY(std::string bytes, ReadFile(path));
  STRATA_TRY(std::string read, Decompress(std::move(bytes), path));
  const std::string text = ReadPasted(std::move(read)).text;
  return ReadLog(text, path);
}

/// A snapshot of a log's run.
struct LogPlace {
  size_t graph, snapshot;
};

/// A record of generated code, and the one that maps its kernels to nodes.
struct CodePlace {
  size_t record;
  std::optional<size_t> mapping;
};

/// Parses graphs of one run of a log.
class LogLoader {
 public:
  LogLoader(std::string path, size_t run, std::vector<LogPlace> places, LastLog last)
      : path_(std::move(path)), run_(run), places_(std::move(places)), last_(std::move(last)) {}

  Result<LoadedGraph> Load(size_t index, const std::string& content) {
    return recent_.Get(content, [&]() -> Result<LoadedGraph> {
      STRATA_RETURN_IF_ERROR(Read());
      const LogPlace place = places_[index];
      const std::vector<LogRun>& runs = (*last_)->runs;
      if (run_ >= runs.size() || place.graph >= runs[run_].graphs.size() ||
          place.snapshot >= runs[run_].graphs[place.graph].snapshots.size()) {
        return Changed();
      }
      const LogRun& run = runs[run_];
      const LogGraph& graph = run.graphs[place.graph];
      STRATA_TRY(FxDocument document, (*last_)->Parse(run, graph, graph.snapshots[place.snapshot]));
      const GraphId id = document.module->programs()[0];
      return LoadedGraph{std::move(document.module), id};
    });
  }

  Result<CodeText> LoadCode(const CodePlace& place) {
    STRATA_RETURN_IF_ERROR(Read());
    const std::vector<LogRun>& runs = (*last_)->runs;
    if (run_ >= runs.size() || place.record >= runs[run_].records.size()) return Changed();
    CodeText code;
    code.text = PayloadOf(place.record);
    if (place.mapping) code.calls = ReadKernelCalls(PayloadOf(*place.mapping));
    return code;
  }

 private:
  Status Read() {
    if (*last_ != nullptr && (*last_)->path == path_) return Ok();
    STRATA_TRY(LogContent log, ReadLogFile(path_));
    *last_ = std::make_shared<const LogContent>(std::move(log));
    return Ok();
  }
  Error Changed() const {
    return Error("changed while it was read: {}: run the command again", path_);
  }
  std::string PayloadOf(size_t record) const {
    const std::vector<LogRecord>& records = (*last_)->runs[run_].records;
    if (record >= records.size() || records[record].payload < 0) return "";
    return (*last_)->payloads[static_cast<size_t>(records[record].payload)].text;
  }

  const std::string path_;
  const size_t run_;
  const std::vector<LogPlace> places_;
  const LastLog last_;
  RecentGraphs recent_;
};

/// Builds the history of one run of a log, without its loaders.
class LogHistory {
 public:
  LogHistory(const LogContent& log, size_t run) : log_(log), run_(log.runs[run]) {
    history_.ref = fmt::format("{}#run={}", log.path, run + 1);
    history_.rank = run_.rank;
    for (const LogRecord& record : run_.records) {
      if (IsCacheHit(record.name)) history_.cached.insert(record.compile);
      if (record.has_graph && IsOfTorchLogs(record.envelope)) history_.is_excerpt = true;
    }
    AddGraphs();
    AddPassRefs();
    AddSteps();
    AddCode();
    SetStepRefs(history_);
  }

  History& history() { return history_; }
  std::vector<LogPlace>& places() { return places_; }
  std::vector<CodePlace>& code() { return code_; }

 private:
  void AddGraphs() {
    for (const LogGraph& graph : run_.graphs) {
      const LogRecord& record = run_.records[graph.snapshots[0].record];
      history_.graphs.push_back(graph.name);
      history_.records.push_back(
          {record.compile, record.name, std::string(PassEndedBy(record.name))});
      first_of_.push_back(places_.size());
      for (size_t i = 0; i < graph.snapshots.size(); ++i)
        AddSnapshot(graph, i);
    }
  }

  void AddSnapshot(const LogGraph& graph, size_t index) {
    const std::string& text = TextOf(graph.snapshots[index]);
    const size_t graph_index = first_of_.size() - 1;
    places_.push_back({graph_index, index});
    history_.snapshots.push_back(
        {static_cast<int32_t>(graph_index),
         fmt::format("{},graph={}", history_.ref, SelectorValue(graph.name)),
         fmt::format("{:x}-{}", HashText(text), text.size())});
  }

  /// The text, the same for texts that differ only in a graph id.
  const std::string& TextOf(const LogSnapshot& snapshot) const {
    const LogPayload& payload = log_.payloads[static_cast<size_t>(snapshot.payload)];
    return log_.payloads[static_cast<size_t>(payload.graph_id)].text;
  }

  /// Snapshots before and after a pass are named by it: by the last one that has them.
  void AddPassRefs() {
    for (const LogPass& pass : run_.passes) {
      for (const auto& [index, side] : {std::pair(pass.before, "before"), {pass.after, "after"}}) {
        history_.snapshots[first_of_[pass.graph] + index].ref =
            fmt::format("{},graph={},pass={}:{}", history_.ref,
                        SelectorValue(run_.graphs[pass.graph].name), pass.index, side);
      }
    }
  }

  /// Adds a step per snapshot, in the order of the log.
  void AddSteps() {
    std::map<std::pair<size_t, size_t>, const LogPass*> ends;
    for (const LogPass& pass : run_.passes)
      ends[{pass.graph, pass.after}] = &pass;
    for (const size_t i : InOrderOfRecords()) {
      const auto found = ends.find({places_[i].graph, places_[i].snapshot});
      AddStep(i, found == ends.end() ? nullptr : found->second);
    }
  }

  std::vector<size_t> InOrderOfRecords() const {
    std::vector<size_t> order(places_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t i) {
      return run_.graphs[places_[i].graph].snapshots[places_[i].snapshot].record;
    });
    return order;
  }

  /// `pass`: the one that ends with snapshot `i`, or null. A snapshot that only begins a pass
  /// equals the one before it, and is not a step.
  void AddStep(size_t i, const LogPass* pass) {
    const bool is_first = places_[i].snapshot == 0;
    if (!is_first && pass == nullptr && Content(i) == Content(i - 1)) return;
    HistoryStep step;
    step.graph = static_cast<int32_t>(places_[i].graph);
    step.before = is_first ? -1 : static_cast<int32_t>(i) - 1;
    step.after = static_cast<int32_t>(i);
    if (pass != nullptr) {
      step.pass = pass->name;
      step.pass_index = pass->index;
    }
    history_.steps.push_back(std::move(step));
  }

  void AddCode() {
    for (size_t i = 0; i < run_.records.size(); ++i) {
      const LogRecord& record = run_.records[i];
      if (record.payload < 0 || !IsGeneratedCode(record.name)) continue;
      const std::string& text = log_.payloads[static_cast<size_t>(record.payload)].text;
      history_.code.push_back({record.compile, NameOfCode(record.name, text),
                               fmt::format("{:x}-{}", HashText(text), text.size()),
                               AotIdOfCode(text)});
      code_.push_back({i, MappingOf(i)});
    }
  }

  /// The next mapping of the record's compilation, or the last one before it.
  std::optional<size_t> MappingOf(size_t code) const {
    std::optional<size_t> last;
    for (size_t i = 0; i < run_.records.size(); ++i) {
      const LogRecord& record = run_.records[i];
      const bool fits = record.payload >= 0 && record.compile == run_.records[code].compile &&
                        MapsKernels(record.name);
      if (fits) last = i;
      if (fits && i > code) break;
    }
    return last;
  }

  const std::string& Content(size_t i) const { return history_.snapshots[i].content; }

  const LogContent& log_;
  const LogRun& run_;
  History history_;
  std::vector<LogPlace> places_;  // by snapshot of the history
  std::vector<size_t> first_of_;  // by graph: its first snapshot
  std::vector<CodePlace> code_;
};

}  // namespace

History HistoryOfLogRun(const LogContent& log, size_t index, const LastLog& last) {
  LogHistory made(log, index);
  History history = std::move(made.history());
  const auto loader = std::make_shared<LogLoader>(log.path, index, std::move(made.places()), last);
  history.load = [loader, snapshots = history.snapshots](int32_t snapshot) {
    const auto i = static_cast<size_t>(snapshot);
    return loader->Load(i, snapshots[i].content);
  };
  history.load_code = [loader, code = std::move(made.code())](int32_t record) {
    return loader->LoadCode(code[static_cast<size_t>(record)]);
  };
  history.provenance = [](const HistoryStep&) { return std::vector<Provenance>(); };
  return history;
}

}  // namespace strata
