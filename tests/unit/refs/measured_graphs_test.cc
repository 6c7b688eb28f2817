#include "refs/measured_graphs.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/file.h"
#include "refs/histories.h"
#include "refs/import_files.h"
#include "refs/ref.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/log/log_text.h"
#include "tlparse-export/torch_trace/export/chrome_trace.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::TempDir;

std::string Event(std::string_view category, std::string_view name, double ts, double dur,
                  int external = -1) {
  return fmt::format(
      R"({{"ph": "X", "cat": "{}", "name": "{}", "ts": {}, "dur": {}, "tid": 7, "args": )"
      R"({{"External id": {}}}}},)",
      category, name, ts, dur, external);
}

std::string Trace(std::string events) {
  events.pop_back();
  return R"({"schemaVersion": 1, "traceEvents": [)" + events + "]}";
}

std::string Call(double ts, double dur) {
  return Event("user_annotation", "## Call CompiledFxGraph fabc ##", ts, dur);
}

constexpr std::string_view kGraph = R"(class <lambda>(torch.nn.Module):
    def forward(self, x: "f32[2, 2]", w: "f32[2, 2]"):
        mm: "f32[2, 2]" = torch.ops.aten.mm.default(x, w)
        add: "f32[2, 2]" = torch.ops.aten.add.Tensor(mm, 1);  mm = None
        relu: "f32[2, 2]" = torch.ops.aten.relu.default(add);  add = None
        mm_1: "f32[2, 2]" = torch.ops.aten.mm.default(relu, w);  relu = w = None
        return [mm_1]
)";

/// The records of a compilation: its graph, its code, and what maps kernels to nodes.
std::string Compilation(int number, std::string_view graph, std::string_view kernels) {
  const std::string compile = fmt::format(R"(, "frame_id": {}, "frame_compile_id": 0)", number);
  return testing::Artifact("post_grad", graph, compile) +
         testing::Record(R"("inductor_output_code": {"filename": "x.py"})", "code", compile) +
         testing::Artifact("inductor_provenance_tracking_node_mappings",
                           fmt::format(R"({{"cppCodeToPost": {{{}}}}})", kernels), compile);
}

/// The times of the graphs of a log: `name ns; …`. By default of one graph, in which a kernel
/// computes `add` and `relu`.
std::string TimesOf(
    const std::string& trace,
    const std::string& records = Compilation(0, kGraph, R"("triton_fused_0": ["add", "relu"])")) {
  const TempDir folder;
  const std::string log = folder / "run.log", chrome = folder / "trace.json";
  REQUIRE_OK(WriteFile(log, records));
  REQUIRE_OK(WriteFile(chrome, trace));
  const auto graphs = MeasureByChrome(OrDie(LoadHistories(log)), chrome);
  if (!graphs) return graphs.error().message();
  std::string text;
  for (const MeasuredGraph& measured : *graphs) {
    text += fmt::format("{} {} calls: ", measured.name, measured.table.steps);
    const Graph& graph = measured.graph.graph();
    for (const NodeStatistics& node : measured.table.nodes) {
      for (NodeId id : graph.nodes()) {
        if (graph.node(id).stable_id == node.node)
          text += fmt::format("{} {}; ", graph.name(id), node.time_ns);
      }
    }
    for (const StatisticsTable::Rest& rest : measured.table.rest)
      text += fmt::format("[{}] {}; ", rest.name, rest.time_ns);
  }
  return text;
}

TEST_CASE("profiler: operators on the CPU belong to nodes in order, what is inside of them not") {
  std::string events;
  for (const double at : {100.0, 200.0}) {
    events += Call(at, 40) + Event("cpu_op", "aten::mm", at + 1, 10) +
              Event("cpu_op", "aten::resolve_conj", at + 2, 1) +
              Event("cpu_op", "graph_0_triton_fused_0", at + 12, 8) +
              Event("cpu_op", "aten::mm", at + 25, 5);
  }
  CHECK_EQ(TimesOf(Trace(events)),
           "post_grad 2 calls: mm 20000; add 8000; relu 8000; mm_1 10000; "
           "[not seen by the profiler] 34000; ");
}

TEST_CASE("profiler: kernels on a device by their name, or by the operator that launched them") {
  const std::string events =
      Call(100, 40) + Event("cpu_op", "aten::mm", 101, 10, 1) +
      Event("cpu_op", "triton_fused_0", 112, 8, 2) + Event("cpu_op", "aten::mm", 125, 5, 3) +
      Event("kernel", "sgemm_128x64", 150, 30, 1) + Event("kernel", "triton_fused_0", 180, 4, 2) +
      Event("kernel", "sgemm_128x64", 184, 20, 3) + Event("kernel", "elsewhere", 300, 9, 77);
  CHECK_EQ(TimesOf(Trace(events)),
           "post_grad 1 calls: mm 30000; add 2000; relu 2000; mm_1 20000; ");
}

TEST_CASE("profiler: all kernels that an operator launched are one run of it") {
  const std::string events =
      Call(100, 40) + Event("cpu_op", "aten::mm", 101, 10, 1) +
      Event("cpu_op", "triton_fused_0", 112, 8, 2) + Event("cpu_op", "aten::mm", 125, 5, 3) +
      Event("kernel", "sgemm_128x64", 150, 30, 1) + Event("kernel", "splitKreduce", 180, 6, 1) +
      Event("kernel", "triton_fused_0", 186, 4, 2) + Event("kernel", "sgemm_128x64", 190, 20, 3);
  CHECK_EQ(TimesOf(Trace(events)),
           "post_grad 1 calls: mm 36000; add 2000; relu 2000; mm_1 20000; ");
}

