#include "refs/export_refs.h"

#include <doctest/doctest.h>

#include "refs/source_trace.h"
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

/// A trace of two ranks; only rank 3 has the graph `optimizer`.
std::unique_ptr<TraceReader> TwoRanks(const std::string& path) {
  const auto writer = OrDie(TraceWriter::Create(path));
  const auto graph = ParseBody("  x = placeholder #1\n  output(x) #2\n");
  for (const int rank : {0, 3}) {
    RunInfo info;
    info.rank = rank;
    const RunId run = OrDie(writer->BeginRun(info));
    OrDie(writer->AddSnapshot(run, "step", graph->graph({0})));
    if (rank == 3) OrDie(writer->AddSnapshot(run, "optimizer", graph->graph({0})));
    REQUIRE_OK(writer->EndRun(run, RunStatus::kFinished));
  }
  REQUIRE_OK(writer->Finish());
  return OrDie(TraceReader::Open(path));
}

TEST_CASE("an export takes the runs that run, rank and graph select") {
  const TempDir folder;
  const std::string path = folder / "t.strata";
  const auto trace = TwoRanks(path);
  const auto runs = [&](const std::string& selector) {
    return OrDie(SelectForExport(OrDie(ParseRef(path + selector)), *trace)).runs;
  };
  CHECK_EQ(runs("").size(), 2);
  CHECK(runs("#run=1") == std::vector{RunId{1}});
  CHECK(runs("#rank=3") == std::vector{RunId{2}});
  CHECK_EQ(runs("#graph=step").size(), 2);
  CHECK(runs("#graph=optimizer") == std::vector{RunId{2}});
}

TEST_CASE("an export that selects nothing says what there is") {
  const TempDir folder;
  const std::string path = folder / "t.strata";
  const auto trace = TwoRanks(path);
  const auto message = [&](const std::string& selector) {
    return MessageOf(SelectForExport(OrDie(ParseRef(path + selector)), *trace));
  };
  CHECK_EQ(message("#rank=7"),
           fmt::format("no such run: {}#rank=7: it has run=1,rank=0, run=2,rank=3", path));
  CHECK_EQ(message("#run=1,graph=stp"),
           fmt::format("no graph 'stp': {}: it has step, did you mean 'step'", path));
  CHECK_EQ(message("#pass=2"),
           fmt::format("a pass cannot be exported: {0}#pass=2: leave out pass=, or "
                       "'strata show \"{0}#pass=2\" --format fx'",
                       path));
}

TEST_CASE("REFs of an export name the trace, or the log that was imported") {
  const TempDir folder;
  const std::string path = folder / "t.strata";
  const auto trace = TwoRanks(path);
  const Ref ref = OrDie(ParseRef(path + "#rank=3"));
  CHECK_EQ(RefsForExport(ref, *trace, false)(trace->runs()[1], "graph=step"),
           path + "#run=2,graph=step");

  const std::string log = "tests/data/logs/trainer_torch2.11.log.zst";
  std::vector<std::string> warnings;
  const SourceTrace source = OrDie(SourceTrace::Open(
      log, "test", [&](std::string_view warning) { warnings.emplace_back(warning); }));
  CHECK(source.is_imported());
  CHECK(warnings.empty());
  const auto imported = OrDie(TraceReader::Open(source.path()));
  const Ref whole = OrDie(ParseRef(log));
  CHECK_EQ(RefsForExport(whole, *imported, true)(imported->runs()[0], "graph=g"),
           log + "#run=1,graph=g");
}

}  // namespace
}  // namespace strata
