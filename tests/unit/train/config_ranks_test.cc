// What the table `parallelism` makes of a training: its mesh and its batch.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/config/config.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;

constexpr std::string_view kTwoLayers = R"(model = "llama3"
dim = 32
n_layers = 2
n_heads = 4
vocab_size = 41
seq_len = 12
batch_size = 2
steps = 4
)";

Result<TrainConfig> ParseDegrees(const std::vector<std::string>& degrees,
                                 std::optional<int64_t> world = std::nullopt) {
  std::vector<std::string> sets;
  for (const std::string& degree : degrees)
    sets.push_back("parallelism." + degree);
  return ParseTrainConfig(kTwoLayers, ConfigFormat::kToml, "c.toml", sets, world);
}

std::string MeshOf(const std::vector<std::string>& degrees,
                   std::optional<int64_t> world = std::nullopt) {
  return OrDie(ParseDegrees(degrees, world)).parallelism.mesh.Text();
}

TEST_CASE("degrees make a mesh, and without them a run has one rank") {
  CHECK_EQ(MeshOf({}), "");
  CHECK_EQ(MeshOf({"data_parallel_shard_degree=-1"}), "");
  CHECK_EQ(MeshOf({"data_parallel_shard_degree=2"}), "fsdp=2");
  CHECK_EQ(MeshOf({"tensor_parallel_degree=2"}), "tp=2");
  CHECK_EQ(MeshOf({"data_parallel_replicate_degree=2", "data_parallel_shard_degree=3",
                   "tensor_parallel_degree=4"}),
           "dp_replicate=2,fsdp=3,tp=4");
  CHECK_EQ(MeshOf({"data_parallel_shard_degree=2", "context_parallel_degree=3",
                   "tensor_parallel_degree=2"}),
           "fsdp=2,cp=3,tp=2");
}

TEST_CASE("a shard degree of -1 takes the ranks that are left") {
  CHECK_EQ(MeshOf({}, 8), "fsdp=8");
  CHECK_EQ(MeshOf({"tensor_parallel_degree=2"}, 8), "fsdp=4,tp=2");
  CHECK_EQ(MeshOf({"tensor_parallel_degree=2", "data_parallel_replicate_degree=4"}, 8),
           "dp_replicate=4,tp=2");
  CHECK_EQ(MessageOf(ParseDegrees({"tensor_parallel_degree=2"}, 7)),
           "impossible value for 'parallelism.data_parallel_shard_degree': c.toml: -1 takes the "
           "ranks that are left, but 7 ranks are no multiple of the 2 of the other degrees");
  CHECK_EQ(
      MessageOf(ParseDegrees({"tensor_parallel_degree=2", "data_parallel_shard_degree=2"}, 8)),
      "impossible value for 'parallelism.data_parallel_shard_degree': --set "
      "parallelism.data_parallel_shard_degree=2: the degrees make 4 ranks (replicate 1 · shard "
      "2 · context 1 · tensor 2), but the run has 8");
}

TEST_CASE("batch_size is for one data rank") {
  CHECK_EQ(
      OrDie(ParseDegrees({"data_parallel_shard_degree=2", "tensor_parallel_degree=2"})).batch_size,
      4);
  CHECK_EQ(OrDie(ParseDegrees({"data_parallel_shard_degree=2", "data_parallel_replicate_degree=3"}))
               .batch_size,
           12);
  const auto with_tokens = [](int64_t tokens) {
    return ParseTrainConfig(
        kTwoLayers, ConfigFormat::kToml, "c.toml",
        std::vector<std::string>{"parallelism.data_parallel_shard_degree=2",
                                 "training.num_tokens_per_train_step=" + std::to_string(tokens)});
  };
  CHECK_EQ(OrDie(with_tokens(144)).accumulation_steps, 3);
  CHECK_EQ(MessageOf(with_tokens(24)),
           "impossible value for 'training.num_tokens_per_train_step': --set "
           "training.num_tokens_per_train_step=24: 24 tokens are no multiple of the 48 of a batch "
           "(batch_size · seq_len · data ranks)");
}

