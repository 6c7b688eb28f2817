#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/train/data/data.h"
#include "runtime/train/data/packing.h"
#include "runtime/train/trainer.h"
#include "tests/support/graphs.h"

namespace strata::testing {

// Trainings of one model on different ranks, and how far they are apart.

inline TrainConfig ConfigOf(std::string_view model, const std::vector<std::string>& sets) {
  return OrDie(ParseTrainConfig(model, ConfigFormat::kToml, "c.toml", sets));
}

inline std::unique_ptr<Trainer> TrainerOf(const TrainConfig& config) {
  TrainSetup setup{.config = config, .data = OrDie(OpenDataSource(config))};
  if (config.validator.enable) setup.validation = OrDie(OpenValidationData(config));
  return OrDie(Trainer::Create(std::move(setup)));
}

using Values = std::map<std::string, std::vector<float>>;

inline Values Copy(const std::vector<TensorView>& views) {
  Values values;
  for (const TensorView& view : views) {
    std::vector<float>& target = values[view.name];
    target.resize(view.bytes.size() / sizeof(float));
    std::memcpy(target.data(), view.bytes.data(), view.bytes.size());
  }
  return values;
}

/// The largest difference of two lists of tensors; they have the same names and sizes.
inline double Difference(const Values& a, const Values& b) {
  REQUIRE_EQ(a.size(), b.size());
  double largest = 0.0;
  for (const auto& [name, values] : a) {
    REQUIRE(b.contains(name));
    REQUIRE_EQ(values.size(), b.at(name).size());
    for (size_t i = 0; i < values.size(); ++i) {
      REQUIRE(std::isfinite(values[i]));
      largest = std::max<double>(largest, std::abs(values[i] - b.at(name)[i]));
    }
  }
  return largest;
}

struct Course {
  std::vector<StepMetrics> steps;
  Values gradients, parameters, optimizer;
};

inline Course Train(Trainer& trainer) {
  Course course;
  OrDie(trainer.Compile());
  trainer.KeepGradients();
  while (OrDie(trainer.HasNext())) {
    StepReport report = OrDie(trainer.Step());
    if (trainer.IsValidationStep()) OrDie(trainer.Validate(report));
    course.steps.push_back(report.metrics);
    if (course.steps.size() == 1) course.gradients = Copy(trainer.Gradients());
  }
  course.parameters = Copy(trainer.Parameters());
  course.optimizer = Copy(trainer.OptimizerTensors());
  return course;
}

inline Course Train(std::string_view model, const std::vector<std::string>& sets) {
  return Train(*TrainerOf(ConfigOf(model, sets)));
}

/// Sums in another order: a few ULPs per step, which Adam's division raises for small gradients.
inline void CheckClose(const Course& course, const Course& oracle) {
  REQUIRE_EQ(course.steps.size(), oracle.steps.size());
  for (size_t i = 0; i < course.steps.size(); ++i) {
    CHECK_EQ(course.steps[i].loss, doctest::Approx(oracle.steps[i].loss).epsilon(2e-6));
    CHECK_EQ(course.steps[i].grad_norm, doctest::Approx(oracle.steps[i].grad_norm).epsilon(2e-5));
    CHECK_EQ(course.steps[i].validation_loss.has_value(),
             oracle.steps[i].validation_loss.has_value());
    if (course.steps[i].validation_loss) {
      CHECK_EQ(*course.steps[i].validation_loss,
               doctest::Approx(*oracle.steps[i].validation_loss).epsilon(2e-6));
    }
  }
  CHECK_LT(Difference(course.gradients, oracle.gradients), 1e-6);
  CHECK_LT(Difference(course.parameters, oracle.parameters), 2e-4);
  CHECK_LT(Difference(course.optimizer, oracle.optimizer), 1e-5);
}

/// Overrides of a configuration.
using Sets = std::vector<std::string>;

inline Sets operator+(Sets sets, const Sets& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

inline std::string Degree(std::string_view axis, int64_t ranks) {
  return fmt::format("parallelism.{}_degree={}", axis, ranks);
}

}  // namespace strata::testing
