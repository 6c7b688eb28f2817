#include <csignal>
#include <filesystem>
#include <functional>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "store/check.h"
#include "store/run_end.h"
#include "store/trace_reader.h"
#include "store/trace_writer.h"
#include "tests/support/results.h"
#include "tests/unit/store/support.h"

namespace strata::store_test {
namespace {

namespace fs = std::filesystem;

std::string OpenError(const std::string& path) {
  const auto reader = TraceReader::Open(path);
  if (reader) return "";
  const auto findings = CheckTrace(path);
  CHECK_FALSE(findings.has_value());
  if (!findings) CHECK_EQ(findings.error().message(), reader.error().message());
  return reader.error().message();
}

std::string CreateError(const std::string& path) {
  std::string message;
  for (auto mode : {TraceWriter::Mode::kLive, TraceWriter::Mode::kAside}) {
    const auto writer = TraceWriter::Create(path, mode);
    if (writer) return "";
    message = writer.error().message();
  }
  return message;
}

/// A small finished trace.
void WriteSmall(const std::string& path) {
  const auto writer = OrDie(TraceWriter::Create(path));
  OrDie(writer->BeginRun({}));
  OrDie(writer->Finish());
}

/// Runs `body` in a child process, which may drop privileges; returns its message.
std::string InChild(const std::function<std::string()>& body) {
  int ends[2];
  REQUIRE_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string message = body();
    [[maybe_unused]] const auto written = ::write(ends[1], message.data(), message.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string message;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof(buffer))) > 0;)
    message.append(buffer, static_cast<size_t>(got));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  return message;
}

TEST_CASE("files that are not traces are rejected in one line") {
  const TempDir folder;
  const std::string path = folder / "t.strata";
  CHECK_EQ(OpenError(path), "no such file: " + path + ": check the path");
  CHECK_EQ(OpenError(folder.path()), "is a directory: " + folder.path() + ": give a file");
  const std::string not_a_trace =
      "not a trace: " + path + ": give a file made by 'strata import', 'opt' or 'train'";
  Spill(path, "");
  CHECK_EQ(OpenError(path), not_a_trace);
  Spill(path, "def forward(self, x):\n    return x\n");
  CHECK_EQ(OpenError(path), not_a_trace);
  CHECK_FALSE(LooksLikeTrace(path));
  WriteSmall(folder / "sound.strata");
  CHECK(LooksLikeTrace(folder / "sound.strata"));
  // A database of another program: the same format with another application id.
  std::string bytes = Slurp(folder / "sound.strata");
  bytes[68] = 'X';
  Spill(path, bytes);
  CHECK_EQ(OpenError(path), not_a_trace);
  CHECK_FALSE(LooksLikeTrace(path));
  CHECK_FALSE(LooksLikeTrace(folder / "missing"));
}

TEST_CASE("the error for a newer schema asks for a newer Strata") {
  const TempDir folder;
  const std::string path = folder / "t.strata";
  WriteSmall(path);
  std::string bytes = Slurp(path);
  REQUIRE_EQ(bytes[63], 2);  // user_version, https://www.sqlite.org/fileformat.html 1.3.13
  bytes[63] = 3;
  Spill(path, bytes);
  CHECK_EQ(OpenError(path), "written by a newer Strata: " + path +
                                ": its schema is 3, this build reads up to 2; update Strata");
}

