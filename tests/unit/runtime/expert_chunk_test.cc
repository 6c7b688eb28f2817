// Graphs that `ep-chunk` cuts against programs that call their modules once per chunk.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/Parallel.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "passes/core/chunk_attributes.h"
#include "runtime/train/trainer.h"
#include "tests/support/results.h"
#include "tests/unit/runtime/eager_training.h"

namespace strata {
namespace {

using testing::kSmallDeepSeekV3;
using testing::kSmallQwen3;
using testing::OrDie;
using testing::Overrides;
using testing::SmallConfig;
using testing::Tensors;

struct ChunkedTraining {
  std::vector<double> losses;
  std::vector<std::byte> tensors;  // gradients of the last step, parameters
  int64_t num_copies = 0;          // nodes that the pass copied
};

ChunkedTraining TrainChunked(const TrainConfig& config, int steps) {
  const auto trainer =
      OrDie(Trainer::Create({.config = config, .data = testing::Synthetic(config)}));
  ChunkedTraining training;
  trainer->KeepGradients();
  REQUIRE_OK(trainer->Compile());
  for (int step = 0; step < steps; ++step)
    training.losses.push_back(OrDie(trainer->Step()).metrics.loss);
  for (const auto& views : {trainer->Gradients(), trainer->Parameters()})
    for (const TensorView& view : views)
      training.tensors.insert(training.tensors.end(), view.bytes.begin(), view.bytes.end());
  const Graph& graph = *trainer->module().FindGraph(kStepGraph);
  for (const NodeId node : graph.nodes())
    training.num_copies += graph.attribute(node, kChunkedOriginalAttribute).empty() ? 0 : 1;
  return training;
}

Overrides Chunked(Overrides overrides, std::string_view strategy) {
  for (const char* key : {"seq_len=12", "batch_size=12", "steps=20", "rope.max_seq_len=24",
                          "compile.ep_overlap.enabled=true"})
    overrides.insert(overrides.begin(), key);
  overrides.push_back("compile.ep_overlap.strategy=" + std::string(strategy));
  return overrides;
}

const Overrides kMoe = {"compile.ep_overlap.module_fqn=layers.*.moe"};

Overrides WithMore(Overrides overrides, const Overrides& more) {
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

/// A small model with experts, and what differs from it.
struct Model {
  std::string_view text;
  Overrides overrides;
};

const std::vector<Model> kModels = {
    {kSmallDeepSeekV3, {}},
    {kSmallDeepSeekV3, {"training.mixed_precision_param=bfloat16"}},
    {kSmallDeepSeekV3, {"moe.num_experts=64", "moe.top_k=1"}},  // most experts get no token
    {kSmallDeepSeekV3, {"moe.num_experts=1", "moe.top_k=1"}},   // one gets all
    {kSmallQwen3,
     {"hidden_dim=null", "moe.num_experts=6", "moe.top_k=2", "moe.moe_hidden_dim=8",
      "moe.score_func=softmax"}},
};

void CheckSameTraining(const Model& model, const Overrides& chunks, int steps) {
  const Overrides overrides = WithMore(model.overrides, chunks);
  const ChunkedTraining eager =
      TrainChunked(SmallConfig(model.text, Chunked(overrides, "eager")), steps);
  const ChunkedTraining graph =
      TrainChunked(SmallConfig(model.text, Chunked(overrides, "graph")), steps);
  CHECK_EQ(eager.num_copies, 0);
  CHECK_GT(graph.num_copies, 0);
  CHECK_EQ(graph.losses, eager.losses);
  CHECK(testing::SameBytes(graph.tensors, eager.tensors));
}

TEST_CASE("chunks of the graph train bit for bit as chunks of the program, 20 steps") {
  at::set_num_threads(1);
  CheckSameTraining(kModels[0], kMoe, 20);
}

TEST_CASE("chunks of experts train bit for bit as those of the program") {
  at::set_num_threads(1);
  // The first model has every number of chunks in both dimensions, each other one a number in each.
  for (size_t i = 0; i < kModels.size(); ++i) {
    const Model& model = kModels[i];
    INFO(testing::Title({model.text, model.overrides}));
    for (const bool is_batch : {true, false}) {
      INFO(is_batch);
      for (const size_t count : {2, 3, 4}) {
        INFO(count);
        if (i > 0 && count != 2 + (i + (is_batch ? 0 : 1)) % 3) continue;
        CheckSameTraining(model,
                          WithMore(kMoe, {fmt::format("compile.ep_overlap.chunk_dim={}",
                                                      is_batch ? "batch" : "seq"),
                                          fmt::format("compile.ep_overlap.num_chunks={}", count)}),
                          2);
      }
    }
  }
}

TEST_CASE("CH-30: memory policies leave every bit of chunks") {
  at::set_num_threads(1);
  for (const std::string more : {"compile.memory_policy=default", "compile.memory_policy=full",
                                 "compile.memory_policy=min_cut"}) {
    INFO(more);
    CheckSameTraining(kModels[0], WithMore(kMoe, {more}), 3);
  }
}

TEST_CASE("PR-05: a chunked loss leaves every bit of chunks") {
  at::set_num_threads(1);
  const Overrides loss = {"loss.name=chunked_cross_entropy", "loss.num_chunks=4"};
  CheckSameTraining(kModels[0], WithMore(kMoe, loss), 3);
}

TEST_CASE("chunks of the program differ from no chunks in rounding only") {
  at::set_num_threads(1);
  const TrainConfig whole = SmallConfig(
      kSmallDeepSeekV3, {"seq_len=12", "batch_size=12", "rope.max_seq_len=24", "steps=20"});
  const TrainConfig chunked = SmallConfig(kSmallDeepSeekV3, Chunked(kMoe, "eager"));
  const Tensors expected = testing::Eager(whole).LossAndGradients(0);
  const Tensors actual = testing::Eager(chunked).LossAndGradients(0);
  CHECK_LT(testing::WorstDifference(actual, expected), 1e-4);
  CHECK_GT(testing::WorstDifference(actual, expected), 0.0);
}

TEST_CASE("a cut graph gives bit for bit what autograd gives without any graph") {
  at::set_num_threads(1);
  for (const Model& model : kModels) {
    INFO(testing::Title({model.text, model.overrides}));
    if (model.overrides == Overrides{"training.mixed_precision_param=bfloat16"}) continue;
    const testing::Eager eager(
        SmallConfig(model.text, Chunked(WithMore(model.overrides, kMoe), "eager")));
    const TrainConfig config =
        SmallConfig(model.text, Chunked(WithMore(model.overrides, kMoe), "graph"));
    const testing::Compiled compiled(
        config, "dce,canonicalize,ep-chunk{module_fqn=\"layers.*.moe\"},dce,concretize");
    const Tensors expected = eager.LossAndGradients(0);
    Executor step = compiled.Bind(kStepGraph);
    const Tensors actual = OrDie(step.Run(eager.Inputs(0)));
    REQUIRE_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i)
      CHECK(testing::SameBits(actual[i], expected[i]));
  }
}

}  // namespace
}  // namespace strata
