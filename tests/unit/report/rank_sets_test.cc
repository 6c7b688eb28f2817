#include "tlparse-export/report/rank_sets.h"

#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"
#include "tlparse-export/report/report_model.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::ParseOrDie;
using testing::TempDir;

/// A graph whose third node is `op`, or a call, with the stable ids 1 to 4.
std::string Step(std::string_view op) {
  const bool is_call = op.find('(') != std::string_view::npos;
  return fmt::format(
      "graph step\n  x = placeholder : f32[4][1]cpu #1\n  a = aten.neg.default(x) #2\n"
      "  b = {} #3\n  output([b]) #4\n",
      is_call ? std::string(op) : fmt::format("aten.{}.default(a)", op));
}

/// A trace with a run per rank: `ops` gives their graphs, `times` the time of node 2 on each.
std::string WriteRanks(const TempDir& dir, const std::vector<std::string_view>& ops,
                       const std::vector<int64_t>& times) {
  const std::string path = dir / "ranks.strata";
  auto writer = TraceWriter::Create(path);
  REQUIRE_OK(writer);
  for (size_t rank = 0; rank < ops.size(); ++rank) {
    RunInfo info;
    info.rank = static_cast<int32_t>(rank);
    info.world = static_cast<int32_t>(ops.size());
    const auto run = (*writer)->BeginRun(info);
    REQUIRE_OK(run);
    const auto module = ParseOrDie(Step(ops[rank]));
    REQUIRE_OK((*writer)->AddSnapshot(*run, "step", module->graph({0})));
    EventRecord event;
    event.kind = "node";
    event.name = "a";
    event.node = StableId{2};
    event.duration_ns = times[rank];
    REQUIRE_OK((*writer)->AddEvents(*run, {&event, 1}));
    REQUIRE_OK((*writer)->EndRun(*run, RunStatus::kFinished));
  }
  REQUIRE_OK((*writer)->Finish());
  return path;
}

/// Of the graph of the first rank.
RankFacts FactsOfFirst(TraceReader& trace, int64_t budget) {
  std::map<RunId, Measures> measures;
  for (const StoredRun& run : trace.runs()) {
    auto own = LoadMeasures(trace, run);
    REQUIRE_OK(own);
    measures[run.id] = *own;
  }
  const StoredRun& run = trace.runs()[0];
  auto module = trace.LoadSnapshot(run.graphs[0].snapshots.back());
  REQUIRE_OK(module);
  const Listing listing((*module)->graph({0}));
  auto facts = RankFactsOf(trace, run, "step", nullptr, listing, measures,
                           OrDie(LoadRankMeasures(trace, run)), {}, budget);
  REQUIRE_OK(facts);
  return *facts;
}

/// The places at which ranks differ.
size_t NumPairs(const std::vector<std::string_view>& calls) {
  const TempDir dir;
  auto trace = TraceReader::Open(WriteRanks(dir, calls, {1, 1, 1, 1}));
  REQUIRE_OK(trace);
  const auto programs = RankProgramsOf(**trace);
  REQUIRE_OK(programs);
  return RankPairsOf(**trace, *programs).size();
}

TEST_CASE("ranks whose constants follow from the rank run one program") {
  CHECK_EQ(NumPairs({"aten.add.Tensor(a, 0)", "aten.add.Tensor(a, 4)"}), 0);
  CHECK_EQ(NumPairs({"aten.add.Tensor(a, 0)", "aten.add.Tensor(a, 3)"}), 1);
  CHECK_EQ(NumPairs({"aten.add.Tensor(a, 0)", "aten.sub.Tensor(a, 4)"}), 1);
  CHECK_EQ(NumPairs({"aten.add.Tensor(a, 0)", "aten.add.Tensor(a, 4)", "aten.add.Tensor(a, 8)",
                     "aten.add.Tensor(a, 9)"}),
           1);
}

