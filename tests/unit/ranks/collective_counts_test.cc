// How many collectives a step has, and the bytes of each kind: formulas over layers and sizes,
// before buckets.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/verify.h"
#include "passes/core/pass_manager.h"
#include "passes/simulate/collective_uses.h"
#include "runtime/train/pipeline/pipeline.h"
#include "runtime/train/programs/trace_programs.h"
#include "tests/support/rank_courses.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::Degree;

// Sizes of the models, and sequences on a rank of a data axis.
constexpr int64_t kLayers = 3, kDim = 32, kHidden = 64, kVocab = 256, kSeq = 16, kSequences = 2;
constexpr int64_t kTokens = kSeq * kSequences;
constexpr int64_t kNumExperts = 4, kExpertHidden = 16;

constexpr std::string_view kCountedLlama = R"(model = "llama3"
dim = 32
n_layers = 3
n_heads = 4
hidden_dim = 64
vocab_size = 256
seq_len = 16
batch_size = 2
steps = 1
[compile]
disable_passes = ["bucket-transformer-blocks"]
)";

constexpr std::string_view kCountedQwen = R"(model = "qwen3"
dim = 32
n_layers = 3
n_heads = 4
head_dim = 8
vocab_size = 256
seq_len = 16
batch_size = 2
steps = 1
[compile]
disable_passes = ["bucket-transformer-blocks"]
[moe]
num_experts = 4
top_k = 2
moe_hidden_dim = 16
)";

