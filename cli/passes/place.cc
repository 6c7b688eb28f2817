#include "cli/passes/place.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/core/exec_runtime.h"
#include "cli/core/flags.h"
#include "cli/passes/place_exported.h"
#include "cli/passes/place_search.h"
#include "passes/core/pass_manager.h"
#include "passes/placement/auto/auto_plan.h"
#include "passes/placement/auto/cost_attributes.h"
#include "passes/placement/auto/explain.h"
#include "passes/placement/auto/placement_json.h"
#include "passes/placement/auto/plan_text.h"
#include "passes/placement/costs/recomputation.h"
#include "passes/placement/costs/topology.h"
#include "passes/placement/place.h"
#include "refs/recording/recording.h"
#include "refs/ref.h"

namespace strata::cli {
namespace {

constexpr TagMemory::Policy kMemoryPolicies[] = {
    TagMemory::Policy::kDefault, TagMemory::Policy::kEager, TagMemory::Policy::kFull,
    TagMemory::Policy::kNone};

/// What is shown and written of what was found.
void AddOutputFlags(Flags& flags, PlaceFlags& out) {
  flags.Repeated("--why", "NODE", &out.why,
                 "explain the placements of a node or parameter: what its alternatives would cost");
  flags.Repeated("--diff", "PLAN", &out.diff,
                 "compare with a plan, a file or llama3, qwen3, deepseek_v3; twice: compare both");
  flags.Option("-o,--output", "FILE", &out.output, "write the plan, for place{plan=FILE}");
  flags.Option("--json", "FILE", &out.json, "write strata.place/1");
  flags.Option("--trace", "T", &out.trace,
               "record the graphs before and after they are placed, with the cost of each node and "
               "the next best placements");
}

Result<bool> ParseFlags(Args args, PlaceFlags& out) {
  std::string memory_policy;
  Flags flags("place", "finds the placements of a training step that cost the least");
  flags.Positional(
      "SOURCE", &out.source,
      "configuration, TOML or JSON; a graph that was not placed, as REF; or placements that "
      "AutoParallel exported");
  flags.Option("--mesh", "MESH", &out.mesh, "axes of ranks, outermost first: fsdp=8,tp=8");
  flags.Option(
      "--world", "N", &out.world,
      "instead of a mesh: try each that N ranks make; a step does the work of N ranks with "
      "fsdp alone");
  flags.Option("--axes", "LIST", &out.axes,
               "with --world, the axes to try, of pp, dp_replicate, fsdp, cp, tp and ep (default: "
               "pp,fsdp,tp, and ep for a model with experts)");
  flags.Option("--topology", "NAME", &out.topology,
               "what ranks compute with and exchange through: a100, b200, cpu, h100, h200, or a "
               "TOML file");
  flags.Repeated("--set", "KEY=VALUE", &out.overrides, "override a field of the configuration");
  flags.Option("--constraints", "PLAN", &out.constraints,
               "keep what the entries of this plan decide");
  flags.Option("--memory", "GIB", &out.memory_gib,
               "most bytes of a rank when backward begins (default: 90 % of the topology's)");
  flags.Option("--memory-policy", "NAME", &memory_policy,
               "what forward saves for backward: none (everything), default, eager, full (default: "
               "the cheapest of none, default and full that fits)");
  flags.Option(
      "--seconds", "N", &out.seconds,
      "limit of the search, about seconds of one core; counted in what it does, so that every "
      "machine gives the same placements");
  flags.Option("--exposed", "PART", &out.exposed,
               "the part that counts of the time of collectives that can run beside computation: "
               "gathers of parameters and reductions of their gradients (default: 1)");
  flags.Option("--times", "FILE", &out.times,
               "price nodes by the times of a recorded step of one rank with the batch of all, "
               "without fuse: the file has what strata profile 'T#graph=step' --json prints");
  flags.Switch("--keep-gathered", &out.keep_gathered,
               "keep gathered parameters for backward, instead of gathering them again");
  flags.Switch("--no-clustering", &out.no_clustering, "decide each layer on its own");
  AddOutputFlags(flags, out);
  flags.Example("strata place configs/demo_llama3.toml --mesh fsdp=2,tp=2 -o out/plan.toml");
  flags.Example("strata place configs/llama3/8b.toml --mesh fsdp=8,tp=8 --topology h100");
  flags.Example("strata place configs/llama3/8b.toml --world 64");
  flags.Example("strata place configs/llama3/8b.toml --world 64 --axes fsdp,cp,tp");
  flags.Example("strata place configs/demo_llama3.toml --mesh fsdp=2,tp=2 --diff llama3");
  flags.Example(
      "strata place configs/demo_llama3.toml --mesh fsdp=2,tp=2 --trace out/place.strata");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (memory_policy.empty()) return go_on;
  const auto* found = std::ranges::find(kMemoryPolicies, memory_policy,
                                        [](auto policy) { return ToString(policy); });
  if (found == std::end(kMemoryPolicies)) {
    return Error("no such memory policy: --memory-policy {}: choose default, eager, full or none",
                 memory_policy);
  }
  out.memory_policy = *found;
  return go_on;
}

std::string_view Verdict(const AutoPlacement& found) {
  if (found.solved.status == SolverResult::Status::kOptimal) return "optimal";
  return found.split_layer > 0 ? "layers differ" : "time was up";
}

void PrintPipeline(const Placed& placed) {
  const PipelineCost& pipeline = *placed.pipeline;
  fmt::print("step {:.3f} ms: {} stages, which begin at layers {}; {} microbatches\n",
             placed.us() / 1e3, pipeline.first_layers.size(),
             fmt::join(pipeline.first_layers, ", "), pipeline.microbatches);
  fmt::print("memory {:.3f} GiB on a rank, policy {}\n", placed.memory_bytes() / kGiB,
             ToString(placed.placement.memory_policy));
  fmt::print("one stage with all layers, as many rounds:\n");
}

void PrintSummary(const Placed& placed) {
  const AutoPlacement& found = placed.placement;
  const SolverResult& solved = found.solved;
  fmt::print("mesh {}, topology {}\n", placed.MeshText(), placed.model.topology().name);
  if (placed.pipeline) PrintPipeline(placed);
  fmt::print("step {:.3f} ms: compute {:.3f}, communication {:.3f}\n", solved.cost / 1e3,
             found.compute_us / 1e3, found.communication_us / 1e3);
  fmt::print("{}: no placements cost less than {:.3f} ms, gap {:.3f} %\n", Verdict(found),
             solved.bound / 1e3, 100 * solved.Gap());
  if (!placed.pipeline) {
    fmt::print("memory {:.3f} GiB on a rank, policy {}{}\n", found.memory_bytes / kGiB,
               ToString(found.memory_policy),
               found.is_memory_tight
                   ? fmt::format(", as much as is allowed: a GiB more saves up to {:.3f} ms",
                                 solved.price * kGiB / 1e3)
                   : "");
  }
  fmt::print(stderr,
             "traced in {:.2f} s, solved in {:.2f} s by {}: {} variables, {} after reduction, {} "
             "columns, {} rows, {} branches\n",
             placed.trace_seconds, placed.solve_seconds, solved.method,
             found.space.variables.size(), solved.core_variables, solved.columns, solved.rows,
             solved.branches);
}

/// Compares two plans, of which the first is the one that was found unless two are named.
Status PrintDiff(const PlaceFlags& flags, const Placed& placed, const std::string& found) {
  const Mesh& mesh = placed.model.mesh();
  const bool is_found = flags.diff.size() == 1;
  STRATA_TRY(const PlacementPlan first, is_found ? PlacementPlan::Parse(found, "found", mesh, {})
                                                 : PlacementPlan::Load(flags.diff[0], mesh, {}));
  STRATA_TRY(const PlacementPlan second, PlacementPlan::Load(flags.diff.back(), mesh, {}));
  std::vector<std::unique_ptr<Module>> modules;
  for (const PlacementPlan* plan : {&first, &second}) {
    modules.push_back(placed.step.module->Clone());
    STRATA_RETURN_IF_ERROR(
        PlaceGraph(modules.back()->graph(placed.step.graph_id), *plan, flags.reshard()));
  }
  STRATA_TRY(const std::string text,
             DiffPlaced(modules[0]->graph(placed.step.graph_id), is_found ? "found" : flags.diff[0],
                        modules[1]->graph(placed.step.graph_id), flags.diff.back(), placed.model));
  fmt::print("\n{}", text);
  return Ok();
}

/// Places the graphs as it was found, and says at each node what it costs.
class PlaceAsFound final : public Pass {
 public:
  PlaceAsFound(const Placed& placed, PlacementPlan plan, Reshard reshard)
      : placed_(placed), plan_(std::move(plan)), reshard_(reshard) {
    SetText("place", fmt::format("mesh='{}'", placed.model.mesh().Text()));
  }

