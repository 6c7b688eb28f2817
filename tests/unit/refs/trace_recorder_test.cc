#include "refs/recording/trace_recorder.h"

#include <memory>

#include <doctest/doctest.h>

#include "ir/rewriter.h"
#include "ir/text/native_text.h"
#include "passes/core/instrumentations.h"
#include "passes/core/pass_manager.h"
#include "store/trace_reader.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::TempDir;

constexpr std::string_view kTwoPrograms = R"(
graph step
  x = placeholder : f32[4][1]cpu
  a = aten.relu.default(x) : f32[4][1]cpu
  dead = aten.neg.default(x) : f32[4][1]cpu
  output([a])
graph optimizer
  p = placeholder : f32[4][1]cpu
  dead = aten.neg.default(p) : f32[4][1]cpu
  output([p])
)";

/// Does what the test says.
class TestPass final : public Pass {
 public:
  using Action = std::function<Result<Changed>(Module&)>;
  TestPass(std::string name, Action action) : action_(std::move(action)) {
    SetText(std::move(name), "");
  }
  Result<Changed> Run(Module& module) override { return action_(module); }

 private:
  Action action_;
};

/// Erases the node `dead` of the named programs.
TestPass::Action EraseDead(std::vector<std::string> graphs) {
  return [graphs](Module& module) -> Result<Changed> {
    for (const std::string& name : graphs) {
      Graph& graph = *module.FindGraph(name);
      const NodeId dead = testing::NodeNamed(graph, "dead");
      Rewriter(graph).Erase(dead);
    }
    return Changed::kYes;
  };
}

/// `y = clone(a)` behind `a`.
Result<Changed> CloneRelu(Module& module) {
  Graph& graph = *module.FindGraph("step");
  Rewriter rewriter(graph);
  const NodeId relu = testing::NodeNamed(graph, "a");
  rewriter.SetCursorAfter(relu);
  rewriter.Create("aten.clone.default", {graph.result(relu)}, From({relu}));
  return Changed::kYes;
}

Result<Changed> DoNothing(Module&) {
  return Changed::kNo;
}

/// Leaves the output reading a node that stands behind it.
Result<Changed> BreakOrder(Module& module) {
  Graph& graph = *module.FindGraph("step");
  Rewriter(graph).MoveBefore(testing::NodeNamed(graph, "a"), NodeId{});
  return Changed::kYes;
}

struct Run {
  std::unique_ptr<Module> module = testing::ParseOrDie(kTwoPrograms);
  PassManager manager;

  void Add(std::string name, TestPass::Action action) {
    manager.Add(std::make_unique<TestPass>(std::move(name), std::move(action)));
  }
  Status RecordInto(TraceRecorder& recorder) {
    RecordSnapshots record(recorder);
    manager.Watch(record);
    const auto changed = manager.Run(*module);
    return changed ? Ok() : Status(changed.error());
  }
};

TEST_CASE("every pass is recorded with each program that it changed") {
  const TempDir dir;
  const auto trace = OrDie(TraceWriter::Create(dir / "t.strata"));
  TraceRecorder recorder(*trace, OrDie(trace->BeginRun({})));
  Run run;
  run.Add("none", DoNothing);
  run.Add("clone", CloneRelu);
  run.Add("erase", EraseDead({"step", "optimizer"}));
  REQUIRE_OK(run.RecordInto(recorder));

  const auto reader = OrDie(TraceReader::Open(dir / "t.strata"));
  const StoredRun& stored = reader->runs()[0];
  CHECK_EQ(stored.FindGraph("step")->snapshots.size(), 3);
  CHECK_EQ(stored.FindGraph("optimizer")->snapshots.size(), 2);
  REQUIRE_EQ(stored.passes.size(), 4);
  const auto check = [&](size_t i, int32_t index, std::string_view name, PassOutcome outcome,
                         std::string_view graph, ChangeCounts counts) {
    CAPTURE(i);
    const PassRecord& record = stored.passes[i].record;
    CHECK_EQ(record.index, index);
    CHECK_EQ(record.name, name);
    CHECK_EQ(record.outcome, outcome);
    CHECK_EQ(record.graph, graph);
    CHECK_EQ(*record.counts, counts);
    CHECK_EQ(record.before == record.after, outcome == PassOutcome::kUnchanged);
  };
  check(0, 0, "none", PassOutcome::kUnchanged, "step", {});
  check(1, 1, "clone", PassOutcome::kOk, "step", {.inserted = 1});
  check(2, 2, "erase", PassOutcome::kOk, "step", {.deleted = 1});
  check(3, 2, "erase", PassOutcome::kOk, "optimizer", {.deleted = 1});

  const auto births = OrDie(reader->LoadBirths(stored.passes[1].id));
  REQUIRE_EQ(births.size(), 1);
  const Graph& step = *run.module->FindGraph("step");
  CHECK_EQ(births[0].from, std::vector{step.node(testing::NodeNamed(step, "a")).stable_id});
  CHECK(OrDie(reader->LoadBirths(stored.passes[2].id)).empty());
  const auto last = OrDie(reader->LoadSnapshot(stored.passes[2].record.after));
  CHECK_EQ(PrintText(last->graph(GraphId{0})), PrintText(step));
  CHECK_EQ(stored.passes[2].record.before, stored.passes[1].record.after);
}

