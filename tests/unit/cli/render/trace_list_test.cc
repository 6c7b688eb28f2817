#include "cli/render/trace_list.h"

#include <doctest/doctest.h>

#include "store/check.h"
#include "store/trace_reader.h"
#include "store/trace_writer.h"
#include "tests/support/graphs.h"
#include "tests/support/temp_dir.h"

namespace strata::cli {
namespace {

using testing::OrDie;
using testing::TempDir;

constexpr std::string_view kListedBefore = R"(graph step
  x = placeholder : f32[4][1]cpu #6
  a = aten.relu.default(x) : f32[4][1]cpu #7
  dead = aten.neg.default(x) : f32[4][1]cpu #9
  output([a]) #10
)";
constexpr std::string_view kListedAfter = R"(graph step
  x = placeholder : f32[4][1]cpu #6
  a = aten.gelu.default(x) : f32[4][1]cpu #7
  output([a]) #10
)";

/// A run with every kind of content. `Expected` fills in the fingerprints.
struct Listing {
  TempDir dir;
  std::string path = dir / "t.strata";
  std::unique_ptr<Module> before = testing::ParseOrDie(kListedBefore);
  std::unique_ptr<Module> after = testing::ParseOrDie(kListedAfter);
  std::unique_ptr<TraceReader> trace;

  Listing() {
    const auto writer = OrDie(TraceWriter::Create(path));
    const RunId run = OrDie(writer->BeginRun({.kind = RunKind::kTrain,
                                              .rank = 0,
                                              .world = 2,
                                              .source = "llama3.toml",
                                              .command = "strata train llama3.toml",
                                              .pipeline = "fuse{depth=2},place",
                                              .config = {}}));
    PassRecord fuse;
    fuse.name = "fuse";
    fuse.options = "depth=2";
    fuse.wall_ns = 1'250'000;
    fuse.graph = "step";
    fuse.before = OrDie(writer->AddSnapshot(run, "step", before->graph(GraphId{0})));
    const Graph& step = after->graph(GraphId{0});
    PassRecord place;
    place.index = 1;
    place.name = "place";
    place.outcome = PassOutcome::kFailed;
    place.graph = "step";
    place.before = place.after = OrDie(writer->RecordPass(run, fuse, &step)).record.after;
    place.error = "no plan: step: give one\nwith a second line";
    place.reproduce = "strata opt INPUT --passes place";
    OrDie(writer->RecordPass(run, place));
    OrDie(writer->RecordExecuted(run, {"step", 1, 1, FingerprintOf(before->graph(GraphId{0}))}));
    OrDie(writer->RecordExecuted(run, {"step", 2, 20, FingerprintOf(step)}));
    OrDie(writer->AddArtifact(run, "output_code.py", "code", "pass\n"));
    OrDie(writer->EndRun(run, RunStatus::kFailed));
    trace = OrDie(TraceReader::Open(path));
  }

  /// `text` with F0 and F1 for the fingerprints and T for the path.
  std::string Expected(std::string text) const {
    const auto replace = [&](std::string_view what, const std::string& with) {
      for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += with.size())
        text.replace(at, what.size(), with);
    };
    replace("<F0>", ToString(FingerprintOf(before->graph(GraphId{0}))));
    replace("<F1>", ToString(FingerprintOf(after->graph(GraphId{0}))));
    replace("<T>", path);
    return text;
  }
};

