#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include <fmt/format.h>

#include "bench/bench.h"
#include "cli/core/flags.h"
#include "ir/rewriter.h"
#include "store/check.h"
#include "store/trace_reader.h"
#include "store/trace_writer.h"

namespace strata::cli {
namespace {

constexpr int kStoreRuns = 5;
constexpr int kRecordedPasses = 50;

/// What a local pass does: `count` nodes get a cast behind them, as many change an argument.
void EditSome(Graph& graph, std::mt19937& random, int count) {
  const std::vector<NodeId> nodes = graph.nodes().Snapshot();
  Rewriter rewriter(graph);
  for (int i = 0; i < count; ++i) {
    const NodeId id = nodes[random() % nodes.size()];
    if (graph.node(id).kind != NodeKind::kCall) continue;
    if (i % 2 == 0) {
      rewriter.SetCursorAfter(id);
      rewriter.Create("aten._to_copy.default", {graph.result(id)}, From({id}));
    } else {
      rewriter.SetOp(id, i % 4 == 1 ? "aten.mul.Tensor" : "aten.sub.Tensor");
    }
  }
}

/// Opens and loads a trace whose last snapshot is `last`.
Status MeasureReading(const std::string& path, int nodes, SnapshotId last) {
  Status status;
  const auto keep = [&](Status next) {
    if (status) status = std::move(next);
  };
  std::unique_ptr<TraceReader> reader;
  const auto reopen = [&]() -> Status {
    STRATA_TRY(reader, TraceReader::Open(path));
    return Ok();
  };
  const auto load = [&](SnapshotId id) -> Status {
    STRATA_TRY(const auto loaded, reader->LoadSnapshot(id));
    return Ok();
  };
  PrintTiming("open", Measure(kStoreRuns, [&] { keep(reopen()); }));
  PrintTiming("load the first snapshot",
              Measure(
                  kStoreRuns, [&] { keep(load(SnapshotId{1})); }, [&] { keep(reopen()); }),
              nodes == 100'000 ? 300 : 0);
  PrintTiming("load the last snapshot",
              Measure(kStoreRuns, [&] { keep(load(last)); }, [&] { keep(reopen()); }));
  PrintTiming("load it again", Measure(kStoreRuns, [&] { keep(load(last)); }));
  PrintTiming("check", Measure(1, [&] { (void)CheckTrace(path); }));
  return status;
}

/// Writes a trace of `kRecordedPasses` passes that edit 1 % of the nodes each, then reads it.
Status MeasureTrace(const std::string& path, int nodes) {
  const auto module = TransformerLikeGraph(nodes);
  Graph& graph = module->graph({0});
  std::mt19937 random(1);
  fmt::print("\n{} nodes\n", graph.num_nodes());

  Status status;
  std::unique_ptr<TraceWriter> writer;
  RunId run = RunId::kNone;
  const auto open = [&]() -> Status {
    writer.reset();
    STRATA_TRY(writer, TraceWriter::Create(path));
    STRATA_TRY(run, writer->BeginRun({}));
    return Ok();
  };
  SnapshotId last = SnapshotId::kNone;
  const auto first = [&]() -> Status {
    STRATA_TRY(last, writer->AddSnapshot(run, "step", graph));
    return Ok();
  };
  const auto pass = [&]() -> Status {
    PassRecord record;
    record.graph = "step";
    record.before = last;
    record.births = module->TakeProvenance();
    STRATA_TRY(const StoredPass stored, writer->RecordPass(run, std::move(record), &graph));
    last = stored.record.after;
    return Ok();
  };
  const auto keep = [&](Status next) {
    if (status) status = std::move(next);
  };
  PrintTiming("save the first snapshot",
              Measure(kStoreRuns, [&] { keep(first()); }, [&] { keep(open()); }));
  PrintTiming("record a pass that edits 1 %", Measure(
                                                  kRecordedPasses, [&] { keep(pass()); },
                                                  [&] { EditSome(graph, random, nodes / 100); }));
  PrintTiming("record a pass that changes nothing", Measure(kStoreRuns, [&] { keep(pass()); }));
  if (status) keep(writer->Finish());
  if (!status) return status;
  fmt::print("{:<36} {:>9.2f} MB\n", "file",
             static_cast<double>(std::filesystem::file_size(path)) / 1e6);
  return MeasureReading(path, nodes, last);
}

}  // namespace

Result<Exit> BenchStore(Args args) {
  Flags flags("bench store", "measures traces of 50 passes over graphs of 20k and 100k nodes");
  flags.Example("strata bench store");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("strata_bench_{}", std::rand());
  std::filesystem::create_directories(folder);
  Status status;
  for (int nodes : {20'000, 100'000}) {
    if (status) status = MeasureTrace((folder / "bench.strata").string(), nodes);
  }
  std::filesystem::remove_all(folder);
  STRATA_RETURN_IF_ERROR(std::move(status));
  return Exit::kOk;
}

}  // namespace strata::cli
