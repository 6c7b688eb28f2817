#include "refs/ref.h"

#include <doctest/doctest.h>

#include "base/file.h"
#include "store/trace_writer.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;
using testing::ParseBody;
using testing::TempDir;

TEST_CASE("a REF is a file and a selector") {
  const Ref plain = OrDie(ParseRef("run.strata"));
  CHECK_EQ(plain.file, "run.strata");
  CHECK_FALSE(plain.has_selector());

  const Ref full = OrDie(ParseRef("run.strata#run=2,rank=3,graph=step,pass=dce:before"));
  CHECK_EQ(full.file, "run.strata");
  CHECK_EQ(full.run, 2);
  CHECK_EQ(full.rank, 3);
  CHECK_EQ(full.graph, "step");
  CHECK_EQ(full.pass, "dce");
  CHECK(full.side == Ref::Side::kBefore);

  const Ref after = OrDie(ParseRef("run.strata#pass=12:after"));
  CHECK_EQ(after.pass, "12");
  CHECK(after.side == Ref::Side::kAfter);
  CHECK(OrDie(ParseRef("run.strata#pass=12")).side == Ref::Side::kUnspecified);
}

TEST_CASE("a file whose name holds # is found") {
  const TempDir folder;
  const std::string path = folder / "a#b.txt";
  REQUIRE_OK(WriteFile(path, "graph g\n  x = placeholder\n  output(x)\n"));
  CHECK_EQ(OrDie(ParseRef(path)).file, path);
  CHECK_EQ(OrDie(ParseRef(path + "#graph=g")).file, path);
}

TEST_CASE("bad selectors say what a selector is") {
  constexpr std::string_view kGrammar =
      "a selector is run=N, rank=N, graph=NAME, pass=N|NAME[:before|:after], joined by commas";
  const auto message = [&](std::string_view what, std::string_view ref) {
    return fmt::format("{}: {}: {}", what, ref, kGrammar);
  };
  CHECK_EQ(MessageOf(ParseRef("f#run=x")), message("run is no number: 'x'", "f#run=x"));
  CHECK_EQ(MessageOf(ParseRef("f#rank=")), message("rank is no number: ''", "f#rank="));
  CHECK_EQ(MessageOf(ParseRef("f#step")), message("selector without a value: 'step'", "f#step"));
  CHECK_EQ(MessageOf(ParseRef("f#pas=1")),
           message("unknown selector 'pas', did you mean 'pass'", "f#pas=1"));
}

/// A trace of two runs; the first has a pass over each of two graphs.
std::string WriteTrace(const TempDir& folder) {
  const std::string path = folder / "t.strata";
  const auto writer = OrDie(TraceWriter::Create(path));
  const auto before = ParseBody("  x = placeholder #1\n  a = f(x) #2\n  output(x) #3\n");
  const auto after = ParseBody("  x = placeholder #1\n  output(x) #3\n");
  for (const RunKind kind : {RunKind::kOpt, RunKind::kImport}) {
    RunInfo info;
    info.kind = kind;
    info.rank = kind == RunKind::kOpt ? 0 : 5;
    const RunId run = OrDie(writer->BeginRun(info));
    for (const std::string_view graph : {"step", "optimizer"}) {
      if (kind == RunKind::kImport && graph == "optimizer") break;
      PassRecord pass;
      pass.name = "dead-code";
      pass.graph = graph;
      pass.before = OrDie(writer->AddSnapshot(run, graph, before->graph({0})));
      if (kind == RunKind::kImport) pass.counts = ChangeCounts{};
      OrDie(writer->RecordPass(run, pass, &after->graph({0})));
    }
    REQUIRE_OK(writer->EndRun(run, RunStatus::kFinished));
  }
  REQUIRE_OK(writer->Finish());
  return path;
}

TEST_CASE("snapshots of a trace are found by run, rank, graph and pass") {
  const TempDir folder;
  const std::string path = WriteTrace(folder);
  const auto nodes = [&](std::string_view selector) {
    return OrDie(LoadRef(fmt::format("{}#{}", path, selector))).graph().num_nodes();
  };
  CHECK_EQ(nodes("run=1,graph=step"), 2);
  CHECK_EQ(nodes("run=1,graph=step,pass=0:before"), 3);
  CHECK_EQ(nodes("run=1,graph=optimizer,pass=dead-code:after"), 2);
  CHECK_EQ(nodes("run=1,graph=optimizer,pass=dead…:before"), 3);
  CHECK_EQ(nodes("rank=5"), 2);
  CHECK_EQ(nodes("run=2,pass=0"), 2);
}

