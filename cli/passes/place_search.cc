#include "cli/passes/place_search.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <ranges>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "passes/core/node_times.h"
#include "passes/placement/auto/meshes.h"
#include "passes/placement/auto/plan_text.h"
#include "passes/placement/costs/compute_scales.h"
#include "passes/placement/inputs.h"
#include "passes/placement/place.h"

namespace strata::cli {
namespace {

constexpr std::string_view kAxes[] = {"pp", "dp_replicate", "fsdp", "cp", "tp", "ep"};

/// What limits a search.
struct Limits {
  std::optional<TagMemory::Policy> policy;  ///< none: the cheapest that fits
  double memory_bytes = 0;                  ///< 0: not limited
  int64_t rounds = 1;                       ///< SpaceOptions::rounds
  double price = 0;                         ///< SolverOptions::price
};

double MemoryOf(const PlaceFlags& flags, const Topology& topology) {
  return flags.memory_gib > 0 ? flags.memory_gib * kGiB : 0.9 * topology.device.memory_bytes;
}

/// A graph of PyTorch's does not say which of its inputs ranks may share.
Status CheckHasParameters(const Graph& graph, std::string_view ref) {
  const bool is_any_named = std::ranges::any_of(graph.placeholders(), [&](NodeId input) {
    return KindOf(graph, input) == PlacedInput::kParameter;
  });
  if (is_any_named || !graph.is_foreign()) return Ok();
  return Error(ErrorCode::kUnsupported,
               "no input is known to be a parameter: {}: graph {} of PyTorch's becomes a step by "
               "strata train CONFIG --program REF --trace T; then place T#graph=step,pass=0:before",
               ref, graph.name_text());
}

Result<Placed> PlaceOn(const PlaceFlags& flags, const Topology& topology, const Mesh& mesh,
                       const std::vector<std::string>& overrides, const Limits& limits,
                       TraceForMesh trace) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  STRATA_TRY(CostModel model, CostModel::Make(topology, mesh));
  model.set_exposed(flags.exposed);
  STRATA_TRY(const PlacementPlan constraints, PlacementPlan::Load(flags.constraints, mesh, {}));
  Placed placed{.model = std::move(model), .step = {}, .placement = {}};
  if (IsConfig(flags.source)) {
    STRATA_TRY(placed.step.module, trace(flags.source, overrides, mesh));
    placed.step.graph_id = placed.step.module->FindGraph("step")->id();
  } else {
    STRATA_TRY(placed.step, LoadRef(flags.source));
    STRATA_RETURN_IF_ERROR(CheckHasParameters(placed.graph(), flags.source));
  }
  placed.trace_seconds = seconds();
  if (flags.times) {
    STRATA_TRY(const NodeTimes times, ReadProfile(*flags.times));
    Result<ComputeScales> scales = ScalesOf(placed.graph(), times, topology);
    if (!scales) return std::move(scales).error().In(*flags.times);
    placed.model.set_scales(*std::move(scales));
  }
  AutoOptions options{.space = {.reshard = flags.reshard(),
                                .has_twins = !flags.no_clustering,
                                .rounds = limits.rounds},
                      .solver = {.seconds = flags.seconds, .price = limits.price},
                      .memory_bytes = limits.memory_bytes};
  if (limits.policy) {
    options.memory_policy = *limits.policy;
    STRATA_TRY(placed.placement,
               PlaceAutomatically(placed.graph(), constraints, placed.model, options));
  } else {
    STRATA_TRY(placed.placement,
               PlaceWithMemoryPolicies(placed.graph(), constraints, placed.model, options));
  }
  placed.solve_seconds = seconds() - placed.trace_seconds;
  return placed;
}

/// Sequences of a rank of a mesh in a step, such that each mesh of as many ranks does the same
/// work: ranks of cp, tp and pp share theirs.
struct Work {
  std::vector<std::string> overrides;  ///< with the sequences of a microbatch
  int64_t microbatches = 1;
};
Result<Work> EqualWork(const PlaceFlags& flags, const Mesh& mesh, int64_t stages,
                       BatchSizeOf batch_size_of) {
  Work work{.overrides = flags.overrides};
  STRATA_TRY(const int64_t batch, batch_size_of(flags.source, flags.overrides));
  int64_t sharing = stages;
  for (const std::string_view axis : {"cp", "tp"})
    if (const MeshAxis* found = mesh.Find(axis)) sharing *= found->size;
  work.microbatches = stages > 1 ? sharing : 1;
  work.overrides.push_back(fmt::format("batch_size={}", batch * sharing / work.microbatches));
  return work;
}

/// The axes to try. Without a flag, a trace for one rank shows whether there are experts.
Result<std::vector<std::string>> AxesOf(const PlaceFlags& flags, TraceForMesh trace) {
  if (!flags.axes.empty()) {
    std::vector<std::string> axes;
    for (const auto axis : flags.axes | std::views::split(','))
      axes.emplace_back(axis.begin(), axis.end());
    for (const std::string& axis : axes)
      if (std::ranges::count(kAxes, axis) == 0)
        return Error("no such axis: --axes {}: choose of {}", axis, fmt::join(kAxes, ", "));
    return axes;
  }
  STRATA_TRY(const std::unique_ptr<Module> module, trace(flags.source, flags.overrides, Mesh()));
  const Graph& step = *module->FindGraph("step");
  const bool has_experts = std::ranges::any_of(
      step.nodes(), [&](NodeId node) { return step.op(node) == "aten._grouped_mm.default"; });
  std::vector<std::string> axes = {"pp", "fsdp", "tp"};
  if (has_experts) axes.emplace_back("ep");
  return axes;
}

/// What the placements of a microbatch cost in a pipeline. Errors: those of CostOfPipeline.
Status AddPipeline(const PlaceFlags& flags, int64_t stages, int64_t microbatches, Placed& placed) {
  const Mesh& mesh = placed.model.mesh();
  STRATA_TRY(const PlacementPlan plan,
             PlacementPlan::Parse(PlanText(placed.graph(), placed.placement, mesh, "found"),
                                  "found", mesh, {}));
  STRATA_TRY(const Recomputation recomputation,
             RecomputationOf(placed.graph(), placed.placement.memory_policy));
  const std::unique_ptr<Module> module = placed.step.module->Clone();
  Graph& graph = module->graph(placed.step.graph_id);
  STRATA_RETURN_IF_ERROR(PlaceGraph(graph, plan, flags.reshard()));
  STRATA_TRY(placed.pipeline,
             CostOfPipeline(graph, placed.model, recomputation, stages, microbatches));
  return Ok();
}

/// The cheapest memory policy that fits, of the placements that cost the least without a limit.
Result<Placed> PlacePipeline(const PlaceFlags& flags, const Topology& topology, const Mesh& mesh,
                             int64_t stages, const PlaceTracer& tracer) {
  STRATA_TRY(const Work work, EqualWork(flags, mesh, stages, tracer.batch_size));
  std::vector<TagMemory::Policy> policies = {TagMemory::Policy::kNone, TagMemory::Policy::kDefault,
                                             TagMemory::Policy::kFull};
  if (flags.memory_policy) policies = {*flags.memory_policy};
  std::optional<Placed> best;
  for (const TagMemory::Policy policy : policies) {
    const Limits limits{.policy = policy, .rounds = work.microbatches + stages - 1};
    STRATA_TRY(Placed placed, PlaceOn(flags, topology, mesh, work.overrides, limits, tracer.trace));
    STRATA_RETURN_IF_ERROR(AddPipeline(flags, stages, work.microbatches, placed));
    if (placed.memory_bytes() > MemoryOf(flags, topology)) continue;
    if (!best || placed.us() < best->us()) best = std::move(placed);
  }
  if (!best)
    return Error("no placements fit {:.1f} GiB on a rank", MemoryOf(flags, topology) / kGiB);
  return *std::move(best);
}

Result<Placed> PlaceOnOneOf(const PlaceFlags& flags, const Topology& topology, int64_t stages,
                            const std::string& text, double price, const PlaceTracer& tracer) {
  STRATA_TRY(const Mesh mesh, Mesh::Parse(text));
  if (stages > 1) return PlacePipeline(flags, topology, mesh, stages, tracer);
  STRATA_TRY(const Work work, EqualWork(flags, mesh, stages, tracer.batch_size));
  return PlaceOn(
      flags, topology, mesh, work.overrides,
      {.policy = flags.memory_policy, .memory_bytes = MemoryOf(flags, topology), .price = price},
      tracer.trace);
}

std::string MeshText(int64_t stages, const std::string& mesh) {
  if (stages == 1) return mesh.empty() ? "of one rank" : mesh;
  return fmt::format("pp={}{}{}", stages, mesh.empty() ? "" : ",", mesh);
}

void PrintLine(const Placed& placed) {
  const AutoPlacement& found = placed.placement;
  const auto ms = [&](double us) {
    return placed.pipeline ? std::string() : fmt::format("{:.3f}", us / 1e3);
  };
  fmt::print("{:>12.3f}  {:>12}  {:>12}  {:>10.2f}  {:>7}  {}\n", placed.us() / 1e3,
             ms(found.compute_us), ms(found.communication_us), placed.memory_bytes() / kGiB,
             ToString(found.memory_policy), placed.MeshText());
  std::fflush(stdout);
}

}  // namespace