TEST_CASE("a failed pass leaves its broken graph and the command that shows it again") {
  const TempDir dir;
  const auto trace = OrDie(TraceWriter::Create(dir / "t.strata"));
  TraceRecorder recorder(*trace, OrDie(trace->BeginRun({})));
  Run run;
  run.Add("break", BreakOrder);
  run.Add("never", CloneRelu);
  CHECK_FALSE(run.RecordInto(recorder).has_value());
  const auto reader = OrDie(TraceReader::Open(dir / "t.strata"));
  const StoredRun& stored = reader->runs()[0];
  REQUIRE_EQ(stored.passes.size(), 1);
  const PassRecord& pass = stored.passes[0].record;
  CHECK_EQ(pass.outcome, PassOutcome::kFailed);
  CHECK_FALSE(pass.error.empty());
  CHECK_EQ(pass.reproduce, "strata opt INPUT --passes break");
  CHECK_EQ(pass.counts->moved, 1);
  const auto broken = OrDie(reader->LoadSnapshot(pass.after));
  CHECK_EQ(PrintText(broken->graph(GraphId{0})), PrintText(*run.module->FindGraph("step")));
}

TEST_CASE("a pass that fails before it touches a graph is recorded as well") {
  const TempDir dir;
  const auto trace = OrDie(TraceWriter::Create(dir / "t.strata"));
  TraceRecorder recorder(*trace, OrDie(trace->BeginRun({})));
  Run run;
  run.Add("fail", [](Module&) -> Result<Changed> { return Error("no plan: step: give one"); });
  CHECK_FALSE(run.RecordInto(recorder).has_value());
  const auto reader = OrDie(TraceReader::Open(dir / "t.strata"));
  const PassRecord& pass = reader->runs()[0].passes[0].record;
  CHECK_EQ(pass.outcome, PassOutcome::kFailed);
  CHECK_EQ(pass.before, pass.after);
}

TEST_CASE("pipelines of one run number their passes on and share snapshots") {
  const TempDir dir;
  const auto trace = OrDie(TraceWriter::Create(dir / "t.strata"));
  TraceRecorder recorder(*trace, OrDie(trace->BeginRun({})));
  Run run;
  run.Add("none", DoNothing);
  REQUIRE_OK(run.RecordInto(recorder));
  PassManager second;
  RecordSnapshots record(recorder);
  second.Add(std::make_unique<TestPass>("clone", CloneRelu));
  second.Watch(record);
  REQUIRE(second.Run(*run.module).has_value());
  const auto reader = OrDie(TraceReader::Open(dir / "t.strata"));
  const StoredRun& stored = reader->runs()[0];
  CHECK_EQ(stored.passes[1].record.index, 1);
  CHECK_EQ(stored.passes[1].record.before, stored.passes[0].record.after);
  CHECK_EQ(reader->num_snapshots(), 3);
}

}  // namespace
}  // namespace strata
