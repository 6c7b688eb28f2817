// Graphs of ranks that `ep-chunk` cuts against programs that call their modules once per chunk, on
// the same ranks.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/Parallel.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "passes/core/chunk_attributes.h"
#include "tests/support/rank_courses.h"

namespace strata {
namespace {

using testing::Course;
using testing::Degree;
using testing::Sets;
using testing::operator+;

constexpr std::string_view kChunkedDeepSeek = R"(model = "deepseek_v3"
dim = 32
n_layers = 2
n_dense_layers = 1
n_heads = 4
hidden_dim = 32
vocab_size = 64
seq_len = 12
seed = 7
[optimizer]
lr = 1e-3
max_grad_norm = 0.5
[mla]
kv_lora_rank = 16
qk_nope_head_dim = 8
qk_rope_head_dim = 8
v_head_dim = 8
[rope]
max_seq_len = 24
[moe]
num_experts = 8
top_k = 2
moe_hidden_dim = 16
num_shared_experts = 1
)";

constexpr std::string_view kChunkedQwen = R"(model = "qwen3"
dim = 32
n_layers = 2
n_heads = 4
n_kv_heads = 2
head_dim = 8
vocab_size = 64
seq_len = 12
seed = 8
[optimizer]
lr = 1e-3
max_grad_norm = 0.5
[rope]
max_seq_len = 24
[moe]
num_experts = 4
top_k = 2
moe_hidden_dim = 16
score_func = "softmax"
route_norm = true
)";

/// 24 sequences on all ranks together.
Sets LayoutOf(int64_t shard, int64_t expert, int64_t replicate = 1) {
  return {Degree("data_parallel_shard", shard), Degree("data_parallel_replicate", replicate),
          Degree("expert_parallel", expert), fmt::format("batch_size={}", 24 / shard / replicate)};
}

const Sets kMoe = {"compile.ep_overlap.enabled=true", "compile.ep_overlap.module_fqn=layers.*.moe"};

struct Training {
  Course course;
  int64_t num_copies = 0;  // nodes that the pass copied
};

Training TrainChunked(std::string_view model, const Sets& sets) {
  at::set_num_threads(1);
  const auto trainer = testing::TrainerOf(testing::ConfigOf(model, sets));
  Training training{.course = testing::Train(*trainer)};
  const Graph& graph = *trainer->module().FindGraph(kStepGraph);
  for (const NodeId node : graph.nodes())
    training.num_copies += graph.attribute(node, kChunkedOriginalAttribute).empty() ? 0 : 1;
  return training;
}

/// Chunks of the graph and those of the program give the same bits.
void CheckSameBits(std::string_view model, const Sets& sets, int steps) {
  const Sets all = sets + Sets{fmt::format("steps={}", steps)};
  const Training eager = TrainChunked(model, all + Sets{"compile.ep_overlap.strategy=eager"});
  const Training graph = TrainChunked(model, all);
  CHECK_EQ(eager.num_copies, 0);
  CHECK_GT(graph.num_copies, 0);
  REQUIRE_EQ(graph.course.steps.size(), eager.course.steps.size());
  for (size_t i = 0; i < graph.course.steps.size(); ++i) {
    CHECK_EQ(graph.course.steps[i].loss, eager.course.steps[i].loss);
    CHECK_EQ(graph.course.steps[i].grad_norm, eager.course.steps[i].grad_norm);
  }
  CHECK_EQ(graph.course.gradients, eager.course.gradients);
  CHECK_EQ(graph.course.parameters, eager.course.parameters);
}

TEST_CASE("two ranks that share experts train in chunks of the graph bit for bit, 20 steps") {
  CheckSameBits(kChunkedDeepSeek, kMoe + LayoutOf(2, 2), 20);
}

TEST_CASE("ranks train in chunks of the graph bit for bit as in those of the program") {
  for (const std::string_view model : {kChunkedDeepSeek, kChunkedQwen}) {
    CAPTURE(model);
    for (const Sets& layout : {LayoutOf(4, 2), LayoutOf(4, 4), LayoutOf(2, 2, 2), LayoutOf(2, 1)}) {
      CAPTURE(layout[0]);
      CAPTURE(layout[2]);
      CheckSameBits(model, kMoe + layout, 2);
    }
  }
}

TEST_CASE("ranks cut batches and sequences into two to four chunks") {
  for (const std::string_view model : {kChunkedDeepSeek, kChunkedQwen}) {
    CAPTURE(model);
    for (const std::string dim : {"batch", "seq"}) {
      CAPTURE(dim);
      for (const std::string count : {"2", "3"}) {
        CAPTURE(count);
        CheckSameBits(model,
                      kMoe + LayoutOf(2, 2) +
                          Sets{"compile.ep_overlap.chunk_dim=" + dim,
                               "compile.ep_overlap.num_chunks=" + count},
                      2);
      }
    }
  }
  CheckSameBits(kChunkedDeepSeek,
                kMoe + LayoutOf(2, 2) +
                    Sets{"compile.ep_overlap.chunk_dim=seq", "compile.ep_overlap.num_chunks=4"},
                2);
}

TEST_CASE("ranks cut whole layers bit for bit as the program does") {
  const Sets layers = {"compile.ep_overlap.enabled=true", "compile.ep_overlap.module_fqn=layers.*"};
  for (const std::string_view model : {kChunkedDeepSeek, kChunkedQwen}) {
    CAPTURE(model);
    for (const Sets& layout : {LayoutOf(1, 1), LayoutOf(2, 2), LayoutOf(4, 2)}) {
      CAPTURE(layout[0]);
      CheckSameBits(model, layers + layout, 3);
    }
  }
}

TEST_CASE("chunks of ranks may leave experts without tokens, or give one all of them") {
  CheckSameBits(kChunkedDeepSeek, kMoe + LayoutOf(2, 2) + Sets{"moe.num_experts=64", "moe.top_k=1"},
                2);
  CheckSameBits(kChunkedDeepSeek, kMoe + LayoutOf(2, 2) + Sets{"moe.num_experts=2", "moe.top_k=1"},
                2);
}

TEST_CASE("memory policies and a chunked loss leave every bit of the chunks of ranks") {
  for (const Sets& more :
       {Sets{"compile.memory_policy=default"}, Sets{"compile.memory_policy=full"},
        Sets{"compile.memory_policy=sac_and_offload"},
        Sets{"loss.name=chunked_cross_entropy", "loss.num_chunks=4"}}) {
    CAPTURE(more[0]);
    CheckSameBits(kChunkedDeepSeek, kMoe + LayoutOf(2, 2) + more, 2);
  }
}

}  // namespace
}  // namespace strata
