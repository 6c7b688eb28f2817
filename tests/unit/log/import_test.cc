#include "tlparse-export/torch_trace/import.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "ir/file.h"
#include "ir/fx/fx.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/log/log_text.h"

namespace strata {
namespace {

using testing::Artifact;
using testing::GraphText;
using testing::Record;
using testing::TempDir;

/// Imports a log and opens the trace.
class Imported {
 public:
  explicit Imported(std::string_view text, const ImportOptions& options = {}) {
    Result<LogContent> log = ReadLog(text, "log");
    REQUIRE_OK(log);
    auto writer = TraceWriter::Create(folder_ / "t.strata", TraceWriter::Mode::kAside);
    REQUIRE_OK(writer);
    REQUIRE_OK(ImportLog(*log, options, **writer, summary));
    REQUIRE_OK((*writer)->Finish());
    auto reader = TraceReader::Open(folder_ / "t.strata");
    REQUIRE_OK(reader);
    trace = std::move(*reader);
  }

  std::string Text(SnapshotId id) {
    auto module = trace->LoadSnapshot(id);
    REQUIRE_OK(module);
    return PrintFx((*module)->graph((*module)->programs()[0]));
  }
  std::string Bytes(std::string_view artifact) {
    for (const ArtifactInfo& info : trace->runs()[0].artifacts) {
      if (info.name != artifact) continue;
      auto bytes = trace->LoadArtifact(info.id);
      REQUIRE_OK(bytes);
      return *bytes;
    }
    return "no such artifact";
  }

  ImportSummary summary;
  std::unique_ptr<TraceReader> trace;

 private:
  TempDir folder_;
};

TEST_CASE("import: graphs, passes and what they changed") {
  Imported imported(Artifact("traced", GraphText(1)) + Artifact("before_dce", GraphText(1)) +
                    Artifact("after_dce", GraphText(1)) + Artifact("before_fold", GraphText(1)) +
                    Artifact("after_fold", GraphText(2)));
  REQUIRE_EQ(imported.trace->runs().size(), 1);
  const StoredRun& run = imported.trace->runs()[0];
  CHECK_EQ(run.info.kind, RunKind::kImport);
  CHECK_EQ(run.info.source, "log");
  CHECK_EQ(run.status, RunStatus::kFinished);
  REQUIRE_EQ(run.graphs.size(), 1);
  CHECK_EQ(run.graphs[0].name, "traced");
  REQUIRE_EQ(run.passes.size(), 2);

  const PassRecord& dce = run.passes[0].record;
  CHECK_EQ(dce.name, "dce");
  CHECK_EQ(dce.outcome, PassOutcome::kUnchanged);
  CHECK_EQ(dce.before, dce.after);
  CHECK_EQ(dce.counts, ChangeCounts{});
  const PassRecord& fold = run.passes[1].record;
  CHECK_EQ(fold.index, 1);
  CHECK_EQ(fold.outcome, PassOutcome::kOk);
  CHECK_EQ(fold.counts, ChangeCounts{.changed = 1});
  CHECK_EQ(imported.Text(fold.before), GraphText(1));
  CHECK_EQ(imported.Text(fold.after), GraphText(2));

  CHECK_EQ(imported.summary.snapshots, 2);
  CHECK_EQ(imported.summary.passes, 2);
  CHECK_EQ(imported.summary.unchanged_passes, 1);
  CHECK_EQ(imported.summary.num_warnings, 0);
}

TEST_CASE("import: all other records are kept") {
  const std::string event = Record(R"("chromium_event": {})", R"({"ph": "B"})");
  const std::string metrics =
      "V1120 18:28:13.658000 9595 x.py:10] {\"compilation_metrics\": {\"t\": NaN}}\n";
  Imported imported(event + Artifact("code", "line 1\nline 2") + metrics + event +
                    "V1120 18:28:13.658000 9595 x.py:10] {\"str\": [\"/a.py\", 3]}\n");
  CHECK_EQ(imported.Bytes("chromium_event"), event + event);
  CHECK_EQ(imported.Bytes("code"), "line 1\nline 2");
  CHECK_EQ(imported.Bytes("compilation_metrics"), metrics);
  CHECK_EQ(imported.Bytes("str"), R"({"3": "/a.py"})");
}

TEST_CASE("import: a run for each rank") {
  Imported imported(Artifact("g", GraphText(1), R"(, "rank": 1)") +
                    Artifact("g", GraphText(2), R"(, "rank": 0)"));
  REQUIRE_EQ(imported.trace->runs().size(), 2);
  CHECK_EQ(imported.trace->runs()[0].info.rank, 0);
  CHECK_EQ(imported.trace->runs()[1].info.rank, 1);
}

TEST_CASE("import: a graph that cannot be read to its end is kept as it stands, and told") {
  const std::string broken =
      "class A(torch.nn.Module):\n    def forward(self, x):\n        y = f(x\n        return x\n";
  Imported imported(Artifact("g", broken));
  CHECK_EQ(imported.Bytes("g"), broken);
  REQUIRE_EQ(imported.summary.num_warnings, 1);
  CHECK_EQ(imported.summary.warnings[0],
           "log:1 (g):3:16: expected ',' or ')': 1 of the graph's places could not be read");
  CHECK_EQ(imported.trace->runs()[0].graphs.size(), 1);

  const auto log = ReadLog(Artifact("g", broken), "log");
  REQUIRE_OK(log);
  TempDir folder;
  auto writer = TraceWriter::Create(folder / "t.strata", TraceWriter::Mode::kAside);
  REQUIRE_OK(writer);
  ImportSummary summary;
  CHECK_EQ(testing::MessageOf(ImportLog(*log, {.strict = true, .command = {}}, **writer, summary)),
           "log:1 (g):3:16: expected ',' or ')'\n"
           "          y = f(x\n"
           "                 ^");
}

TEST_CASE("import: the counts of a pass fit the numbers of nodes") {
  const Result<std::string> text = ReadFile("tests/data/logs/trainer_torch2.11.log");
  REQUIRE_OK(text);
  Imported imported(*text);
  for (const StoredPass& pass : imported.trace->runs()[0].passes) {
    const SnapshotInfo& before = *imported.trace->FindSnapshot(pass.record.before);
    const SnapshotInfo& after = *imported.trace->FindSnapshot(pass.record.after);
    CHECK_EQ(before.nodes + pass.record.counts->inserted - pass.record.counts->deleted,
             after.nodes);
  }
}

TEST_CASE("import: every record of the log is told, with its place and its text") {
  const std::string odd = GraphText(2) + "# graph id: 77\n";
  Imported imported(Artifact("before_dce", GraphText(1)) + Artifact("after_dce", GraphText(1)) +
                    Artifact("odd", odd));
  const std::string moments = imported.Bytes("graphs");
  CHECK_EQ(std::ranges::count(moments, '\n'), 3);
  for (const std::string part : {R"("record": "before_dce")", R"("line": 1,)", R"("text": 0})",
                                 R"("envelope": "{\"artifact\": )", R"("text": 1})"}) {
    CHECK_MESSAGE(moments.find(part) != std::string::npos, part);
  }
  CHECK_EQ(imported.Bytes("odd"), odd);
}

}  // namespace
}  // namespace strata
