#include "store/proofs.h"

#include <array>

#include <doctest/doctest.h>

#include "store/trace_reader.h"
#include "tests/support/results.h"
#include "tests/unit/store/support.h"

namespace strata {
namespace {

using store_test::WriteSmallTrace;
using testing::OrDie;
using testing::TempDir;

const PassProof kDiffers = {.pass = 1,
                            .graph = "step",
                            .verdict = "differs",
                            .node = "mul_12",
                            .bug = "wrong-factor",
                            .what = "1/2 of the \"expected\" value",
                            .scope = "on reduced sizes"};

PassProof Proven(int32_t pass) {
  return {.pass = pass, .graph = "step", .verdict = "proven", .node = "", .bug = "", .what = ""};
}

TEST_CASE("AddProof: the reader finds the last verdict of each pass of the run") {
  const TempDir dir;
  const auto writer = OrDie(TraceWriter::Create(dir / "t.strata"));
  const RunId first = OrDie(writer->BeginRun(RunInfo()));
  OrDie(writer->BeginRun(RunInfo()));
  REQUIRE_OK(AddProof(*writer, first, Proven(0)));
  REQUIRE_OK(AddProof(*writer, first, Proven(1)));
  REQUIRE_OK(AddProof(*writer, first, kDiffers));
  REQUIRE_OK(writer->Finish());
  const auto reader = OrDie(TraceReader::Open(dir / "t.strata"));
  const PassProofs proofs = ProofsOf(reader->runs()[0]);
  REQUIRE_EQ(proofs.size(), 2);
  CHECK(proofs.at({0, "step"}) == Proven(0));
  CHECK(proofs.at({1, "step"}) == kDiffers);
  CHECK(ProofsOf(reader->runs()[1]).empty());
}

TEST_CASE("RecordProofs: a trace that has ended gets verdicts and stays whole") {
  const TempDir dir;
  const std::string path = dir / "t.strata";
  WriteSmallTrace(path, 40);
  const auto count = [&] { return OrDie(TraceReader::Open(path))->runs()[0].artifacts.size(); };
  const size_t before = count();
  const std::string texts = OrDie(store_test::Dump(path));
  REQUIRE_OK(
      RecordProofs(path, std::array{RunProof{RunId{1}, Proven(0)}, RunProof{RunId{1}, kDiffers}}));
  CHECK_EQ(count(), before + 2);
  const PassProofs proofs = ProofsOf(OrDie(TraceReader::Open(path))->runs()[0]);
  CHECK(proofs.at({1, "step"}) == kDiffers);
  CHECK_FALSE(OrDie(store_test::Dump(path)).empty());
  CHECK_NE(OrDie(store_test::Dump(path)), texts);
}

TEST_CASE("RecordProofs: a trace that is being written is left alone") {
  const TempDir dir;
  const std::string path = dir / "t.strata";
  const auto writer = OrDie(TraceWriter::Create(path));
  const RunId run = OrDie(writer->BeginRun(RunInfo()));
  const Status added = RecordProofs(path, std::array{RunProof{run, Proven(0)}});
  REQUIRE_FALSE(added);
  CHECK_EQ(added.error().message(),
           "cannot write: " + path + ": it is being written already, wait or give another name");
}

TEST_CASE("ProofsOf: artifacts that hold no verdict are none") {
  StoredRun run;
  for (const char* attributes : {"", "{", "{\"verdict\":\"proven\"}"})
    run.artifacts.push_back(
        {.name = "proof.json", .kind = "proof", .bytes = 0, .attributes = attributes});
  CHECK(ProofsOf(run).empty());
}

}  // namespace
}  // namespace strata
