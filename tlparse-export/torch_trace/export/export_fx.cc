#include <map>

#include <fmt/format.h>

#include "base/json.h"
#include "base/selector.h"
#include "base/text.h"
#include "tlparse-export/torch_trace/export/export.h"
#include "tlparse-export/torch_trace/export/stored_records.h"

namespace strata {
namespace {

/// `name` as part of the name of a file anywhere.
std::string FileStem(std::string_view name) {
  constexpr size_t kMaxBytes = 80;
  std::string stem;
  for (char c : name.substr(0, kMaxBytes)) {
    const bool is_plain = IsWordChar(c) || c == '-' || (c == '.' && !stem.empty());
    stem += is_plain ? c : '_';
  }
  return stem.empty() ? "graph" : stem;
}

class FxWriter {
 public:
  FxWriter(TraceReader& trace, const ExportSelection& selection, const RefOf& ref_of,
           const AtomicFolder& folder, ExportSummary& summary)
      : trace_(trace),
        selection_(selection),
        ref_of_(ref_of),
        folder_(folder),
        summary_(summary),
        index_(index_text_) {}

  Status Write() {
    index_.BeginObject().Field("schema", "strata.export/1");
    index_.Break(1).Key("files").BeginArray();
    for (RunId id : selection_.runs)
      STRATA_RETURN_IF_ERROR(WriteGraphs(*trace_.FindRun(id)));
    index_.EndArray().Break(1).Key("passes").BeginArray();
    for (RunId id : selection_.runs)
      STRATA_RETURN_IF_ERROR(WritePasses(*trace_.FindRun(id)));
    index_.EndArray().EndObject();
    index_text_ += '\n';
    return folder_.Write("index.json", index_text_);
  }

 private:
  bool IsSelected(const std::string& graph) const {
    return !selection_.graph || *selection_.graph == graph;
  }

  /// The texts of snapshots that printing gives for none of their records.
  Status FindTexts(const StoredRun& run) {
    texts_.clear();
    STRATA_TRY(const std::vector<StoredRecord> records, ReadStoredRecords(trace_, run));
    for (const StoredRecord& record : records) {
      if (record.snapshot == SnapshotId::kNone) continue;
      const auto [text, is_new] = texts_.try_emplace(record.snapshot, record.artifact);
      if (record.artifact == ArtifactId::kNone) text->second = ArtifactId::kNone;
    }
    return Ok();
  }

  Status WriteText(SnapshotId snapshot, const std::string& file) {
    const auto text = texts_.find(snapshot);
    const bool is_kept = text != texts_.end() && text->second != ArtifactId::kNone;
    STRATA_TRY(const std::string bytes,
               is_kept ? trace_.LoadArtifact(text->second) : LoadFxText(trace_, snapshot));
    files_[snapshot] = file;
    ++summary_.files;
    return folder_.Write(file, bytes);
  }

  Status WriteGraphs(const StoredRun& run) {
    STRATA_RETURN_IF_ERROR(FindTexts(run));
    const auto id = static_cast<int64_t>(run.id);
    int number = 0;
    for (const StoredGraph& graph : run.graphs) {
      ++number;
      if (!IsSelected(graph.name)) continue;
      ++summary_.graphs;
      const std::string file = fmt::format("{}/{:03}_{}.txt", id, number, FileStem(graph.name));
      const SnapshotId last = graph.snapshots.back();
      STRATA_RETURN_IF_ERROR(WriteText(last, file));
      index_.Break(2).BeginObject().Field("file", file);
      AddRun(run, graph.name);
      index_.Field("ref", ref_of_(run, "graph=" + SelectorValue(graph.name)));
      index_.Field("fingerprint", ToString(trace_.FindSnapshot(last)->fingerprint)).EndObject();
    }
    return Ok();
  }

  Status WritePasses(const StoredRun& run) {
    STRATA_RETURN_IF_ERROR(FindTexts(run));
    const auto id = static_cast<int64_t>(run.id);
    int number = 0;
    for (const StoredPass& stored : run.passes) {
      const PassRecord& pass = stored.record;
      if (!IsSelected(pass.graph)) continue;
      ++summary_.passes;
      for (SnapshotId snapshot : {pass.before, pass.after}) {
        if (snapshot == SnapshotId::kNone || files_.contains(snapshot)) continue;
        STRATA_RETURN_IF_ERROR(WriteText(
            snapshot, fmt::format("{}/passes/{:03}_{}.txt", id, ++number, FileStem(pass.graph))));
      }
      index_.Break(2).BeginObject();
      AddRun(run, pass.graph);
      index_.Field("ref", ref_of_(run, fmt::format("graph={},pass={}", SelectorValue(pass.graph),
                                                   pass.index)));
      index_.Field("name", pass.name).Field("status", ToString(pass.outcome));
      AddMoment("before", pass.before);
      AddMoment("after", pass.after);
      index_.EndObject();
    }
    return Ok();
  }

  void AddRun(const StoredRun& run, const std::string& graph) {
    index_.Field("run", static_cast<int64_t>(run.id)).Field("rank", run.info.rank);
    index_.Field("graph", graph);
  }

  void AddMoment(std::string_view key, SnapshotId snapshot) {
    const auto file = files_.find(snapshot);
    if (file != files_.end()) index_.Field(key, file->second);
  }

  TraceReader& trace_;
  const ExportSelection& selection_;
  const RefOf& ref_of_;
  const AtomicFolder& folder_;
  ExportSummary& summary_;
  std::string index_text_;
  JsonWriter index_;
  std::map<SnapshotId, ArtifactId> texts_;   // of one run; none: printing gives it
  std::map<SnapshotId, std::string> files_;  // that were written
};

}  // namespace

Status ExportFx(TraceReader& trace, const ExportSelection& selection, const RefOf& ref_of,
                const AtomicFolder& folder, ExportSummary& summary) {
  return FxWriter(trace, selection, ref_of, folder, summary).Write();
}

}  // namespace strata
