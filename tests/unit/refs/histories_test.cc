#include "refs/histories.h"

#include <algorithm>
#include <memory>

#include <doctest/doctest.h>

#include "base/file.h"
#include "diff/history/bisect.h"
#include "diff/history/history_code.h"
#include "refs/find_node.h"
#include "refs/import_files.h"
#include "refs/ref.h"
#include "store/trace_writer.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/log/log_text.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;
using testing::ParseBody;
using testing::TempDir;

constexpr std::string_view kLog = "tests/data/logs/trainer_torch2.11.log.zst";

/// Steps as lines: `[pass] graph before->after ref`.
std::string StepsOf(const History& history) {
  std::string text;
  for (const HistoryStep& step : history.steps) {
    std::string ref = step.ref;
    ref.erase(0, std::min(ref.find('#'), ref.size()));
    text += fmt::format("{} {} {}->{} {}\n", step.pass.empty() ? "-" : step.pass,
                        history.GraphOf(step), step.before, step.after, ref);
  }
  return text;
}

/// A writer of one run of graph `step`.
class OneRun {
 public:
  explicit OneRun(const std::string& path, RunKind kind = RunKind::kOpt)
      : writer_(OrDie(TraceWriter::Create(path))) {
    RunInfo info;
    info.kind = kind;
    run_ = OrDie(writer_->BeginRun(info));
  }

  SnapshotId Add(std::string_view body, std::string_view graph = "step") {
    return OrDie(writer_->AddSnapshot(run_, graph, ParseBody(body)->graph({0})));
  }
  /// Records pass `name`; `after` empty: the graph is unchanged.
  SnapshotId Pass(std::string_view name, SnapshotId before, std::string_view after) {
    PassRecord pass;
    pass.index = index_++;
    pass.name = name;
    pass.graph = "step";
    pass.before = pass.after = before;
    if (after.empty()) return OrDie(writer_->RecordPass(run_, pass, nullptr)).record.after;
    return OrDie(writer_->RecordPass(run_, pass, &ParseBody(after)->graph({0}))).record.after;
  }
  void Finish() {
    REQUIRE_OK(writer_->EndRun(run_, RunStatus::kFinished));
    REQUIRE_OK(writer_->Finish());
  }

 private:
  std::unique_ptr<TraceWriter> writer_;
  RunId run_;
  int32_t index_ = 0;
};

constexpr std::string_view kThree = "  x = placeholder #1\n  a = f(x) #2\n  output(x) #3\n";
constexpr std::string_view kTwo = "  x = placeholder #1\n  output(x) #3\n";

TEST_CASE("the history of a run has its passes between the graphs that no pass made") {
  const TempDir folder;
  const std::string path = folder / "t.strata";
  OneRun run(path);
  const SnapshotId first = run.Add(kThree);
  run.Add("  p = placeholder #4\n  output(p) #5\n", "optimizer");
  const SnapshotId cleaned = run.Pass("dce", first, kTwo);
  run.Pass("idle", cleaned, "");
  run.Add(kThree);  // changed between passes
  run.Finish();
  const History history = OrDie(LoadHistory(path));
  CHECK_EQ(history.ref, path + "#run=1");
  CHECK(history.stable_ids);
  CHECK_EQ(StepsOf(history),
           "- step -1->0 #run=1,graph=step,pass=0:before\n"
           "- optimizer -1->1 #run=1,graph=optimizer\n"
           "dce step 0->2 #run=1,graph=step,pass=0\n"
           "idle step 2->2 #run=1,graph=step,pass=1\n"
           "- step 2->3 #run=1,graph=step,pass=0:before\n");
  CHECK_EQ(OrDie(history.load(0)).graph().num_nodes(), 3);
  CHECK_EQ(OrDie(history.load(2)).graph().num_nodes(), 2);
}

TEST_CASE("a graph that is stored again unchanged is no step") {
  const TempDir folder;
  OneRun run(folder / "t.strata");
  run.Add(kThree);
  run.Add(kThree);
  run.Finish();
  CHECK_EQ(StepsOf(OrDie(LoadHistory(folder / "t.strata"))), "- step -1->0 #run=1,graph=step\n");
}

TEST_CASE("an imported run has no stable ids") {
  const TempDir folder;
  OneRun run(folder / "t.strata", RunKind::kImport);
  run.Add(kTwo);
  run.Finish();
  const History history = OrDie(LoadHistory(folder / "t.strata"));
  CHECK_FALSE(history.stable_ids);
  CHECK(OrDie(history.provenance(history.steps[0])).empty());
}

TEST_CASE("the text of a graph is a history of one step") {
  const TempDir folder;
  const std::string path = folder / "g.txt";
  REQUIRE_OK(WriteFile(path, fmt::format("graph g\n{}", kThree)));
  const History history = OrDie(LoadHistory(path));
  REQUIRE_EQ(history.steps.size(), 1);
  CHECK(history.graphs == std::vector<std::string>{"g"});
  CHECK_EQ(OrDie(history.load(0)).graph().num_nodes(), 3);
}

