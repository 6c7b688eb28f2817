#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>

#include "store/check.h"
#include "store/trace_reader.h"
#include "store/trace_writer.h"
#include "tests/unit/store/support.h"

namespace strata::store_test {
namespace {

/// Damaged bytes give an error, or exactly the stored content. `strata check` reports the same
/// damage as reading.
class Expectation {
 public:
  explicit Expectation(const TempDir& folder) : path_(folder / "damaged.strata") {
    WriteSmallTrace(folder / "t.strata", 20);
    original_ = Slurp(folder / "t.strata");
    intact_ = OrDie(Dump(folder / "t.strata"));
  }

  const std::string& bytes() const { return original_; }

  void Check(const std::string& damaged) {
    Spill(path_, damaged);
    const Result<std::string> dump = Dump(path_);
    const Result<std::vector<Finding>> findings = CheckTrace(path_);
    if (dump) {
      CHECK(*dump == intact_);
      ++intact_count_;
    } else {
      CHECK_FALSE((findings && findings->empty()));
      ++error_count_;
    }
  }

  int error_count() const { return error_count_; }
  int intact_count() const { return intact_count_; }

 private:
  std::string path_, original_, intact_;
  int error_count_ = 0, intact_count_ = 0;
};

TEST_CASE("a flipped bit gives an error or the stored content") {
  const TempDir folder;
  Expectation expectation(folder);
  Random random(1);
  for (int i = 0; i < 2500; ++i) {
    std::string damaged = expectation.bytes();
    const size_t place = Below(random, damaged.size());
    const auto flip = static_cast<char>(1 << Below(random, 8));
    CAPTURE(place);
    CAPTURE(flip);
    damaged[place] = static_cast<char>(damaged[place] ^ flip);
    expectation.Check(damaged);
  }
  // Most of a small file is unused space in the pages of its tables.
  CHECK_GT(expectation.error_count(), 250);
  CHECK_GT(expectation.intact_count(), 100);
}

TEST_CASE("damage to any byte of the header and of the schema is handled") {
  const TempDir folder;
  Expectation expectation(folder);
  for (size_t place = 0; place < 200; ++place) {
    CAPTURE(place);
    std::string damaged = expectation.bytes();
    damaged[place] = static_cast<char>(~damaged[place]);
    expectation.Check(damaged);
  }
}

TEST_CASE("lost, swapped and repeated pages are noticed") {
  const TempDir folder;
  Expectation expectation(folder);
  constexpr size_t kPage = 4096;
  const size_t pages = expectation.bytes().size() / kPage;
  REQUIRE_GT(pages, 10);
  Random random(2);
  for (size_t page = 1; page < pages; ++page) {
    CAPTURE(page);
    std::string zeroed = expectation.bytes();
    std::fill_n(zeroed.begin() + static_cast<std::ptrdiff_t>(page * kPage), kPage, '\0');
    expectation.Check(zeroed);
    const size_t other = 1 + Below(random, pages - 1);
    std::string swapped = expectation.bytes();
    swapped.replace(page * kPage, kPage, expectation.bytes(), other * kPage, kPage);
    expectation.Check(swapped);
    swapped.replace(other * kPage, kPage, expectation.bytes(), page * kPage, kPage);
    expectation.Check(swapped);
  }
}

TEST_CASE("a truncated trace is noticed") {
  const TempDir folder;
  Expectation expectation(folder);
  for (size_t size = 1; size < expectation.bytes().size(); size += 1021) {
    CAPTURE(size);
    expectation.Check(expectation.bytes().substr(0, size));
  }
  CHECK_EQ(expectation.intact_count(), 0);
}

TEST_CASE("an error names table and row, and check lists all of them") {
  const TempDir folder;
  const std::string path = folder / "t.strata";
  WriteSmallTrace(path, 60);
  std::string bytes = Slurp(path);
  for (const std::string_view text : {"def call(args)", "edit"}) {
    const size_t place = bytes.find(text);
    REQUIRE_NE(place, std::string::npos);
    bytes[place] = 'D';
  }
  Spill(path, bytes);
  const auto findings = OrDie(CheckTrace(path));
  REQUIRE_EQ(findings.size(), 2);
  CHECK_EQ(findings[0].table, "pass");
  CHECK_EQ(findings[0].what, "checksum differs");
  CHECK_EQ(findings[1].table, "artifact_data");
  CHECK_EQ(findings[1].row, 1);
  const auto reader = TraceReader::Open(path);
  REQUIRE_FALSE(reader.has_value());
  CHECK_EQ(reader.error().code(), ErrorCode::kCorrupt);
  CHECK_EQ(reader.error().message(),
           fmt::format("damaged trace: {}: table pass, row {}: checksum differs: record or import "
                       "it again; 'strata check' lists what is damaged",
                       path, findings[0].row));
}

// The last writes of a killed run are in `-wal`. For SQLite the log ends at the first damaged
// frame, so reading returns an earlier state.
TEST_CASE("a flipped bit in the log of a killed run gives an earlier state or an error") {
  const TempDir folder;
  const std::string live = folder / "live.strata", damaged = folder / "damaged.strata";
  const auto module = MakeModule(3, 30);
  const Graph& step = module->graph(GraphId{0});
  Random random(4);
  const auto writer = OrDie(TraceWriter::Create(live));
  std::vector<std::string> moments = {OrDie(Dump(live))};
  const RunId run = OrDie(writer->BeginRun({}));
  for (int i = 0; i < 5; ++i) {
    moments.push_back(OrDie(Dump(live)));
    OrDie(writer->AddSnapshot(run, "step", step));
    Edit(*module, random, 3);
  }
  moments.push_back(OrDie(Dump(live)));
  const std::string file = Slurp(live), log = Slurp(live + "-wal");
  REQUIRE_GT(log.size(), 10'000);
  for (int i = 0; i < 400; ++i) {
    std::string bytes = log;
    const size_t place = Below(random, bytes.size());
    CAPTURE(place);
    bytes[place] = static_cast<char>(bytes[place] ^ (1 << Below(random, 8)));
    Spill(damaged, file);
    Spill(damaged + "-wal", bytes);
    std::filesystem::remove(damaged + "-shm");
    const Result<std::string> dump = Dump(damaged);
    if (dump) CHECK(std::ranges::find(moments, *dump) != moments.end());
  }
}

}  // namespace
}  // namespace strata::store_test
