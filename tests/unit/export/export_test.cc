#include "tlparse-export/torch_trace/export/export.h"

#include <filesystem>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/file.h"
#include "ir/fx/fx.h"
#include "tests/support/graphs.h"
#include "tests/support/import_path.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::TempDir;

/// Symbolic sizes, several results, a body.
constexpr std::string_view kStep = R"fx(class GraphModule(torch.nn.Module):
    def forward(self, s0: "Sym(s0)", x: "f32[s0, 4][4, 1]cpu"):
        # seq_nr: 0 # Annotation: {'module_fqn': 'layers.0'} File: m.py:1 in f, code: y = x
        split = torch.ops.aten.split.Tensor(x, 2, 1)
        getitem: "f32[s0, 2][4, 1]cpu" = split[0]
        getitem_1: "f32[s0, 2][4, 1]cpu" = split[1];  split = None
        true_graph_0 = self.true_graph_0
        cond = torch.ops.higher_order.cond(True, true_graph_0, true_graph_0, (getitem,));  true_graph_0 = getitem = None
        getitem_2: "f32[s0, 2][2, 1]cpu" = cond[0];  cond = None
        add: "f32[s0, 2][2, 1]cpu" = torch.ops.aten.add.Tensor(getitem_2, {});  getitem_2 = None
        return (add, getitem_1)

    class true_graph_0(torch.nn.Module):
        def forward(self, arg0_1: "f32[s0, 2][4, 1]cpu"):
            sin: "f32[s0, 2][2, 1]cpu" = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
            return (sin,)
)fx";

std::unique_ptr<Module> Step(int addend) {
  std::string text(kStep);
  text.replace(text.find("{}"), 2, std::to_string(addend));
  return OrDie(ParseFx(text, {.graph_name = "step", .strict = true})).module;
}

/// A trace of a Strata run: two graphs, three passes, executed graphs, hostile names.
std::unique_ptr<TraceReader> OwnTrace(const std::string& path) {
  const auto writer = OrDie(TraceWriter::Create(path));
  RunInfo info;
  info.kind = RunKind::kTrain;
  info.source = "configs/tiny.toml";
  info.pipeline = "dce,fold{n=2}";
  info.config = "steps = 2\n";
  const RunId run = OrDie(writer->BeginRun(info));
  const auto first = Step(1), second = Step(2), other = Step(7);
  const SnapshotId step = OrDie(writer->AddSnapshot(run, "step", first->graph(GraphId{0})));
  const SnapshotId optimizer =
      OrDie(writer->AddSnapshot(run, "../optimizer", other->graph(GraphId{0})));
  PassRecord pass;
  pass.graph = "step";
  pass.name = "dce";
  pass.outcome = PassOutcome::kUnchanged;
  pass.before = pass.after = step;
  pass.counts.emplace();
  pass.wall_ns = 1'500'000;
  OrDie(writer->RecordPass(run, pass));
  pass.index = 1;
  pass.name = "fold";
  pass.options = "n=2";
  pass.outcome = PassOutcome::kOk;
  const auto folded = OrDie(writer->RecordPass(run, pass, &second->graph(GraphId{0})));
  pass.index = 2;
  pass.graph = "../optimizer";
  pass.name = "bad/../name";
  pass.before = pass.after = optimizer;
  pass.outcome = PassOutcome::kFailed;
  pass.error = "it broke";
  OrDie(writer->RecordPass(run, pass));
  OrDie(writer->RecordExecuted(run,
                               {"step", 1, 2, writer->snapshot(folded.record.after).fingerprint}));
  OrDie(writer->AddArtifact(run, "bytes", "binary", std::string_view("\xFF\0x\r", 4)));
  OrDie(writer->EndRun(run, RunStatus::kFinished));
  OrDie(writer->Finish());
  return OrDie(TraceReader::Open(path));
}

ExportSelection Everything(const TraceReader& trace) {
  ExportSelection selection;
  for (const StoredRun& run : trace.runs())
    selection.runs.push_back(run.id);
  return selection;
}

std::unique_ptr<TraceReader> ExportAndImport(TraceReader& trace, const ExportSelection& selection,
                                             const TempDir& folder) {
  AtomicFolder made = OrDie(AtomicFolder::Create(folder / "logs"));
  ExportSummary summary;
  OrDie(ExportTorchTrace(trace, selection, made, summary));
  OrDie(made.Commit());
  const std::string path = folder / "logs/dedicated_log_torch_trace.log";
  ImportSummary imported;
  auto again = testing::ImportPath(path, folder / "again.strata", &imported);
  CHECK_EQ(imported.num_warnings, 0);
  return again;
}

const ArtifactInfo* Find(const StoredRun& run, std::string_view artifact) {
  for (const ArtifactInfo& info : run.artifacts) {
    if (info.name == artifact) return &info;
  }
  return nullptr;
}

