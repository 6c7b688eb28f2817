// Ranks that share experts train as one rank does on the same batches.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/rank_courses.h"

namespace strata {
namespace {

using testing::CheckClose;
using testing::Course;
using testing::Degree;
using testing::Difference;
using testing::Train;

constexpr std::string_view kDeepSeek = R"(model = "deepseek_v3"
dim = 32
n_layers = 2
n_dense_layers = 1
n_heads = 4
hidden_dim = 32
vocab_size = 64
seq_len = 16
batch_size = 8
steps = 6
seed = 7
[optimizer]
lr = 1e-3
max_grad_norm = 0.5
[mla]
kv_lora_rank = 16
qk_nope_head_dim = 8
qk_rope_head_dim = 8
v_head_dim = 8
[moe]
num_experts = 8
top_k = 2
moe_hidden_dim = 16
num_shared_experts = 1
)";

constexpr std::string_view kQwen = R"(model = "qwen3"
dim = 32
n_layers = 2
n_heads = 4
n_kv_heads = 2
head_dim = 8
vocab_size = 64
seq_len = 16
batch_size = 8
steps = 6
seed = 8
[optimizer]
lr = 1e-3
max_grad_norm = 0.5
[moe]
num_experts = 4
top_k = 2
moe_hidden_dim = 16
score_func = "softmax"
route_norm = true
)";

struct ExpertLayout {
  int64_t replicate, shard, tensor, expert;
};

void CheckLayouts(std::string_view model, const std::vector<ExpertLayout>& layouts) {
  const Course oracle = Train(model, {});
  for (const auto& [replicate, shard, tensor, expert] : layouts) {
    CAPTURE(replicate);
    CAPTURE(shard);
    CAPTURE(tensor);
    CAPTURE(expert);
    CheckClose(Train(model, {Degree("data_parallel_replicate", replicate),
                             Degree("data_parallel_shard", shard),
                             Degree("tensor_parallel", tensor), Degree("expert_parallel", expert),
                             fmt::format("batch_size={}", 8 / replicate / shard)}),
               oracle);
  }
}

TEST_CASE("ranks that share the experts of DeepSeek-V3 train as one rank does") {
  CheckLayouts(kDeepSeek, {{1, 2, 1, 1}, {1, 2, 1, 2}, {1, 4, 1, 4}, {1, 4, 1, 2}, {2, 2, 1, 2}});
}

TEST_CASE("experts take tokens from ranks that share sequences") {
  CheckLayouts(kDeepSeek, {{1, 1, 2, 1}, {1, 1, 2, 2}, {1, 2, 2, 2}, {1, 2, 2, 4}});
}

/// Backward moves what views of forward rows hold to their experts: such views are of backward.
TEST_CASE("ranks of two axes that share experts recompute them") {
  const std::vector<std::string> layout = {Degree("data_parallel_shard", 2),
                                           Degree("context_parallel", 2),
                                           Degree("expert_parallel", 4), "batch_size=4"};
  const Course oracle = Train(kQwen, layout);
  for (const char* policy : {"default", "full"}) {
    CAPTURE(policy);
    std::vector<std::string> sets = layout;
    sets.push_back(fmt::format("compile.memory_policy={}", policy));
    const Course course = Train(kQwen, sets);
    CHECK_EQ(Difference(course.parameters, oracle.parameters), 0.0);
  }
}

/// Queries are wider than values, and both are parts of products: what is exchanged lies otherwise.
TEST_CASE("latent attention with flex bodies trains on ranks as on one") {
  for (const char* alibi : {"flex.alibi=true", "flex.alibi=false"}) {
    const std::vector<std::string> flex = {"attn_type=flex", "flex.block_size=4",
                                           "mla.v_head_dim=4", alibi};
    const Course oracle = Train(kDeepSeek, flex);
    for (const char* axis : {"context_parallel", "tensor_parallel"}) {
      CAPTURE(alibi);
      CAPTURE(axis);
      std::vector<std::string> sets = flex;
      sets.push_back(Degree(axis, 2));
      CheckClose(Train(kDeepSeek, sets), oracle);
    }
  }
}

/// 50 rows become 25 and 25, and each of these 13 and 12: the third rank begins with row 25.
TEST_CASE("ranks of two axes that divide a vocabulary unevenly train as one rank does") {
  for (const char* loss : {"loss.name=cross_entropy", "loss.name=chunked_cross_entropy"}) {
    CAPTURE(loss);
    std::vector<std::string> sets = {"vocab_size=50", "n_kv_heads=4", loss};
    const Course oracle = Train(kQwen, sets);
    sets.push_back(Degree("tensor_parallel", 4));
    sets.push_back(Degree("expert_parallel", 2));
    CheckClose(Train(kQwen, sets), oracle);
  }
}

/// Grouped products take rows of 16 bytes: 10 columns are padded to 12. With few rows, an exchange
/// between all ranks would cost less than the sum of their gradients.
TEST_CASE("rows go to the ranks of padded experts only") {
  std::vector<std::string> sets = {
      "n_layers=1", "n_heads=8",    "n_kv_heads=4",      "vocab_size=40",
      "seq_len=8",  "batch_size=2", "moe.num_experts=8", "moe.moe_hidden_dim=10"};
  const Course oracle = Train(kQwen, sets);
  sets.push_back(Degree("context_parallel", 4));
  sets.push_back(Degree("expert_parallel", 2));
  CheckClose(Train(kQwen, sets), oracle);
}

/// In bf16, 12 columns are padded to 16: every rank has all of them, and rows of its own tokens.
TEST_CASE("ranks of tensor parallelism have padded experts whole") {
  const std::vector<std::string> narrow = {"training.mixed_precision_param=bfloat16",
                                           "n_layers=1",
                                           "n_heads=2",
                                           "n_kv_heads=2",
                                           "head_dim=4",
                                           "seq_len=8",
                                           "batch_size=1",
                                           "moe.num_experts=2",
                                           "moe.top_k=1",
                                           "moe.moe_hidden_dim=12"};
  std::vector<std::string> sets = narrow;
  sets.push_back(Degree("tensor_parallel", 2));
  const Course ranks = Train(kQwen, sets), oracle = Train(kQwen, narrow);
  REQUIRE_EQ(ranks.steps.size(), oracle.steps.size());
  for (size_t step = 0; step < ranks.steps.size(); ++step)
    CHECK_LT(std::abs(ranks.steps[step].loss - oracle.steps[step].loss), 0.02);
}

/// The other half of the ranks has the same experts, whole.
TEST_CASE("ranks with padded experts send the rows that they counted") {
  std::vector<std::string> sets = {"n_layers=1",   "n_dense_layers=0",  "seq_len=24",
                                   "batch_size=4", "moe.num_experts=6", "moe.moe_hidden_dim=10"};
  const Course oracle = Train(kDeepSeek, sets);
  sets.push_back(Degree("tensor_parallel", 4));
  sets.push_back(Degree("expert_parallel", 2));
  CheckClose(Train(kDeepSeek, sets), oracle);
}

TEST_CASE("ranks that share the experts of Qwen3 train as one rank does") {
  CheckLayouts(kQwen, {{1, 2, 1, 1}, {1, 2, 1, 2}, {1, 4, 1, 4}});
}

}  // namespace
}  // namespace strata
