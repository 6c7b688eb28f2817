#include "store/node_statistics.h"

#include <limits>

#include <doctest/doctest.h>

#include "store/trace_reader.h"
#include "store/trace_writer.h"
#include "tests/support/results.h"
#include "tests/unit/store/support.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::TempDir;

TEST_CASE("node times read back as written") {
  const TempDir dir;
  const std::string path = dir / "t.strata";
  const StatisticsTable table{
      .graph = "step",
      .fingerprint = {.hi = 1, .lo = 2},
      .first_step = 3,
      .last_step = 14,
      .steps = 2,
      .nodes = {{.node = static_cast<StableId>(7), .calls = 2, .time_ns = 123456789, .bytes = 64},
                {.node = static_cast<StableId>(9),
                 .calls = 2,
                 .time_ns = 5,
                 .bytes = 0,
                 .has_values = true,
                 .elements = 8,
                 .nan_count = 1,
                 .inf_count = 2,
                 .min = -0.1,
                 .max = std::numeric_limits<double>::max(),
                 .mean = 1.0 / 3.0}},
      .rest = {{"aten::mm", 77}, {"not seen\tby the profiler", 5}}};
  {
    const auto trace = OrDie(TraceWriter::Create(path));
    const RunId run = OrDie(trace->BeginRun(RunInfo()));
    REQUIRE_OK(AddNodeStatistics(*trace, run, table));
    REQUIRE_OK(AddNodeStatistics(
        *trace, run, StatisticsTable{.graph = "optimizer", .fingerprint = {}, .nodes = {}}));
    OrDie(trace->AddArtifact(run, "other", "text", "abc"));
    REQUIRE_OK(trace->EndRun(run, RunStatus::kFinished));
    REQUIRE_OK(trace->Finish());
  }
  const auto reader = OrDie(TraceReader::Open(path));
  const auto tables = OrDie(LoadNodeStatistics(*reader, reader->runs()[0]));
  REQUIRE_EQ(tables.size(), 2);
  CHECK_EQ(tables[0].graph, "step");
  CHECK_EQ(tables[0].fingerprint, table.fingerprint);
  CHECK_EQ(tables[0].first_step, 3);
  CHECK_EQ(tables[0].last_step, 14);
  CHECK_EQ(tables[0].steps, 2);
  REQUIRE_EQ(tables[0].nodes.size(), 2);
  CHECK_EQ(tables[0].nodes[0].time_ns, 123456789);
  CHECK_FALSE(tables[0].nodes[0].has_values);
  const NodeStatistics& node = tables[0].nodes[1];
  CHECK_EQ(static_cast<uint64_t>(node.node), 9);
  CHECK_EQ(node.elements, 8);
  CHECK_EQ(node.nan_count, 1);
  CHECK_EQ(node.inf_count, 2);
  CHECK_EQ(node.min, -0.1);
  CHECK_EQ(node.max, std::numeric_limits<double>::max());
  CHECK_EQ(node.mean, 1.0 / 3.0);
  REQUIRE_EQ(tables[0].rest.size(), 2);
  CHECK_EQ(tables[0].rest[0].name, "aten::mm");
  CHECK_EQ(tables[0].rest[0].time_ns, 77);
  CHECK_EQ(tables[0].rest[1].name, "not seen by the profiler");
  CHECK(tables[1].nodes.empty());
  CHECK(tables[1].rest.empty());
}

TEST_CASE("tables without a count of profiled steps cover all steps") {
  const TempDir dir;
  const std::string path = dir / "t.strata";
  {
    const auto trace = OrDie(TraceWriter::Create(path));
    const RunId run = OrDie(trace->BeginRun(RunInfo()));
    OrDie(trace->AddArtifact(
        run, "step.nodes.tsv", "node_statistics",
        "strata.node-statistics/1\tstep\t00000000000000000000000000000001\t3\t6\n"
        "node\tcalls\ttime_ns\tbytes\thas_values\telements\tnan_count\tinf_count\tmin\tmax\tmean\n"
        "7\t4\t100\t8\t0\t0\t0\t0\t0\t0\t0\n"));
    REQUIRE_OK(trace->EndRun(run, RunStatus::kFinished));
    REQUIRE_OK(trace->Finish());
  }
  const auto reader = OrDie(TraceReader::Open(path));
  const auto tables = OrDie(LoadNodeStatistics(*reader, reader->runs()[0]));
  REQUIRE_EQ(tables.size(), 1);
  CHECK_EQ(tables[0].steps, 4);
  REQUIRE_EQ(tables[0].nodes.size(), 1);
  CHECK_EQ(tables[0].nodes[0].time_ns, 100);
}

TEST_CASE("malformed statistics are errors") {
  const TempDir dir;
  const std::string path = dir / "t.strata";
  {
    const auto trace = OrDie(TraceWriter::Create(path));
    const RunId run = OrDie(trace->BeginRun(RunInfo()));
    OrDie(trace->AddArtifact(run, "step.nodes.tsv", "node_statistics",
                             "strata.node-statistics/1\tx"));
    REQUIRE_OK(trace->EndRun(run, RunStatus::kFinished));
    REQUIRE_OK(trace->Finish());
  }
  const auto reader = OrDie(TraceReader::Open(path));
  CHECK_EQ(testing::MessageOf(LoadNodeStatistics(*reader, reader->runs()[0])),
           "damaged node statistics: " + path + ": artifact step.nodes.tsv; record the run anew");
}

}  // namespace
}  // namespace strata
