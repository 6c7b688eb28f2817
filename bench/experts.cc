#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "bench/bench.h"
#include "bench/shapes.h"
#include "bench/step_module.h"
#include "bench/turns.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "passes/simulate/lower_bound.h"
#include "passes/simulate/timeline.h"
#include "runtime/train/programs/programs.h"
#include "runtime/train/trainer.h"

namespace strata::cli {
namespace {

/// How the exchanges of tokens are hidden.
struct ExpertVariant {
  std::string_view name;
  std::string_view settings;
  bool by_cost = false;  ///< the order follows what nodes cost on the topology

  std::string On(std::string_view topology) const {
    return by_cost ? fmt::format("{} compile.ep_overlap.topology={}", settings, topology)
                   : std::string(settings);
  }
};

constexpr ExpertVariant kVariants[] = {
    {"whole", ""},
    {"`layers.*.moe` in 2 chunks",
     R"(compile.ep_overlap.enabled=true compile.ep_overlap.module_fqn=layers.*.moe compile.disable_passes=["ep-overlap"])"},
    {"the same, reordered",
     "compile.ep_overlap.enabled=true compile.ep_overlap.module_fqn=layers.*.moe"},
    {"`layers.*` in 2 chunks, reordered",
     "compile.ep_overlap.enabled=true compile.ep_overlap.module_fqn=layers.*"},
    {"`layers.*.moe` in 2 chunks, by cost",
     "compile.ep_overlap.enabled=true compile.ep_overlap.module_fqn=layers.*.moe",
     /*by_cost=*/true},
    {"`layers.*` in 4 chunks, by cost",
     "compile.ep_overlap.enabled=true compile.ep_overlap.module_fqn=layers.* "
     "compile.ep_overlap.num_chunks=4",
     /*by_cost=*/true},
    {"`layers.*` in 2 chunks, by cost",
     "compile.ep_overlap.enabled=true compile.ep_overlap.module_fqn=layers.*", /*by_cost=*/true},
};

/// Exchanges of tokens in a step, in µs.
struct ExchangeTimes {
  double step = 0;
  double exposed = 0;     ///< computation waits for them
  double busy = 0;        ///< of each alone
  double least = 0;       ///< a step in the best order, if nothing else was sent
  double overlapped = 0;  ///< part of what the best order would overlap
};

void PrintTimes(std::string_view model, const ExpertVariant& variant, const ExchangeTimes& times) {
  fmt::print("| {} | {} | {:.1f} | {:.2f} | {:.2f} | {:.1f} | {:.0f} % |\n", model, variant.name,
             times.step / 1e3, times.busy / 1e3, times.exposed / 1e3, times.least / 1e3,
             100 * times.overlapped);
  std::fflush(stdout);
}

void PrintHead() {
  fmt::print(
      "| model and ranks | experts | step | exchanges | exposed | at least | of the most |\n"
      "|---|---|---|---|---|---|---|\n");
}

bool IsExchangeWait(const Graph& graph, NodeId wait) {
  if (!IsWait(graph, wait)) return false;
  const NodeId launch = graph.value(graph.operands(wait)[0]).def;
  return IsCollective(graph, launch, CollectiveKind::kAllToAll);
}

/// `cost` counts exchanges only; a step is computation and what of them is exposed.
Status AddBound(const Graph& step, const NodeCost& cost, double compute_us, ExchangeTimes& times) {
  STRATA_TRY(const StepBound bound, StepBoundOf(step, cost));
  for (const NodeId node : step.nodes()) {
    if (!IsCollective(step, node, CollectiveKind::kAllToAll)) continue;
    STRATA_TRY(const double us, cost.CollectiveUs(step, node));
    times.busy += us;
  }
  times.least = bound.least_us;
  times.overlapped = bound.Overlapped(compute_us + times.exposed);
  return Ok();
}

// --- Estimates -----------------------------------------------------------------------------------

struct EstimatedLayout {
  std::string_view name;
  std::string_view model;
  std::string_view degrees;
};

constexpr EstimatedLayout kEstimatedLayouts[] = {
    {"16B, FSDP 8, EP 8", kDeepSeek16b,
     "parallelism.data_parallel_shard_degree=8 parallelism.expert_parallel_degree=8 "
     "compile.memory_policy=full"},
    {"16B, FSDP 32, EP 32", kDeepSeek16b,
     "parallelism.data_parallel_shard_degree=32 parallelism.expert_parallel_degree=32 "
     "compile.memory_policy=full"},
    {"671B, FSDP 256, EP 32", kDeepSeek671b,
     "parallelism.data_parallel_shard_degree=256 parallelism.expert_parallel_degree=32 "
     "compile.memory_policy=full"},
};

Result<ExchangeTimes> EstimateExchanges(const EstimatedLayout& layout, std::string_view settings,
                                        const Topology& topology) {
  STRATA_TRY(const std::unique_ptr<Module> module,
             StepModule({layout.model, layout.degrees, settings}, "dce,canonicalize"));
  const Graph& step = *module->FindGraph(kStepGraph);
  STRATA_TRY(NodeCost cost, NodeCost::Make(topology, step));
  STRATA_TRY(const Timeline all, Simulate(step, cost));
  ExchangeTimes times{.step = all.step_us};
  cost.CountOnly(CollectiveKind::kAllToAll);
  STRATA_TRY(const Timeline alone, Simulate(step, cost));
  times.exposed = alone.step_us - alone.compute_us;
  STRATA_RETURN_IF_ERROR(AddBound(step, cost, alone.compute_us, times));
  return times;
}

Status EstimateAll(const std::string& topology_name, std::string_view only) {
  STRATA_TRY(const Topology topology, Topology::Load(topology_name));
  PrintHead();
  for (const EstimatedLayout& layout : kEstimatedLayouts) {
    if (layout.name.find(only) == std::string_view::npos) continue;
    for (const ExpertVariant& variant : kVariants) {
      STRATA_TRY(const ExchangeTimes times,
                 EstimateExchanges(layout, variant.On(topology_name), topology));
      PrintTimes(&variant == kVariants ? layout.name : "", variant, times);
    }
  }
  return Ok();
}

// --- Measurements --------------------------------------------------------------------------------

constexpr std::string_view kMeasuredModel =
    "model=deepseek_v3 dim=128 n_layers=4 n_dense_layers=1 n_heads=4 hidden_dim=256 "
    "vocab_size=256 seq_len=256 batch_size=8 steps=1000 mla.q_lora_rank=0 mla.kv_lora_rank=64 "
    "mla.qk_nope_head_dim=32 mla.qk_rope_head_dim=16 mla.v_head_dim=32 moe.num_experts=8 "
    "moe.top_k=2 moe.moe_hidden_dim=256 moe.num_shared_experts=1 moe.score_func=softmax "
    "parallelism.fsdp_reshard_after_forward=never";

/// The network of two ranks: 0.5 ms, and 4 ms for a MiB that one sends the other.
constexpr std::string_view kSlowNetwork = R"([device]
memory_gib = 8
memory_tib_per_s = 0.01
efficiency = 1.0
launch_us = 2.0
tflops = { f32 = 0.05 }
[network]
model = "simple"
ranks_per_node = 1024
base_us = 500.0
hop_us = 0.0
intra_gb_per_s = 0.25
)";

/// A training of two ranks that share experts, and the times of its steps.
class ExpertTraining {
 public:
  static Result<ExpertTraining> Make(std::string_view settings, int64_t ranks,
                                     const std::string& network) {
    std::vector<std::string> words;
    AddWords(kMeasuredModel, words);
    AddWords(settings, words);
    words.push_back(fmt::format("parallelism.data_parallel_shard_degree={}", ranks));
    words.push_back(fmt::format("parallelism.expert_parallel_degree={}", ranks));
    words.push_back("comm.simulated_network=" + network);
    STRATA_TRY(const TrainConfig config, ConfigOf(words));
    ExpertTraining training;
    STRATA_TRY(training.trainer_,
               Trainer::Create({.config = config,
                                .data = MakeTokenSource(TokenData::Synthetic(config)),
                                .passes = std::string(kFusingPasses),
                                .threads = static_cast<int>(ranks)}));
    STRATA_RETURN_IF_ERROR(training.trainer_->Compile());
    for (int step = 0; step < 2; ++step) {
      STRATA_TRY([[maybe_unused]] const StepReport warm, training.trainer_->Step());
    }
    return training;
  }

