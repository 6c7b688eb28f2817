#include "bench/layouts.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "bench/step_module.h"
#include "passes/core/collectives.h"
#include "passes/placement/auto/auto_plan.h"
#include "passes/placement/auto/plan_text.h"
#include "passes/simulate/node_cost.h"
#include "runtime/train/placed_step.h"
#include "runtime/train/programs/programs.h"
#include "runtime/train/trainer.h"

namespace strata::cli {
namespace {

constexpr std::string_view kKeep = "parallelism.fsdp_reshard_after_forward=never";
constexpr std::string_view kWholeSequences = "parallelism.enable_sequence_parallel=false";

constexpr Layout kLayouts[] = {
    {.dp_replicate = 2},
    {.fsdp = 2},
    {.fsdp = 2, .what = "kept", .settings = kKeep},
    {.fsdp = 2, .what = "found", .is_found = true},
    {.cp = 2},
    {.tp = 2},
    {.tp = 2, .what = "whole sequences", .settings = kWholeSequences},
    {.tp = 2, .what = "found", .is_found = true},
    {.dp_replicate = 4},
    {.dp_replicate = 2, .fsdp = 2},
    {.dp_replicate = 2, .tp = 2},
    {.fsdp = 4},
    {.fsdp = 4, .what = "found", .is_found = true},
    {.fsdp = 2, .cp = 2},
    {.fsdp = 2, .tp = 2},
    {.fsdp = 2, .tp = 2, .what = "found", .is_found = true},
    {.cp = 4},
    {.tp = 4},
    {.tp = 4, .what = "found", .is_found = true},
};

/// The model, and the degrees of the layout.
std::vector<std::string> WordsOf(const BenchShape& shape, const Layout& layout) {
  std::vector<std::string> words = SettingsOf(shape, DeviceKind::kCpu);
  const auto add = [&](std::string_view degree, int64_t size) {
    words.push_back(fmt::format("parallelism.{}_degree={}", degree, size));
  };
  add("data_parallel_replicate", layout.dp_replicate);
  add("data_parallel_shard", layout.fsdp);
  add("context_parallel", layout.cp);
  add("tensor_parallel", layout.tp);
  AddWords(layout.settings, words);
  return words;
}

/// Data ranks share the batch.
Result<TrainConfig> ConfigOn(std::vector<std::string> words, const Batch& batch) {
  words.push_back(fmt::format("seq_len={}", batch.tokens));
  STRATA_TRY(const TrainConfig config, ConfigOf(words));
  const int64_t ranks = config.parallelism.data_ranks();
  if (batch.sequences % ranks != 0) {
    return Error("the ranks' parts of a batch are equal: --batch {}: take a multiple of {}",
                 batch.sequences, ranks);
  }
  words.push_back(fmt::format("batch_size={}", batch.sequences / ranks));
  return ConfigOf(words);
}

/// The file of the cheapest plan for the mesh of `config`.
Result<std::string> FindPlan(const TrainConfig& config, const CostModel& model,
                             const std::string& path) {
  STRATA_TRY(const std::unique_ptr<Module> module, TraceUnplaced(config));
  Graph& step = *module->FindGraph(kStepGraph);
  STRATA_TRY(const AutoPlacement found,
             PlaceAutomatically(step, PlacementPlan(model.mesh()), model, {}));
  STRATA_RETURN_IF_ERROR(WriteFile(path, PlanText(step, found, model.mesh(), "found")));
  return path;
}

/// Adds what a graph costs a rank.
Status AddCost(const Graph& graph, const Topology& topology, PredictedLayout& predicted) {
  const NodeCost cost = NodeCost::OnMesh(topology, graph, predicted.config.parallelism.mesh);
  for (const NodeId node : graph.nodes()) {
    predicted.compute_us += cost.ComputeUs(graph, node);
    if (!CollectiveOf(graph, node)) continue;
    STRATA_TRY(const double us, cost.CollectiveUs(graph, node));
    predicted.communication_us += us;
  }
  return Ok();
}

}  // namespace

std::span<const Layout> BenchLayouts() {
  return kLayouts;
}

Result<PredictedLayout> Predict(const BenchShape& shape, const Layout& layout, const Batch& batch,
                                const Topology& topology, const std::string& folder) {
  std::vector<std::string> words = WordsOf(shape, layout);
  PredictedLayout predicted;
  STRATA_TRY(predicted.config, ConfigOn(words, batch));
  const Mesh mesh = predicted.config.parallelism.mesh;
  predicted.name = fmt::format("{}{}{}", mesh.Text(), layout.what.empty() ? "" : ", ", layout.what);
  STRATA_TRY(const CostModel model, CostModel::Make(topology, mesh));
  if (layout.is_found) {
    const std::string path = fmt::format("{}/{}.toml", folder, predicted.name);
    STRATA_TRY(const std::string plan, FindPlan(predicted.config, model, path));
    words.push_back("parallelism.plan=" + plan);
    STRATA_TRY(predicted.config, ConfigOn(words, batch));
  }
  predicted.ranks = mesh.num_ranks();
  STRATA_TRY(const std::unique_ptr<Module> module, StepModule(predicted.config, kFusingPasses));
  for (const std::string_view graph : {kStepGraph, kOptimizerGraph})
    STRATA_RETURN_IF_ERROR(AddCost(*module->FindGraph(graph), topology, predicted));
  return predicted;
}

}  // namespace strata::cli
