#include <algorithm>

#include <doctest/doctest.h>

#include "tests/unit/store/support.h"

namespace strata::store_test {
namespace {

/// A trace that has a row in every table.
std::string SmallTrace(const std::string& path) {
  const auto module = MakeModule(11, 60);
  Random random(12);
  const auto writer = OrDie(TraceWriter::Create(path, TraceWriter::Mode::kAside));
  WriteTrace(*writer, *module, random, 4, 6);
  const RunId run{1};
  OrDie(writer->AddArtifact(run, "output_code.py", "code", "def call(args):\n  return args\n"));
  const EventRecord event{"kernel", "gemm", 1, 2, StableId{3}, ""};
  OrDie(writer->AddEvents(run, {&event, 1}));
  for (int64_t step = 1; step <= 5; ++step) {
    const TraceWriter::Executed executed{"step", writer->snapshot(SnapshotId{5}).fingerprint};
    OrDie(writer->RecordStep(run, {step, 2.5, 0.25, 1000}, {&executed, 1}));
  }
  OrDie(writer->EndRun(run, RunStatus::kFinished));
  OrDie(writer->Finish());
  return Slurp(path);
}

/// Damaged bytes give an error, or exactly what was stored. And `strata check` sees what reading
/// sees.
class Expectation {
 public:
  explicit Expectation(const TempDir& folder)
      : path_(folder / "damaged.strata"), original_(SmallTrace(folder / "t.strata")) {
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

TEST_CASE("a flipped bit gives an error or an intact answer") {
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
  // Most of a small file is the empty rest of its tables' pages.
  CHECK_GT(expectation.error_count(), 250);
  CHECK_GT(expectation.intact_count(), 100);
}

TEST_CASE("every byte of the header and of the schema may be wrong") {
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

TEST_CASE("a trace that was cut off is noticed") {
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
  std::string bytes = SmallTrace(path);
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
  CHECK_EQ(findings[1].table, "artifact");
  CHECK_EQ(findings[1].row, 1);
  const auto reader = TraceReader::Open(path);
  REQUIRE_FALSE(reader.has_value());
  CHECK_EQ(reader.error().code(), ErrorCode::kCorrupt);
  CHECK_EQ(reader.error().message(),
           fmt::format("damaged trace: {}: table pass, row {}: checksum differs: record or import "
                       "it again; 'strata check' lists what is damaged",
                       path, findings[0].row));
}

}  // namespace
}  // namespace strata::store_test