TEST_CASE("a pass that left a graph alone names the graph as it stood") {
  const TempDir folder;
  const std::string path = folder / "t.strata";
  const auto writer = OrDie(TraceWriter::Create(path));
  const auto step = ParseBody("  x = placeholder #1\n  a = f(x) #2\n  output(x) #3\n");
  const auto cleaned = ParseBody("  x = placeholder #1\n  output(x) #3\n");
  const auto optimizer = ParseBody("  p = placeholder #4\n  output(p) #5\n");
  const RunId run = OrDie(writer->BeginRun(RunInfo{}));
  PassRecord pass;
  pass.name = "dead-code";
  pass.graph = "step";
  pass.before = OrDie(writer->AddSnapshot(run, "step", step->graph({0})));
  OrDie(writer->AddSnapshot(run, "optimizer", optimizer->graph({0})));
  OrDie(writer->RecordPass(run, pass, &cleaned->graph({0})));
  pass.index = 1;
  pass.name = "later";
  pass.graph = "optimizer";
  pass.before = OrDie(writer->AddSnapshot(run, "optimizer", optimizer->graph({0})));
  OrDie(writer->RecordPass(run, pass, &optimizer->graph({0})));
  REQUIRE_OK(writer->Finish());
  const auto nodes = [&](std::string_view selector) {
    return OrDie(LoadRef(fmt::format("{}#{}", path, selector))).graph().num_nodes();
  };
  CHECK_EQ(nodes("graph=optimizer,pass=dead-code"), 2);
  CHECK_EQ(nodes("graph=step,pass=later:before"), 2);
  CHECK_EQ(nodes("graph=step,pass=dead-code:before"), 3);
  CHECK(MessageOf(LoadRef(path + "#graph=nothing,pass=later")).starts_with("no graph 'nothing'"));
}

TEST_CASE("snapshots of one run are joined by id, imported ones are not") {
  const TempDir folder;
  const std::string path = WriteTrace(folder);
  const Snapshot a = OrDie(LoadRef(path + "#run=1,graph=step,pass=0:before"));
  const Snapshot b = OrDie(LoadRef(path + "#run=1,graph=step"));
  CHECK_FALSE(a.origin.empty());
  CHECK_EQ(a.origin, b.origin);
  CHECK_EQ(a.graph_name, b.graph_name);
  CHECK(OrDie(LoadRef(path + "#run=2")).origin.empty());
}

TEST_CASE("a REF that names several graphs lists them") {
  const TempDir folder;
  const std::string path = WriteTrace(folder);
  CHECK_EQ(MessageOf(LoadRef(path)),
           fmt::format("REF names several graphs: {0}: say which one:\n  {0}#run=1,graph=step\n"
                       "  {0}#run=1,graph=optimizer\n  {0}#run=2,graph=step",
                       path));
  CHECK_EQ(MessageOf(LoadRef(path + "#run=1,pass=0:before")),
           fmt::format("REF names several graphs: {0}#run=1,pass=0:before: say which one:\n"
                       "  {0}#run=1,graph=step,pass=0:before\n"
                       "  {0}#run=1,graph=optimizer,pass=0:before",
                       path));
  CHECK(LoadRef(path).error().code() == ErrorCode::kAmbiguous);
}

TEST_CASE("of two REFs, the error of one without a graph goes before that of one with several") {
  const TempDir folder;
  const std::string several = WriteTrace(folder), none = folder / "none.txt";
  OrDie(WriteFile(none, "no graph\n"));
  CHECK(MessageOf(LoadRefs(several, none)).starts_with("not a graph: "));
  CHECK(MessageOf(LoadRefs(none, several)).starts_with("not a graph: "));
  CHECK(LoadRefs(several, several).error().code() == ErrorCode::kAmbiguous);
  CHECK(LoadRefs(several + "#run=2", several).error().code() == ErrorCode::kAmbiguous);
}

TEST_CASE("a REF that names nothing says what there is") {
  const TempDir folder;
  const std::string path = WriteTrace(folder);
  CHECK_EQ(MessageOf(LoadRef(path + "#run=7")), fmt::format("no run '7': {}: it has 1, 2", path));
  CHECK_EQ(MessageOf(LoadRef(path + "#rank=7")), fmt::format("no rank '7': {}: it has 0, 5", path));
  CHECK_EQ(MessageOf(LoadRef(path + "#graph=stp")),
           fmt::format("no graph 'stp': {}: it has step, optimizer, did you mean 'step'", path));
  CHECK_EQ(MessageOf(LoadRef(path + "#pass=9")),
           fmt::format("no pass '9': {}: it has dead-code", path));
}

}  // namespace
}  // namespace strata
