#include "runtime/config/debug.h"

#include "runtime/config/checks.h"

namespace strata {
namespace {

void ReadProfiler(ConfigReader& reader, ProfilerConfig& profiler) {
  reader.Table("profiler");
  reader.Read("profiler.enable_profiling", profiler.enable_profiling);
  reader.Read("profiler.profile_freq", profiler.profile_freq);
  reader.Read("profiler.profiler_warmup", profiler.profiler_warmup);
  reader.Read("profiler.profiler_active", profiler.profiler_active);
  reader.Fix("profiler.save_traces_folder", "profiling/traces",
             "profiles go to the file of --trace, remove it");
  reader.Fix("profiler.enable_memory_snapshot", false,
             "--trace and --profile record the bytes of each node, take false");
  reader.Fix("profiler.save_memory_snapshot_folder", "profiling/memory_snapshot",
             "--trace and --profile record the bytes of each node, remove it");
}

}  // namespace

void ReadDebug(ConfigReader& reader, TrainConfig& config) {
  reader.Table("debug");
  reader.Read("seed", config.seed);
  reader.Read("debug.finite_check", config.finite_check);
  reader.Read("debug.deterministic", config.deterministic);
  reader.Read("debug.deterministic_warn_only", config.deterministic_warn_only);
  reader.Read("debug.print_config", config.print_config);
  reader.Read("debug.save_config_file", config.save_config_file);
  bool force_load_balance = false;
  reader.Read("debug.moe_force_load_balance", force_load_balance);
  if (config.moe) config.moe->force_load_balance = force_load_balance;
  if (force_load_balance && !config.moe) {
    reader.Refuse("debug.moe_force_load_balance", "the model has no experts, take false");
  }
  reader.Fix("debug.detect_anomaly", false,
             "debug.finite_check ends a run, and --values last tells which node had NaNs; take "
             "false");
  reader.Fix("debug.batch_invariant", false, "it is not for training, take false");
  reader.Fix("debug.enable_structured_logging", true,
             "nothing is written but what --metrics and --trace ask for, remove it");
  ReadProfiler(reader, config.profiler);
}

Status CheckDebug(const ConfigReader& reader, const TrainConfig& config) {
  if (config.deterministic_warn_only && !config.deterministic) {
    return Impossible(reader, "debug.deterministic_warn_only",
                      "it softens debug.deterministic, which is not asked for");
  }
  const ProfilerConfig& profiler = config.profiler;
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "profiler.profile_freq", profiler.profile_freq));
  STRATA_RETURN_IF_ERROR(
      CheckRange(reader, "profiler.profiler_warmup", profiler.profiler_warmup, 0, kMaxSize));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "profiler.profiler_active", profiler.profiler_active));
  if (profiler.profile_freq < profiler.profiler_warmup + profiler.profiler_active) {
    return Impossible(reader, "profiler.profile_freq",
                      "{} steps do not hold {} of warm-up and {} that are profiled",
                      profiler.profile_freq, profiler.profiler_warmup, profiler.profiler_active);
  }
  return Ok();
}

}  // namespace strata
