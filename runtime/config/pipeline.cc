#include "runtime/config/pipeline.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "passes/pipeline/schedule/schedule.h"
#include "runtime/config/checks.h"

namespace strata {
namespace {

constexpr std::string_view kDegree = "parallelism.pipeline_parallel_degree";
constexpr std::string_view kSchedule = "parallelism.pipeline_parallel_schedule";
constexpr std::string_view kScheduleCsv = "parallelism.pipeline_parallel_schedule_csv";
constexpr std::string_view kMicrobatchSize = "parallelism.pipeline_parallel_microbatch_size";
constexpr std::string_view kMicrobatches = "parallelism.num_pp_microbatches";
constexpr std::string_view kFirstLess = "parallelism.pipeline_parallel_first_stage_less_layers";
constexpr std::string_view kLastLess = "parallelism.pipeline_parallel_last_stage_less_layers";
constexpr std::string_view kLayersPerStage = "parallelism.pipeline_parallel_layers_per_stage";
constexpr std::string_view kModules = "parallelism.module_fqns_per_model_part";
constexpr std::string_view kSplit = "parallelism.pipeline_parallel_split";
constexpr std::string_view kSplitTimes = "parallelism.pipeline_parallel_split_times";

/// Keys that divide layers, beside others that decide what a stage has.
Status CheckDivision(const ConfigReader& reader, const PipelineConfig& pipeline) {
  if (!pipeline.modules.empty()) {
    for (const std::string_view key : {kSplit, kSplitTimes, kLayersPerStage, kFirstLess, kLastLess})
      if (reader.Has(key))
        return Impossible(reader, key, "{} names the modules of each stage, remove one", kModules);
  }
  if (!pipeline.balance && reader.Has(kSplitTimes))
    return Impossible(reader, kSplitTimes, "it is for {} = \"balanced\"", kSplit);
  for (const std::string_view key : {kFirstLess, kLastLess}) {
    if (pipeline.balance && reader.Has(key))
      return Impossible(reader, key, "modules are divided by their times, remove it");
  }
  return Ok();
}

/// Stages whose modules are named. The names themselves are checked when the graph is cut.
Result<int64_t> CountNamedStages(const ConfigReader& reader, const PipelineConfig& pipeline,
                                 const ScheduleKind& kind) {
  std::set<std::string> known;
  for (size_t stage = 0; stage < pipeline.modules.size(); ++stage) {
    if (pipeline.modules[stage].empty())
      return Impossible(reader, kModules, "stage {} has no modules", stage);
    for (const std::string& module : pipeline.modules[stage]) {
      // They are the separators of the pass's option.
      if (module.empty() || module.find_first_of(",;\"") != module.npos)
        return Impossible(reader, kModules, "'{}' is no path of a module", module);
      if (!known.insert(module).second)
        return Impossible(reader, kModules, "module '{}' is in two stages, name it once", module);
    }
  }
  const auto stages = static_cast<int64_t>(pipeline.modules.size());
  const int64_t per_rank = stages / pipeline.degree;
  if (stages % pipeline.degree != 0) {
    return Impossible(reader, kModules, "{} stages are no multiple of the {} ranks", stages,
                      pipeline.degree);
  }
  if (kind.is_multi != (per_rank > 1)) {
    return Impossible(reader, kModules, "{} stages are {} per rank, {} takes {}", stages, per_rank,
                      kind.name, kind.is_multi ? "2 or more" : "1");
  }
  return stages;
}

/// Of the modules that are named, or of `layers_per_stage` layers each where it gives them.
Result<int64_t> CountStages(const ConfigReader& reader, const TrainConfig& config,
                            const ScheduleKind& kind, int64_t layers_per_stage) {
  const PipelineConfig& pipeline = config.parallelism.pipeline;
  if (!pipeline.modules.empty()) return CountNamedStages(reader, pipeline, kind);
  if (layers_per_stage == 0) return pipeline.degree * (kind.is_multi ? 2 : 1);
  const int64_t units = config.n_layers + pipeline.first_less + pipeline.last_less;
  const int64_t stages = (units + layers_per_stage - 1) / layers_per_stage;
  if (stages % pipeline.degree != 0) {
    return Impossible(reader, kLayersPerStage,
                      "{} layers per stage make {} stages, no multiple of the {} ranks",
                      layers_per_stage, stages, pipeline.degree);
  }
  const int64_t per_rank = stages / pipeline.degree;
  if (kind.is_multi != (per_rank > 1)) {
    return Impossible(reader, kLayersPerStage,
                      "{} layers per stage make {} stages per rank, {} takes {}", layers_per_stage,
                      per_rank, kind.name, kind.is_multi ? "2 or more" : "1");
  }
  return stages;
}

Status SplitBatch(const ConfigReader& reader, TrainConfig& config) {
  PipelineConfig& pipeline = config.parallelism.pipeline;
  if (reader.Has(kMicrobatches)) {
    STRATA_RETURN_IF_ERROR(CheckSize(reader, kMicrobatches, pipeline.microbatches));
    if (config.accumulation_steps == 1) config.accumulation_steps = pipeline.microbatches;
    if (config.accumulation_steps % pipeline.microbatches == 0) return Ok();
    return Impossible(reader, kMicrobatches,
                      "{} microbatches do not divide the {} batches of a step",
                      pipeline.microbatches, config.accumulation_steps);
  }
  const int64_t size = std::max<int64_t>(1, pipeline.microbatches);  // as it was read
  const int64_t whole = config.batch_size / config.parallelism.data_ranks();
  if (whole % size != 0) {
    return Impossible(reader, kMicrobatchSize, "{} sequences do not divide batch_size {}", size,
                      whole);
  }
  pipeline.microbatches = whole / size;
  config.batch_size /= pipeline.microbatches;
  config.accumulation_steps *= pipeline.microbatches;
  if (config.validator.steps < 1) return Ok();
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "validator.steps", config.validator.steps));
  config.validator.steps *= pipeline.microbatches;
  return Ok();
}

}  // namespace

