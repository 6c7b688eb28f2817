#include <optional>
#include <string>
#include <utility>

#include "base/file.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "cli/passes/simulate_pipeline.h"
#include "cli/render/schedule/schedule_lanes.h"
#include "cli/render/schedule/schedule_text.h"
#include "cli/render/schedule/timeline_text.h"
#include "passes/placement/placement.h"
#include "passes/simulate/lower_bound.h"
#include "passes/simulate/timeline.h"
#include "refs/ref.h"

namespace strata::cli {
namespace {

struct SimulateFlags {
  std::string ref, topology = "h100", timeline, schedule;
  std::optional<std::string> before, collectives, mesh;
  int64_t ranks = 2, microbatches = 4;
  bool json = false;
};

Result<bool> ParseFlags(Args args, SimulateFlags& out) {
  Flags flags("simulate",
              "estimates the time of a step of one rank: computation, collectives, and how long "
              "computation waits for these");
  flags.Positional("REF", &out.ref, "the graph of one rank, T#graph=step");
  flags.Option("--topology", "NAME", &out.topology,
               "a100, b200, cpu, h100, h200, or a TOML file (default: h100)");
  flags.Option("--mesh", "AXES", &out.mesh,
               "the mesh of a graph that states none: fsdp=8,tp=8, with the names of its groups");
  flags.Option("--collectives", "FILE", &out.collectives,
               "a table of measured times: collectives that it has take these");
  flags.Option("--before", "REF", &out.before, "also compare with this graph");
  flags.Option("--timeline", "FILE", &out.timeline,
               "also write what each stream does, for ui.perfetto.dev");
  flags.Option(
      "--schedule", "NAME", &out.schedule,
      "instead of one graph: the stages of a pipeline that REF's run has, in this schedule "
      "or FILE.csv (strata schedule)");
  flags.Option("--ranks", "P", &out.ranks, "with --schedule: ranks of the pipeline (default: 2)", 1,
               4096);
  flags.Option("--microbatches", "M", &out.microbatches,
               "with --schedule: microbatches of a step (default: 4)", 1, 65'535);
  flags.Switch("--json", &out.json, "print strata.simulate/1");
  flags.Example("strata simulate 't.strata#graph=step' --topology h100");
  flags.Example("strata simulate fx_graph_runnable.py --mesh 0=8,1=8 --collectives h100.table");
  flags.Example("strata simulate t.strata --schedule 1F1B --ranks 4 --microbatches 16");
  flags.Example(
      "strata simulate 't.strata#pass=bucket-transformer-blocks:after' --before "
      "'t.strata#pass=bucket-transformer-blocks:before' --timeline step.json");
  return flags.Parse(args);
}

/// The estimate of a graph, which it refers to.
struct Estimate {
  Snapshot snapshot;
  Timeline timeline;
  StepBound bound;

  SimulatedStep step() const { return {snapshot.graph(), timeline, bound}; }
};

Result<NodeCost> CostOf(const Graph& graph, const SimulateFlags& flags, const Topology& topology) {
  const bool has_mesh =
      graph.output().valid() && !graph.attribute(graph.output(), kMeshAttribute).empty();
  if (has_mesh && flags.mesh) return Error("the graph has a mesh: {}: leave out --mesh", flags.ref);
  STRATA_TRY(NodeCost cost, NodeCost::Make(topology, graph));
  if (flags.mesh) {
    STRATA_TRY(Mesh mesh, Mesh::Parse(*flags.mesh));
    cost = NodeCost::OnMesh(topology, graph, std::move(mesh));
  }
  if (flags.collectives) {
    STRATA_TRY(CollectiveTable table, CollectiveTable::Load(*flags.collectives));
    cost.UseTable(std::move(table));
  }
  return cost;
}

Result<Estimate> EstimateOf(const std::string& ref, const SimulateFlags& flags,
                            const Topology& topology) {
  STRATA_TRY(Snapshot snapshot, LoadRef(ref, {.warn = Warn}));
  STRATA_TRY(const NodeCost cost, CostOf(snapshot.graph(), flags, topology));
  STRATA_TRY(Timeline timeline, Simulate(snapshot.graph(), cost));
  STRATA_TRY(const StepBound bound, StepBoundOf(snapshot.graph(), cost));
  return Estimate{std::move(snapshot), std::move(timeline), bound};
}

Result<Exit> RunSimulatePipeline(const SimulateFlags& flags, const Topology& topology) {
  if (flags.before) return Error("--before compares graphs: leave out --schedule or --before");
  STRATA_TRY(
      const SimulatedPipeline pipeline,
      SimulatePipeline(flags.ref, flags.schedule, flags.ranks, flags.microbatches, topology));
  const TimedSchedule timed = {"simulated, µs", pipeline.schedule, pipeline.simulation};
  if (!flags.timeline.empty())
    STRATA_RETURN_IF_ERROR(WriteFile(flags.timeline, ScheduleTrace({timed})));
  STRATA_RETURN_IF_ERROR(WriteFile("-", flags.json
                                            ? ScheduleJson(pipeline.schedule, pipeline.simulation)
                                            : PipelineText(pipeline, topology.name)));
  return Exit::kOk;
}

}  // namespace

Result<Exit> RunSimulate(Args args) {
  SimulateFlags flags;
  STRATA_TRY(const bool go_on, ParseFlags(args, flags));
  if (!go_on) return Exit::kOk;
  STRATA_TRY(const Topology topology, Topology::Load(flags.topology));
  if (!flags.schedule.empty()) return RunSimulatePipeline(flags, topology);
  STRATA_TRY(const Estimate after, EstimateOf(flags.ref, flags, topology));
  const SimulatedStep step = after.step();
  std::optional<Estimate> old_estimate;
  std::optional<SimulatedStep> before;
  if (flags.before) {
    STRATA_TRY(old_estimate, EstimateOf(*flags.before, flags, topology));
    before.emplace(old_estimate->step());
  }
  if (!flags.timeline.empty())
    STRATA_RETURN_IF_ERROR(WriteFile(flags.timeline, TimelineTrace(step)));
  const SimulatedStep* old = before ? &*before : nullptr;
  const std::string text =
      flags.json ? TimelineJson(step, old, topology.name) : TimelineText(step, old);
  STRATA_RETURN_IF_ERROR(WriteFile("-", text));
  return Exit::kOk;
}

}  // namespace strata::cli