bool IsConfig(const std::string& source) {
  return source.ends_with(".toml") || source.ends_with(".json");
}

std::string Placed::MeshText() const {
  const size_t stages = pipeline ? pipeline->first_layers.size() : 1;
  return cli::MeshText(static_cast<int64_t>(stages), model.mesh().Text());
}

Result<Placed> PlaceOnMesh(const PlaceFlags& flags, const Topology& topology, const Mesh& mesh,
                           TraceForMesh trace) {
  return PlaceOn(flags, topology, mesh, flags.overrides,
                 {.policy = flags.memory_policy, .memory_bytes = MemoryOf(flags, topology)}, trace);
}

Result<Placed> PlaceOnWorld(const PlaceFlags& flags, const Topology& topology,
                            const PlaceTracer& tracer) {
  STRATA_TRY(const std::vector<std::string> axes, AxesOf(flags, tracer.trace));
  const bool has_stages = std::ranges::count(axes, "pp") != 0;
  std::optional<Placed> best;
  double price = 0;  // of memory, on the mesh before
  fmt::print("{:>12}  {:>12}  {:>12}  {:>10}  {:>7}  mesh\n", "ms", "compute", "exchange", "GiB",
             "policy");
  for (int64_t stages = 1; stages <= (has_stages ? flags.world : 1); ++stages) {
    if (flags.world % stages != 0) continue;
    for (const std::string& mesh : MeshesOf(flags.world / stages, axes)) {
      auto placed = PlaceOnOneOf(flags, topology, stages, mesh, price, tracer);
      if (!placed && placed.error().code() == ErrorCode::kNotFound)
        return std::move(placed).error();
      if (!placed) {
        fmt::print("{:>12}  {:>12}  {:>12}  {:>10}  {:>7}  {}: {}\n", "-", "-", "-", "-", "-",
                   MeshText(stages, mesh), placed.error().message());
        continue;
      }
      PrintLine(*placed);
      if (placed->placement.is_memory_tight) price = placed->placement.solved.price;
      if (!best || placed->us() < best->us()) best = *std::move(placed);
    }
  }
  if (!best) return Error("no mesh of {} ranks is possible: {}", flags.world, flags.source);
  fmt::print("\n");
  return *std::move(best);
}

}  // namespace strata::cli
