// What memory policies leave of a training: its results, in less memory.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/Parallel.h>

#include <doctest/doctest.h>

#include "runtime/exec/step/memory_meter.h"
#include "runtime/train/trainer.h"
#include "tests/support/results.h"
#include "tests/unit/runtime/eager_training.h"

namespace strata {
namespace {

using testing::Case;
using testing::kCases;
using testing::OrDie;
using testing::Overrides;
using testing::SmallConfig;

struct Training {
  std::vector<double> losses;
  std::vector<std::byte> tensors;  // gradients of the last step, parameters
  int64_t planned_bytes = 0, peak_bytes = 0, num_copies = 0;
};

void Append(const std::vector<TensorView>& views, std::vector<std::byte>& out) {
  for (const TensorView& view : views)
    out.insert(out.end(), view.bytes.begin(), view.bytes.end());
}

Training Train(const TrainConfig& config, int steps, std::string_view passes = kDefaultPasses) {
  const auto trainer = OrDie(Trainer::Create(
      {.config = config, .data = testing::Synthetic(config), .passes = std::string(passes)}));
  Training training;
  const MemoryMeter meter;
  REQUIRE_OK(trainer->Compile());
  training.planned_bytes = trainer->planned_bytes();
  for (int step = 0; step < steps; ++step)
    training.losses.push_back(OrDie(trainer->Step()).metrics.loss);
  training.peak_bytes = meter.peak_bytes();
  Append(trainer->Gradients(), training.tensors);
  Append(trainer->Parameters(), training.tensors);
  const Graph& graph = *trainer->module().FindGraph(kStepGraph);
  for (const NodeId node : graph.nodes())
    training.num_copies += graph.attribute(node, "recomputed_from").empty() ? 0 : 1;
  return training;
}

Overrides With(Overrides overrides, std::string_view policy) {
  overrides.push_back("compile.memory_policy=" + std::string(policy));
  return overrides;
}

TEST_CASE("memory policies leave every bit of losses, gradients and parameters") {
  at::set_num_threads(1);
  for (const Case& c : kCases) {
    INFO(testing::Title(c));
    const Training expected = Train(SmallConfig(c.text, c.overrides), 3);
    for (const char* policy : {"default", "eager", "full", "min_cut"}) {
      INFO(policy);
      const Training actual = Train(SmallConfig(c.text, With(c.overrides, policy)), 3);
      CHECK_GT(actual.num_copies, 0);
      CHECK_EQ(actual.losses, expected.losses);
      CHECK(std::ranges::equal(actual.tensors, expected.tensors));
    }
  }
}

TEST_CASE("fused kernels of recomputed nodes leave every bit") {
  at::set_num_threads(1);
  constexpr std::string_view kFused = "dce,canonicalize,place-casts,fuse";
  for (const std::string_view text : {testing::kSmallLlama3, testing::kSmallDeepSeekV3}) {
    const Training expected = Train(SmallConfig(text, {}), 2);
    const Training actual = Train(SmallConfig(text, With({}, "full")), 2, kFused);
    CHECK_GT(actual.num_copies, 0);
    CHECK_EQ(actual.losses, expected.losses);
    CHECK(std::ranges::equal(actual.tensors, expected.tensors));
  }
}

TEST_CASE("policies that give up more need less memory, planned and measured") {
  at::set_num_threads(1);
  // Activations outweigh parameters, gradients and the state of the optimizer.
  const Overrides larger = {"dim=64", "seq_len=96", "batch_size=12", "rope.max_seq_len=96",
                            "vocab_size=64"};
  for (const std::string_view text :
       {testing::kSmallLlama3, testing::kSmallQwen3, testing::kSmallDeepSeekV3}) {
    for (const char* param : {"float32", "bfloat16"}) {
      INFO(text.substr(0, 20), " ", param);
      Overrides overrides = larger;
      overrides.push_back(std::string("training.mixed_precision_param=") + param);
      std::vector<Training> trainings;
      for (const char* policy : {"none", "default", "full"}) {
        INFO(policy);
        trainings.push_back(Train(SmallConfig(text, With(overrides, policy)), 2));
        const Training& training = trainings.back();
        CHECK_EQ(training.num_copies > 0, std::string_view(policy) != "none");
        const double ratio =
            static_cast<double>(training.planned_bytes) / static_cast<double>(training.peak_bytes);
        CHECK_LT(std::abs(ratio - 1), 0.03);
      }
      CHECK_LT(trainings[1].peak_bytes, trainings[0].peak_bytes);
      CHECK_LT(trainings[2].peak_bytes, trainings[1].peak_bytes);
    }
  }
}

}  // namespace
}  // namespace strata