TEST_CASE("export: a Strata run keeps graphs, passes, executed graphs and artifacts") {
  const TempDir folder;
  const auto trace = OwnTrace(folder / "t.strata");
  const auto again = ExportAndImport(*trace, Everything(*trace), folder);
  REQUIRE_EQ(again->runs().size(), 1);
  const StoredRun &was = trace->runs()[0], &is = again->runs()[0];
  const auto text = [](TraceReader& reader, SnapshotId id) {
    return PrintFx(OrDie(reader.LoadSnapshot(id))->graph(GraphId{0}));
  };

  REQUIRE_EQ(is.passes.size(), was.passes.size());
  for (size_t i = 0; i < is.passes.size(); ++i) {
    const PassRecord &a = was.passes[i].record, &b = is.passes[i].record;
    CHECK_EQ(a.graph, b.graph);
    CHECK_EQ(ToString(trace->FindSnapshot(a.before)->fingerprint),
             ToString(again->FindSnapshot(b.before)->fingerprint));
    CHECK_EQ(text(*trace, a.after), text(*again, b.after));
  }
  CHECK_EQ(is.passes[0].record.name, "dce");
  CHECK_EQ(is.passes[0].record.outcome, PassOutcome::kUnchanged);
  CHECK_EQ(is.passes[1].record.name, "fold");
  CHECK_EQ(is.passes[2].record.name, "bad/../name");

  REQUIRE(is.FindGraph("executed_step") != nullptr);
  CHECK_EQ(text(*again, is.FindGraph("executed_step")->snapshots[0]),
           text(*trace, was.passes[1].record.after));
  REQUIRE(Find(is, "strata_config") != nullptr);
  CHECK_EQ(*again->LoadArtifact(Find(is, "strata_config")->id), "steps = 2\n");
  REQUIRE(Find(is, "bytes") != nullptr);
  CHECK_EQ(*again->LoadArtifact(Find(is, "bytes")->id), std::string("\xFF\0x\r", 4));
}

TEST_CASE("export: a selected graph is exported alone") {
  const TempDir folder;
  const auto trace = OwnTrace(folder / "t.strata");
  ExportSelection selection = Everything(*trace);
  selection.graph = "step";
  const auto again = ExportAndImport(*trace, selection, folder);
  CHECK_EQ(again->runs()[0].passes.size(), 2);
  CHECK(again->runs()[0].FindGraph("../optimizer") == nullptr);
  CHECK(Find(again->runs()[0], "strata_config") == nullptr);
}

TEST_CASE("export: equal traces give equal bytes") {
  const TempDir folder;
  const auto trace = OwnTrace(folder / "t.strata");
  std::string texts[2];
  for (int i = 0; i < 2; ++i) {
    AtomicFolder made = OrDie(AtomicFolder::Create(folder / std::to_string(i)));
    ExportSummary summary;
    OrDie(ExportTorchTrace(*trace, Everything(*trace), made, summary));
    OrDie(made.Commit());
    texts[i] = OrDie(ReadFile(folder / (std::to_string(i) + "/dedicated_log_torch_trace.log")));
  }
  CHECK_EQ(texts[0], texts[1]);
}

TEST_CASE("export: graph names cannot escape the folder") {
  const TempDir folder;
  const auto trace = OwnTrace(folder / "t.strata");
  AtomicFolder made = OrDie(AtomicFolder::Create(folder / "fx"));
  ExportSummary summary;
  OrDie(ExportFx(
      *trace, Everything(*trace),
      [](const StoredRun&, const std::string& selector) { return selector; }, made, summary));
  OrDie(made.Commit());
  CHECK(std::filesystem::exists(folder / "fx/1/001_step.txt"));
  CHECK(std::filesystem::exists(folder / "fx/1/002_.._optimizer.txt") == false);
  CHECK(std::filesystem::exists(folder / "fx/1/002__._optimizer.txt"));
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    files += entry.is_regular_file() ? 1 : 0;
  CHECK_EQ(files, 1 + 3 + 1);  // the trace, three snapshots, the index
}

TEST_CASE("export: paths of an index that leave its folder are rejected") {
  const TempDir folder;
  OrDie(WriteFile(folder / "secret.txt", "class A(torch.nn.Module):\n    def forward(self):\n"));
  std::filesystem::create_directory(folder / "fx");
  for (const std::string file : {"../secret.txt", "/etc/hostname", "gone.txt"}) {
    OrDie(WriteFile(folder / "fx/index.json",
                    fmt::format(R"({{"schema": "strata.export/1", "files": [{{"file": "{}", )"
                                R"("run": 1, "rank": 0, "graph": "g"}}]}})",
                                file)));
    CHECK(testing::ImportPath(folder / "fx", folder / "t.strata") == nullptr);
  }
}

}  // namespace
}  // namespace strata
