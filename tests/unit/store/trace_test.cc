#include <cmath>
#include <filesystem>

#include <doctest/doctest.h>

#include "ir/rewriter.h"
#include "store/check.h"
#include "store/merge.h"
#include "store/run_end.h"
#include "store/trace_reader.h"
#include "store/trace_writer.h"
#include "tests/unit/store/support.h"

namespace strata::store_test {
namespace {

TEST_CASE("runs, passes, steps, artifacts and events read back as written") {
  const TempDir folder;
  const auto module = MakeModule(1, 40);
  const Graph& step = module->graph(GraphId{0});
  const auto writer = OrDie(TraceWriter::Create(folder / "t.strata"));
  RunInfo info;
  info.kind = RunKind::kTrain;
  info.rank = 3;
  info.world = 8;
  info.source = "llama3.toml";
  info.command = "strata train llama3.toml";
  info.pipeline = "dce,bucket{ag=2}";
  info.config = "[model]\nname = \"llama3\"\n";
  const RunId run = OrDie(writer->BeginRun(info));
  const SnapshotId first = OrDie(writer->AddSnapshot(run, "step", step, R"({"a": 1})"));

  PassRecord pass;
  pass.index = 4;
  pass.name = "bucket";
  pass.options = "ag=2";
  pass.outcome = PassOutcome::kFailed;
  pass.wall_ns = 1'200'000;
  pass.graph = "step";
  pass.before = first;
  pass.error = "no bucket fits";
  pass.reproduce = "strata opt t.strata";
  pass.births = {{StableId{90}, Origin::kCloned, {StableId{7}}},
                 {StableId{12}, Origin::kReplaced, {StableId{100}, StableId{1}}},
                 {StableId{91}, Origin::kTraced, {}}};
  Random random(2);
  Edit(*module, random, 5);
  const StoredPass stored = OrDie(writer->RecordPass(run, pass, &step));
  CHECK_EQ(stored.id, PassId{1});
  CHECK_EQ(stored.record.after, SnapshotId{2});

  const ArtifactId artifact = OrDie(writer->AddArtifact(
      run, "output_code.py", "code", std::string(5000, 'x') + "end", R"({"compile_id": "0/0"})"));
  const ArtifactId empty = OrDie(writer->AddArtifact(run, "empty", "text", ""));
  const std::vector<EventRecord> events = {
      {"kernel", "gemm", 100, 20, StableId{5}, R"({"stream": 7})"},
      {"phase", "trace", 0, 9, {}, ""}};
  OrDie(writer->AddEvents(run, events));
  OrDie(writer->RecordStep(run, {1, 4.5, NAN, 1000}, {}));
  OrDie(writer->RecordStep(run, {2, -0.0, INFINITY, 900}, {}));
  OrDie(writer->EndRun(run, RunStatus::kFinished));
  RunInfo four;
  four.world = 4;
  four.is_of_all_ranks = true;
  const RunId second = OrDie(writer->BeginRun(four));
  OrDie(writer->Finish());

  const auto reader = OrDie(TraceReader::Open(folder / "t.strata"));
  REQUIRE_EQ(reader->runs().size(), 2);
  const StoredRun& read = *reader->FindRun(run);
  CHECK_EQ(read.status, RunStatus::kFinished);
  CHECK_EQ(reader->FindRun(second)->status, RunStatus::kRunning);  // the writer holds the file
  CHECK_EQ(read.info.kind, RunKind::kTrain);
  CHECK_EQ(read.info.rank, 3);
  CHECK_EQ(read.info.world, 8);
  CHECK(!HasRank(read.info, 0));
  CHECK(HasRank(read.info, 3));
  CHECK_EQ(RanksText(read.info), "rank 3 of 8");
  const RunInfo& of_all = reader->FindRun(second)->info;
  CHECK_EQ(of_all.rank, 0);
  CHECK(HasRank(of_all, 3));
  CHECK(!HasRank(of_all, 4));
  CHECK_EQ(RanksText(of_all), "ranks 0..3");
  CHECK_EQ(read.info.source, info.source);
  CHECK_EQ(read.info.command, info.command);
  CHECK_EQ(read.info.pipeline, info.pipeline);
  CHECK_EQ(read.info.config, info.config);

  REQUIRE_EQ(read.graphs.size(), 1);
  CHECK_EQ(read.FindGraph("step")->snapshots, std::vector{SnapshotId{1}, SnapshotId{2}});
  CHECK(read.FindGraph("joint") == nullptr);
  CHECK_EQ(reader->FindSnapshot(first)->attributes, R"({"a": 1})");
  CHECK(reader->FindSnapshot(SnapshotId{3}) == nullptr);
  CHECK(reader->FindSnapshot(SnapshotId::kNone) == nullptr);

  REQUIRE_EQ(read.passes.size(), 1);
  const PassRecord& record = read.passes[0].record;
  CHECK_EQ(record.index, 4);
  CHECK_EQ(record.name, "bucket");
  CHECK_EQ(record.options, "ag=2");
  CHECK_EQ(record.outcome, PassOutcome::kFailed);
  CHECK_EQ(record.wall_ns, 1'200'000);
  CHECK_EQ(record.graph, "step");
  CHECK_EQ(record.before, first);
  CHECK_EQ(record.after, SnapshotId{2});
  CHECK_EQ(record.counts, stored.record.counts);
  CHECK_EQ(record.error, "no bucket fits");
  CHECK_EQ(record.reproduce, "strata opt t.strata");
  const std::vector<Provenance> births = OrDie(reader->LoadBirths(PassId{1}));
  REQUIRE_EQ(births.size(), 3);
  for (size_t i = 0; i < births.size(); ++i) {
    CHECK_EQ(births[i].node, pass.births[i].node);
    CHECK_EQ(births[i].origin, pass.births[i].origin);
    CHECK_EQ(births[i].from, pass.births[i].from);
  }

  REQUIRE_EQ(read.artifacts.size(), 2);
  CHECK_EQ(read.artifacts[0].id, artifact);
  CHECK_EQ(read.artifacts[0].name, "output_code.py");
  CHECK_EQ(read.artifacts[0].kind, "code");
  CHECK_EQ(read.artifacts[0].bytes, 5003);
  CHECK_EQ(read.artifacts[0].attributes, R"({"compile_id": "0/0"})");
  CHECK_EQ(OrDie(reader->LoadArtifact(artifact)), std::string(5000, 'x') + "end");
  CHECK_EQ(OrDie(reader->LoadArtifact(empty)), "");
  CHECK_FALSE(reader->LoadArtifact(ArtifactId{9}).has_value());

  const std::vector<EventRecord> read_events = OrDie(reader->LoadEvents(run));
  REQUIRE_EQ(read_events.size(), 2);
  CHECK_EQ(read_events[0].kind, "kernel");
  CHECK_EQ(read_events[0].name, "gemm");
  CHECK_EQ(read_events[0].start_ns, 100);
  CHECK_EQ(read_events[0].duration_ns, 20);
  CHECK_EQ(read_events[0].node, StableId{5});
  CHECK_EQ(read_events[0].attributes, R"({"stream": 7})");
  CHECK_EQ(read_events[1].node, StableId::kNone);

  const std::vector<StepRecord> steps = OrDie(reader->LoadSteps(run));
  REQUIRE_EQ(steps.size(), 2);
  CHECK_EQ(steps[0].step, 1);
  CHECK_EQ(steps[0].loss, 4.5);
  CHECK(std::isnan(steps[0].grad_norm));
  CHECK_EQ(steps[1].loss, 0.0);
  CHECK(std::isinf(steps[1].grad_norm));
  CHECK_EQ(steps[1].wall_ns, 900);
  CHECK(OrDie(reader->LoadSteps(second)).empty());
  CHECK(OrDie(CheckTrace(folder / "t.strata")).empty());
}

TEST_CASE("steps that run the same plan become one range and name the pass that produced it") {
  const TempDir folder;
  const auto module = MakeModule(1, 40);
  const Graph& step = module->graph(GraphId{0});
  const auto writer = OrDie(TraceWriter::Create(folder / "t.strata"));
  const RunId run = OrDie(writer->BeginRun({}));
  const Fingerprint traced = FingerprintOf(step);
  const SnapshotId first = OrDie(writer->AddSnapshot(run, "step", step));
  Random random(3);
  const auto record = [&](int index, PassOutcome outcome, SnapshotId before, const Graph* after) {
    PassRecord pass;
    pass.index = index;
    pass.name = "edit";
    pass.outcome = outcome;
    pass.graph = "step";
    pass.before = pass.after = before;
    return OrDie(writer->RecordPass(run, pass, after)).record.after;
  };
  Edit(*module, random, 9);
  const SnapshotId edited = record(0, PassOutcome::kOk, first, &step);
  CHECK_EQ(record(1, PassOutcome::kUnchanged, edited, nullptr), edited);
  const Fingerprint optimizer{1, 2};
  for (int64_t i = 1; i <= 3; ++i) {
    const TraceWriter::Executed executed[] = {{"step", traced}, {"optimizer", optimizer}};
    OrDie(writer->RecordStep(run, {i, 1, 1, 1}, executed));
  }
  for (int64_t i = 4; i <= 5; ++i) {
    const TraceWriter::Executed executed[] = {{"step", FingerprintOf(step)},
                                              {"optimizer", optimizer}};
    OrDie(writer->RecordStep(run, {i, 1, 1, 1}, executed));
  }
  OrDie(writer->RecordExecuted(run, {"optimizer", 7, 8, optimizer}));  // 6 is missing
  const auto reader = OrDie(TraceReader::Open(folder / "t.strata"));
  const StoredRun& read = reader->runs()[0];
  REQUIRE_EQ(read.executed.size(), 4);
  const auto check = [&](size_t i, std::string_view graph, int64_t begin, int64_t end) {
    CHECK_EQ(read.executed[i].graph, graph);
    CHECK_EQ(read.executed[i].first_step, begin);
    CHECK_EQ(read.executed[i].last_step, end);
  };
  check(0, "step", 1, 3);
  check(1, "optimizer", 1, 5);
  check(2, "step", 4, 5);
  check(3, "optimizer", 7, 8);
  CHECK(FindExecutedPass(*reader, read, read.executed[0]) == nullptr);
  const StoredPass* pass = FindExecutedPass(*reader, read, read.executed[2]);
  REQUIRE(pass != nullptr);
  CHECK_EQ(pass->record.index, 0);
  // Only recorded graphs are listed.
  CHECK_EQ(read.graphs.size(), 1);
}

TEST_CASE("a reader sees a growing run, and each pass atomically") {
  const TempDir folder;
  const auto module = MakeModule(1, 60);
  const auto writer = OrDie(TraceWriter::Create(folder / "t.strata"));
  const auto reader = OrDie(TraceReader::Open(folder / "t.strata"));
  CHECK(reader->runs().empty());
  CHECK_FALSE(OrDie(reader->Refresh()));
  Random random(4);
  WriteTrace(*writer, *module, random, 3, 5);
  CHECK(reader->runs().empty());
  CHECK(OrDie(reader->Refresh()));
  REQUIRE_EQ(reader->runs().size(), 1);
  CHECK_EQ(reader->runs()[0].passes.size(), 3);
  const auto loaded = OrDie(reader->LoadSnapshot(SnapshotId{4}));
  CHECK_EQ(FullText(loaded->graph(GraphId{0})), FullText(module->graph(GraphId{0})));
  OrDie(writer->EndRun(RunId{1}, RunStatus::kFailed));
  CHECK(OrDie(reader->Refresh()));
  CHECK_EQ(reader->runs()[0].status, RunStatus::kFailed);
  CHECK_EQ(reader->next_stable_id(), module->next_stable_id());
  CHECK_EQ(writer->next_stable_id(), module->next_stable_id());
}

TEST_CASE("content shared with other snapshots is not stored again") {
  const TempDir folder;
  const auto module = MakeModule(1, 4000);
  const auto size_with = [&](int snapshots, size_t edits) {
    const std::string path = folder / "t.strata";
    const auto writer = OrDie(TraceWriter::Create(path, TraceWriter::Mode::kAside));
    const auto copy = module->Clone();
    Random random(5);
    const RunId run = OrDie(writer->BeginRun({}));
    for (int i = 0; i < snapshots; ++i) {
      OrDie(writer->AddSnapshot(run, "step", copy->graph(GraphId{0})));
      Edit(*copy, random, edits);
    }
    OrDie(writer->Finish());
    return static_cast<int64_t>(Slurp(path).size());
  };
  const int64_t one = size_with(1, 0);
  // Two hundred bytes for the row and its list of chunks, in pages of 4 KB.
  CHECK_LE(size_with(41, 0), one + 41 * 200 + 8192);
  // 40 edited nodes in each of 40 snapshots: fewer bytes than the 4000 nodes of the first.
  CHECK_LE(size_with(41, 40), 3 * one);
}

TEST_CASE("equal input gives equal bytes") {
  const TempDir folder;
  for (const char* name : {"a.strata", "b.strata"}) {
    const auto module = MakeModule(6, 100);
    Random random(7);
    const auto writer = OrDie(TraceWriter::Create(folder / name, TraceWriter::Mode::kAside));
    WriteTrace(*writer, *module, random, 5, 5);
    OrDie(writer->Finish());
  }
  CHECK(Slurp(folder / "a.strata") == Slurp(folder / "b.strata"));
}

TEST_CASE("modules of one trace have distinct stable ids") {
  const TempDir folder;
  const auto writer = OrDie(TraceWriter::Create(folder / "t.strata"));
  CHECK_EQ(writer->next_stable_id(), 1);
  const auto module = MakeModule(1, 10);
  const RunId run = OrDie(writer->BeginRun({}));
  OrDie(writer->AddSnapshot(run, "step", module->graph(GraphId{0})));
  Module other;
  other.ReserveStableIds(writer->next_stable_id());
  CHECK_EQ(other.NewStableId(), StableId{module->next_stable_id()});
}

TEST_CASE("artifact content is stored once, can be appended, and is read in parts") {
  const TempDir folder;
  const auto writer = OrDie(TraceWriter::Create(folder / "t.strata"));
  const RunId run = OrDie(writer->BeginRun({}));
  Random random(7);
  std::string large((size_t{9} << 20) + 11, ' ');
  for (char& c : large)
    c = static_cast<char>(random());
  const ArtifactId first = OrDie(writer->AddArtifact(run, "a", "record", large));
  const auto size = std::filesystem::file_size(folder / "t.strata-wal");
  const ArtifactId again = OrDie(writer->AddArtifact(run, "b", "record", large, "{}"));
  const ArtifactId empty = OrDie(writer->AddArtifact(run, "c", "record", ""));
  OrDie(writer->AppendArtifact(empty, "one "));
  OrDie(writer->AppendArtifact(empty, ""));
  OrDie(writer->AppendArtifact(empty, "two"));
  CHECK_LT(std::filesystem::file_size(folder / "t.strata-wal"), size + 200'000);

  const auto reader = OrDie(TraceReader::Open(folder / "t.strata"));
  CHECK(OrDie(reader->LoadArtifact(first)) == large);
  CHECK(OrDie(reader->LoadArtifact(again)) == large);
  CHECK_EQ(OrDie(reader->LoadArtifact(empty)), "one two");
  const std::vector<ArtifactInfo>& artifacts = reader->runs()[0].artifacts;
  CHECK_EQ(artifacts[1].attributes, "{}");
  CHECK_EQ(artifacts[2].bytes, 7);
  OrDie(writer->Finish());
  CHECK(OrDie(CheckTrace(folder / "t.strata")).empty());
}

TEST_CASE("a snapshot with another name costs one row") {
  const TempDir folder;
  const auto module = MakeModule(5, 200);
  module->MarkForeign(GraphId{0});
  const Graph& graph = module->graph(GraphId{0});
  const auto writer = OrDie(TraceWriter::Create(folder / "t.strata"));
  const RunId run = OrDie(writer->BeginRun({}));
  const SnapshotId first = OrDie(writer->AddSnapshot(run, "joint", graph));
  const auto size = std::filesystem::file_size(folder / "t.strata-wal");
  const SnapshotId second = OrDie(writer->AddSnapshotOf(run, "joint@1/0", first, "{}"));
  CHECK_LT(std::filesystem::file_size(folder / "t.strata-wal"), size + 40'000);
  RunInfo late;
  late.rank = 3;
  OrDie(writer->UpdateRun(run, late));
  OrDie(writer->Finish());

  const auto reader = OrDie(TraceReader::Open(folder / "t.strata"));
  const auto a = OrDie(reader->LoadSnapshot(first)), b = OrDie(reader->LoadSnapshot(second));
  CHECK_EQ(a->graph(GraphId{0}).name_text(), "joint");
  CHECK_EQ(b->graph(GraphId{0}).name_text(), "joint@1/0");
  CHECK(FingerprintOf(a->graph(GraphId{0})) == FingerprintOf(b->graph(GraphId{0})));
  CHECK_EQ(reader->FindSnapshot(second)->attributes, "{}");
  CHECK_EQ(reader->FindSnapshot(second)->nodes, reader->FindSnapshot(first)->nodes);
  CHECK_EQ(reader->runs()[0].info.rank, 3);
  CHECK(OrDie(CheckTrace(folder / "t.strata")).empty());
}

TEST_CASE("a trace says why a run was interrupted, and so does a merged one") {
  const TempDir folder;
  const std::string path = folder / "t.strata", merged = folder / "m.strata";
  const auto writer = OrDie(TraceWriter::Create(path));
  const RunId run = OrDie(writer->BeginRun({}));
  OrDie(AddRunEnd(*writer, run, "interrupted: after step 3"));
  OrDie(writer->EndRun(run, RunStatus::kInterrupted));
  OrDie(writer->EndRun(OrDie(writer->BeginRun({})), RunStatus::kFinished));
  OrDie(writer->Finish());
  const auto to = OrDie(TraceWriter::Create(merged));
  const auto from = OrDie(TraceReader::Open(path));
  for (const StoredRun& each : from->runs())
    OrDie(CopyRun(*from, each, each.info, *to));
  OrDie(to->Finish());
  for (const std::string& each : {path, merged}) {
    const auto reader = OrDie(TraceReader::Open(each));
    REQUIRE_EQ(reader->runs().size(), 2);
    CHECK_EQ(reader->runs()[0].status, RunStatus::kInterrupted);
    CHECK_EQ(WhyEnded(reader->runs()[0]), "interrupted: after step 3");
    CHECK_EQ(reader->runs()[1].status, RunStatus::kFinished);
    CHECK_EQ(WhyEnded(reader->runs()[1]), "");
    CHECK(OrDie(CheckTrace(each)).empty());
  }
}

TEST_CASE("a run that did not end is interrupted once its trace has no writer") {
  const TempDir folder;
  const std::string path = folder / "t.strata";
  auto writer = OrDie(TraceWriter::Create(path));
  const RunId run = OrDie(writer->BeginRun({}));
  const auto reader = OrDie(TraceReader::Open(path));
  CHECK_EQ(reader->FindRun(run)->status, RunStatus::kRunning);
  CHECK_FALSE(OrDie(reader->Refresh()));
  writer.reset();  // as after a kill
  CHECK(OrDie(reader->Refresh()));
  CHECK_EQ(reader->FindRun(run)->status, RunStatus::kInterrupted);
  CHECK_FALSE(OrDie(reader->Refresh()));
  CHECK_EQ(OrDie(TraceReader::Open(path))->FindRun(run)->status, RunStatus::kInterrupted);
}

}  // namespace
}  // namespace strata::store_test
