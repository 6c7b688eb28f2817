#include <doctest/doctest.h>

#include "ir/fingerprint.h"
#include "ir/rewriter.h"
#include "ir/verify.h"
#include "store/trace_reader.h"
#include "store/trace_writer.h"
#include "tests/unit/store/support.h"

namespace strata::store_test {
namespace {

TEST_CASE("a loaded snapshot equals the saved graph") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const TempDir folder;
    const auto module = MakeModule(seed, 200);
    const Graph& step = module->graph(GraphId{0});
    OrDie(Verify(*module));
    const auto writer = OrDie(TraceWriter::Create(folder / "t.strata"));
    const RunId run = OrDie(writer->BeginRun({}));
    const SnapshotId id = OrDie(writer->AddSnapshot(run, "step", step));
    const auto reader = OrDie(TraceReader::Open(folder / "t.strata"));
    const auto loaded = OrDie(reader->LoadSnapshot(id));
    const Graph& copy = loaded->graph(GraphId{0});
    OrDie(Verify(*loaded));
    CHECK_EQ(FingerprintOf(copy, FingerprintScope::kEverything),
             FingerprintOf(step, FingerprintScope::kEverything));
    CHECK_EQ(FullText(copy), FullText(step));
    CHECK_EQ(reader->FindSnapshot(id)->fingerprint, FingerprintOf(step));
    CHECK_EQ(loaded->next_stable_id(), module->next_stable_id());
    CHECK(loaded->provenance().empty());
  }
}

TEST_CASE("every snapshot of a pipeline loads unchanged") {
  const TempDir folder;
  const auto module = MakeModule(7, 300);
  Random random(8);
  std::vector<std::string> texts;
  const auto writer = OrDie(TraceWriter::Create(folder / "t.strata", TraceWriter::Mode::kAside));
  const RunId run = OrDie(writer->BeginRun({}));
  for (int i = 0; i < 30; ++i) {
    texts.push_back(FullText(module->graph(GraphId{0})));
    OrDie(writer->AddSnapshot(run, "step", module->graph(GraphId{0})));
    Edit(*module, random, 12);
  }
  OrDie(writer->Finish());
  const auto reader = OrDie(TraceReader::Open(folder / "t.strata"));
  REQUIRE_EQ(reader->num_snapshots(), texts.size());
  for (size_t i = texts.size(); i-- > 0;) {
    const auto loaded = OrDie(reader->LoadSnapshot(static_cast<SnapshotId>(i + 1)));
    CHECK_EQ(FullText(loaded->graph(GraphId{0})), texts[i]);
  }
}

TEST_CASE("a body is stored once and keeps its position among the bodies") {
  const TempDir folder;
  const auto module = MakeModule(3, 60);
  const auto writer = OrDie(TraceWriter::Create(folder / "t.strata"));
  const RunId run = OrDie(writer->BeginRun({}));
  const SnapshotId whole = OrDie(writer->AddSnapshot(run, "step", module->graph(GraphId{0})));
  // A body can also be stored as a graph.
  const SnapshotId body = OrDie(writer->AddSnapshot(run, "body", module->graph(GraphId{2})));
  const auto reader = OrDie(TraceReader::Open(folder / "t.strata"));
  const auto loaded = OrDie(reader->LoadSnapshot(whole));
  REQUIRE_EQ(loaded->num_graphs(), 3);
  CHECK_EQ(loaded->graph(GraphId{1}).name_text(), "inner_graph");
  CHECK_EQ(loaded->graph(GraphId{2}).name_text(), "true_graph_0");
  CHECK(loaded->graph(GraphId{2}).is_body());
  const auto loaded_body = OrDie(reader->LoadSnapshot(body));
  CHECK_EQ(FullText(loaded_body->graph(GraphId{0})), FullText(module->graph(GraphId{2})));
}

TEST_CASE("an invalid graph of a failed pass loads unchanged") {
  const TempDir folder;
  Module module;
  Graph& graph = module.AddGraph("step");
  {
    Rewriter rewriter(graph);
    NodeSpec input;
    input.kind = NodeKind::kPlaceholder;
    const NodeId x = rewriter.Create(input, From::Source());
    const NodeId a = rewriter.Create("aten.relu.default", {graph.result(x)}, From::Source());
    const NodeId b = rewriter.Create("aten.relu.default", {graph.result(a)}, From::Source());
    const Arg result = graph.result(b);
    NodeSpec output;
    output.kind = NodeKind::kOutput;
    output.args = {&result, 1};
    rewriter.Create(output, From::Source());
    rewriter.MoveBefore(b, x);  // uses a later value
    rewriter.SetAlias(graph.result(b), graph.result(a));
    rewriter.MoveBefore(a, NodeId{});  // is after the output
    rewriter.SetName(a, "x");
    rewriter.SetName(b, "x");
  }
  REQUIRE_FALSE(Verify(graph).has_value());
  const auto writer = OrDie(TraceWriter::Create(folder / "t.strata"));
  const RunId run = OrDie(writer->BeginRun({}));
  const SnapshotId id = OrDie(writer->AddSnapshot(run, "step", graph));
  const auto reader = OrDie(TraceReader::Open(folder / "t.strata"));
  const auto loaded = OrDie(reader->LoadSnapshot(id));
  CHECK_EQ(FullText(loaded->graph(GraphId{0})), FullText(graph));
}

TEST_CASE("an empty graph and strings of any bytes are stored") {
  const TempDir folder;
  Module module;
  Graph& graph = module.AddGraph(std::string_view("na\0me\xff", 6));
  const auto writer = OrDie(TraceWriter::Create(folder / "t.strata"));
  const RunId run = OrDie(writer->BeginRun({}));
  const std::string_view odd("\0\xc3(", 3);
  const SnapshotId id = OrDie(writer->AddSnapshot(run, odd, graph));
  const auto reader = OrDie(TraceReader::Open(folder / "t.strata"));
  const auto loaded = OrDie(reader->LoadSnapshot(id));
  CHECK_EQ(loaded->graph(GraphId{0}).name_text(), graph.name_text());
  CHECK_EQ(reader->FindSnapshot(id)->graph, odd);
}

TEST_CASE("nodes that share a stable id are rejected") {
  const TempDir folder;
  Module module;
  Graph& graph = module.AddGraph("step");
  Rewriter rewriter(graph);
  NodeSpec spec;
  spec.op = "aten.ones.default";
  spec.stable_id = StableId{5};
  rewriter.Create(spec, From::Source());
  rewriter.Create(spec, From::Source());
  const auto writer = OrDie(TraceWriter::Create(folder / "t.strata"));
  const RunId run = OrDie(writer->BeginRun({}));
  const auto id = writer->AddSnapshot(run, "step", graph);
  REQUIRE_FALSE(id.has_value());
  CHECK_EQ(id.error().message(),
           "two nodes have one stable id: step, node 'ones_1': make nodes through Rewriter");
  // The trace stays usable.
  CHECK(writer->EndRun(run, RunStatus::kFailed).has_value());
}

}  // namespace
}  // namespace strata::store_test