TEST_CASE("an impossible output is rejected and leaves no file") {
  const TempDir folder;
  CHECK_EQ(CreateError(folder / "no/t.strata"), "cannot write: " + (folder / "no/t.strata") +
                                                    ": no folder '" + (folder / "no") +
                                                    "', create it first");
  CHECK_EQ(CreateError(folder.path()), "is a directory: " + folder.path() + ": give a file");
  CHECK_EQ(CreateError("-"), "cannot write: standard output: a trace needs a file; give its name");
  CHECK_EQ(CreateError("/dev/null"),
           "cannot write: /dev/null: a trace needs a file; give its name");
  const std::string notes = folder / "notes.txt";
  Spill(notes, "dear diary\n");
  CHECK_EQ(
      CreateError(notes),
      "cannot write: " + notes + ": it exists and is not a trace; remove it or give another name");
  CHECK_EQ(Slurp(notes), "dear diary\n");
  CHECK_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST_CASE("an unwritable folder is rejected") {
  const TempDir folder;
  fs::create_directory(folder / "closed");
  ::chmod((folder / "closed").c_str(), 0555);
  ::chmod(folder.path().c_str(), 0755);
  const std::string path = folder / "closed/t.strata";
  CHECK_EQ(InChild([&] {
             if (::geteuid() == 0 && ::setuid(65534) != 0) return std::string("no setuid");
             return CreateError(path);
           }),
           "cannot write: " + path + ": permission denied, choose a place that you may write to");
}

TEST_CASE("a trace in an unwritable folder can be read") {
  const TempDir folder;
  fs::create_directory(folder / "closed");
  const std::string path = folder / "closed/t.strata";
  const auto as_stranger = [&] {
    return InChild([&] {
      if (::geteuid() == 0 && ::setuid(65534) != 0) return std::string("no setuid");
      const auto reader = TraceReader::Open(path);
      return reader ? fmt::format("{} runs", (*reader)->runs().size()) : reader.error().message();
    });
  };
  ::chmod(folder.path().c_str(), 0755);
  SUBCASE("a finished trace") {
    WriteSmall(path);
    ::chmod((folder / "closed").c_str(), 0555);
    CHECK_EQ(as_stranger(), "1 runs");
  }
  SUBCASE("a live trace") {
    const auto writer = OrDie(TraceWriter::Create(path));
    OrDie(writer->BeginRun({}));
    ::chmod((folder / "closed").c_str(), 0555);
    CHECK_EQ(as_stranger(), "1 runs");
  }
  SUBCASE("a copy of a live trace without its helper files") {
    const auto writer = OrDie(TraceWriter::Create(folder / "live.strata"));
    OrDie(writer->BeginRun({}));
    // As after a checkpoint: all pages in the file, no pages in the log.
    fs::copy_file(folder / "live.strata", path);
    ::chmod((folder / "closed").c_str(), 0555);
    CHECK_EQ(as_stranger(), "0 runs");
  }
  SUBCASE("an unreadable trace") {
    WriteSmall(path);
    ::chmod(path.c_str(), 0);
    CHECK_EQ(as_stranger(),
             "cannot read: " + path + ": Permission denied, give a file that you may read");
  }
}

TEST_CASE("a full disk gives one error, and data stored earlier stays") {
  const TempDir folder;
  const std::string path = folder / "t.strata";
  const auto fill = [&](TraceWriter::Mode mode) {
    return InChild([&]() -> std::string {
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{400'000, 400'000};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      const auto writer = TraceWriter::Create(path, mode);
      if (!writer) return writer.error().message();
      const Result<RunId> run = (*writer)->BeginRun({});
      Random random(1);
      std::string noise(20'000, ' ');
      for (int i = 0; i < 100; ++i) {
        for (char& c : noise)
          c = static_cast<char>(random());
        const auto added = (*writer)->AddArtifact(*run, "noise", "bytes", noise);
        if (added) continue;
        // Every later call fails.
        const Status ended = (*writer)->EndRun(*run, RunStatus::kFinished);
        const Status finished = (*writer)->Finish();
        return ended || finished ? "went on" : added.error().message();
      }
      const Status finished = (*writer)->Finish();
      return finished ? "never full" : finished.error().message();
    });
  };
  const std::string expected = "file size limit reached: " + path + ": raise the limit (ulimit -f)";
  CHECK_EQ(fill(TraceWriter::Mode::kAside), expected);
  CHECK(fs::is_empty(folder.path()));
  CHECK_EQ(fill(TraceWriter::Mode::kLive), expected);
  const auto reader = OrDie(TraceReader::Open(path));
  REQUIRE_EQ(reader->runs().size(), 1);
  CHECK_GE(reader->runs()[0].artifacts.size(), 5);
  CHECK(OrDie(CheckTrace(path)).empty());
}

TEST_CASE("a trace on a full disk says why its run ended") {
  const TempDir folder;
  const std::string path = folder / "t.strata";
  const std::string why = InChild([&]() -> std::string {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{400'000, 400'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto writer = OrDie(TraceWriter::Create(path));
    const RunId run = OrDie(writer->BeginRun({}));
    Random random(1);
    std::string noise(20'000, ' ');
    while (true) {
      for (char& c : noise)
        c = static_cast<char>(random());
      const auto added = writer->AddArtifact(run, "noise", "bytes", noise);
      if (added) continue;
      writer->EndAfterError(run);
      return added.error().message();
    }
  });
  const auto reader = OrDie(TraceReader::Open(path));
  CHECK_EQ(reader->runs()[0].status, RunStatus::kFailed);
  CHECK_EQ(WhyEnded(reader->runs()[0]), why);
  CHECK(OrDie(CheckTrace(path)).empty());
}

TEST_CASE("a trace that is being written cannot be replaced") {
  const TempDir folder;
  const std::string path = folder / "t.strata";
  const std::string expected =
      "cannot write: " + path + ": it is being written already, wait or give another name";
  auto live = OrDie(TraceWriter::Create(path));
  OrDie(live->BeginRun({}));
  for (const auto mode : {TraceWriter::Mode::kLive, TraceWriter::Mode::kAside}) {
    const auto other = InChild([&]() -> std::string {
      const auto writer = TraceWriter::Create(path, mode);
      return writer ? "replaced" : writer.error().message();
    });
    CHECK_EQ(other, expected);
  }
  OrDie(live->BeginRun({}));
  CHECK_EQ(OrDie(TraceReader::Open(path))->runs().size(), 2);
  live.reset();
  OrDie(OrDie(TraceWriter::Create(path))->Finish());
  CHECK_EQ(OrDie(TraceReader::Open(path))->runs().size(), 0);
}

TEST_CASE("a trace that another writer finished meanwhile is not replaced") {
  const TempDir folder;
  const std::string path = folder / "t.strata";
  const auto aside = OrDie(TraceWriter::Create(path, TraceWriter::Mode::kAside));
  OrDie(aside->BeginRun({}));
  Spill(folder / "live", "");
  const auto live = OrDie(TraceWriter::Create(folder / "live"));
  fs::rename(folder / "live", path);
  CHECK_EQ(testing::MessageOf(aside->Finish()),
           "cannot write: " + path + ": it is being written already, wait or give another name");
}

TEST_CASE("without Finish an output written aside leaves no file, a live one keeps all it has") {
  const TempDir folder;
  {
    const auto aside =
        OrDie(TraceWriter::Create(folder / "aside.strata", TraceWriter::Mode::kAside));
    OrDie(aside->BeginRun({}));
    CHECK_FALSE(fs::exists(folder / "aside.strata"));
    const auto live = OrDie(TraceWriter::Create(folder / "live.strata"));
    OrDie(live->BeginRun({}));
  }
  CHECK_FALSE(fs::exists(folder / "aside.strata"));
  CHECK_EQ(OrDie(TraceReader::Open(folder / "live.strata"))->runs().size(), 1);
}

TEST_CASE("a finished trace is one file") {
  const TempDir folder;
  WriteSmall(folder / "t.strata");
  CHECK_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST_CASE("an older trace is replaced, and the log of its killed writer is ignored") {
  const TempDir folder;
  const std::string path = folder / "t.strata";
  InChild([&] {
    const auto writer = OrDie(TraceWriter::Create(path));
    for (int i = 0; i < 7; ++i)
      OrDie(writer->BeginRun({}));
    ::_exit(0);  // as after a kill
    return std::string();
  });
  REQUIRE(fs::exists(path + "-wal"));
  CHECK_EQ(OrDie(TraceReader::Open(path))->runs().size(), 7);
  WriteSmall(path);
  CHECK_EQ(OrDie(TraceReader::Open(path))->runs().size(), 1);
}

TEST_CASE("names with URI characters are ordinary file names") {
  const TempDir folder;
  const std::string path = folder / "a b%41?mode=rw#c.strata";
  WriteSmall(path);
  CHECK(fs::exists(path));
  CHECK_EQ(OrDie(TraceReader::Open(path))->runs().size(), 1);
}

}  // namespace
}  // namespace strata::store_test
