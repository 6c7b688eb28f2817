#include "refs/check_provenance.h"

#include <doctest/doctest.h>

#include "store/check.h"
#include "store/trace_writer.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::TempDir;

TEST_CASE("a trace without graphs has no contradictions, as it has no findings") {
  const TempDir dir;
  const std::string path = dir / "t.strata";
  for (const bool has_run : {false, true}) {
    CAPTURE(has_run);
    {
      const auto writer = OrDie(TraceWriter::Create(path));
      if (has_run) REQUIRE_OK(writer->EndRun(OrDie(writer->BeginRun({})), RunStatus::kFinished));
      REQUIRE_OK(writer->Finish());
    }
    CHECK(OrDie(CheckTrace(path)).empty());
    CHECK(OrDie(CheckProvenance(path)).empty());
  }
}

}  // namespace
}  // namespace strata
