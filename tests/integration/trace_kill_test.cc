#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "store/check.h"
#include "store/trace_reader.h"
#include "store/trace_writer.h"
#include "tests/unit/store/support.h"

namespace strata::store_test {
namespace {

constexpr int kKills = 50;
constexpr size_t kNodes = 80, kEdits = 6;

/// Reports what the writer has stored: 'c' created, 'p' a pass ended, 'f' finished.
void Tell(int pipe, char what) {
  if (::write(pipe, &what, 1) != 1) ::_exit(1);
}

/// Records passes until it is killed, or `passes` of them.
[[noreturn]] void WriteUntilKilled(const std::string& path, uint64_t seed, int passes, int pipe) {
  const auto module = MakeModule(seed, kNodes);
  const Graph& step = module->graph(GraphId{0});
  Random random(seed);
  const auto writer = OrDie(TraceWriter::Create(path));
  const RunId run = OrDie(writer->BeginRun({}));
  SnapshotId last = OrDie(writer->AddSnapshot(run, "step", step));
  Tell(pipe, 'c');
  for (int i = 0; i < passes; ++i) {
    Edit(*module, random, kEdits);
    PassRecord pass;
    pass.index = i;
    pass.graph = "step";
    pass.before = last;
    pass.births = module->TakeProvenance();
    last = OrDie(writer->RecordPass(run, pass, &step)).record.after;
    Tell(pipe, 'p');
  }
  OrDie(writer->EndRun(run, RunStatus::kFinished));
  OrDie(writer->Finish());
  Tell(pipe, 'f');
  for (;;)
    ::pause();
}

TEST_CASE("a trace survives SIGKILL at any moment with all passes that had ended") {
  const TempDir folder;
  Random random(2024);
  int64_t all_passes = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    CAPTURE(kill);
    const std::string path = folder / fmt::format("{}.strata", kill);
    const auto seed = static_cast<uint64_t>(kill) + 1;
    // Every fourth writer comes to its end, so that the end is hit too.
    const int passes = kill % 4 == 0 ? static_cast<int>(Below(random, 10)) : 1'000'000;
    const auto wait_us = static_cast<useconds_t>(Below(random, 30'000));
    int ends[2];
    REQUIRE_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      WriteUntilKilled(path, seed, passes, ends[1]);
    }
    ::close(ends[1]);
    std::string told;
    char buffer[4096];
    // A disk may take its time for a new file: most writers are killed when they have one.
    if (kill % 5 != 0 && ::read(ends[0], buffer, 1) == 1) told = buffer[0];
    ::usleep(wait_us);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));
    for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof(buffer))) > 0;)
      told.append(buffer, static_cast<size_t>(got));
    ::close(ends[0]);
    // Before that it may not exist, or have no run.
    if (told.empty()) continue;

    const auto ended = static_cast<size_t>(std::ranges::count(told, 'p'));
    const auto findings = OrDie(CheckTrace(path));
    REQUIRE(findings.empty());
    const auto reader = OrDie(TraceReader::Open(path));
    REQUIRE_EQ(reader->runs().size(), 1);
    const StoredRun& run = reader->runs()[0];
    // The pass that was being reported when the signal came may be there too.
    CHECK_GE(run.passes.size(), ended);
    CHECK_LE(run.passes.size(), ended + 1);
    if (told.ends_with('f')) CHECK_EQ(run.status, RunStatus::kFinished);
    const auto module = MakeModule(seed, kNodes);
    Random replay(seed);
    for (const StoredPass& pass : run.passes) {
      Edit(*module, replay, kEdits);
      const auto loaded = OrDie(reader->LoadSnapshot(pass.record.after));
      REQUIRE_EQ(FullText(loaded->graph(GraphId{0})), FullText(module->graph(GraphId{0})));
      CHECK_EQ(OrDie(reader->LoadBirths(pass.id)).size(), module->TakeProvenance().size());
    }
    all_passes += static_cast<int64_t>(run.passes.size());
  }
  CHECK_GT(all_passes, 100);
}

TEST_CASE("readers in other processes see whole passes while a run writes") {
  constexpr int kReaders = 3;
  const TempDir folder;
  const std::string path = folder / "t.strata";
  int ends[2];
  REQUIRE_EQ(::pipe(ends), 0);
  const auto writer = OrDie(TraceWriter::Create(path));
  std::vector<pid_t> readers;
  for (int i = 0; i < kReaders; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      // Until the run has ended: every snapshot that is listed loads, and passes only grow.
      const auto reader = TraceReader::Open(path);
      if (!reader) ::_exit(1);
      size_t seen = 0;
      for (int round = 0; round < 100'000; ++round) {
        const Result<bool> refreshed = (*reader)->Refresh();
        if (!refreshed) ::_exit(2);
        if ((*reader)->runs().empty()) continue;
        const StoredRun& run = (*reader)->runs()[0];
        if (run.passes.size() < seen) ::_exit(3);
        for (; seen < run.passes.size(); ++seen) {
          const PassRecord& pass = run.passes[seen].record;
          if (pass.index != static_cast<int>(seen)) ::_exit(4);
          if (!(*reader)->LoadSnapshot(pass.after)) ::_exit(5);
        }
        if (run.status == RunStatus::kFinished) ::_exit(seen == 60 ? 0 : 6);
      }
      ::_exit(7);
    }
    readers.push_back(child);
  }
  const auto module = MakeModule(5, 300);
  Random random(6);
  WriteTrace(*writer, *module, random, 60, 10);
  OrDie(writer->EndRun(RunId{1}, RunStatus::kFinished));
  for (pid_t reader : readers) {
    int status = 0;
    ::waitpid(reader, &status, 0);
    CHECK_EQ(WEXITSTATUS(status), 0);
  }
  OrDie(writer->Finish());
  ::close(ends[0]);
  ::close(ends[1]);
  CHECK(OrDie(CheckTrace(path)).empty());
}

}  // namespace
}  // namespace strata::store_test
