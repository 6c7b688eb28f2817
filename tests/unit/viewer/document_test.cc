#include "viewer/compare/document.h"

#include <doctest/doctest.h>

#include "store/proofs.h"
#include "store/trace_writer.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata::viewer {
namespace {

using testing::OrDie;

TEST_CASE("a document: passes have their recorded proofs") {
  const testing::TempDir dir;
  const std::string path = dir / "t.strata";
  const auto module = testing::ParseOrDie(R"(graph step
  x = placeholder : f32[4][1]cpu #6
  output([x]) #10
)");
  const auto writer = OrDie(TraceWriter::Create(path));
  const RunId run = OrDie(writer->BeginRun(RunInfo()));
  PassRecord pass;
  pass.name = "dce";
  pass.graph = "step";
  pass.before = pass.after = OrDie(writer->AddSnapshot(run, "step", module->graph(GraphId{0})));
  OrDie(writer->RecordPass(run, pass));
  pass.index = 1;
  OrDie(writer->RecordPass(run, pass));
  const PassProof proof = {.pass = 1,
                           .graph = "step",
                           .verdict = "differs",
                           .node = "mul",
                           .bug = "literal",
                           .what = "1/2 of the expected value"};
  REQUIRE_OK(AddProof(*writer, run, proof));
  REQUIRE_OK(writer->Finish());
  const auto document = OrDie(Document::Open(path, {}));
  const auto contents = document->contents();
  REQUIRE_EQ(contents->subjects.size(), 2);
  CHECK_FALSE(contents->subjects[SubjectId{0}].proof);
  REQUIRE(contents->subjects[SubjectId{1}].proof);
  CHECK(*contents->subjects[SubjectId{1}].proof == proof);
}

}  // namespace
}  // namespace strata::viewer
