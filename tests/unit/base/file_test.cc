#include "base/file.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <doctest/doctest.h>

#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::TempDir;

std::string ReadOrDie(const std::string& path) {
  Result<std::string> text = ReadFile(path);
  REQUIRE_OK(text);
  return *text;
}

std::string TextOf(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST_CASE("a written file reads back") {
  const TempDir dir;
  const std::string bytes("a\0b\n", 4);
  CHECK_OK(WriteFile(dir / "f", bytes));
  CHECK_EQ(ReadOrDie(dir / "f"), bytes);
  const Result<MappedFile> mapped = MappedFile::Open(dir / "f");
  REQUIRE_OK(mapped);
  CHECK_EQ(TextOf(*mapped), bytes);
  CHECK_FALSE(std::filesystem::exists(dir / "f.partial"));
}

TEST_CASE("an empty file is read and mapped as zero bytes") {
  const TempDir dir;
  CHECK_OK(WriteFile(dir / "f", ""));
  CHECK_EQ(ReadOrDie(dir / "f"), "");
  const Result<MappedFile> mapped = MappedFile::Open(dir / "f");
  REQUIRE_OK(mapped);
  CHECK(mapped->bytes().empty());
}

TEST_CASE("a mapping stays valid after the file is removed and the mapping moved") {
  const TempDir dir;
  CHECK_OK(WriteFile(dir / "f", "kept"));
  Result<MappedFile> mapped = MappedFile::Open(dir / "f");
  REQUIRE_OK(mapped);
  const MappedFile moved = *std::move(mapped);
  std::filesystem::remove(dir / "f");
  CHECK_EQ(TextOf(moved), "kept");
}

TEST_CASE("a pipe is read to its end") {
  const TempDir dir;
  REQUIRE_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(dir / "pipe") << "through"; });
  const Result<MappedFile> mapped = MappedFile::Open(dir / "pipe");
  writer.join();
  REQUIRE_OK(mapped);
  CHECK_EQ(TextOf(*mapped), "through");
}

TEST_CASE("read errors name the file") {
  const TempDir dir;
  CHECK_EQ(MessageOf(ReadFile("/no/such/file")), "no such file: /no/such/file: check the path");
  CHECK_EQ(ReadFile("/no/such/file").error().code(), ErrorCode::kNotFound);
  CHECK_EQ(MessageOf(ReadFile(dir.path())), "is a directory: " + dir.path() + ": give a file");
  CHECK_EQ(MessageOf(MappedFile::Open(dir.path())),
           "is a directory: " + dir.path() + ": give a file");
  CHECK_EQ(MessageOf(MappedFile::Open("")), "empty file name: '': give a name");
}

TEST_CASE("an output appears under its name at the commit") {
  const TempDir dir;
  CHECK_OK(WriteFile(dir / "out", "old"));
  Result<AtomicFile> file = AtomicFile::Create(dir / "out");
  REQUIRE_OK(file);
  CHECK_OK(file->Append("ne"));
  CHECK_EQ(ReadOrDie(dir / "out"), "old");
  CHECK_EQ(ReadOrDie(dir / "out.partial"), "ne");
  CHECK_OK(file->Append("w"));
  CHECK_OK(file->Commit());
  CHECK_EQ(ReadOrDie(dir / "out"), "new");
  CHECK_FALSE(std::filesystem::exists(dir / "out.partial"));
}

TEST_CASE("an output without a commit leaves no file") {
  const TempDir dir;
  {
    Result<AtomicFile> file = AtomicFile::Create(dir / "out");
    REQUIRE_OK(file);
    CHECK_OK(file->Append("half"));
    const AtomicFile moved = *std::move(file);
    CHECK(std::filesystem::exists(dir / "out.partial"));
  }
  CHECK(std::filesystem::is_empty(dir.path()));
}

TEST_CASE("the partial file of a killed writer is overwritten") {
  const TempDir dir;
  std::ofstream(dir / "out.partial") << "a longer rest";
  CHECK_OK(WriteFile(dir / "out", "new"));
  CHECK_EQ(ReadOrDie(dir / "out"), "new");
}

TEST_CASE("an output keeps the mode of the file it replaces, and a link stays a link") {
  const TempDir dir;
  CHECK_OK(WriteFile(dir / "real", "old"));
  std::filesystem::permissions(dir / "real", std::filesystem::perms::owner_all);
  std::filesystem::create_symlink("real", dir / "link");
  CHECK_OK(WriteFile(dir / "link", "new"));
  CHECK(std::filesystem::is_symlink(dir / "link"));
  CHECK_EQ(ReadOrDie(dir / "real"), "new");
  CHECK_EQ(std::filesystem::status(dir / "real").permissions(), std::filesystem::perms::owner_all);
}

TEST_CASE("devices are written directly and keep their names") {
  CHECK_OK(WriteFile("/dev/null", "gone"));
  CHECK(std::filesystem::is_character_file("/dev/null"));
  CHECK_FALSE(std::filesystem::exists("/dev/null.partial"));
}

TEST_CASE("impossible outputs are rejected before any work") {
  const TempDir dir;
  CHECK_EQ(MessageOf(AtomicFile::Create(dir / "no/out")),
           "cannot write: " + dir / "no/out" + ": no folder '" + dir / "no" + "', create it first");
  CHECK_EQ(MessageOf(AtomicFile::Create(dir.path())),
           "is a directory: " + dir.path() + ": give a file");
  CHECK_EQ(MessageOf(AtomicFile::Create("/proc/out")),
           "cannot write: /proc/out: no folder '/proc', create it first");
  const Result<AtomicFile> first = AtomicFile::Create(dir / "out");
  REQUIRE_OK(first);
  CHECK_EQ(
      MessageOf(AtomicFile::Create(dir / "out")),
      "cannot write: " + dir / "out" + ": it is being written already, wait or give another name");
}

TEST_CASE("a full disk leaves no file") {
  CHECK_EQ(MessageOf(WriteFile("/dev/full", "x")),
           "disk full: /dev/full: free some space or write to another disk");
}

TEST_CASE("a file size limit leaves no file") {
  const TempDir dir;
  // The signal's default ends the program.
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  REQUIRE_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const rlimit small{1000, old_limit.rlim_max};
  REQUIRE_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = MessageOf(WriteFile(dir / "out", std::string(2000, 'x')));
  REQUIRE_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  CHECK_EQ(message, "file size limit reached: " + dir / "out" + ": raise the limit (ulimit -f)");
  CHECK(std::filesystem::is_empty(dir.path()));
}

TEST_CASE("a lock waits for who only asks whether the file is being written") {
  const TempDir folder;
  const std::string path = folder / "trace";
  std::ofstream(path) << "bytes";
  const int reader = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE_EQ(::flock(reader, LOCK_SH | LOCK_NB), 0);
  auto taken = std::async(std::launch::async, [&] { return FileLock::Take(path); });
  CHECK(taken.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
  ::close(reader);
  const Result<FileLock> lock = taken.get();
  REQUIRE_OK(lock);
  CHECK(IsBeingWritten(path));
  CHECK(MessageOf(FileLock::Take(path)).find("written") != std::string::npos);
}

}  // namespace
}  // namespace strata