  Status RunStep() {
    trainer_->ProfileNext(/*values=*/false);
    STRATA_TRY(const StepReport report, trainer_->Step());
    steps_.push_back(std::chrono::duration<double, std::micro>(report.wall).count());
    return Ok();
  }

  /// Medians and means of the steps that ran.
  Result<ExchangeTimes> Times(const Topology& topology) const {
    const Graph& step = *trainer_->module().FindGraph(kStepGraph);
    ExchangeTimes times{.step = Quantile(steps_, 0.5)};
    std::map<StableId, double> us;
    for (const GraphProfile& graph : trainer_->Profiles()) {
      if (graph.graph != kStepGraph) continue;
      for (const auto& [id, profile] : graph.nodes)
        us[id] = std::chrono::duration<double, std::micro>(profile.time).count() /
                 static_cast<double>(std::max<int64_t>(1, profile.calls));
    }
    std::map<NodeId, double> measured;
    double compute_us = 0;
    for (const NodeId node : step.nodes()) {
      const auto found = us.find(step.node(node).stable_id);
      if (found == us.end()) continue;
      measured[node] = found->second;
      if (IsExchangeWait(step, node)) times.exposed += found->second;
    }
    STRATA_TRY(NodeCost cost, NodeCost::Make(topology, step));
    cost.UseMeasured(std::move(measured));
    cost.CountOnly(CollectiveKind::kAllToAll);
    for (const NodeId node : step.nodes())
      compute_us += cost.ComputeUs(step, node);
    STRATA_RETURN_IF_ERROR(AddBound(step, cost, compute_us, times));
    return times;
  }

