#include "store/environment.h"

#include <doctest/doctest.h>

#include "tests/support/results.h"
#include "tests/unit/store/support.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::TempDir;

StoredRun RunWith(std::string kind, std::string attributes) {
  StoredRun run;
  run.artifacts.push_back({.name = "environment.json",
                           .kind = std::move(kind),
                           .bytes = 0,
                           .attributes = std::move(attributes)});
  return run;
}

TEST_CASE("EnvironmentOf: what a run recorded, and nothing of a run that recorded none") {
  CHECK_EQ(EnvironmentOf(RunWith("environment", "{\"threads\":12}"))->threads, 12);
  CHECK_EQ(EnvironmentOf(RunWith("environment", "{\"cpu\":\"avx2\",\"threads\":2}"))->threads, 2);
  CHECK_EQ(EnvironmentOf(RunWith("environment", "{\"threads\":2,\"steps\":30}"))->steps, 30);
  CHECK_EQ(EnvironmentOf(RunWith("environment", "{\"threads\":2}"))->steps, 0);
  CHECK_FALSE(EnvironmentOf(StoredRun()));
  CHECK_FALSE(EnvironmentOf(RunWith("graph", "{\"threads\":12}")));
  CHECK_FALSE(EnvironmentOf(RunWith("environment", "")));
  CHECK_FALSE(EnvironmentOf(RunWith("environment", "{\"threads\":}")));
  CHECK_FALSE(EnvironmentOf(RunWith("environment", "{\"threads\":0}")));
}

TEST_CASE("AddEnvironment: the reader of the trace finds it, and the artifact is JSON") {
  const TempDir dir;
  const std::string path = dir / "t.strata";
  const auto writer = OrDie(TraceWriter::Create(path));
  const RunId first = OrDie(writer->BeginRun(RunInfo()));
  REQUIRE_OK(AddEnvironment(*writer, first, {.threads = 3}));
  OrDie(writer->BeginRun(RunInfo()));
  REQUIRE_OK(writer->Finish());
  const auto reader = OrDie(TraceReader::Open(path));
  REQUIRE_EQ(reader->runs().size(), 2);
  const StoredRun& run = reader->runs()[0];
  REQUIRE(EnvironmentOf(run));
  CHECK_EQ(EnvironmentOf(run)->threads, 3);
  CHECK_FALSE(EnvironmentOf(reader->runs()[1]));
  CHECK_EQ(OrDie(reader->LoadArtifact(run.artifacts[0].id)), "{\"threads\":3}\n");
}

}  // namespace
}  // namespace strata
