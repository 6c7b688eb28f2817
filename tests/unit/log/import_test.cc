#include "tlparse-export/torch_trace/import/import.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/file.h"
#include "ir/fx/fx.h"
#include "store/trace_reader.h"
#include "store/trace_writer.h"
#include "tests/support/log_files.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/log/log_text.h"

namespace strata {
namespace {

using testing::Artifact;
using testing::GraphText;
using testing::Record;
using testing::TempDir;

/// Logs in memory.
class Texts final : public LogInputs {
 public:
  /// Names and texts.
  explicit Texts(std::vector<std::pair<std::string, std::string_view>> logs)
      : logs_(std::move(logs)) {}
  size_t size() const override { return logs_.size(); }
  std::string name() const override { return "logs"; }
  Result<LogInput> Open(size_t index) override {
    return LogInput{logs_[index].first, SourceOf(logs_[index].second)};
  }

 private:
  std::vector<std::pair<std::string, std::string_view>> logs_;
};

/// Imports logs and opens the trace.
class Imported {
 public:
  explicit Imported(std::string_view text, const ImportOptions& options = {})
      : Imported(Texts({{"log", text}}), options) {}
  explicit Imported(Texts texts, const ImportOptions& options = {}) {
    auto writer = TraceWriter::Create(folder_ / "t.strata", TraceWriter::Mode::kAside);
    REQUIRE_OK(writer);
    REQUIRE_OK(ImportLogs(texts, options, **writer, summary));
    REQUIRE_OK((*writer)->Finish());
    const auto read = ReadFile(folder_ / "t.strata");
    REQUIRE_OK(read);
    bytes = *read;
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
  std::string bytes;  // of the file
  std::unique_ptr<TraceReader> trace;

 private:
  TempDir folder_;
};

TEST_CASE("import: graphs, passes and their changes") {
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

TEST_CASE("import: one run per rank") {
  Imported imported(Artifact("g", GraphText(1), R"(, "rank": 1)") +
                    Artifact("g", GraphText(2), R"(, "rank": 0)"));
  REQUIRE_EQ(imported.trace->runs().size(), 2);
  CHECK_EQ(imported.trace->runs()[0].info.rank, 1);
  CHECK_EQ(imported.trace->runs()[1].info.rank, 0);
  CHECK_EQ(imported.trace->runs()[0].info.world, 2);
  CHECK_EQ(imported.trace->runs()[1].info.world, 2);
}

TEST_CASE("import: a program that runs a graph again is its graph, with inferred types") {
  constexpr std::string_view kProgram = R"(import torch

class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, a):
        relu = torch.ops.aten.relu.default(a);  a = None
        return (relu,)

def load_args(reader):
    buf0 = reader.storage(None, 48)
    reader.tensor(buf0, (3, 4), is_leaf=True)  # a
)";
  const Imported imported(Texts({{"again.py", kProgram}}));
  const StoredRun& run = imported.trace->runs()[0];
  REQUIRE_EQ(run.graphs.size(), 1);
  CHECK_EQ(run.graphs[0].name, "again");
  auto module = imported.trace->LoadSnapshot(run.graphs[0].snapshots[0]);
  REQUIRE_OK(module);
  CHECK_NE(PrintFx((*module)->graph({0})).find("relu: \"f32[3, 4]"), std::string::npos);
}

TEST_CASE("import: an unreadable graph is kept as text and reported") {
  const std::string broken =
      "class A(torch.nn.Module):\n    def forward(self, x):\n        y = f(x\n        return x\n";
  Imported imported(Artifact("g", broken));
  CHECK_EQ(imported.Bytes("g"), broken);
  REQUIRE_EQ(imported.summary.num_warnings, 1);
  CHECK_EQ(imported.summary.warnings[0],
           "log:4:17: expected ',' or ')': passed over 'y = f(x' (g)");
  CHECK_EQ(imported.trace->runs()[0].graphs.size(), 1);

  const std::string log = Artifact("g", broken);
  Texts texts({{"log", log}});
  TempDir folder;
  auto writer = TraceWriter::Create(folder / "t.strata", TraceWriter::Mode::kAside);
  REQUIRE_OK(writer);
  ImportSummary summary;
  CHECK_EQ(
      testing::MessageOf(ImportLogs(texts, {.strict = true, .command = {}}, **writer, summary)),
      "log:4:17: expected ',' or ')'\n"
      "          y = f(x\n"
      "                 ^");
}

TEST_CASE("import: the counts of a pass agree with the numbers of nodes") {
  Imported imported(testing::ReadLogText("tests/data/logs/trainer_torch2.11.log.zst"));
  for (const StoredPass& pass : imported.trace->runs()[0].passes) {
    const SnapshotInfo& before = *imported.trace->FindSnapshot(pass.record.before);
    const SnapshotInfo& after = *imported.trace->FindSnapshot(pass.record.after);
    CHECK_EQ(before.nodes + pass.record.counts->inserted - pass.record.counts->deleted,
             after.nodes);
  }
}

TEST_CASE("import: every record of the log is stored with its position and text") {
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

/// A log of one rank: its own records, a compilation of all ranks, a pass.
std::string RankLog(int rank) {
  const std::string context = fmt::format(R"(, "rank": {})", rank);
  std::string log;
  for (int i = 0; i < 300; ++i) {
    log += Record(fmt::format("\"chromium_event\": {{}}{}", context),
                  fmt::format("{{\"ts\": {}}}", i * rank));
    log += Artifact("code", std::string(static_cast<size_t>(5000 + i), 'x'), context);
    log += Artifact("before_a", GraphText(i == 0 ? 0 : (i - 1) % 7 + rank), context);
    log += Artifact("after_a", GraphText(i % 7 + rank), context);
  }
  return log;
}

TEST_CASE("import: the number of threads does not affect the trace") {
  std::vector<std::string> logs;
  std::vector<std::pair<std::string, std::string_view>> named;
  for (int rank = 0; rank < 6; ++rank)
    logs.push_back(RankLog(rank));
  for (int rank = 0; rank < 6; ++rank)
    named.emplace_back(fmt::format("rank_{}.log", rank), logs[static_cast<size_t>(rank)]);
  ImportOptions alone;
  alone.threads = 1;
  const Imported one{Texts(named), alone};
  const Imported many{Texts(named)};
  CHECK_EQ(one.trace->runs().size(), 6);
  CHECK_EQ(one.summary.passes, 1800);
  CHECK(one.bytes == many.bytes);
}

TEST_CASE("import: content of several compilations is stored once") {
  std::string log;
  for (int i = 0; i < 50; ++i) {
    const std::string compile = fmt::format(R"(, "frame_id": {}, "frame_compile_id": 0)", i);
    log += Artifact("joint", GraphText(1), compile) + Artifact("code", "same", compile);
  }
  Imported imported(log);
  const StoredRun& run = imported.trace->runs()[0];
  REQUIRE_EQ(run.graphs.size(), 50);
  CHECK_EQ(run.graphs[0].name, "joint");
  CHECK_EQ(run.graphs[49].name, "joint@49/0");
  CHECK_EQ(imported.Text(run.graphs[49].snapshots[0]), GraphText(1));
  auto module = imported.trace->LoadSnapshot(run.graphs[49].snapshots[0]);
  REQUIRE_OK(module);
  CHECK_EQ((*module)->graph(GraphId{0}).name_text(), "joint@49/0");
}

TEST_CASE("import: the time of a pass is the time between its records") {
  const auto at = [](std::string_view time, std::string_view name, int graph) {
    std::string record = Artifact(name, GraphText(graph));
    record.replace(0, 21, fmt::format("V1231 {}", time));
    return record;
  };
  Imported imported(at("23:59:58.500000", "g", 1) + at("23:59:59.000000", "before_a", 1) +
                    at("23:59:59.250000", "after_a", 2) + at("23:59:59.250001", "before_b", 2) +
                    Artifact("after_b", GraphText(1)));
  const std::vector<StoredPass>& passes = imported.trace->runs()[0].passes;
  REQUIRE_EQ(passes.size(), 2);
  CHECK_EQ(passes[0].record.wall_ns, 250'000'000);
  CHECK_EQ(passes[1].record.wall_ns, 0);  // the year ended
  auto events = imported.trace->LoadEvents(RunId{1});
  REQUIRE_OK(events);
  REQUIRE_EQ(events->size(), 1);
  CHECK_EQ((*events)[0].kind, "pass");
  CHECK_EQ((*events)[0].name, "a");
  CHECK_EQ((*events)[0].start_ns, 500'000'000);
  CHECK_EQ((*events)[0].duration_ns, 250'000'000);
}

TEST_CASE("import: a rank that a later record states") {
  const std::string first = Record(R"("torch_version": {})", "2.11") + Artifact("g", GraphText(1));
  Imported imported(first + Artifact("h", GraphText(2), R"(, "rank": 3)"));
  REQUIRE_EQ(imported.trace->runs().size(), 1);
  CHECK_EQ(imported.trace->runs()[0].info.rank, 3);
  CHECK_EQ(imported.trace->runs()[0].info.world, 4);
  CHECK_EQ(imported.trace->runs()[0].graphs.size(), 2);
}

TEST_CASE("import: frees are compared with uses") {
  const std::string text = R"(class A(torch.nn.Module):
    def forward(self, x):
        a = torch.relu(x);  x = None
        b = torch.relu(a);  a = None
        c = torch.add(a, b)
        d = torch.relu(c);  b = d = None
        return c
)";
  Imported imported(Artifact("g", text));
  CHECK_EQ(imported.summary.warnings,
           std::vector<std::string>{"log:5:30: 'a' is used after it was freed (g)"});
  Imported unfreed(Artifact("g", R"(class A(torch.nn.Module):
    def forward(self, x):
        a = torch.relu(x)
        b = torch.relu(a);  a = a = zz = None
        return b
)"));
  CHECK_EQ(unfreed.summary.warnings,
           std::vector<std::string>{"log:5:34: 'a' is freed twice (g)",
                                    "log:5:38: 'zz' is freed and was never there (g)",
                                    "log:3:6: 'x' is not freed after its last use (g)"});
}

TEST_CASE("import: sizes with which symbols were created are kept as hints") {
  constexpr std::string_view kContext = R"(, "frame_id": 0, "frame_compile_id": 0, "attempt": 0)";
  const std::string created = fmt::format(
      "V1120 18:32:38.396000 14073 torch/x.py:10] {{\"create_symbol\": {{\"symbol\": \"s77\", "
      "\"val\": \"5\"}}{}}}\n",
      kContext);
  const std::string graph = R"(class A(torch.nn.Module):
    def forward(self, x: "f32[s77][1]cpu"):
        return x
)";
  Imported imported(created + Artifact("g", graph, kContext));
  const auto module =
      imported.trace->LoadSnapshot(imported.trace->runs()[0].graphs[0].snapshots[0]);
  REQUIRE_OK(module);
  DimTable& dims = (*module)->dims();
  CHECK_EQ(dims.Hint(dims.Sym("s77")), 5);
}

}  // namespace
}  // namespace strata