 private:
  std::unique_ptr<Trainer> trainer_;
  std::vector<double> steps_;
};

Status MeasureAll(int64_t ranks, int64_t rounds, std::string network) {
  std::optional<TemporaryPath> folder;
  if (network.empty()) {
    STRATA_TRY(folder, TemporaryPath::MakeFolder());
    network = folder->path() + "/slow.toml";
    STRATA_RETURN_IF_ERROR(WriteFile(network, kSlowNetwork));
  }
  STRATA_TRY(const Topology topology, Topology::Load(network));
  std::vector<ExpertTraining> trainings;
  for (const ExpertVariant& variant : kVariants) {
    STRATA_TRY(ExpertTraining training, ExpertTraining::Make(variant.On(network), ranks, network));
    trainings.push_back(std::move(training));
  }
  for (int64_t round = 0; round < rounds; ++round)
    for (ExpertTraining& training : trainings)
      STRATA_RETURN_IF_ERROR(training.RunStep());
  PrintHead();
  for (size_t i = 0; i < trainings.size(); ++i) {
    STRATA_TRY(const ExchangeTimes times, trainings[i].Times(topology));
    PrintTimes(i == 0 ? fmt::format("{} threads, EP {}", ranks, ranks) : "", kVariants[i], times);
  }
  return Ok();
}

}  // namespace

Result<Exit> BenchExperts(Args args) {
  std::string network, topology_name, only;
  int64_t ranks = 2, rounds = 15;
  Flags flags("bench experts",
              "measures how much of the exchanges of tokens chunks hide: steps of a small "
              "DeepSeek-V3 on ranks that are threads with a slow network between them, or, with "
              "--topology, estimates for DeepSeek-V3 16B and 671B. Times in ms: of a step, of its "
              "exchanges, while computation waits for these, and of the best order of the same "
              "nodes if nothing else was sent; and the part of what that order overlaps which "
              "this one overlaps");
  flags.Option("--ranks", "N", &ranks, "that share the experts (default: 2)", 2);
  flags.Option("--rounds", "N", &rounds, "steps of each (default: 15)", 1);
  flags.Option("--network", "FILE", &network, "topology of the network (default: 0.25 GB/s)");
  flags.Option("--topology", "NAME", &topology_name,
               "estimates on a100, b200, cpu, h100, h200, or a TOML file");
  flags.Option("--layout", "TEXT", &only, "only estimates whose name contains this");
  flags.Example("strata bench experts");
  flags.Example("strata bench experts --topology h100 --layout 16B");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  if (topology_name.empty()) {
    STRATA_RETURN_IF_ERROR(MeasureAll(ranks, rounds, network));
    return Exit::kOk;
  }
  STRATA_RETURN_IF_ERROR(EstimateAll(topology_name, only));
  return Exit::kOk;
}

}  // namespace strata::cli
