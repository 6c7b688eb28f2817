#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "bench/bench.h"
#include "bench/step_module.h"
#include "cli/core/flags.h"
#include "passes/simulate/collective_uses.h"
#include "passes/simulate/timeline.h"
#include "runtime/train/programs/trace_programs.h"

namespace strata::cli {
namespace {

constexpr std::string_view kLlama8b =
    "model=llama3 dim=4096 n_layers=32 n_heads=32 n_kv_heads=8 vocab_size=128256 multiple_of=1024 "
    "ffn_dim_multiplier=1.3 seq_len=8192 batch_size=1 steps=1 "
    "training.mixed_precision_param=bfloat16";
/// What schedules the collectives of a step.
struct Schedule {
  std::string_view name;
  std::string_view passes;    ///< a pipeline, into which placement is inserted
  std::string_view settings;  ///< of the configuration
  std::string_view published = "";
};

constexpr std::string_view kNone = R"(compile.disable_passes=["bucket-transformer-blocks"])";
constexpr std::string_view kCleanup = "dce,canonicalize";
constexpr std::string_view kBySize =
    "dce,canonicalize,bucket-by-size,overlap-collectives{topology=h100}";

struct SimulatedLayout {
  std::string_view name;
  std::string_view model;
  std::string_view degrees;
  std::vector<Schedule> schedules;
};

std::vector<Schedule> DenseSchedules(std::string_view of_blocks, std::string_view by_size) {
  return {{"none", kCleanup, kNone},
          {"`bucket-transformer-blocks`", kCleanup, "", of_blocks},
          {"`reassign-groups` and that", kCleanup, "compile.enable_fsdp_ag_rs_overlap=true"},
          {"`bucket-by-size`, `overlap-collectives`", kBySize, kNone, by_size}};
}

/// The layouts whose communication scheduling torchtitan and PyTorch have published measurements
/// of. In each, the first schedule is that with which the others are compared.
std::vector<SimulatedLayout> Layouts() {
  return {
      {"Llama3 8B, FSDP 4 × TP 2", kLlama8b,
       "parallelism.data_parallel_shard_degree=4 parallelism.tensor_parallel_degree=2",
       DenseSchedules("", "+4.0 % tokens/s, 1820 → 1382 collectives (torchtitan 2961)")},
      {"Llama3 8B, FSDP 8 × TP 2", kLlama8b,
       "parallelism.data_parallel_shard_degree=8 parallelism.tensor_parallel_degree=2",
       DenseSchedules("", "")},
      {"Llama3 8B, FSDP 8, 2 sequences", kLlama8b,
       "parallelism.data_parallel_shard_degree=8 batch_size=2",
       DenseSchedules("7852 ms (pytorch 184236)", "9369 ms")},
      {"Llama3 8B, FSDP 8, 2048 tokens", kLlama8b,
       "parallelism.data_parallel_shard_degree=8 seq_len=2048",
       DenseSchedules("MFU 10.6 % (pytorch 184225)", "MFU 11.3 %")},
      {"Llama3 8B, TP 8, 2 sequences", kLlama8b,
       "parallelism.tensor_parallel_degree=8 batch_size=2",
       DenseSchedules("1885 ms (pytorch 184236)", "5147 ms")},
      {"DeepSeek-V3 16B, FSDP 8, EP 4",
       kDeepSeek16b,
       "parallelism.data_parallel_shard_degree=8 parallelism.expert_parallel_degree=4 "
       "compile.memory_policy=full",
       {{"none", kCleanup, kNone},
        {"`bucket-transformer-blocks`", kCleanup, "",
         "830 + 377 → 109 + 55 collectives (torchtitan)"},
        {"`reassign-groups` and that", kCleanup, "compile.enable_fsdp_ag_rs_overlap=true",
         "+1.2 % tokens/s (torchtitan 3592)"}}},
      {"DeepSeek-V3 16B, FSDP 32, EP 32",
       kDeepSeek16b,
       "parallelism.data_parallel_shard_degree=32 parallelism.expert_parallel_degree=32",
       {{"none", kCleanup, kNone},
        {"`bucket-transformer-blocks`", kCleanup, ""},
        {"that and `schedule-dense-regions`", kCleanup,
         "compile.enable_fsdp_dense_region_overlap=true", "−0.8 % tokens/s (torchtitan 3434)"},
        {"that, experts in 2 chunks", kCleanup,
         "compile.enable_fsdp_dense_region_overlap=true compile.ep_overlap.enabled=true "
         "compile.ep_overlap.module_fqn=layers.*.moe",
         "+26.8 % tokens/s"}}},
  };
}

struct Estimate {
  Timeline timeline;
  int64_t collectives = 0;
};

Result<Estimate> EstimateOf(const SimulatedLayout& layout, const Schedule& schedule,
                            const Topology& topology) {
  STRATA_TRY(const std::unique_ptr<Module> module,
             StepModule({layout.model, layout.degrees, schedule.settings}, schedule.passes));
  const Graph& step = *module->FindGraph(kStepGraph);
  STRATA_TRY(const NodeCost cost, NodeCost::Make(topology, step));
  Estimate estimate;
  STRATA_TRY(estimate.timeline, Simulate(step, cost));
  for (const CollectiveUse& use : CollectiveUses(step))
    estimate.collectives += use.count;
  return estimate;
}

std::string Change(double before, double after) {
  return fmt::format("{:+.1f} %", 100 * (after / before - 1));
}

Status EstimateLayout(const SimulatedLayout& layout, const Topology& topology) {
  double before = 0;
  for (const Schedule& schedule : layout.schedules) {
    STRATA_TRY(const Estimate estimate, EstimateOf(layout, schedule, topology));
    const bool is_first = before == 0;
    if (is_first) before = estimate.timeline.step_us;
    fmt::print("| {} | {} | {:.0f}{} | {:.0f} | {} | {} |\n", is_first ? layout.name : "",
               schedule.name, estimate.timeline.step_us / 1e3,
               is_first ? "" : fmt::format(" ({})", Change(before, estimate.timeline.step_us)),
               estimate.timeline.exposed_us() / 1e3, estimate.collectives, schedule.published);
    std::fflush(stdout);  // a layout takes seconds
  }
  return Ok();
}

}  // namespace

Result<Exit> BenchSimulate(Args args) {
  std::string topology_name = "h100", only;
  Flags flags("bench simulate",
              "estimates steps of one rank before and after each way to schedule collectives, on "
              "layouts of which gains were published: times in ms, as a table in Markdown");
  flags.Option("--topology", "NAME", &topology_name,
               "a100, b200, cpu, h100, h200, or a TOML file (default: h100)");
  flags.Option("--layout", "TEXT", &only, "only layouts whose name contains this");
  flags.Example("strata bench simulate --layout 'FSDP 8 × TP 2'");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  STRATA_TRY(const Topology topology, Topology::Load(topology_name));
  fmt::print(
      "| model and ranks | passes | step | exposed | collectives | published |\n"
      "|---|---|---|---|---|---|\n");
  for (const SimulatedLayout& layout : Layouts())
    if (layout.name.find(only) != std::string_view::npos)
      STRATA_RETURN_IF_ERROR(EstimateLayout(layout, topology));
  return Exit::kOk;
}

}  // namespace strata::cli
