#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/passes/place.h"
#include "passes/placement/auto/auto_plan.h"
#include "passes/placement/costs/pipeline_cost.h"
#include "passes/placement/costs/topology.h"
#include "passes/placement/reshard.h"
#include "refs/ref.h"

namespace strata::cli {

inline constexpr double kGiB = 1024.0 * 1024 * 1024;

struct PlaceFlags {
  std::string source, mesh, axes, topology = "h100", constraints;
  std::vector<std::string> overrides, diff, why;
  std::optional<std::string> output, json, trace, times;
  std::optional<TagMemory::Policy> memory_policy;  ///< none: the cheapest that fits
  int64_t world = 0;
  double memory_gib = 0, seconds = 60, exposed = 1;
  bool keep_gathered = false, no_clustering = false;

  Reshard reshard() const { return keep_gathered ? Reshard::kNothing : Reshard::kBlocks; }
};

bool IsConfig(const std::string& source);

/// A mesh, the step on it, and what was found. With several stages, the mesh is that of one, the
/// step that of a microbatch.
struct Placed {
  CostModel model;
  Snapshot step;
  AutoPlacement placement;
  double trace_seconds = 0, solve_seconds = 0;
  std::optional<PipelineCost> pipeline = {};  ///< of several stages

  Graph& graph() const { return step.module->graph(step.graph_id); }
  double us() const { return pipeline ? pipeline->us : placement.solved.cost; }
  double memory_bytes() const { return pipeline ? pipeline->memory_bytes : placement.memory_bytes; }
  /// "pp=4,fsdp=8".
  std::string MeshText() const;
};

/// On `mesh`. Errors: those of the trace and of PlaceAutomatically.
Result<Placed> PlaceOnMesh(const PlaceFlags& flags, const Topology& topology, const Mesh& mesh,
                           TraceForMesh trace);
/// The cheapest mesh of `flags.world` ranks. Prints a line for each. Errors: none is possible.
Result<Placed> PlaceOnWorld(const PlaceFlags& flags, const Topology& topology,
                            const PlaceTracer& tracer);

}  // namespace strata::cli