TEST_CASE("the ranks of tensor parallelism share heads and, if asked for, sequences") {
  CHECK_EQ(MessageOf(ParseTrainConfig(
               kTwoLayers, ConfigFormat::kToml, "c.toml",
               std::vector<std::string>{"parallelism.tensor_parallel_degree=4", "n_kv_heads=2"})),
           "impossible value for 'parallelism.tensor_parallel_degree': --set "
           "parallelism.tensor_parallel_degree=4: 4 ranks do not divide n_kv_heads 2");
  const std::vector<std::string> odd = {"parallelism.tensor_parallel_degree=4", "seq_len=13"};
  CHECK_EQ(
      MessageOf(ParseTrainConfig(kTwoLayers, ConfigFormat::kToml, "c.toml", odd)),
      "impossible value for 'parallelism.tensor_parallel_degree': --set "
      "parallelism.tensor_parallel_degree=4: 4 ranks do not divide seq_len 13, take another or "
      "parallelism.enable_sequence_parallel = false");
  std::vector<std::string> whole = odd;
  whole.emplace_back("parallelism.enable_sequence_parallel=false");
  CHECK_EQ(OrDie(ParseTrainConfig(kTwoLayers, ConfigFormat::kToml, "c.toml", whole))
               .parallelism.mesh.Text(),
           "tp=4");
  CHECK_EQ(
      MessageOf(ParseDegrees({"context_parallel_degree=4", "tensor_parallel_degree=2"})),
      "impossible value for 'parallelism.context_parallel_degree': --set "
      "parallelism.context_parallel_degree=4: 4 ranks do not divide seq_len 12, of which those "
      "of tensor parallelism have parts");
  CHECK_EQ(MessageOf(ParseDegrees({"data_parallel_shard_degree=2", "expert_parallel_degree=2"})),
           "impossible value for 'parallelism.expert_parallel_degree': --set "
           "parallelism.expert_parallel_degree=2: the model has no experts, take 1");
}

TEST_CASE("experts that compute one after the other are those of one rank, or of stages") {
  const auto parse = [](const std::string& degree) {
    const std::vector<std::string> sets = {"model=qwen3",
                                           "moe.num_experts=4",
                                           "moe.top_k=2",
                                           "moe.moe_hidden_dim=8",
                                           "moe.use_grouped_mm=false",
                                           fmt::format("parallelism.{}_degree=2", degree)};
    return ParseTrainConfig(kTwoLayers, ConfigFormat::kToml, "c.toml", sets);
  };
  for (const char* degree :
       {"data_parallel_replicate", "data_parallel_shard", "context_parallel", "tensor_parallel"}) {
    CHECK_EQ(MessageOf(parse(degree)),
             fmt::format("impossible value for 'parallelism.{0}_degree': --set "
                         "parallelism.{0}_degree=2: experts of several ranks are one product, take "
                         "moe.use_grouped_mm = true",
                         degree));
  }
  CHECK(parse("pipeline_parallel"));
}

TEST_CASE("the ranks of experts take tokens of their own to one product") {
  const auto refusal = [](const std::vector<std::string>& more) {
    std::vector<std::string> sets = {"model=qwen3", "parallelism.expert_parallel_degree=2",
                                     "moe.num_experts=4", "moe.top_k=2", "moe.moe_hidden_dim=8"};
    sets.insert(sets.end(), more.begin(), more.end());
    return MessageOf(ParseTrainConfig(kTwoLayers, ConfigFormat::kToml, "c.toml", sets));
  };
  const std::string where =
      "impossible value for 'parallelism.expert_parallel_degree': --set "
      "parallelism.expert_parallel_degree=2: ";
  CHECK_EQ(refusal({"parallelism.data_parallel_shard_degree=2", "moe.use_grouped_mm=false"}),
           where + "experts of several ranks are one product, take moe.use_grouped_mm = true");
  CHECK_EQ(refusal({"parallelism.tensor_parallel_degree=2",
                    "parallelism.enable_sequence_parallel=false"}),
           where +
               "ranks of tensor parallelism send tokens of their own to experts, take "
               "parallelism.enable_sequence_parallel = true");
}

}  // namespace
}  // namespace strata
