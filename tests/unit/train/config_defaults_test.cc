// Torchtitan's defaults, written out, are taken.

#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/config/config.h"
#include "tests/support/results.h"

namespace strata {
namespace {

constexpr std::string_view kDefaultModel = R"(model = "llama3"
dim = 32
n_layers = 2
n_heads = 4
vocab_size = 40
seq_len = 12
batch_size = 2
steps = 4
)";

TEST_CASE("what torchtitan's defaults say is what a run on one rank does") {
  const std::vector<std::string> defaults = {
      "training.num_tokens_per_train_step=-1",
      "training.max_norm=1.0",
      "training.enable_cpu_offload=false",
      "training.disable_cuda_graphs=false",
      "training.dtype=float32",
      "training.mixed_precision_param=bfloat16",
      "training.mixed_precision_reduce=float32",
      "training.gc_freq=50",
      "training.gc_debug=false",
      "parallelism.data_parallel_replicate_degree=1",
      "parallelism.data_parallel_shard_degree=-1",
      "parallelism.fsdp_reshard_after_forward=default",
      "parallelism.tensor_parallel_degree=1",
      "parallelism.enable_async_tensor_parallel=false",
      "parallelism.enable_sequence_parallel=true",
      "parallelism.spmd_backend=partial_dtensor",
      "parallelism.pipeline_parallel_degree=1",
      "parallelism.pipeline_parallel_schedule=1F1B",
      "parallelism.pipeline_parallel_schedule_csv=",
      "parallelism.pipeline_parallel_first_stage_less_layers=1",
      "parallelism.pipeline_parallel_last_stage_less_layers=1",
      "parallelism.pipeline_parallel_layers_per_stage=null",
      "parallelism.num_pp_microbatches=1",
      "parallelism.context_parallel_degree=1",
      "parallelism.context_parallel_load_balancer=headtail",
      "parallelism.expert_parallel_degree=1",
      "comm.init_timeout_seconds=300",
      "comm.train_timeout_seconds=100",
      "comm.trace_buf_size=20000",
      "comm.save_traces_folder=comm_traces",
      "comm.save_traces_file_prefix=rank_",
      "comm.mode=default",
      "debug.seed=null",
      "debug.deterministic=false",
      "debug.deterministic_warn_only=false",
      "debug.moe_force_load_balance=false",
      "debug.detect_anomaly=false",
      "debug.batch_invariant=false",
      "debug.print_config=false",
      "debug.save_config_file=null",
      "debug.enable_structured_logging=true",
      "optimizer.implementation=fused",
      "lr_scheduler.warmup_steps=200",
      "lr_scheduler.min_lr_factor=0",
      "metrics.log_freq=10",
      "metrics.enable_wandb=false",
      "metrics.save_for_all_ranks=false",
      "metrics.disable_color_printing=false",
      "checkpoint.enable=false",
      "checkpoint.interval=500",
      "checkpoint.initial_load_model_only=true",
      "checkpoint.initial_load_in_hf=false",
      "checkpoint.initial_load_in_hf_quantized=false",
      "checkpoint.last_save_model_only=true",
      "checkpoint.export_dtype=float16",
      "checkpoint.keep_latest_k=10",
      "checkpoint.load_step=-1",
      "checkpoint.create_seed_checkpoint=false",
      "checkpoint.load_only=false",
      "checkpoint.async_mode=async_with_pinned_mem",
      "profiler.enable_profiling=false",
      "profiler.profile_freq=10",
      "profiler.profiler_warmup=3",
      "profiler.profiler_active=1",
      "profiler.save_traces_folder=profiling/traces",
      "profiler.enable_memory_snapshot=false",
      "profiler.save_memory_snapshot_folder=profiling/memory_snapshot",
      "validator.enable=false",
      "validator.freq=10",
      "validator.steps=-1",
      "dataloader.seed=42",
      "dataloader.shuffle=true",
      "dataloader.repeat=true",
      "hf_assets_path=./tests/assets/tokenizer",
      "dump_folder=./outputs",
      "compile.enable=true",
      "compile.mode=aot_fx_trace",
      "compile.backend=aot_eager",
      "compile.enable_passes=true",
      "compile.disable_passes=",
      "compile.debug_graph_passes=false",
      "compile.memory_policy=default",
      "compile.full_recompute_save_ops=",
      "compile.pass_pipeline=default",
      "compile.inductor_compilation=regional",
      "compile.numerics_changing_optim=false",
      "compile.cpu_offload_prefetch_n_layers=1",
      "compile.cpu_offload_defer_n_layers=1",
      "compile.cpu_offload_budget_gb=100.0",
      "compile.enable_fsdp_ag_rs_overlap=false",
      "compile.enable_fsdp_dense_region_overlap=false",
      "compile.enable_async_tensor_parallel=false",
      "compile.ep_overlap.enabled=false",
      "compile.ep_overlap.chunk_dim=batch",
      "compile.ep_overlap.strategy=graph",
      "compile.ep_overlap.module_fqn=layers.*",
      "compile.ep_overlap.disable_early_grad_accumulation=false",
      "compile.precompile_artifact_dir=",
      "compile.enable_autoparallel=false"};
  for (const std::string& one : defaults) {
    INFO(one);
    CHECK_OK(ParseTrainConfig(kDefaultModel, ConfigFormat::kToml, "c.toml", std::vector{one}));
  }
  CHECK_OK(ParseTrainConfig(kDefaultModel, ConfigFormat::kToml, "c.toml", defaults));
}

}  // namespace
}  // namespace strata
