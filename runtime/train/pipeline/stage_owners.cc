#include "runtime/train/pipeline/stage_owners.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/file.h"
#include "passes/pipeline/schedule/schedule_text.h"
#include "passes/pipeline/schedule/validation.h"
#include "passes/pipeline/slots.h"
#include "passes/pipeline/split_stages.h"
#include "passes/pipeline/stage_modules.h"

namespace strata {

Result<StageOwners> StageOwners::Make(const Module& module, const TrainSpec& spec,
                                      const PipelineSchedule& schedule) {
  const Graph& step = *module.FindGraph(kStepGraph);
  const std::string text(step.attribute(step.output(), kStageModulesAttribute));
  STRATA_TRY(const StageModules modules, StageModules::Parse(text));
  if (modules.size() != schedule.num_stages()) {
    return Error("the graph has {} stages, the schedule {}: pipeline: give both the same number",
                 modules.size(), schedule.num_stages());
  }
  std::map<std::string, int64_t> stages;  // of the inputs that belong to one
  for (const NodeId node : step.placeholders()) {
    const std::string stage(step.attribute(node, kStageAttribute));
    if (!stage.empty()) stages.emplace(StageInputName(step, node), std::stoll(stage));
  }
  const auto rank_of = [&](const ParameterSpec& parameter) {
    const auto found = stages.find(parameter.name);
    const int64_t stage = found == stages.end() ? modules.StageOf(parameter.name) : found->second;
    return schedule.rank_of_stage[static_cast<size_t>(stage)];
  };
  StageOwners owners;
  for (const ParameterSpec& parameter : spec.model.parameters)
    owners.parameters.push_back(rank_of(parameter));
  for (const ParameterSpec& buffer : spec.model.buffers)
    owners.buffers.push_back(rank_of(buffer));
  owners.loss = schedule.rank_of_stage.back();
  return owners;
}

namespace {

Result<PipelineSchedule> ReadSchedule(const PipelineConfig& pipeline, StageStyle style) {
  const std::string& path = pipeline.schedule_csv;
  STRATA_TRY(const std::string text, ReadFile(path));
  STRATA_TRY(PipelineSchedule schedule, ParseScheduleCsv(text, path));
  if (schedule.num_ranks() != pipeline.degree || schedule.num_stages() != pipeline.num_stages ||
      schedule.microbatches != pipeline.microbatches) {
    return Error(
        "a schedule for another pipeline: {}: {} ranks, {} stages and {} microbatches, the "
        "configuration has {}, {} and {}",
        path, schedule.num_ranks(), schedule.num_stages(), schedule.microbatches, pipeline.degree,
        pipeline.num_stages, pipeline.microbatches);
  }
  if (schedule.rank_of_stage != RanksOfStages(pipeline.num_stages, pipeline.degree, style)) {
    return Error("a schedule with stages on other ranks: {}: {} has them as a {}", path,
                 pipeline.schedule, ToString(style));
  }
  if (auto valid = ValidateSchedule(schedule); !valid) return std::move(valid).error().In(path);
  return schedule;
}

}  // namespace

Result<PipelineSchedule> ScheduleOf(const PipelineConfig& pipeline) {
  STRATA_TRY(const ScheduleKind kind, FindScheduleKind(pipeline.schedule));
  if (!pipeline.schedule_csv.empty()) return ReadSchedule(pipeline, kind.style);
  return MakeSchedule(kind, {.ranks = pipeline.degree,
                             .stages_per_rank = pipeline.num_stages / pipeline.degree,
                             .microbatches = pipeline.microbatches});
}

bool SplitsBackward(const PipelineSchedule& schedule) {
  bool splits = false;
  for (const auto& actions : schedule.ranks) {
    for (const std::optional<Action>& action : actions)
      splits |= action && action->type == ActionType::kBackwardInput;
  }
  return splits;
}

std::set<std::pair<int64_t, int64_t>> OverlapsOf(const PipelineSchedule& schedule) {
  std::set<std::pair<int64_t, int64_t>> pairs;
  for (const auto& actions : schedule.ranks) {
    for (const std::optional<Action>& action : actions)
      if (action && action->type == ActionType::kOverlap)
        pairs.emplace(action->parts.at(0).stage, action->parts.at(1).stage);
  }
  return pairs;
}

}  // namespace strata