  Result<Changed> Run(Module& module) override {
    for (const GraphId id : module.programs())
      STRATA_RETURN_IF_ERROR(PlaceGraph(module.graph(id), plan_, reshard_));
    STRATA_RETURN_IF_ERROR(
        WriteCostAttributes(module.graph(placed_.step.graph_id), placed_.placement, placed_.model));
    return Changed::kYes;
  }

 private:
  const Placed& placed_;
  PlacementPlan plan_;
  Reshard reshard_;
};

Status RecordPlaced(const PlaceFlags& flags, Args args, const Placed& placed,
                    const std::string& plan) {
  if (std::error_code ignored; std::filesystem::equivalent(flags.source, *flags.trace, ignored))
    return Error("output is the input: {}: give another name", *flags.trace);
  STRATA_TRY(PlacementPlan parsed, PlacementPlan::Parse(plan, "found", placed.model.mesh(), {}));
  PassManager manager({.input_ref = flags.source});
  manager.Add(std::make_unique<PlaceAsFound>(placed, std::move(parsed), flags.reshard()));
  STRATA_TRY(Recording recording,
             Recording::Begin(flags.trace, {.kind = RunKind::kOpt,
                                            .source = flags.source,
                                            .command = CommandLine("place", args),
                                            .pipeline = manager.Text(),
                                            .config = {}}));
  manager.Watch(recording.watcher());
  manager.set_run_ref(recording.RunRef());
  const std::unique_ptr<Module> module = placed.step.module->Clone();
  const Result<Changed> passed = manager.Run(*module);
  const Status recorded = recording.End(passed ? Ok() : Status(passed.error()));
  if (!passed) return passed.error();
  return recorded;
}

Status CheckFlags(const PlaceFlags& flags) {
  if (flags.mesh.empty() == (flags.world == 0))
    return Error("one of --mesh and --world: strata place: name the mesh, or the number of ranks");
  if (flags.world > 0 && !IsConfig(flags.source)) {
    return Error("a recorded graph has one size of batch: {}: give --mesh, or a configuration",
                 flags.source);
  }
  if (flags.times && flags.world > 0) {
    return Error("recorded times are of one size of batch: --times {}: give --mesh, not --world",
                 *flags.times);
  }
  if (flags.exposed < 0 || flags.exposed > 1)
    return Error("a part is from 0 to 1: --exposed {}: correct it", flags.exposed);
  if (flags.diff.size() > 2) return Error("two plans are compared: --diff: give it at most twice");
  return Ok();
}

}  // namespace

Result<Exit> RunPlace(Args args) {
  return RunPlaceWith(args, {});
}

Result<Exit> RunPlaceWith(Args args, const PlaceTracer& tracer) {
  PlaceFlags flags;
  STRATA_TRY(const bool go_on, ParseFlags(args, flags));
  if (!go_on) return Exit::kOk;
  if (IsConfig(flags.source)) {
    STRATA_TRY(const bool is_exported, PrintExported(flags));
    if (is_exported) return Exit::kOk;
  }
  STRATA_RETURN_IF_ERROR(CheckFlags(flags));
  if (IsConfig(flags.source) && tracer.trace == nullptr) return ExecRuntime("place", args);

  STRATA_TRY(const Topology topology, Topology::Load(flags.topology));
  std::optional<Placed> placed;
  if (flags.world > 0) {
    STRATA_TRY(placed, PlaceOnWorld(flags, topology, tracer));
  } else {
    STRATA_TRY(const Mesh mesh, Mesh::Parse(flags.mesh));
    STRATA_TRY(placed, PlaceOnMesh(flags, topology, mesh, tracer.trace));
  }
  PrintSummary(*placed);
  for (const std::string& name : flags.why) {
    STRATA_TRY(const std::string why, WhyText(placed->graph(), placed->placement, placed->model,
                                              name, {.seconds = flags.seconds}));
    fmt::print("\n{}", why);
  }
  const std::string plan =
      PlanText(placed->graph(), placed->placement, placed->model.mesh(),
               fmt::format("{}\n{:.3f} ms on {}", CommandLine("place", args),
                           placed->placement.solved.cost / 1e3, placed->model.topology().name));
  if (flags.output) STRATA_RETURN_IF_ERROR(WriteFile(*flags.output, plan));
  if (flags.json) {
    STRATA_RETURN_IF_ERROR(
        WriteFile(*flags.json, PlacementJson(placed->graph(), placed->placement, placed->model,
                                             placed->pipeline ? &*placed->pipeline : nullptr)));
  }
  if (flags.trace) STRATA_RETURN_IF_ERROR(RecordPlaced(flags, args, *placed, plan));
  if (!flags.diff.empty()) STRATA_RETURN_IF_ERROR(PrintDiff(flags, *placed, plan));
  return Exit::kOk;
}

}  // namespace strata::cli