TEST_CASE("ls shows graphs, passes with their counts, executed graphs and artifacts") {
  const Listing listing;
  CHECK_EQ(ListText(*listing.trace), listing.Expected(R"(run 1: train, rank 0 of 2, failed
  source: llama3.toml
  pipeline: fuse{depth=2},place

    graph  nodes  fingerprint                       snapshots
    step       3  <F1>          2

    #  pass           graph   ms  nodes  +   −   ~  ↷
    0  fuse{depth=2}  step   1.2      3     −1  ~1
    1  place          step   0.0      3                failed

  pass 1 place failed: no plan: step: give one
    strata opt INPUT --passes place

    executed  steps   snapshot           fingerprint
    step      1 … 1   before all passes  <F0>
    step      2 … 20  after pass 0 fuse  <F1>

    artifact        kind  bytes
    output_code.py  code      5
)"));
}

TEST_CASE("ls says when no recorded graph has the fingerprint that was executed") {
  TempDir dir;
  const std::string path = dir / "executed.strata";
  const auto module = testing::ParseOrDie(kListedBefore);
  const auto writer = OrDie(TraceWriter::Create(path));
  const RunId run = OrDie(writer->BeginRun({}));
  OrDie(writer->AddSnapshot(run, "step", module->graph(GraphId{0})));
  OrDie(writer->RecordExecuted(run, {"step", 1, 2, Fingerprint{1, 2}}));
  OrDie(writer->EndRun(run, RunStatus::kFinished));
  const auto trace = OrDie(TraceReader::Open(path));
  CHECK(ListText(*trace).find("1 … 2  no recorded graph  ") != std::string::npos);
  const std::vector<Finding> findings = OrDie(CheckTrace(path));
  REQUIRE_EQ(findings.size(), 1);
  CHECK_EQ(findings[0].table, "executed");
  CHECK(findings[0].what.find("no recorded graph has the executed") != std::string::npos);
}

TEST_CASE("ls joins the steps of a graph that only some steps execute") {
  TempDir dir;
  const std::string path = dir / "validated.strata";
  const auto module = testing::ParseOrDie(kListedBefore);
  const auto writer = OrDie(TraceWriter::Create(path));
  const RunId run = OrDie(writer->BeginRun({}));
  const SnapshotId traced = OrDie(writer->AddSnapshot(run, "validate", module->graph(GraphId{0})));
  const TraceWriter::Executed executed{"validate", writer->snapshot(traced).fingerprint};
  for (const int64_t step : {1, 3, 4, 8})
    OrDie(writer->RecordStep(run, {step, 1, 1, 1}, {&executed, 1}));
  OrDie(writer->EndRun(run, RunStatus::kFinished));
  const auto trace = OrDie(TraceReader::Open(path));
  CHECK_EQ(trace->runs()[0].executed.size(), 3);
  CHECK(ListText(*trace).find("validate  1 … 8 (4 steps)  before all passes") != std::string::npos);
  CHECK(OrDie(CheckTrace(path)).empty());
}

TEST_CASE("ls describes effects of a pass that counts do not show") {
  TempDir dir;
  const auto before = testing::ParseOrDie(kListedBefore);
  std::string text(kListedBefore);
  text.replace(text.find("dead ="), 4, "idle");
  const auto after = testing::ParseOrDie(text);
  const auto writer = OrDie(TraceWriter::Create(dir / "t.strata"));
  const RunId run = OrDie(writer->BeginRun({}));
  PassRecord pass;
  pass.name = "rename";
  pass.graph = "step";
  pass.before = OrDie(writer->AddSnapshot(run, "step", before->graph(GraphId{0})));
  OrDie(writer->RecordPass(run, pass, &after->graph(GraphId{0})));
  REQUIRE(writer->Finish());
  const auto trace = OrDie(TraceReader::Open(dir / "t.strata"));
  CHECK_NE(ListText(*trace).find("names or metadata only\n"), std::string::npos);
}

TEST_CASE("ls --json is strata.ls/1") {
  const Listing listing;
  CHECK_EQ(ListJson(*listing.trace),
           listing.Expected(
               R"({"schema": "strata.ls/1", "runs": [
  {"id": 1, "kind": "train", "rank": 0, "world": 2, "source": "llama3.toml", )"
               R"("command": "strata train llama3.toml", "pipeline": "fuse{depth=2},place", )"
               R"("status": "failed", "graphs": [
    {"name": "step", "fingerprint": "<F1>", "nodes": 3, "snapshots": 2, )"
               R"("ref": "<T>#run=1,graph=step"}], "passes": [
    {"index": 0, "name": "fuse", "options": "depth=2", "status": "ok", "ms": 1.25, )"
               R"("graph": "step", "before": {"fingerprint": "<F0>", "nodes": 4}, )"
               R"("after": {"fingerprint": "<F1>", "nodes": 3}, )"
               R"("counts": {"inserted": 0, "deleted": 1, "changed": 1, "moved": 0}, )"
               R"("ref": "<T>#run=1,pass=0"},
    {"index": 1, "name": "place", "options": "", "status": "failed", "ms": 0, )"
               R"("graph": "step", "before": {"fingerprint": "<F1>", "nodes": 3}, )"
               R"("after": {"fingerprint": "<F1>", "nodes": 3}, )"
               R"("counts": {"inserted": 0, "deleted": 0, "changed": 0, "moved": 0}, )"
               R"("error": "no plan: step: give one\nwith a second line", )"
               R"("reproduce": "strata opt INPUT --passes place", "ref": "<T>#run=1,pass=1"}], )"
               R"("executed": [
    {"graph": "step", "first_step": 1, "last_step": 1, "fingerprint": "<F0>", "pass": null},
    {"graph": "step", "first_step": 2, "last_step": 20, "fingerprint": "<F1>", "pass": 0}], )"
               R"("artifacts": [
    {"name": "output_code.py", "kind": "code", "bytes": 5}]}]}
)"));
}

TEST_CASE("ls of a trace without runs says so") {
  const TempDir dir;
  const auto writer = OrDie(TraceWriter::Create(dir / "t.strata"));
  const auto trace = OrDie(TraceReader::Open(dir / "t.strata"));
  CHECK_EQ(ListText(*trace), (dir / "t.strata") + ": no runs yet\n");
  CHECK_EQ(ListJson(*trace), "{\"schema\": \"strata.ls/1\", \"runs\": []}\n");
}

}  // namespace
}  // namespace strata::cli