TEST_CASE("each node of differing ranks lists its ranks and the spread of their times") {
  const TempDir dir;
  auto trace = TraceReader::Open(WriteRanks(dir, {"abs", "abs", "exp"}, {300, 100, 700}));
  REQUIRE_OK(trace);
  const RankFacts facts = FactsOfFirst(**trace, 100);
  CHECK(facts.sets.values() == std::vector<std::string>{"", "", "ranks 0–1", ""});
  REQUIRE(facts.times.size() == 4);
  CHECK(facts.times[EntityId{0}].slowest == -1);
  CHECK(facts.times[EntityId{1}].least_ns == 100);
  CHECK(facts.times[EntityId{1}].median_ns == 300);
  CHECK(facts.times[EntityId{1}].most_ns == 700);
  CHECK(facts.times[EntityId{1}].slowest == 2);
  CHECK(!facts.is_left_out);
}

TEST_CASE("ranks with equal graphs have times but no sets") {
  const TempDir dir;
  auto trace = TraceReader::Open(WriteRanks(dir, {"abs", "abs"}, {300, 100}));
  REQUIRE_OK(trace);
  const RankFacts facts = FactsOfFirst(**trace, 0);
  CHECK(facts.sets.empty());
  REQUIRE(facts.times.size() == 4);
  CHECK(facts.times[EntityId{1}].slowest == 0);
  CHECK(RankPairsOf(**trace, {}).empty());
}

TEST_CASE("ranks of one run have times, too") {
  const TempDir dir;
  {
    const auto writer = OrDie(TraceWriter::Create(dir / "all.strata"));
    RunInfo info;
    info.world = 3;
    info.is_of_all_ranks = true;
    const RunId run = OrDie(writer->BeginRun(info));
    const auto module = ParseOrDie(Step("abs"));
    OrDie(writer->AddSnapshot(run, "step", module->graph({0})));
    for (int32_t rank = 0; rank < 3; ++rank) {
      const StatisticsTable table{
          .graph = "step",
          .fingerprint = {},
          .steps = 2,
          .rank = rank,
          .nodes = {{.node = StableId{2}, .calls = 2, .time_ns = 1000 * (3 - rank)}}};
      REQUIRE_OK((rank == 0 ? AddNodeStatistics : AddRankStatistics)(*writer, run, table));
    }
    REQUIRE_OK(writer->EndRun(run, RunStatus::kFinished));
    REQUIRE_OK(writer->Finish());
  }
  const auto trace = OrDie(TraceReader::Open(dir / "all.strata"));
  CHECK_EQ(OrDie(LoadNodeStatistics(*trace, trace->runs()[0])).size(), 1);
  const RankFacts facts = FactsOfFirst(*trace, 0);
  CHECK(facts.sets.empty());
  REQUIRE_EQ(facts.times.size(), 4);
  CHECK_EQ(facts.times[EntityId{1}].least_ns, 500);
  CHECK_EQ(facts.times[EntityId{1}].median_ns, 1000);
  CHECK_EQ(facts.times[EntityId{1}].most_ns, 1500);
  CHECK_EQ(facts.times[EntityId{1}].slowest, 0);
}

TEST_CASE("ranks that are too large to compare are reported as omitted") {
  const TempDir dir;
  auto trace = TraceReader::Open(WriteRanks(dir, {"abs", "exp"}, {300, 100}));
  REQUIRE_OK(trace);
  CHECK(FactsOfFirst(**trace, 7).is_left_out);
  CHECK(!FactsOfFirst(**trace, 8).is_left_out);
}

TEST_CASE("every two different graphs of a position form a pair with both REFs") {
  const TempDir dir;
  auto trace = TraceReader::Open(WriteRanks(dir, {"abs", "exp", "abs", "sin"}, {1, 1, 1, 1}));
  REQUIRE_OK(trace);
  const auto model = MakeReport(**trace);
  REQUIRE_OK(model);
  REQUIRE(model->rank_pairs.size() == 3);
  const std::vector<std::string> names = {"step: rank 0 → rank 1", "step: rank 0 → rank 3",
                                          "step: rank 1 → rank 3"};
  for (size_t i = 0; i < names.size(); ++i) {
    CHECK(model->rank_pairs[i].name == names[i]);
    CHECK(model->rank_pairs[i].counts.changed == 1);
    CHECK(model->rank_pairs[i].detail >= 0);
  }
  CHECK(model->rank_pairs[1].base == "run=1,graph=step");
  CHECK(model->rank_pairs[1].selector == "run=4,graph=step");
}

}  // namespace
}  // namespace strata