TEST_CASE("profiler: each place at which the code calls a kernel or an operator has its nodes") {
  const std::string events = Call(100, 40) + Event("cpu_op", "aten::mm", 101, 10) +
                             Event("cpu_op", "triton_fused_0", 112, 8) +
                             Event("cpu_op", "aten::mm", 121, 5) +
                             Event("cpu_op", "triton_fused_0", 127, 2);
  // The code computes `mm_1` first, as graphs may that the compiler reordered.
  const std::string kernels =
      R"("extern_kernels.mm:1": ["mm_1"], "triton_fused_0:2": ["add"], )"
      R"("triton_fused_0:10": ["relu"], "extern_kernels.mm:3": ["mm", "add"])";
  CHECK_EQ(TimesOf(Trace(events), Compilation(0, kGraph, kernels)),
           "post_grad 1 calls: mm 5000; add 8000; relu 2000; mm_1 10000; "
           "[not seen by the profiler] 15000; ");
}

TEST_CASE("profiler: kernels of two compilations may have one name") {
  constexpr std::string_view kOther = R"(class <lambda>(torch.nn.Module):
    def forward(self, x: "f32[2, 2]", w: "f32[2, 2]"):
        add: "f32[2, 2]" = torch.ops.aten.add.Tensor(x, w)
        mul: "f32[2, 2]" = torch.ops.aten.mul.Tensor(add, 2);  add = None
        bmm: "f32[2, 2]" = torch.ops.aten.bmm.default(mul, w);  mul = w = None
        return [bmm]
)";
  const std::string events = Call(100, 40) + Event("cpu_op", "triton_fused_0", 101, 10) +
                             Event("cpu_op", "aten::bmm", 112, 30 - 2);
  CHECK_EQ(TimesOf(Trace(events), Compilation(0, kGraph, R"("triton_fused_0": ["add", "relu"])") +
                                      Compilation(1, kOther, R"("triton_fused_0": ["mul"])")),
           "post_grad@1/0 1 calls: mul 10000; bmm 28000; [not seen by the profiler] 2000; ");
}

TEST_CASE("profiler: what has another number of calls than nodes belongs to none of them") {
  const std::string events = Call(100, 40) + Event("cpu_op", "aten::mm", 101, 10) +
                             Event("cpu_op", "triton_fused_0", 112, 30 - 2);
  CHECK_EQ(TimesOf(Trace(events)),
           "post_grad 1 calls: add 14000; relu 14000; [aten::mm] 10000; "
           "[not seen by the profiler] 2000; ");
}

TEST_CASE("profiler: calls without a key of the compiler's cache are told apart by what ran") {
  std::string events;
  const auto call = [](double ts) {
    return Event("cpu_op", "## Call CompiledFxGraph None ##", ts, 40);
  };
  for (const double at : {100.0, 300.0}) {
    events += call(at) + Event("cpu_op", "aten::mm", at + 1, 10) +
              Event("cpu_op", "triton_fused_0", at + 12, 8) +
              Event("cpu_op", "aten::mm", at + 25, 5);
    events += call(at + 100) + Event("cpu_op", "aten::neg", at + 101, 3);
  }
  CHECK_EQ(TimesOf(Trace(events)),
           "post_grad 2 calls: mm 20000; add 8000; relu 8000; mm_1 10000; "
           "[not seen by the profiler] 34000; ");
}

TEST_CASE("profiler: an operator that runs in place belongs to the node that does not") {
  const std::string events = Call(100, 40) + Event("cpu_op", "aten::mm", 101, 10) +
                             Event("cpu_op", "aten::mm", 111, 5) +
                             Event("cpu_op", "aten::relu_", 116, 4);
  CHECK_EQ(TimesOf(Trace(events)),
           "post_grad 1 calls: mm 10000; relu 4000; mm_1 5000; "
           "[not seen by the profiler] 21000; ");
}

TEST_CASE("profiler: times that a trace stores have what belongs to no node") {
  const TempDir folder;
  const std::string log = folder / "run.log", chrome = folder / "trace.json",
                    path = folder / "run.strata";
  REQUIRE_OK(WriteFile(log, Compilation(0, kGraph, R"("triton_fused_0": ["add", "relu"])")));
  REQUIRE_OK(WriteFile(chrome, Trace(Call(100, 40) + Event("cpu_op", "aten::mm", 101, 10) +
                                     Event("cpu_op", "aten::mm", 111, 5))));
  REQUIRE_OK(ImportFiles({log}, path, {}, {}));
  REQUIRE_OK(StoreTimes(path, OrDie(MeasureByChrome(OrDie(LoadHistories(path)), chrome))));
  const auto tables = OrDie(RecordedTimes(OrDie(ParseRef(path))));
  REQUIRE_EQ(tables.size(), 1);
  CHECK_EQ(tables[0].nodes.size(), 2);
  REQUIRE_EQ(tables[0].rest.size(), 1);
  CHECK_EQ(tables[0].rest[0].name, "not seen by the profiler");
  CHECK_EQ(tables[0].rest[0].time_ns, 25000);
}

TEST_CASE("profiler: a trace that the log does not explain is an error") {
  CHECK(TimesOf(Trace(Event("cpu_op", "aten::mm", 1, 2))).starts_with("no compiled graph"));
  CHECK(TimesOf("{}").starts_with("no trace of the profiler"));
  CHECK(TimesOf("junk").starts_with("no trace of the profiler"));
}

}  // namespace
}  // namespace strata
