// What memory policies leave of a training: its results, in less memory.

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/Parallel.h>

#include <doctest/doctest.h>

#include "passes/memory/offloadable.h"
#include "runtime/exec/step/memory_meter.h"
#include "runtime/train/trainer.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"
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
  std::vector<std::byte> tensors;  // state of the optimizer, parameters
  int64_t planned_bytes = 0, peak_bytes = 0, num_copies = 0, num_offloads = 0;
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
  Append(trainer->OptimizerTensors(), training.tensors);
  Append(trainer->Parameters(), training.tensors);
  const Graph& graph = *trainer->module().FindGraph(kStepGraph);
  for (const NodeId node : graph.nodes())
    training.num_copies += graph.attribute(node, "recomputed_from").empty() ? 0 : 1;
  for (const NodeId node : graph.nodes())
    training.num_offloads += graph.op(node) == kOffloadOp ? 1 : 0;
  return training;
}

Overrides WithPolicy(Overrides overrides, std::string_view policy) {
  overrides.push_back("compile.memory_policy=" + std::string(policy));
  return overrides;
}

TEST_CASE("memory policies leave every bit of losses, gradients and parameters") {
  at::set_num_threads(1);
  for (size_t i = 0; i < kCases.size(); ++i) {
    const Case& c = kCases[i];
    INFO(testing::Title(c));
    const Training expected = Train(SmallConfig(c.text, c.overrides), 3);
    const auto policies =
        i % 2 == 0 ? std::array{"default", "min_cut"} : std::array{"eager", "full"};
    for (const char* policy : policies) {
      INFO(policy);
      const Training actual = Train(SmallConfig(c.text, WithPolicy(c.overrides, policy)), 3);
      CHECK_GT(actual.num_copies, 0);
      CHECK_EQ(actual.losses, expected.losses);
      CHECK(testing::SameBytes(actual.tensors, expected.tensors));
    }
  }
}

TEST_CASE("fused kernels of recomputed nodes leave every bit") {
  at::set_num_threads(1);
  constexpr std::string_view kFused = "dce,canonicalize,place-casts,fuse";
  for (const std::string_view text : {testing::kSmallLlama3, testing::kSmallDeepSeekV3}) {
    const Training expected = Train(SmallConfig(text, {}), 2);
    const Training actual = Train(SmallConfig(text, WithPolicy({}, "full")), 2, kFused);
    CHECK_GT(actual.num_copies, 0);
    CHECK_EQ(actual.losses, expected.losses);
    CHECK(testing::SameBytes(actual.tensors, expected.tensors));
  }
}

TEST_CASE("policies that give up more need less memory, planned and measured") {
  at::set_num_threads(1);
  // Activations outweigh parameters, gradients and the state of the optimizer.
  const Overrides larger = {"dim=64", "seq_len=96", "batch_size=6", "rope.max_seq_len=96",
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
        trainings.push_back(Train(SmallConfig(text, WithPolicy(overrides, policy)), 2));
        const Training& training = trainings.back();
        CHECK_EQ(training.num_copies > 0, std::string_view(policy) != "none");
        const double ratio =
            static_cast<double>(training.planned_bytes) / static_cast<double>(training.peak_bytes);
        CHECK_LT(std::abs(ratio - 1), 0.01);
      }
      CHECK_LT(trainings[1].peak_bytes, trainings[0].peak_bytes);
      CHECK_LT(trainings[2].peak_bytes, trainings[1].peak_bytes);
    }
  }
}

// Results beyond the smallest that are offloaded.
const Overrides kLarger = {"dim=64",     "seq_len=96",   "batch_size=6", "rope.max_seq_len=96",
                           "n_layers=4", "vocab_size=64"};

