#include <optional>
#include <string>
#include <utility>

#include "base/file.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/render/timeline_text.h"
#include "passes/simulate/lower_bound.h"
#include "passes/simulate/timeline.h"
#include "refs/ref.h"

namespace strata::cli {
namespace {

struct SimulateFlags {
  std::string ref, topology = "h100", timeline;
  std::optional<std::string> before;
  bool json = false;
};

Result<bool> ParseFlags(Args args, SimulateFlags& out) {
  Flags flags("simulate",
              "estimates the time of a step of one rank: computation, collectives, and how long "
              "computation waits for these");
  flags.Positional("REF", &out.ref, "the graph of one rank, T#graph=step");
  flags.Option("--topology", "NAME", &out.topology,
               "a100, b200, cpu, h100, h200, or a TOML file (default: h100)");
  flags.Option("--before", "REF", &out.before, "also compare with this graph");
  flags.Option("--timeline", "FILE", &out.timeline,
               "also write what each stream does, for ui.perfetto.dev");
  flags.Switch("--json", &out.json, "print strata.simulate/1");
  flags.Example("strata simulate 't.strata#graph=step' --topology h100");
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

Result<Estimate> EstimateOf(const std::string& ref, const Topology& topology) {
  STRATA_TRY(Snapshot snapshot, LoadRef(ref));
  STRATA_TRY(const NodeCost cost, NodeCost::Make(topology, snapshot.graph()));
  STRATA_TRY(Timeline timeline, Simulate(snapshot.graph(), cost));
  STRATA_TRY(const StepBound bound, StepBoundOf(snapshot.graph(), cost));
  return Estimate{std::move(snapshot), std::move(timeline), bound};
}

}  // namespace

Result<Exit> RunSimulate(Args args) {
  SimulateFlags flags;
  STRATA_TRY(const bool go_on, ParseFlags(args, flags));
  if (!go_on) return Exit::kOk;
  STRATA_TRY(const Topology topology, Topology::Load(flags.topology));
  STRATA_TRY(const Estimate after, EstimateOf(flags.ref, topology));
  const SimulatedStep step = after.step();
  std::optional<Estimate> old_estimate;
  std::optional<SimulatedStep> before;
  if (flags.before) {
    STRATA_TRY(old_estimate, EstimateOf(*flags.before, topology));
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
