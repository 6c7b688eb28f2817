// Ranks train with merged collectives bit for bit as with one for each parameter.

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "passes/comm/bucketing.h"
#include "passes/core/collectives.h"
#include "passes/memory/tags.h"
#include "runtime/train/data/data.h"
#include "runtime/train/data/packing.h"
#include "runtime/train/trainer.h"
#include "tests/support/graphs.h"
#include "tests/support/rank_courses.h"

namespace strata {
namespace {

using testing::Degree;
using testing::OrDie;
using testing::Sets;
using testing::operator+;

constexpr std::string_view kBucketedModel = R"(model = "llama3"
dim = 32
n_layers = 3
n_heads = 4
n_kv_heads = 2
vocab_size = 64
multiple_of = 16
seq_len = 16
batch_size = 4
steps = 20
seed = 7
[optimizer]
lr = 3e-3
max_grad_norm = 0.5
)";

std::unique_ptr<Trainer> Compiled(const Sets& sets) {
  const TrainConfig config =
      OrDie(ParseTrainConfig(kBucketedModel, ConfigFormat::kToml, "c.toml", sets));
  auto trainer = OrDie(Trainer::Create({.config = config, .data = OrDie(OpenDataSource(config))}));
  OrDie(trainer->Compile());
  trainer->KeepGradients();
  return trainer;
}

/// Losses and norms of all steps, then gradients and parameters, as bytes.
std::string BitsOf(Trainer& trainer) {
  std::string bits;
  const auto add = [&](const void* data, size_t size) {
    bits.append(static_cast<const char*>(data), size);
  };
  while (OrDie(trainer.HasNext())) {
    const StepMetrics metrics = OrDie(trainer.Step()).metrics;
    add(&metrics.loss, sizeof metrics.loss);
    add(&metrics.grad_norm, sizeof metrics.grad_norm);
  }
  for (const auto& views : {trainer.Gradients(), trainer.Parameters()})
    for (const TensorView& view : views)
      add(view.bytes.data(), view.bytes.size());
  return bits;
}

const Sets kSingle = {R"(compile.disable_passes=["bucket-transformer-blocks"])"};

struct Counts {
  int64_t gathers = 0, scatters = 0, all_reduces = 0;
  friend bool operator==(const Counts&, const Counts&) = default;
};

Counts CountsOf(const Trainer& trainer) {
  Counts counts;
  const Graph& graph = *trainer.module().FindGraph("step");
  for (const NodeId node : graph.nodes()) {
    counts.gathers += IsCollective(graph, node, CollectiveKind::kAllGather) ? 1 : 0;
    counts.scatters += IsCollective(graph, node, CollectiveKind::kReduceScatter) ? 1 : 0;
    counts.all_reduces += IsCollective(graph, node, CollectiveKind::kAllReduce) ? 1 : 0;
  }
  return counts;
}

TEST_CASE("JB-8: each layout trains bit for bit as without buckets") {
  const std::vector<Sets> layouts = {
      {Degree("data_parallel_shard", 2)},
      {Degree("data_parallel_shard", 2), "parallelism.fsdp_reshard_after_forward=never"},
      {Degree("data_parallel_shard", 2), "training.mixed_precision_param=bfloat16"},
      {Degree("data_parallel_shard", 2), "compile.memory_policy=full"},
      {Degree("data_parallel_shard", 2), "compile.enable_fsdp_ag_rs_overlap=true"},
      {Degree("data_parallel_replicate", 2)},
      {Degree("data_parallel_replicate", 2), Degree("data_parallel_shard", 2)},
      {Degree("data_parallel_shard", 2), Degree("tensor_parallel", 2)}};
  for (const Sets& layout : layouts) {
    CAPTURE(fmt::format("{}", fmt::join(layout, " ")));
    const auto single = Compiled(layout + kSingle), merged = Compiled(layout);
    CHECK_NE(CountsOf(*single), CountsOf(*merged));
    const std::string bits = BitsOf(*merged);
    CHECK_GT(bits.size(), 20 * 8);
    CHECK(bits == BitsOf(*single));
  }
}

/// The layers of buckets' all-gathers, and whether they are of backward, in program order.
std::vector<std::pair<int64_t, bool>> GatheredLayers(const Trainer& trainer) {
  std::vector<std::pair<int64_t, bool>> layers;
  const Graph& graph = *trainer.module().FindGraph("step");
  for (const NodeId node : graph.nodes()) {
    if (!IsCollective(graph, node, CollectiveKind::kAllGather)) continue;
    const int64_t layer = LayerNumber(graph.attribute(node, kBucketAttribute));
    if (layer != kNotInLayers) layers.emplace_back(layer, IsBackward(graph, node));
  }
  return layers;
}

using Layers = std::vector<std::pair<int64_t, bool>>;

TEST_CASE("JB-1: parameters that stay gathered are gathered once, in order of the layers") {
  const auto trainer =
      Compiled({Degree("data_parallel_shard", 2), "parallelism.fsdp_reshard_after_forward=never"});
  CHECK_EQ(GatheredLayers(*trainer), Layers{{0, false}, {1, false}, {2, false}});
}

TEST_CASE("JB-2: backward gathers again, the last layer first, and each layer's bucket is one") {
  const auto trainer = Compiled({Degree("data_parallel_shard", 2)});
  CHECK_EQ(GatheredLayers(*trainer),
           Layers{{0, false}, {1, false}, {2, false}, {2, true}, {1, true}, {0, true}});
  // Each of 3 layers, the embedding and the end have one gather and one scatter per direction.
  const Counts counts = CountsOf(*trainer);
  CHECK_EQ(counts.scatters, 5);
}

TEST_CASE(
    "JB-5: a gather is launched before the wait of the layer before, a scatter awaited late") {
  const auto trainer = Compiled({Degree("data_parallel_shard", 2)});
  const Graph& graph = *trainer->module().FindGraph("step");
  const std::vector<int32_t> order = OrderOf(graph);
  const auto at = [&](NodeId node) { return order[static_cast<size_t>(node.index)]; };
  std::vector<NodeId> gathers, scatters;
  for (const NodeId node : graph.nodes()) {
    if (IsCollective(graph, node, CollectiveKind::kAllGather)) gathers.push_back(node);
    if (IsCollective(graph, node, CollectiveKind::kReduceScatter)) scatters.push_back(node);
  }
  int checked = 0;
  for (size_t i = 0; i + 1 < gathers.size(); ++i) {
    if (IsBackward(graph, gathers[i]) != IsBackward(graph, gathers[i + 1])) continue;
    CHECK_LT(at(gathers[i + 1]), at(OnlyWaitOf(graph, gathers[i])));
    ++checked;
  }
  CHECK_GE(checked, 6);
  for (size_t i = 0; i + 1 < scatters.size(); ++i)
    CHECK_GT(at(OnlyWaitOf(graph, scatters[i])), at(scatters[i + 1]));
}

}  // namespace
}  // namespace strata