TEST_CASE("offloaded results come back bit for bit, however many steps overlap with the copies") {
  at::set_num_threads(1);
  for (const std::string_view text :
       {testing::kSmallLlama3, testing::kSmallQwen3, testing::kSmallDeepSeekV3}) {
    INFO(text.substr(0, 20));
    const Training expected = Train(SmallConfig(text, kLarger), 3);
    for (const char* layers : {"0", "1", "3"}) {
      INFO(layers);
      Overrides overrides = WithPolicy(kLarger, "sac_and_offload");
      overrides.push_back(std::string("compile.cpu_offload_defer_n_layers=") + layers);
      overrides.push_back(std::string("compile.cpu_offload_prefetch_n_layers=") + layers);
      // Compilers take their time: kernels are made for one of the cases.
      const bool fuses = text == testing::kSmallLlama3 && layers == std::string_view("1");
      const Training actual = Train(SmallConfig(text, overrides), 3,
                                    fuses ? "dce,canonicalize,place-casts,fuse" : kDefaultPasses);
      CHECK_GT(actual.num_offloads, 3);
      CHECK_EQ(actual.losses, expected.losses);
      CHECK(testing::SameBytes(actual.tensors, expected.tensors));
    }
  }
}

TEST_CASE("offloaded results in files come back bit for bit, with the same peak") {
  at::set_num_threads(1);
  const testing::TempDir folder;
  Overrides overrides = WithPolicy(kLarger, "sac_and_offload");
  const Training in_memory = Train(SmallConfig(testing::kSmallLlama3, overrides), 3);
  overrides.push_back("compile.cpu_offload_folder=" + folder.path());
  const Training in_files = Train(SmallConfig(testing::kSmallLlama3, overrides), 3);
  CHECK_GT(in_files.num_offloads, 3);
  CHECK_EQ(in_files.losses, in_memory.losses);
  CHECK(testing::SameBytes(in_files.tensors, in_memory.tensors));
  CHECK_EQ(in_files.peak_bytes, in_memory.peak_bytes);
}

TEST_CASE("steps of every policy end in the same bits, measured as planned") {
  at::set_num_threads(1);
  for (const std::string_view text :
       {testing::kSmallLlama3, testing::kSmallQwen3, testing::kSmallDeepSeekV3}) {
    INFO(text.substr(0, 20));
    Overrides overrides = kLarger;
    overrides.insert(overrides.end(), {"steps=5", "seq_len=48", "batch_size=4"});
    const Training expected = Train(SmallConfig(text, overrides), 5);
    for (const char* policy : {"default", "eager", "full", "min_cut", "sac_and_offload"}) {
      INFO(policy);
      const Training actual = Train(SmallConfig(text, WithPolicy(overrides, policy)), 5);
      CHECK_EQ(actual.losses, expected.losses);
      CHECK(testing::SameBytes(actual.tensors, expected.tensors));
      CHECK_LT(actual.peak_bytes, expected.peak_bytes);
      const double ratio =
          static_cast<double>(actual.planned_bytes) / static_cast<double>(actual.peak_bytes);
      CHECK_LT(std::abs(ratio - 1), 0.01);
    }
  }
}

TEST_CASE("a budget holds, planned and measured, and leaves every bit") {
  at::set_num_threads(1);
  for (const std::string_view text :
       {testing::kSmallLlama3, testing::kSmallQwen3, testing::kSmallDeepSeekV3}) {
    INFO(text.substr(0, 20));
    const Training most = Train(SmallConfig(text, kLarger), 2);
    const Training full = Train(SmallConfig(text, WithPolicy(kLarger, "full")), 2);
    for (const int64_t share : {80, 50, 20}) {
      const int64_t bytes =
          full.planned_bytes + (most.planned_bytes - full.planned_bytes) * share / 100;
      INFO(share, " % of ", most.planned_bytes, " above ", full.planned_bytes);
      Overrides overrides = WithPolicy(kLarger, "budget");
      overrides.push_back("compile.memory_budget_bytes=" + std::to_string(bytes));
      const bool fuses = text == testing::kSmallDeepSeekV3 && share == 50;
      const Training actual = Train(SmallConfig(text, overrides), 2,
                                    fuses ? "dce,canonicalize,place-casts,fuse" : kDefaultPasses);
      CHECK_LE(actual.planned_bytes, bytes);
      CHECK_LE(static_cast<double>(actual.peak_bytes), static_cast<double>(bytes) * 1.01);
      CHECK_EQ(actual.losses, most.losses);
      CHECK(testing::SameBytes(actual.tensors, most.tensors));
    }
  }
}

