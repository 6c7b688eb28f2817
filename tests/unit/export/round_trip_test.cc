// Exporting a trace and importing the export gives the same trace, for every log and FX text of
// tests/data.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "ir/fx/fx.h"
#include "tests/support/import_path.h"
#include "tests/support/log_files.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"
#include "tlparse-export/torch_trace/export/export.h"
#include "tlparse-export/torch_trace/export/stored_records.h"
#include "tlparse-export/torch_trace/read/python_json.h"

namespace strata {
namespace {

using testing::CompressedLogs;
using testing::FilesBelow;
using testing::ImportPath;
using testing::TempDir;

/// The logs of tests/data, malformed ones included.
std::vector<std::string> AllLogs() {
  std::vector<std::string> logs = CompressedLogs();
  for (std::string& log : FilesBelow("tests/data/logs/malformed", ".log"))
    logs.push_back(std::move(log));
  return logs;
}

/// An envelope without the fields that an export may add or change.
std::string Essence(const std::string& envelope) {
  const auto fields = ReadJsonObject(envelope);
  if (!fields) return envelope;
  std::string out;
  for (const JsonField& field : *fields) {
    if (field.key == "rank" || field.key == "has_payload") continue;
    out += fmt::format("{}={};", field.key, field.value);
  }
  return out;
}

/// The content of a run, line by line.
std::vector<std::string> Describe(TraceReader& trace, const StoredRun& run) {
  std::vector<std::string> lines{fmt::format("rank {}", run.info.rank)};
  const auto moment = [&](SnapshotId id) {
    const SnapshotInfo* info = trace.FindSnapshot(id);
    return info == nullptr
               ? std::string("none")
               : fmt::format("{}:{}:{}", info->graph, info->nodes, ToString(info->fingerprint));
  };
  for (const StoredGraph& graph : run.graphs) {
    for (SnapshotId id : graph.snapshots)
      lines.push_back("graph " + moment(id));
  }
  for (const StoredPass& pass : run.passes) {
    const PassRecord& record = pass.record;
    lines.push_back(fmt::format("pass {} {} {} {} {}", record.index, record.name,
                                ToString(record.outcome), moment(record.before),
                                moment(record.after)));
  }
  for (const ArtifactInfo& artifact : run.artifacts) {
    // Compared as records; a text that several runs share is kept in one of them.
    if (artifact.kind == "moments" || artifact.kind == "records" || artifact.kind == "graph")
      continue;
    const auto bytes = trace.LoadArtifact(artifact.id);
    REQUIRE_OK(bytes);
    lines.push_back(fmt::format("artifact {} {} {}", artifact.name, artifact.kind, *bytes));
  }
  const auto records = ReadStoredRecords(trace, run);
  REQUIRE_OK(records);
  for (const StoredRecord& record : *records) {
    const auto payload = LoadPayload(trace, record);
    REQUIRE_OK(payload);
    lines.push_back(fmt::format("record {} {} {} {}{} {} {}", record.name, record.kind,
                                record.compile, record.prefix, Essence(record.envelope),
                                record.has_payload, *payload));
  }
  return lines;
}

std::vector<std::string> Export(TraceReader& trace, const std::string& folder) {
  ExportSelection selection;
  for (const StoredRun& run : trace.runs())
    selection.runs.push_back(run.id);
  auto made = AtomicFolder::Create(folder);
  REQUIRE_OK(made);
  ExportSummary summary;
  REQUIRE_OK(ExportTorchTrace(trace, selection, *made, summary));
  REQUIRE_OK(made->Commit());
  return FilesBelow(folder, ".log");
}

TEST_CASE("round trip: a log, imported, exported and imported again, is the same trace") {
  for (const std::string& path : AllLogs()) {
    CAPTURE(path);
    const TempDir folder;
    const auto before = ImportPath(path, folder / "before.strata");
    if (!before || before->runs().empty()) continue;
    const std::vector<std::string> files = Export(*before, folder / "logs");
    REQUIRE_EQ(files.size(), before->runs().size());
    for (size_t i = 0; i < before->runs().size(); ++i) {
      const auto after = ImportPath(files[i], folder / fmt::format("after{}.strata", i));
      REQUIRE_EQ(after->runs().size(), 1);
      const std::vector<std::string> was = Describe(*before, before->runs()[i]);
      const std::vector<std::string> is = Describe(*after, after->runs()[0]);
      CHECK_EQ(was.size(), is.size());
      for (size_t k = 0; k < std::min(was.size(), is.size()); ++k)
        CHECK_EQ(was[k].substr(0, 3000), is[k].substr(0, 3000));
      CHECK(was == is);
    }
  }
}

TEST_CASE("round trip: the second export has the bytes of the first") {
  for (const std::string& path : AllLogs()) {
    CAPTURE(path);
    const TempDir folder;
    const auto before = ImportPath(path, folder / "before.strata");
    if (!before || before->runs().empty()) continue;
    for (const std::string& first : Export(*before, folder / "first")) {
      const auto after = ImportPath(first, folder / "after.strata");
      const std::vector<std::string> second = Export(*after, first + ".again");
      REQUIRE_EQ(second.size(), 1);
      const auto a = ReadFile(first), b = ReadFile(second[0]);
      REQUIRE_OK(a);
      REQUIRE_OK(b);
      CHECK(*a == *b);
    }
  }
}

/// Graphs and passes of a run, line by line.
std::vector<std::string> DescribeGraphs(const TraceReader& trace, const StoredRun& run) {
  std::vector<std::string> lines{fmt::format("rank {}", run.info.rank)};
  const auto fingerprint = [&](SnapshotId id) {
    const SnapshotInfo* info = trace.FindSnapshot(id);
    return info == nullptr ? std::string("none") : ToString(info->fingerprint);
  };
  for (const StoredGraph& graph : run.graphs)
    lines.push_back(fmt::format("graph {} {}", graph.name, fingerprint(graph.snapshots.back())));
  for (const StoredPass& pass : run.passes) {
    const PassRecord& record = pass.record;
    lines.push_back(fmt::format("pass {} {} {} {} {}", record.name, record.graph,
                                ToString(record.outcome), fingerprint(record.before),
                                fingerprint(record.after)));
  }
  return lines;
}

TEST_CASE("round trip: FX texts have the fingerprints of the index") {
  std::vector<std::string> sources = AllLogs();
  for (std::string& file : FilesBelow("tests/data/fx", ".txt"))
    sources.push_back(std::move(file));
  for (const std::string& path : sources) {
    CAPTURE(path);
    const TempDir folder;
    const auto trace = ImportPath(path, folder / "before.strata");
    if (!trace) continue;
    ExportSelection selection;
    for (const StoredRun& run : trace->runs())
      selection.runs.push_back(run.id);
    auto made = AtomicFolder::Create(folder / "fx");
    REQUIRE_OK(made);
    std::map<std::string, std::string> fingerprints;  // by REF
    for (const StoredRun& run : trace->runs()) {
      for (const StoredGraph& graph : run.graphs) {
        fingerprints[fmt::format("{} graph={}", run.info.rank, graph.name)] =
            ToString(trace->FindSnapshot(graph.snapshots.back())->fingerprint);
      }
    }
    const RefOf ref_of = [](const StoredRun& run, const std::string& selector) {
      return fmt::format("{} {}", run.info.rank, selector);
    };
    ExportSummary summary;
    REQUIRE_OK(ExportFx(*trace, selection, ref_of, *made, summary));
    REQUIRE_OK(made->Commit());

    const auto text = ReadFile(folder / "fx/index.json");
    REQUIRE_OK(text);
    const auto index = ReadJsonObject(*text);
    REQUIRE(index);
    const auto files = ReadJsonArray((*index)[1].value);
    REQUIRE(files);
    CHECK_EQ(files->size(), fingerprints.size());
    for (std::string_view entry : *files) {
      const auto fields = ReadJsonObject(entry);
      REQUIRE(fields);
      const std::string file = ReadJsonString((*fields)[0].value).value_or("");
      const std::string ref = ReadJsonString((*fields)[4].value).value_or("");
      CAPTURE(file);
      const auto graph = ReadFile(folder / ("fx/" + file));
      REQUIRE_OK(graph);
      const auto document = ParseFx(*graph);
      REQUIRE_OK(document);
      CHECK_EQ(ToString(FingerprintOf(document->graph())), fingerprints[ref]);
    }
  }
}

TEST_CASE("round trip: a folder of FX texts imports back to graphs and passes") {
  for (const std::string& path : AllLogs()) {
    CAPTURE(path);
    const TempDir folder;
    const auto before = ImportPath(path, folder / "before.strata");
    if (!before || before->runs().empty()) continue;
    ExportSelection selection;
    size_t runs = 0;
    for (const StoredRun& run : before->runs()) {
      selection.runs.push_back(run.id);
      runs += run.graphs.empty() ? 0 : 1;
    }
    auto made = AtomicFolder::Create(folder / "fx");
    REQUIRE_OK(made);
    ExportSummary summary;
    const RefOf ref_of = [](const StoredRun&, const std::string& selector) { return selector; };
    REQUIRE_OK(ExportFx(*before, selection, ref_of, *made, summary));
    REQUIRE_OK(made->Commit());
    if (runs == 0) continue;
    const auto after = ImportPath(folder / "fx", folder / "after.strata");
    REQUIRE(after != nullptr);
    REQUIRE_EQ(after->runs().size(), runs);
    size_t next = 0;
    for (const StoredRun& run : before->runs()) {
      if (run.graphs.empty()) continue;
      CHECK_EQ(fmt::format("{}", fmt::join(DescribeGraphs(*before, run), "\n")),
               fmt::format("{}", fmt::join(DescribeGraphs(*after, after->runs()[next++]), "\n")));
    }
  }
}

}  // namespace
}  // namespace strata
