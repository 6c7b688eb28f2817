// In fp64 the layouts of ranks differ from one rank by the rounding of fp64 alone: what differs in
// fp32 is the order of sums.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/train/trainer.h"
#include "tests/support/rank_courses.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::OrDie;

constexpr std::string_view kCommon = R"(
dim = 32
n_layers = 2
n_heads = 8
vocab_size = 50
seq_len = 16
steps = 3
seed = 3
[optimizer]
lr = 1e-3
[training]
dtype = "float64"
)";
constexpr std::string_view kDoubleLlama = "model = \"llama3\"\nn_kv_heads = 4\nhidden_dim = 72";
constexpr std::string_view kDoubleQwen = "model = \"qwen3\"\nn_kv_heads = 4\nhead_dim = 8";
using Doubles = std::map<std::string, std::vector<double>>;

Doubles CopyDoubles(const std::vector<TensorView>& views) {
  Doubles values;
  for (const TensorView& view : views) {
    REQUIRE(view.dtype == TensorDtype::kF64);
    std::vector<double>& target = values[view.name];
    target.resize(view.bytes.size() / sizeof(double));
    std::memcpy(target.data(), view.bytes.data(), view.bytes.size());
  }
  return values;
}

double Difference(const Doubles& a, const Doubles& b) {
  REQUIRE_EQ(a.size(), b.size());
  double largest = 0.0;
  for (const auto& [name, values] : a) {
    REQUIRE_EQ(values.size(), b.at(name).size());
    for (size_t i = 0; i < values.size(); ++i)
      largest = std::max(largest, std::abs(values[i] - b.at(name)[i]));
  }
  return largest;
}

struct DoubleCourse {
  std::vector<StepMetrics> steps;
  Doubles gradients, parameters;
};

struct DoubleLayout {
  int64_t replicate = 1, shard = 1, tensor = 1, context = 1;
  bool shares_sequences = true;
};

DoubleCourse TrainDoubles(const std::string& model, const DoubleLayout& layout) {
  constexpr int64_t kBatch = 8;
  const auto trainer = testing::TrainerOf(testing::ConfigOf(
      model, {testing::Degree("data_parallel_replicate", layout.replicate),
              testing::Degree("data_parallel_shard", layout.shard),
              testing::Degree("tensor_parallel", layout.tensor),
              testing::Degree("context_parallel", layout.context),
              fmt::format("parallelism.enable_sequence_parallel={}", layout.shares_sequences),
              fmt::format("batch_size={}", kBatch / layout.replicate / layout.shard)}));
  OrDie(trainer->Compile());
  trainer->KeepGradients();
  DoubleCourse course;
  while (OrDie(trainer->HasNext())) {
    course.steps.push_back(OrDie(trainer->Step()).metrics);
    if (course.steps.size() == 1) course.gradients = CopyDoubles(trainer->Gradients());
  }
  course.parameters = CopyDoubles(trainer->Parameters());
  return course;
}

/// Adam divides by the root of a mean of squares: a gradient near 0 raises its rounding.
void CheckDoubles(const std::string& model, const std::vector<DoubleLayout>& layouts) {
  const DoubleCourse oracle = TrainDoubles(model, {});
  for (const DoubleLayout& layout : layouts) {
    CAPTURE(layout.replicate);
    CAPTURE(layout.shard);
    CAPTURE(layout.tensor);
    CAPTURE(layout.context);
    CAPTURE(layout.shares_sequences);
    const DoubleCourse course = TrainDoubles(model, layout);
    for (size_t i = 0; i < oracle.steps.size(); ++i) {
      CHECK_LT(std::abs(course.steps[i].loss - oracle.steps[i].loss), 1e-12);
      CHECK_LT(std::abs(course.steps[i].grad_norm - oracle.steps[i].grad_norm), 1e-12);
    }
    CHECK_LT(Difference(course.gradients, oracle.gradients), 1e-12);
    CHECK_LT(Difference(course.parameters, oracle.parameters), 1e-9);
  }
}

std::string Joined(std::string_view top) {
  return fmt::format("{}{}", top, kCommon);
}

TEST_CASE("fp64: experts are refused, whose grouped products have none") {
  const std::vector<std::string> sets = {"batch_size=1"};
  const auto config = ParseTrainConfig(
      Joined(kDoubleQwen) + "[moe]\nnum_experts = 4\ntop_k = 2\nmoe_hidden_dim = 24\n",
      ConfigFormat::kToml, "c.toml", sets);
  REQUIRE_FALSE(config.has_value());
  CHECK_NE(config.error().message().find("grouped products of experts have no float64, take "
                                         "'float32' or moe.use_grouped_mm = false"),
           std::string::npos);
}

TEST_CASE("fp64: layouts of a dense model differ from one rank by fp64's rounding") {
  CheckDoubles(Joined(kDoubleLlama), {{.shard = 2},
                                      {.shard = 8},
                                      {.tensor = 2},
                                      {.tensor = 4},
                                      {.tensor = 2, .shares_sequences = false},
                                      {.context = 2},
                                      {.shard = 2, .tensor = 2},
                                      {.replicate = 2},
                                      {.replicate = 2, .shard = 2},
                                      {.tensor = 2, .context = 2}});
  CheckDoubles(Joined(fmt::format("{}\nhidden_dim = 64", kDoubleQwen)),
               {{.shard = 4}, {.tensor = 4}});
}

}  // namespace
}  // namespace strata