TEST_CASE("a budget counts what the optimizer needs beside the gradients") {
  at::set_num_threads(1);
  // Most of the gradients is that of one table. The longer the sequence, the larger is the rest.
  for (const int seq_len : {32, 96, 160, 224}) {
    INFO(seq_len);
    const Overrides overrides = {"dim=64", "batch_size=2", "seq_len=" + std::to_string(seq_len),
                                 "rope.max_seq_len=224", "vocab_size=2048"};
    const Training full =
        Train(SmallConfig(testing::kSmallLlama3, WithPolicy(overrides, "full")), 2);
    const int64_t bytes = full.planned_bytes * 102 / 100;
    Overrides budget = WithPolicy(overrides, "budget");
    budget.push_back("compile.memory_budget_bytes=" + std::to_string(bytes));
    budget.emplace_back("compile.memory_budget_offload=false");
    const Training actual = Train(SmallConfig(testing::kSmallLlama3, budget), 2);
    CHECK_LE(actual.planned_bytes, bytes);
    CHECK_EQ(actual.losses, full.losses);
  }
}

TEST_CASE("the optimizer works in the memory of the gradients") {
  at::set_num_threads(1);
  // Most of the parameters are two tables, and the batch is small.
  const TrainConfig config = SmallConfig(
      testing::kSmallLlama3,
      {"dim=64", "batch_size=1", "seq_len=8", "vocab_size=4096", "compile.memory_policy=full"});
  const auto trainer =
      OrDie(Trainer::Create({.config = config,
                             .data = testing::Synthetic(config),
                             .passes = std::string(kDefaultPasses) + ",place-casts,fuse"}));
  const MemoryMeter meter;
  REQUIRE_OK(trainer->Compile());
  for (int step = 0; step < 2; ++step)
    OrDie(trainer->Step());
  int64_t gradients = 0;
  for (const TensorView& parameter : trainer->Parameters())
    gradients += static_cast<int64_t>(parameter.bytes.size());
  CHECK_LT(static_cast<double>(meter.peak_bytes()), 1.2 * static_cast<double>(gradients));
  CHECK_FALSE(trainer->has_gradients());
}

TEST_CASE("offloaded results leave the arena: the peak falls as planned") {
  at::set_num_threads(1);
  for (const std::string_view text :
       {testing::kSmallLlama3, testing::kSmallQwen3, testing::kSmallDeepSeekV3}) {
    for (const char* param : {"float32", "bfloat16"}) {
      INFO(text.substr(0, 20), " ", param);
      Overrides overrides = kLarger;
      overrides.push_back(std::string("training.mixed_precision_param=") + param);
      const Training kept = Train(SmallConfig(text, WithPolicy(overrides, "default")), 2);
      const Training offloaded =
          Train(SmallConfig(text, WithPolicy(overrides, "sac_and_offload")), 2);
      CHECK_EQ(kept.num_offloads, 0);
      CHECK_LT(offloaded.peak_bytes, kept.peak_bytes);
      const double ratio =
          static_cast<double>(offloaded.planned_bytes) / static_cast<double>(offloaded.peak_bytes);
      INFO("planned ", offloaded.planned_bytes, ", measured ", offloaded.peak_bytes, ", kept ",
           kept.peak_bytes);
      CHECK_LT(std::abs(ratio - 1), 0.01);
    }
  }
}

}  // namespace
}  // namespace strata
