#include "passes/core/pass_manager.h"

#include <functional>

#include <doctest/doctest.h>

#include "ir/rewriter.h"
#include "ir/text/native_text.h"
#include "passes/core/instrumentations.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::ParseBody;

/// A pass from a function.
class Lambda final : public Pass {
 public:
  using Function = std::function<Result<Changed>(Module&)>;
  Lambda(std::string name, Function run) : run_(std::move(run)) { SetText(std::move(name), ""); }
  Result<Changed> Run(Module& module) override { return run_(module); }

 private:
  Function run_;
};

std::unique_ptr<Pass> MakePass(std::string name, Lambda::Function run) {
  return std::make_unique<Lambda>(std::move(name), std::move(run));
}

/// Replaces every relu by a new neg.
Result<Changed> NegateRelus(Module& module) {
  Graph& graph = *module.FindGraph("g");
  Rewriter rewriter(graph);
  bool changed = false;
  for (NodeId node : graph.nodes().Snapshot()) {
    if (graph.op(node) != "aten.relu.default") continue;
    rewriter.SetCursorBefore(node);
    const NodeId neg = rewriter.Create("aten.neg.default", {graph.args(node)[0]}, From{node});
    rewriter.ReplaceUses(graph.result(node), graph.result(neg));
    rewriter.Erase(node);
    changed = true;
  }
  return Changed(changed);
}

/// Moves the output's operand behind the output's last user: a use before its definition.
Result<Changed> BreakOrder(Module& module) {
  Graph& graph = *module.FindGraph("g");
  Rewriter(graph).MoveBefore(graph.first(), graph.output());
  return Changed::kYes;
}

Result<Changed> DoNothing(Module& /*module*/) {
  return Changed::kNo;
}

/// Logs its calls.
class Diary final : public PassInstrumentation, public SnapshotSink {
 public:
  Status BeforePipeline(std::string_view pipeline, const Module&) override {
    lines += fmt::format("begin {}\n", pipeline);
    return Ok();
  }
  Status BeforePass(const PassRun& run, const Module&) override {
    lines += fmt::format("before {} {}\n", run.index, run.name);
    return Ok();
  }
  Status AfterPass(const PassRun& run, const Module&) override {
    lines += fmt::format("after {} {} {}\n", run.index, run.name, ToString(run.status));
    runs.push_back(run);
    return Ok();
  }
  Status AfterPassFailed(const PassRun& run, const Module&) override {
    lines += fmt::format("failed {} {}\n", run.index, run.name);
    runs.push_back(run);
    return Ok();
  }
  Status AfterPipeline(const Module&) override {
    lines += "end\n";
    return Ok();
  }

  Status Begin(std::string_view pipeline, const Module& module) override {
    snapshots.push_back(fmt::format("{}:\n{}", pipeline, PrintText(module)));
    return Ok();
  }
  Status Write(const PassRun& run, const Module& module) override {
    snapshots.push_back(
        fmt::format("{} {}:\n{}", run.name, ToString(run.status), PrintText(module)));
    return written;
  }
  Status End(const Module&) override {
    snapshots.push_back("end");
    return Ok();
  }

  std::string lines;
  std::vector<PassRun> runs;
  std::vector<std::string> snapshots;
  Status written;
};

constexpr std::string_view kRelu = R"(
  x = placeholder : f32[4]
  relu = aten.relu.default(x) : f32[4]
  output(relu)
)";

TEST_CASE("instrumentations observe each pass in order") {
  auto module = ParseBody(kRelu);
  PassManager manager;
  manager.Add(MakePass("negate", NegateRelus));
  manager.Add(MakePass("nothing", DoNothing));
  Diary diary;
  manager.Watch(diary);
  CHECK_EQ(manager.Text(), "negate,nothing");
  CHECK(OrDie(manager.Run(*module)) == Changed::kYes);
  CHECK_EQ(diary.lines,
           "begin negate,nothing\n"
           "before 0 negate\nafter 0 negate ok\n"
           "before 1 nothing\nafter 1 nothing unchanged\n"
           "end\n");
}