/// Collectives of one kind, and what a rank gives or gets with all of them.
struct Volume {
  int64_t count = 0, bytes = 0;
  bool operator==(const Volume&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Volume& volume) {
  return out << volume.count << " of together " << volume.bytes << " bytes";
}

/// By phase, group and operator: "forward fsdp all_gather_into_tensor".
using Volumes = std::map<std::string, Volume>;

Volumes CollectivesOf(std::string_view model, const std::vector<std::string>& sets) {
  const TrainConfig config = testing::ConfigOf(model, sets);
  Module module;
  Constants constants;
  REQUIRE_OK(TraceTraining(TrainSpec(config), module, constants));
  PassManager manager;
  for (auto& pass : testing::OrDie(TrainingPasses(config, "dce,canonicalize")))
    manager.Add(std::move(pass));
  testing::OrDie(manager.Run(module));
  REQUIRE_OK(Verify(module));
  const Graph& step = *module.FindGraph(kStepGraph);
  Volumes volumes;
  for (const CollectiveUse& use : CollectiveUses(step)) {
    volumes[fmt::format("{} {} {}", ToString(use.phase), use.group, use.op)] = {.count = use.count,
                                                                                .bytes = use.bytes};
  }
  return volumes;
}

// Bytes of parameters in fp32: a block of Llama3 has four matrices of attention, three of the
// feed-forward and two norms; embedding, head and the last norm stand outside.
constexpr int64_t kOfBlock = 4 * (4 * kDim * kDim + 3 * kDim * kHidden + 2 * kDim);
constexpr int64_t kOutside = 4 * (2 * kVocab * kDim + kDim);
constexpr int64_t kBlockParameters = 9, kOthers = 3;
constexpr Volume kAll = {.count = kOthers + kBlockParameters * kLayers,
                         .bytes = kOutside + kOfBlock * kLayers};
constexpr Volume kBlocks = {.count = kBlockParameters * kLayers, .bytes = kOfBlock * kLayers};

TEST_CASE("parameters are gathered once in forward, those of blocks again in backward") {
  for (const int64_t ranks : {2, 4}) {
    CAPTURE(ranks);
    Volumes volumes = CollectivesOf(kCountedLlama, {Degree("data_parallel_shard", ranks)});
    CHECK_EQ(volumes["forward fsdp all_gather_into_tensor"], kAll);
    CHECK_EQ(volumes["backward fsdp all_gather_into_tensor"], kBlocks);
    CHECK_EQ(volumes["backward fsdp reduce_scatter_tensor"], kAll);
    CHECK_EQ(volumes["backward fsdp all_reduce"], Volume());
  }
  constexpr std::string_view kReshard = "parallelism.fsdp_reshard_after_forward={}";
  Volumes never = CollectivesOf(kCountedLlama, {Degree("data_parallel_shard", 2),
                                                fmt::format(fmt::runtime(kReshard), "never")});
  CHECK_EQ(never["forward fsdp all_gather_into_tensor"], kAll);
  CHECK_EQ(never["backward fsdp all_gather_into_tensor"], Volume());
  // All but the embedding, whose gradient needs no weight.
  Volumes always = CollectivesOf(kCountedLlama, {Degree("data_parallel_shard", 2),
                                                 fmt::format(fmt::runtime(kReshard), "always")});
  CHECK_EQ(always["backward fsdp all_gather_into_tensor"],
           Volume{.count = kAll.count - 1, .bytes = kAll.bytes - 4 * kVocab * kDim});
}

TEST_CASE("replicas sum up the gradients that their ranks reduced") {
  Volumes volumes = CollectivesOf(
      kCountedLlama, {Degree("data_parallel_replicate", 2), Degree("data_parallel_shard", 2)});
  CHECK_EQ(volumes["forward fsdp all_gather_into_tensor"], kAll);
  CHECK_EQ(volumes["backward fsdp reduce_scatter_tensor"], kAll);
  CHECK_EQ(volumes["backward dp_replicate all_reduce"],
           Volume{.count = kAll.count, .bytes = kAll.bytes / 2});
}

TEST_CASE("ranks that cut heads and columns gather and scatter the sequence twice in a layer") {
  for (const int64_t data_ranks : {1, 2}) {
    CAPTURE(data_ranks);
    Volumes volumes = CollectivesOf(
        kCountedLlama, {Degree("data_parallel_shard", data_ranks), Degree("tensor_parallel", 2)});
    const int64_t count = 2 * kLayers + 1, activations = 4 * kTokens * kDim;
    const Volume sequences = {.count = count, .bytes = count * activations};
    for (const std::string_view phase : {"forward", "backward"}) {
      CAPTURE(phase);
      CHECK_EQ(volumes[fmt::format("{} tp all_gather_into_tensor", phase)], sequences);
      CHECK_EQ(volumes[fmt::format("{} tp reduce_scatter_tensor", phase)], sequences);
    }
    // Of the loss: the largest logit and the sum of a row, and the loss. Of norms: gradients of
    // their weights, which read parts of the sequence.
    CHECK_EQ(volumes["loss tp all_reduce"], Volume{.count = 3, .bytes = 2 * 4 * kTokens + 4});
    CHECK_EQ(volumes["backward tp all_reduce"], Volume{.count = count, .bytes = 4 * count * kDim});
    CHECK_EQ(volumes["forward tp all_reduce"], Volume());
    CHECK_EQ(volumes["loss tp all_to_all_single"], Volume());
    if (data_ranks == 1) continue;
    CHECK_EQ(volumes["forward fsdp all_gather_into_tensor"].count, kAll.count);
    CHECK_EQ(volumes["backward fsdp all_gather_into_tensor"].count, kBlocks.count);
    CHECK_EQ(volumes["backward fsdp reduce_scatter_tensor"].count, kAll.count);
  }
}

TEST_CASE("without sequence parallelism ranks sum up what leaves a layer's halves") {
  Volumes volumes = CollectivesOf(
      kCountedLlama, {Degree("tensor_parallel", 2), "parallelism.enable_sequence_parallel=false"});
  constexpr int64_t kActivations = 4 * kTokens * kDim, kHalves = 2 * kLayers;
  // The embedding in one collective, halves of layers in the two that such a sum consists of.
  CHECK_EQ(volumes["forward tp all_reduce"], Volume{.count = 1, .bytes = kActivations});
  CHECK_EQ(volumes["forward tp reduce_scatter_tensor"],
           Volume{.count = kHalves, .bytes = kHalves * kActivations});
  CHECK_EQ(volumes["forward tp all_gather_into_tensor"],
           Volume{.count = kHalves, .bytes = kHalves * kActivations});
  // Gradients of activations, and of weights of norms.
  CHECK_EQ(volumes["backward tp all_reduce"],
           Volume{.count = 2 * (kHalves + 1), .bytes = (kHalves + 1) * (kActivations + 4 * kDim)});
}

TEST_CASE("a layer of experts exchanges counts, rows and results, and gradients on the way back") {
  for (const int64_t ranks : {2, 4}) {
    CAPTURE(ranks);
    Volumes volumes = CollectivesOf(
        kCountedQwen, {Degree("data_parallel_shard", ranks), Degree("expert_parallel", 2)});
    CHECK_EQ(volumes["forward ep all_to_all_single"].count, 3 * kLayers);
    CHECK_EQ(volumes["backward ep all_to_all_single"].count, 2 * kLayers);
    CHECK_EQ(volumes["forward ep all_gather_into_tensor"], Volume());
    CHECK_EQ(volumes["backward ep reduce_scatter_tensor"], Volume());
    // Weights of experts are parts on efsdp alone, of the half of the experts that a rank shares.
    const int64_t weights = 4 * 3 * (kNumExperts / 2) * kDim * kExpertHidden;
    const Volume experts =
        ranks == 2 ? Volume() : Volume{.count = 3 * kLayers, .bytes = kLayers * weights};
    CHECK_EQ(volumes["forward efsdp all_gather_into_tensor"], experts);
    CHECK_EQ(volumes["backward efsdp all_gather_into_tensor"], experts);
    CHECK_EQ(volumes["backward efsdp reduce_scatter_tensor"], experts);
  }
}

TEST_CASE("gradients of many ranks are summed up in fp32, whatever the model computes in") {
  const std::vector<std::string> layout = {Degree("data_parallel_shard", 256),
                                           Degree("expert_parallel", 32),
                                           "moe.num_experts=256",
                                           "moe.moe_hidden_dim=256",
                                           "dim=256",
                                           "n_layers=1"};
  std::vector<std::string> narrow = layout;
  narrow.emplace_back("training.mixed_precision_param=bfloat16");
  Volumes wide = CollectivesOf(kCountedQwen, layout), volumes = CollectivesOf(kCountedQwen, narrow);
  for (const std::string_view group : {"fsdp", "efsdp"}) {
    const std::string name = fmt::format("backward {} reduce_scatter_tensor", group);
    CHECK_EQ(volumes[name], wide[name]);
  }
  CHECK_GT(volumes["backward efsdp reduce_scatter_tensor"].count, 0);
}

/// The collectives of kinds whose name contains `part`, in all phases.
int64_t CountOf(const Volumes& volumes, std::string_view part) {
  int64_t count = 0;
  for (const auto& [name, volume] : volumes)
    if (name.find(part) != std::string::npos) count += volume.count;
  return count;
}

TEST_CASE("ranks that share experts and heads exchange tokens of their own") {
  struct Layout {
    int64_t fsdp, tp, ep;
  };
  for (const auto [fsdp, tp, ep] : {Layout{1, 2, 2}, Layout{2, 2, 2}, Layout{2, 2, 4}}) {
    CAPTURE(fsdp);
    CAPTURE(ep);
    Volumes volumes =
        CollectivesOf(kCountedQwen, {Degree("data_parallel_shard", fsdp),
                                     Degree("tensor_parallel", tp), Degree("expert_parallel", ep)});
    CHECK_EQ(volumes["forward ep all_to_all_single"].count, 3 * kLayers);
    CHECK_EQ(volumes["backward ep all_to_all_single"].count, 2 * kLayers);
    // Only attention gathers the sequence; the experts take the tokens where they are.
    const int64_t count = kLayers + 1, activations = 4 * kTokens * kDim;
    const Volume sequences = {.count = count, .bytes = count * activations};
    for (const std::string_view phase : {"forward", "backward"}) {
      CAPTURE(phase);
      CHECK_EQ(volumes[fmt::format("{} tp all_gather_into_tensor", phase)], sequences);
      CHECK_EQ(volumes[fmt::format("{} tp reduce_scatter_tensor", phase)], sequences);
      CHECK_EQ(volumes[fmt::format("{} tp all_to_all_single", phase)], Volume());
    }
    // Gradients of two norms of the block, those of queries and keys, and the router's, in a layer.
    CHECK_EQ(volumes["backward tp all_reduce"].count, 5 * kLayers + 1);
    CHECK_EQ(volumes["loss tp all_reduce"].count, 3);
  }
}

TEST_CASE("replicas sum up gradients of experts that ranks share") {
  Volumes volumes =
      CollectivesOf(kCountedQwen, {Degree("data_parallel_replicate", 2),
                                   Degree("data_parallel_shard", 2), Degree("expert_parallel", 2)});
  CHECK_EQ(volumes["forward ep all_to_all_single"].count, 3 * kLayers);
  CHECK_EQ(volumes["backward ep all_to_all_single"].count, 2 * kLayers);
  // A block has nine parameters beside the three of its experts.
  constexpr int64_t kDense = 3 + 9 * kLayers, kAllParameters = kDense + 3 * kLayers;
  CHECK_EQ(volumes["backward fsdp reduce_scatter_tensor"].count, kDense);
  CHECK_EQ(volumes["backward dp_replicate all_reduce"].count, kAllParameters);
}

TEST_CASE("ranks that share a sequence exchange heads, or gather keys and values") {
  const std::vector<std::string> one = {Degree("context_parallel", 2), "batch_size=1"};
  Volumes heads = CollectivesOf(kCountedLlama, one);
  // Queries, keys, values and what attention returns; their gradients on the way back.
  constexpr int64_t kActivations = 4 * kSeq * kDim / 2;
  constexpr Volume kHeads = {.count = 4 * kLayers, .bytes = 4 * kLayers * kActivations};
  CHECK_EQ(heads["forward cp all_to_all_single"], kHeads);
  CHECK_EQ(heads["backward cp all_to_all_single"], kHeads);
  CHECK_EQ(heads["forward cp all_gather_into_tensor"], kAll);
  // Tables of rotations, cut in forward along the sequence, of queries and of keys.
  constexpr int64_t kTables = 2 * kLayers, kTable = 8 * kSeq * (kDim / 4 / 2);
  CHECK_EQ(heads["backward cp all_gather_into_tensor"],
           Volume{.count = kBlocks.count + kTables, .bytes = kBlocks.bytes + kTables * kTable});
  CHECK_EQ(heads["backward cp reduce_scatter_tensor"], kAll);

  // One head of keys and values cannot be shared.
  std::vector<std::string> grouped = one;
  grouped.insert(grouped.end(), {"n_kv_heads=1", "seq_len=512"});
  Volumes keys = CollectivesOf(kCountedLlama, grouped);
  CHECK_EQ(CountOf(keys, "cp all_to_all_single"), 0);
  CHECK_EQ(keys["forward cp all_gather_into_tensor"].count, kAll.count + 2 * kLayers);
  CHECK_EQ(keys["backward cp all_gather_into_tensor"].count, kBlocks.count);
  CHECK_EQ(keys["backward cp reduce_scatter_tensor"].count, kAll.count + 2 * kLayers);
}

TEST_CASE("buckets of any size can be overlapped: no node stands before what it reads") {
  for (const double max_mb : {0.004, 0.01, 0.02, 0.04, 0.08}) {
    CAPTURE(max_mb);
    for (const int64_t tensor : {1, 2}) {
      const TrainConfig config = testing::ConfigOf(
          kCountedLlama, {Degree("data_parallel_shard", 2), Degree("tensor_parallel", tensor),
                          "training.mixed_precision_param=bfloat16"});
      Module module;
      Constants constants;
      REQUIRE_OK(TraceTraining(TrainSpec(config), module, constants));
      PassManager manager;  // verifies the graphs after each pass
      for (auto& pass : testing::OrDie(TrainingPasses(
               config,
               fmt::format("dce,canonicalize,place{{mesh=\"fsdp=2,tp={}\",plan=llama3}},lower,"
                           "bucket-by-size{{max_mb={}}},overlap-collectives{{topology=h100}}",
                           tensor, max_mb))))
        manager.Add(std::move(pass));
      CHECK_OK(manager.Run(module));
    }
  }
}

}  // namespace
}  // namespace strata
