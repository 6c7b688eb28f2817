// Every way to save memory on every model family: twenty steps end in the same bits, and the peak
// is the one that the plan predicts.
//
//   runtime_test --no-skip -tc='memory matrix*'     # all combinations, and a table of peaks

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/Parallel.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/exec/step/memory_meter.h"
#include "runtime/train/trainer.h"
#include "tests/support/results.h"
#include "tests/unit/runtime/eager_training.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::Overrides;

struct MatrixFamily {
  std::string_view name, text;
  Overrides overrides;
};

// Results are larger than the smallest that is offloaded.
const MatrixFamily kMatrixFamilies[] = {
    {"llama3", testing::kSmallLlama3, {"n_layers=4"}},
    {"qwen3", testing::kSmallQwen3, {"n_layers=4"}},
    {"qwen3-moe",
     testing::kSmallQwen3,
     {"n_layers=3", "moe.num_experts=6", "moe.top_k=2", "moe.moe_hidden_dim=24",
      "moe.score_func=softmax"}},
    {"deepseek_v3", testing::kSmallDeepSeekV3, {"n_layers=4"}},
};
const Overrides kMatrixSizes = {"dim=64", "seq_len=96", "batch_size=8", "rope.max_seq_len=96",
                                "vocab_size=64"};
const Overrides kSmallMatrixSizes = {"dim=64", "seq_len=48", "batch_size=4", "rope.max_seq_len=96",
                                     "vocab_size=64"};

/// A policy of the configuration, or passes that stand for themselves.
struct MatrixPolicy {
  std::string_view name, policy;
  std::string_view passes = "dce,canonicalize";
  int budget_percent = 0;  ///< of the way from the peak of `full` to that of `none`
  bool budget_offloads = true;
  bool makes_kernels = false;
};

constexpr MatrixPolicy kMatrixPolicies[] = {
    {"none", "none"},
    {"full", "full"},
    {"default", "default"},
    {"eager", "eager"},
    {"min_cut", "min_cut"},
    {"sac_and_offload", "sac_and_offload"},
    {"budget", "budget", "dce,canonicalize", 50},
    {"budget in memory", "budget", "dce,canonicalize", 50, false},
    {"reorder-for-peak", "none", "dce,canonicalize,reorder-for-peak"},
    {"full, reordered", "none",
     "dce,canonicalize,tag-memory{policy=full},recompute,reorder-for-peak"},
    {"min_cut, kernels", "min_cut", "dce,canonicalize,place-casts,fuse", 0, true, true},
    {"sac_and_offload, kernels", "sac_and_offload", "dce,canonicalize,place-casts,fuse", 0, true,
     true},
};

struct MatrixTraining {
  std::vector<double> losses;
  std::vector<std::byte> tensors;  // state of the optimizer, parameters
  int64_t planned_bytes = 0, peak_bytes = 0;
};

MatrixTraining TrainMatrix(const TrainConfig& config, std::string_view passes, int steps) {
  const auto trainer = OrDie(Trainer::Create(
      {.config = config, .data = testing::Synthetic(config), .passes = std::string(passes)}));
  MatrixTraining training;
  const MemoryMeter meter;
  REQUIRE_OK(trainer->Compile());
  for (int step = 0; step < steps; ++step) {
    training.losses.push_back(OrDie(trainer->Step()).metrics.loss);
    training.planned_bytes = std::max(training.planned_bytes, trainer->planned_bytes());
  }
  training.peak_bytes = meter.peak_bytes();
  for (const std::vector<TensorView>& views : {trainer->OptimizerTensors(), trainer->Parameters()})
    for (const TensorView& view : views)
      training.tensors.insert(training.tensors.end(), view.bytes.begin(), view.bytes.end());
  return training;
}

/// All policies on one family and type: bits, peaks, and that peaks fall.
void CheckFamily(const MatrixFamily& family, std::string_view type, const Overrides& sizes,
                 int steps) {
  std::map<std::string_view, MatrixTraining> trainings;
  for (const MatrixPolicy& policy : kMatrixPolicies) {
    if (policy.makes_kernels && steps < 20) continue;  // compilers take their time
    INFO(family.name, " ", type, " ", policy.name);
    Overrides overrides = sizes;
    overrides.insert(overrides.end(), family.overrides.begin(), family.overrides.end());
    overrides.push_back(fmt::format("training.mixed_precision_param={}", type));
    overrides.push_back(fmt::format("compile.memory_policy={}", policy.policy));
    overrides.push_back(fmt::format("steps={}", steps));
    const MatrixTraining& none = trainings["none"];
    int64_t budget = 0;
    if (policy.budget_percent > 0) {
      const int64_t full = trainings["full"].planned_bytes;
      budget = full + (none.planned_bytes - full) * policy.budget_percent / 100;
      overrides.push_back(fmt::format("compile.memory_budget_bytes={}", budget));
      overrides.push_back(fmt::format("compile.memory_budget_offload={}", policy.budget_offloads));
    }
    const MatrixTraining training =
        TrainMatrix(testing::SmallConfig(family.text, overrides), policy.passes, steps);
    const double error = 100 * (static_cast<double>(training.planned_bytes) /
                                    static_cast<double>(training.peak_bytes) -
                                1);
    CHECK_LT(std::abs(error), 1);
    if (policy.name != "none") {
      CHECK_EQ(training.losses, none.losses);
      CHECK(testing::SameBytes(training.tensors, none.tensors));
      if (policy.name == "reorder-for-peak")
        CHECK_LE(training.planned_bytes, none.planned_bytes);
      else
        CHECK_LT(training.peak_bytes, none.peak_bytes);
    }
    if (budget > 0) CHECK_LE(training.planned_bytes, budget);
    if (steps == 20)
      MESSAGE(fmt::format("{:<12} {:<9} {:<25} planned {:>9}, measured {:>9}, {:+.2f} %",
                          family.name, type, policy.name, training.planned_bytes,
                          training.peak_bytes, error));
    trainings[policy.name] = training;
  }
}

TEST_CASE("policies leave every bit on every family, and peaks are as planned") {
  at::set_num_threads(1);
  size_t index = 0;
  for (const MatrixFamily& family : kMatrixFamilies)
    CheckFamily(family, index++ % 2 == 0 ? "float32" : "bfloat16", kSmallMatrixSizes, /*steps=*/2);
}

// A tool, run by its name: the same in both types with 20 steps, and a table of the peaks.
TEST_CASE("memory matrix: all policies on all families, fp32 and bf16" * doctest::skip()) {
  at::set_num_threads(1);
  for (const MatrixFamily& family : kMatrixFamilies)
    for (const std::string_view type : {"float32", "bfloat16"})
      CheckFamily(family, type, kMatrixSizes, /*steps=*/20);
}

}  // namespace
}  // namespace strata
