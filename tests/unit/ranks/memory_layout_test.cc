// Types of the graphs of ranks state how values lie in memory: kernels read them by these strides.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/module.h"
#include "runtime/train/programs/training_graphs.h"
#include "tests/support/rank_courses.h"

namespace strata {
namespace {

using testing::ConfigOf;
using testing::Degree;
using testing::OrDie;

constexpr std::string_view kDense = R"(dim = 32
n_layers = 2
n_heads = 4
hidden_dim = 32
vocab_size = 64
seq_len = 16
batch_size = 4
steps = 1
)";
constexpr std::string_view kExperts = R"([moe]
num_experts = 8
top_k = 2
moe_hidden_dim = 16
)";
constexpr std::string_view kLatent = R"([mla]
kv_lora_rank = 16
qk_nope_head_dim = 8
qk_rope_head_dim = 8
v_head_dim = 4
)";

std::string ModelText(std::string_view family) {
  const std::string name = fmt::format("model = \"{}\"\n", family);
  if (family == "qwen3") return name + "head_dim = 8\n" + std::string(kDense);
  if (family == "llama3") return name + std::string(kDense);
  return name + std::string(kDense) + std::string(kExperts) + std::string(kLatent);
}

/// Compares the strides of each result with those of its type. Those of a dimension with one
/// element have no effect.
class LayoutChecker final : public TrainingObserver {
 public:
  void BeginGraph(const Graph& graph) override { graph_ = &graph; }

  void OnStep(const PlanStep& step, std::span<const at::Tensor> results) override {
    const size_t count = std::min<size_t>(results.size(), graph_->node(step.node).num_results);
    for (size_t i = 0; i < count; ++i)
      if (results[i].defined()) Compare(graph_->result(step.node, i), results[i]);
  }

  std::vector<std::string> others;
  int64_t compared = 0;

 private:
  void Compare(ValueId value, const at::Tensor& actual) {
    const Module& module = graph_->module();
    const TypeId id = graph_->value(value).type;
    if (!id.valid()) return;
    const Type& type = module.types()[id];
    if (!type.has_strides || type.sizes.size() != static_cast<size_t>(actual.dim())) return;
    bool is_equal = true;
    for (size_t dim = 0; dim < type.sizes.size(); ++dim) {
      const auto size = module.dims().AsConst(type.sizes[dim]);
      const auto stride = module.dims().AsConst(type.strides[dim]);
      if (!size || !stride) return;  // of data
      is_equal = is_equal && (*size == 1 || *stride == actual.stride(static_cast<int64_t>(dim)));
    }
    ++compared;
    if (is_equal) return;
    others.push_back(fmt::format("{} = {}: {}, is [{}]", graph_->value_name(value),
                                 graph_->op(graph_->value(value).def), module.types().ToString(id),
                                 fmt::join(actual.strides(), ", ")));
  }

  const Graph* graph_ = nullptr;
};

void CheckMemoryLayouts(std::string_view family, const std::vector<std::string>& sets) {
  CAPTURE(family);
  CAPTURE(sets);
  for (const PlanOptions& plan : {PlanOptions(), PlanOptions::Fastest()}) {
    const TrainConfig config = ConfigOf(ModelText(family), sets);
    TrainSetup setup{.config = config, .data = OrDie(OpenDataSource(config))};
    setup.passes = "dce,canonicalize";
    setup.plan = plan;
    const auto trainer = OrDie(Trainer::Create(std::move(setup)));
    OrDie(trainer->Compile());
    LayoutChecker checker;
    OrDie(trainer->Step(&checker));
    CHECK_GT(checker.compared, 100);
    CHECK_EQ(checker.others, std::vector<std::string>());
  }
}

TEST_CASE("types of the graphs of ranks state how values lie in memory") {
  const std::vector<std::vector<std::string>> layouts = {
      {Degree("data_parallel_shard", 2), "batch_size=2"},
      {Degree("tensor_parallel", 2), "parallelism.enable_sequence_parallel=false"},
      {Degree("context_parallel", 2), Degree("tensor_parallel", 2)}};
  const std::vector<std::vector<std::string>> kinds = {
      {},
      {"loss.name=chunked_cross_entropy", "loss.num_chunks=2", "compile.memory_policy=full"},
      {"attn_type=flex", "flex.block_size=4", "flex.alibi=true"}};
  for (const auto& layout : layouts) {
    for (const auto& kind : kinds) {
      std::vector<std::string> sets = layout;
      sets.insert(sets.end(), kind.begin(), kind.end());
      CheckMemoryLayouts("deepseek_v3", sets);
    }
  }
  for (const std::string_view family : {"llama3", "qwen3"}) {
    std::vector<std::string> sets = layouts[1];
    sets.insert(sets.end(), kinds[1].begin(), kinds[1].end());
    CheckMemoryLayouts(family, sets);
    CheckMemoryLayouts(family, layouts[2]);
  }
}

TEST_CASE("types of the graphs of ranks that share experts state how values lie in memory") {
  CheckMemoryLayouts("deepseek_v3", {Degree("data_parallel_shard", 2), Degree("expert_parallel", 2),
                                     "batch_size=2"});
  CheckMemoryLayouts("deepseek_v3", {Degree("tensor_parallel", 2), Degree("expert_parallel", 2)});
  CheckMemoryLayouts("deepseek_v3",
                     {Degree("data_parallel_shard", 2), Degree("context_parallel", 2),
                      Degree("expert_parallel", 4), "batch_size=2"});
}

}  // namespace
}  // namespace strata
