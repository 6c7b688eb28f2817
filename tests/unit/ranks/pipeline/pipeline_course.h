#pragma once
// Trains small models on one rank and in pipelines, and compares the courses bit for bit.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/train/data/data.h"
#include "runtime/train/data/packing.h"
#include "runtime/train/trainer.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

/// Apart from tests/support/rank_courses.h, whose courses of layouts are close, not equal.
namespace strata::testing::pipelines {

/// Six layers, so that stages differ, and steps that read what the optimizer wrote.
inline constexpr std::string_view kModel = R"(model = "llama3"
dim = 32
n_layers = 6
n_heads = 4
n_kv_heads = 2
vocab_size = 64
multiple_of = 16
seq_len = 16
steps = 5
seed = 7
[optimizer]
lr = 3e-3
max_grad_norm = 0.5
)";

using Sets = std::vector<std::string>;

/// Ranks of a stage share parameters.
inline const Sets kSharded = {"parallelism.data_parallel_shard_degree=2"};

inline TrainConfig ConfigOf(const Sets& sets, std::string_view model = kModel) {
  return OrDie(ParseTrainConfig(model, ConfigFormat::kToml, "c.toml", sets));
}

inline std::unique_ptr<Trainer> TrainerOf(const TrainConfig& config, std::string passes) {
  TrainSetup setup{
      .config = config, .data = OrDie(OpenDataSource(config)), .passes = std::move(passes)};
  if (config.validator.enable) setup.validation = OrDie(OpenValidationData(config));
  return OrDie(Trainer::Create(std::move(setup)));
}

using Values = std::map<std::string, std::string>;  // bytes by name

inline Values Copy(const std::vector<TensorView>& views) {
  Values values;
  for (const TensorView& view : views)
    values[view.name].assign(reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size());
  return values;
}

struct Course {
  std::vector<double> losses, norms, validation_losses;
  Values gradients, parameters, optimizer;
};

inline Course Finish(Trainer& trainer) {
  Course course;
  trainer.KeepGradients();
  while (OrDie(trainer.HasNext())) {
    StepReport report = OrDie(trainer.Step());
    course.losses.push_back(report.metrics.loss);
    course.norms.push_back(report.metrics.grad_norm);
    if (course.losses.size() == 1) course.gradients = Copy(trainer.Gradients());
    if (!trainer.IsValidationStep()) continue;
    OrDie(trainer.Validate(report));
    course.validation_losses.push_back(*report.metrics.validation_loss);
  }
  course.parameters = Copy(trainer.Parameters());
  course.optimizer = Copy(trainer.OptimizerTensors());
  return course;
}

inline Course Train(const Sets& sets, std::string_view model = kModel,
                    std::string passes = std::string(kDefaultPasses)) {
  const auto trainer = TrainerOf(ConfigOf(sets, model), std::move(passes));
  OrDie(trainer->Compile());
  return Finish(*trainer);
}

/// Of values whose bytes differ, or that one list lacks.
inline std::vector<std::string> Differences(const Values& values, const Values& oracle) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : values)
    if (const auto found = oracle.find(name); found == oracle.end() || found->second != bytes)
      names.push_back(name);
  for (const auto& [name, bytes] : oracle)
    if (!values.contains(name)) names.push_back(name);
  return names;
}

inline void CheckSameBits(const Course& course, const Course& oracle) {
  CHECK_EQ(course.losses, oracle.losses);
  CHECK_EQ(course.norms, oracle.norms);
  CHECK_EQ(course.validation_losses, oracle.validation_losses);
  CHECK_EQ(Differences(course.gradients, oracle.gradients), std::vector<std::string>());
  CHECK_EQ(Differences(course.parameters, oracle.parameters), std::vector<std::string>());
  CHECK_EQ(Differences(course.optimizer, oracle.optimizer), std::vector<std::string>());
}

inline Sets operator+(Sets sets, const Sets& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

/// One rank that adds up the gradients of `count` microbatches of `size` sequences.
inline Sets Accumulating(int64_t count, int64_t size, int64_t seq_len = 16) {
  return {fmt::format("batch_size={}", size),
          fmt::format("training.num_tokens_per_train_step={}", count * size * seq_len)};
}

inline Sets Pipeline(std::string_view schedule, int64_t ranks, int64_t microbatches, int64_t size) {
  return {fmt::format("parallelism.pipeline_parallel_degree={}", ranks),
          fmt::format("parallelism.pipeline_parallel_schedule={}", schedule),
          fmt::format("parallelism.pipeline_parallel_microbatch_size={}", size),
          fmt::format("batch_size={}", microbatches * size)};
}

}  // namespace strata::testing::pipelines