TEST_CASE("every snapshot of a log loads, and REFs name what was loaded") {
  const History history = OrDie(LoadHistory(kLog));
  REQUIRE_FALSE(history.snapshots.empty());
  CHECK_EQ(history.records.size(), history.graphs.size());
  for (size_t i = 0; i < history.snapshots.size(); ++i) {
    const LoadedGraph graph = OrDie(history.load(static_cast<int32_t>(i)));
    const Snapshot same = OrDie(LoadRef(history.snapshots[i].ref));
    CHECK_EQ(graph.graph().num_nodes(), same.graph().num_nodes());
  }
}

TEST_CASE("run and rank choose among runs; what has several lists them") {
  const TempDir folder;
  const std::string path = folder / "t.strata";
  const auto writer = OrDie(TraceWriter::Create(path));
  for (const int rank : {0, 5}) {
    RunInfo info;
    info.rank = rank;
    const RunId run = OrDie(writer->BeginRun(info));
    OrDie(writer->AddSnapshot(run, "step", ParseBody(kTwo)->graph({0})));
    REQUIRE_OK(writer->EndRun(run, RunStatus::kFinished));
  }
  REQUIRE_OK(writer->Finish());
  CHECK_EQ(OrDie(LoadHistories(path)).size(), 2);
  CHECK_EQ(OrDie(LoadHistory(path + "#rank=5")).ref, path + "#run=2");
  CHECK_EQ(OrDie(LoadHistory(path + "#run=1")).rank, 0);
  CHECK_EQ(
      MessageOf(LoadHistory(path)),
      fmt::format("REF names several runs: {0}: say which one:\n  {0}#run=1\n  {0}#run=2", path));
  CHECK_EQ(MessageOf(LoadHistories(path + "#rank=7")),
           fmt::format("no such run: {0}#rank=7: there are {0}#run=1 (rank 0), {0}#run=2 (rank 5)",
                       path));
}

TEST_CASE("a folder without logs has no histories") {
  const TempDir folder;
  CHECK_EQ(MessageOf(LoadHistories(folder.path())),
           fmt::format("no logs: {}: the folder has no file '*.log'", folder.path()));
}

TEST_CASE("a node is found by the module whose parameters its layer reads") {
  const std::string log =
      "tests/data/logs/llama3_compile_torch2.11.log.zst#graph=aot_forward_graph";
  const auto histories = LoadHistories(log);
  REQUIRE_OK(histories);
  const auto find = [&](std::string_view wanted) {
    return FindHistoryNode(*histories, OrDie(ParseRef(log)), wanted);
  };
  constexpr std::string_view kAttention = "_scaled_dot_product_flash_attention_for_cpu";
  const auto found = find(fmt::format("layers.1:{}", kAttention));
  REQUIRE_OK(found);
  CHECK_EQ(found->name, fmt::format("{}_1", kAttention));
  CHECK_NE(MessageOf(find(fmt::format("layers.{{0..1}}:{}", kAttention))).find("several nodes"),
           std::string::npos);
}

/// A log with one graph and the code of one kernel for it.
std::string LogWithCode(std::string_view load) {
  const std::string code = fmt::format(
      "triton_poi_fused_add_0 = async_compile.triton('triton_poi_fused_add_0', '''\n"
      "    tmp0 = {}\n''', device_str='cuda')\n",
      load);
  constexpr std::string_view kCompile = R"(, "frame_id": 0, "frame_compile_id": 0)";
  return testing::Artifact("post_grad", testing::GraphText(1), kCompile) +
         testing::Record(R"("inductor_output_code": {"filename": "x.py"})", code, kCompile) +
         testing::Artifact("inductor_provenance_tracking_node_mappings",
                           R"({"cppCodeToPost": {"triton_poi_fused_add_0:1": ["add"]}})", kCompile);
}

TEST_CASE("runs of equal graphs may differ in their generated code, in logs and in traces") {
  const TempDir folder;
  std::vector<History> logs, traces;
  for (const char* name : {"a", "b"}) {
    const std::string log = folder / (std::string(name) + ".log"),
                      trace = folder / (std::string(name) + ".strata");
    REQUIRE_OK(WriteFile(log, LogWithCode(name == std::string("a") ? "load(x)" : "load(x, mask)")));
    REQUIRE_OK(ImportFiles({log}, trace, {}, {}));
    logs.push_back(OrDie(LoadHistory(log)));
    traces.push_back(OrDie(LoadHistory(trace)));
  }
  for (const std::vector<History>* pair : {&logs, &traces}) {
    const History &a = (*pair)[0], &b = (*pair)[1];
    CHECK_FALSE(OrDie(FindDivergence(a, b)).has_value());
    CHECK(OrDie(DiffGeneratedCode(a, a)).empty());
    const auto differences = OrDie(DiffGeneratedCode(a, b));
    REQUIRE_EQ(differences.size(), 1);
    CHECK_EQ(differences[0].label, "inductor_output_code [0/0]");
    REQUIRE_EQ(differences[0].kernels.size(), 1);
    CHECK_EQ(DescribeKernel(differences[0].kernels[0]),
             "kernel triton_poi_fused_add_0 (add): +1 −1 lines");
  }
}

}  // namespace
}  // namespace strata