TEST_CASE("a run reports fingerprints per program and provenance records") {
  auto module = ParseBody(kRelu);
  const Graph& graph = *module->FindGraph("g");
  const StableId relu = graph.node(graph.node(graph.first()).next).stable_id;
  const Fingerprint before = FingerprintOf(graph, FingerprintScope::kEverything);
  PassManager manager;
  manager.Add(MakePass("negate", NegateRelus));
  manager.Add(MakePass("nothing", DoNothing));
  Diary diary;
  manager.Watch(diary);
  OrDie(manager.Run(*module));

  const PassRun& run = diary.runs[0];
  REQUIRE_EQ(run.graphs.size(), 1);
  CHECK(run.graphs[0].before == before);
  CHECK(run.graphs[0].after == FingerprintOf(graph, FingerprintScope::kEverything));
  CHECK(run.graphs[0].changed());
  REQUIRE_EQ(run.births.size(), 1);
  CHECK(run.births[0].node == graph.node(graph.node(graph.first()).next).stable_id);
  CHECK(run.births[0].from == std::vector{relu});
  CHECK_FALSE(diary.runs[1].graphs[0].changed());
  CHECK(diary.runs[1].births.empty());
}

TEST_CASE("a program that a pass adds has no fingerprint before") {
  auto module = ParseBody(kRelu);
  PassManager manager;
  manager.Add(MakePass("split", [](Module& m) -> Result<Changed> {
    Rewriter rewriter(m.AddGraph("optimizer"));
    NodeSpec output;
    output.kind = NodeKind::kOutput;
    rewriter.Create(output, From::Source());
    return Changed::kYes;
  }));
  Diary diary;
  manager.Watch(diary);
  OrDie(manager.Run(*module));
  REQUIRE_EQ(diary.runs[0].graphs.size(), 2);
  CHECK_FALSE(diary.runs[0].graphs[0].changed());
  CHECK(diary.runs[0].graphs[1].before == Fingerprint{});
  CHECK(diary.runs[0].graphs[1].changed());
}

TEST_CASE("a pass that reports a change without making one is unchanged") {
  auto module = ParseBody(kRelu);
  PassManager manager;
  manager.Add(MakePass("boast", [](Module&) -> Result<Changed> { return Changed::kYes; }));
  Diary diary;
  manager.Watch(diary);
  CHECK(OrDie(manager.Run(*module)) == Changed::kNo);
  CHECK(diary.runs[0].status == PassStatus::kUnchanged);
}

TEST_CASE("a failing pass ends the pipeline, and its graph is recorded") {
  auto module = ParseBody(kRelu);
  PassManager manager({.input_ref = "out/demo.strata#pass=0:before"});
  manager.Add(MakePass("nothing", DoNothing));
  manager.Add(MakePass("bad", [](Module& m) -> Result<Changed> {
    OrDie(NegateRelus(m));
    return Error("no plan for 'x': add one to plan.toml");
  }));
  manager.Add(MakePass("never", DoNothing));
  Diary diary;
  RecordSnapshots record(diary);
  manager.Watch(diary);
  manager.Watch(record);
  const Result<Changed> result = manager.Run(*module);
  REQUIRE_FALSE(result);
  CHECK_EQ(result.error().message(),
           "pass 'bad' failed: no plan for 'x': add one to plan.toml: reproduce with: strata opt "
           "\"out/demo.strata#pass=0:before\" --passes nothing,bad");
  CHECK_EQ(diary.lines,
           "begin nothing,bad,never\nbefore 0 nothing\nafter 0 nothing unchanged\n"
           "before 1 bad\nfailed 1 bad\nend\n");
  CHECK_EQ(diary.runs[1].error, "pass 'bad' failed: no plan for 'x': add one to plan.toml");
  CHECK_EQ(diary.runs[1].reproduce,
           "strata opt \"out/demo.strata#pass=0:before\" --passes nothing,bad");
  REQUIRE_EQ(diary.snapshots.size(), 4);
  CHECK_EQ(diary.snapshots[2], R"(bad failed:
graph g
  x = placeholder : f32[4]
  neg = aten.neg.default(x)
  output(neg)
)");
  CHECK_EQ(diary.snapshots[3], "end");
}