void ReadPipeline(ConfigReader& reader, PipelineConfig& pipeline) {
  reader.Read(kDegree, pipeline.degree);
  if (pipeline.degree < 1)
    reader.Refuse(kDegree, fmt::format("{} must be at least 1", pipeline.degree));
  if (pipeline.degree > kMaxSize)
    reader.Refuse(kDegree, fmt::format("{} must be at most {}", pipeline.degree, kMaxSize));
  reader.Read(kSchedule, pipeline.schedule);
  reader.Read(kScheduleCsv, pipeline.schedule_csv);
  // Which of the two was read shows in the keys that are there.
  for (const std::string_view key : {kMicrobatchSize, kMicrobatches}) {
    reader.Read(key, pipeline.microbatches);
    if (pipeline.microbatches < 1)
      reader.Refuse(key, fmt::format("{} must be at least 1", pipeline.microbatches));
  }
  reader.ForbidBoth(kMicrobatchSize, kMicrobatches);
  reader.Read(kFirstLess, pipeline.first_less);
  reader.Read(kLastLess, pipeline.last_less);
  pipeline.num_stages = 0;
  reader.Read(kLayersPerStage, pipeline.num_stages);
  if (reader.Has(kLayersPerStage) && pipeline.num_stages < 1)
    reader.Refuse(kLayersPerStage, fmt::format("{} must be at least 1", pipeline.num_stages));
  reader.Read(kModules, pipeline.modules);
  reader.Read(kSplit, {NamedValue<bool>{"layers", false}, {"balanced", true}}, pipeline.balance);
  reader.Read(kSplitTimes, pipeline.times);
}

Status CompletePipeline(const ConfigReader& reader, TrainConfig& config) {
  PipelineConfig& pipeline = config.parallelism.pipeline;
  const int64_t layers_per_stage = pipeline.num_stages;  // as it was read
  pipeline.num_stages = 1;
  if (pipeline.degree == 1) {
    const PipelineConfig defaults;
    const bool is_default = pipeline.schedule == defaults.schedule &&
                            pipeline.schedule_csv.empty() && pipeline.microbatches == 1 &&
                            pipeline.first_less == 1 && pipeline.last_less == 1 &&
                            layers_per_stage == 0 && !pipeline.balance && pipeline.times.empty() &&
                            pipeline.modules.empty();
    if (is_default) return Ok();
    for (const std::string_view key :
         {kSchedule, kScheduleCsv, kMicrobatchSize, kMicrobatches, kFirstLess, kLastLess,
          kLayersPerStage, kSplit, kSplitTimes, kModules})
      if (reader.Has(key)) return Impossible(reader, key, "a rank has all layers, remove it");
  }
  auto kind = FindScheduleKind(pipeline.schedule);
  if (!kind) return Impossible(reader, kSchedule, "{}", kind.error().message());
  pipeline.schedule = kind->name;
  for (const auto& [key, less] :
       {NamedValue<int64_t>{kFirstLess, pipeline.first_less}, {kLastLess, pipeline.last_less}})
    STRATA_RETURN_IF_ERROR(CheckRange(reader, key, less, 0, kMaxSize));
  STRATA_RETURN_IF_ERROR(CheckDivision(reader, pipeline));
  STRATA_TRY(pipeline.num_stages, CountStages(reader, config, *kind, layers_per_stage));
  STRATA_RETURN_IF_ERROR(SplitBatch(reader, config));
  if (config.parallelism.reshard == ReshardAfterForward::kAlways) {
    return Impossible(reader, "parallelism.fsdp_reshard_after_forward",
                      "parameters of a stage stay whole from UNSHARD to RESHARD of the schedule, "
                      "take 'default' or 'never'");
  }
  if (!pipeline.schedule_csv.empty()) return Ok();  // it is read when the passes are made
  const PipelineSize size = {.ranks = pipeline.degree,
                             .stages_per_rank = pipeline.num_stages / pipeline.degree,
                             .microbatches = pipeline.microbatches};
  if (auto schedule = MakeSchedule(*kind, size); !schedule)
    return Impossible(reader, kSchedule, "{}", schedule.error().message());
  return Ok();
}

}  // namespace strata