TEST_CASE("the command of a recorded failure starts from the snapshot before the pass") {
  auto module = ParseBody(kRelu);
  PassManager manager({.input_ref = "g.txt", .run_ref = "out/t.strata#run=2"});
  manager.Add(MakePass("nothing", DoNothing));
  manager.Add(MakePass("bad", [](Module&) -> Result<Changed> { return Error("no"); }));
  const Result<Changed> result = manager.Run(*module);
  REQUIRE_FALSE(result);
  CHECK_EQ(result.error().message(),
           "pass 'bad' failed: no: reproduce with: strata opt "
           "\"out/t.strata#run=2,pass=1:before\" --passes bad");
}

TEST_CASE("a pass that leaves an invalid graph fails, and the graph is recorded") {
  auto module = ParseBody(kRelu);
  PassManager manager;
  manager.Add(MakePass("shuffle", BreakOrder));
  Diary diary;
  RecordSnapshots record(diary);
  manager.Watch(record);
  const Result<Changed> result = manager.Run(*module);
  REQUIRE_FALSE(result);
  CHECK_EQ(result.error().message(),
           "pass 'shuffle' left a broken graph: graph 'g', node 'relu': reads 'x' before it is "
           "defined: reproduce with: strata opt INPUT --passes shuffle");
  REQUIRE_EQ(diary.snapshots.size(), 3);
  CHECK(diary.snapshots[1].starts_with("shuffle failed:\n"));
}

TEST_CASE("a pass that hides a change fails") {
  auto module = ParseBody(kRelu);
  PassManager manager;
  manager.Add(MakePass("sly", [](Module& m) -> Result<Changed> {
    OrDie(NegateRelus(m));
    return Changed::kNo;
  }));
  const Result<Changed> result = manager.Run(*module);
  REQUIRE_FALSE(result);
  CHECK_EQ(result.error().message(),
           "pass 'sly' changed graph 'g' and answered that it changed nothing: reproduce with: "
           "strata opt INPUT --passes sly");
}

TEST_CASE("a changed name, phase or attribute is a change") {
  for (int what = 0; what < 3; ++what) {
    auto module = ParseBody(kRelu);
    PassManager manager;
    manager.Add(MakePass("tag", [what](Module& m) -> Result<Changed> {
      Graph& graph = *m.FindGraph("g");
      Rewriter rewriter(graph);
      const NodeId relu = graph.node(graph.first()).next;
      if (what == 0) rewriter.SetName(relu, "renamed");
      if (what == 1) rewriter.SetPhase(relu, Phase::kBackward);
      if (what == 2) rewriter.SetAttribute(relu, "recompute", "must");
      return Changed::kYes;
    }));
    CHECK(OrDie(manager.Run(*module)) == Changed::kYes);
  }
}

TEST_CASE("an invalid input is distinguished from an invalid result") {
  auto module = ParseBody(kRelu);
  OrDie(BreakOrder(*module));
  PassManager manager;
  manager.Add(MakePass("nothing", DoNothing));
  const Result<Changed> result = manager.Run(*module);
  REQUIRE_FALSE(result);
  CHECK(result.error().message().starts_with("the passes' input is broken: graph 'g'"));
}

TEST_CASE("a recording that cannot be written ends the pipeline") {
  auto module = ParseBody(kRelu);
  PassManager manager;
  manager.Add(MakePass("nothing", DoNothing));
  manager.Add(MakePass("never", [](Module&) -> Result<Changed> {
    FAIL("ran after the recording failed");
    return Changed::kNo;
  }));
  Diary diary;
  diary.written = Error(ErrorCode::kIo, "disk full");
  RecordSnapshots record(diary);
  manager.Watch(record);
  const Result<Changed> result = manager.Run(*module);
  REQUIRE_FALSE(result);
  CHECK_EQ(result.error().message(), "disk full");
}

TEST_CASE("an empty pipeline succeeds") {
  auto module = ParseBody(kRelu);
  PassManager manager;
  CHECK(OrDie(manager.Run(*module)) == Changed::kNo);
}

TEST_CASE("a command line quotes characters that the shell interprets") {
  auto module = ParseBody(kRelu);
  PassManager manager({.input_ref = "it's $HOME.txt"});
  manager.Add(MakePass("bad", [](Module&) -> Result<Changed> { return Error("no"); }));
  const Result<Changed> result = manager.Run(*module);
  REQUIRE_FALSE(result);
  CHECK_EQ(result.error().message(),
           "pass 'bad' failed: no: reproduce with: strata opt 'it'\\''s $HOME.txt' --passes "
           "bad");
}

}  // namespace
}  // namespace strata
