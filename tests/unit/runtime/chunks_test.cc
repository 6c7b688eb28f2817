// Modules that the program itself calls once per chunk, and the inputs whose sizes are then
// symbols.

#include "runtime/models/chunks.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <doctest/doctest.h>

#include "ir/verify.h"
#include "passes/expert/chunk_symbols.h"
#include "passes/flex/flex_node.h"
#include "runtime/flex/flex_attention.h"
#include "runtime/train/trace_programs.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/small_models.h"

namespace strata {
namespace {

using at::Tensor;
using testing::kSmallDeepSeekV3;
using testing::OrDie;
using testing::SmallConfig;
using Overrides = std::vector<std::string>;

TrainConfig ChunkConfig(const Overrides& overrides) {
  Overrides all = {"seq_len=12", "batch_size=4", "rope.max_seq_len=24",
                   "compile.ep_overlap.enabled=true"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return SmallConfig(kSmallDeepSeekV3, all);
}

const std::string kExpertsAlone = "compile.ep_overlap.module_fqn=layers.*.moe";

TEST_CASE("EA-04: a block sees the halves of the batch and of what goes with its rows") {
  const ChunkCount count(ChunkConfig({}));
  const Tensor x = at::arange(4 * 4 * 2, at::kFloat).view({4, 4, 2});
  const Sequence sequence{.rope = at::arange(4 * 4 * 3, at::kFloat).view({4, 4, 3}),
                          .mask = at::arange(4 * 4 * 4, at::kFloat).view({4, 1, 4, 4})};
  const std::vector<Sequence> halves = BatchChunks(sequence, 4, count);
  REQUIRE_EQ(halves.size(), 2);
  std::vector<Tensor> counts, seen;
  const Tensor y =
      InChunks(false, count, x, counts, [&](const Tensor& part, size_t chunk, auto& part_counts) {
        seen.push_back(part);
        CHECK(part.is_contiguous());
        const auto first = static_cast<int64_t>(2 * chunk);
        CHECK(at::equal(halves[chunk].rope, sequence.rope.narrow(0, first, 2)));
        CHECK(at::equal(halves[chunk].mask, sequence.mask.narrow(0, first, 2)));
        part_counts.push_back(at::full({3}, static_cast<int64_t>(chunk + 1)));
        return part * 2;
      });
  REQUIRE_EQ(seen.size(), 2);
  CHECK(at::equal(seen[1], x.narrow(0, 2, 2)));
  CHECK(at::equal(y, x * 2));
  REQUIRE_EQ(counts.size(), 1);
  CHECK(at::equal(counts[0], at::full({3}, int64_t{3})));
}

TEST_CASE("EA-06: experts see the halves of the sequences") {
  const ChunkCount count(ChunkConfig({kExpertsAlone, "compile.ep_overlap.chunk_dim=seq"}));
  const Tensor x = at::arange(2 * 8 * 3, at::kFloat).view({2, 8, 3});
  std::vector<Tensor> counts, seen;
  const Tensor y = InChunks(true, count, x, counts, [&](const Tensor& part, size_t, auto&) {
    seen.push_back(part);
    return part + 1;
  });
  REQUIRE_EQ(seen.size(), 2);
  CHECK(at::equal(seen[0], x.narrow(1, 0, 4)));
  CHECK(at::equal(seen[1], x.narrow(1, 4, 4)));
  CHECK(at::equal(y, x + 1));
}

TEST_CASE("EA-09: rows of a chunk attend as they do in the whole batch, with flex attention, too") {
  constexpr int64_t kBatch = 4, kHeads = 2, kSeq = 24;
  const TrainConfig config =
      ChunkConfig({"attn_type=flex", "flex.block_size=8", "attn_mask_type=block_causal",
                   "dataloader.dataset=text", "dataloader.dataset_path=x"});
  RegisterFlexAttention();
  at::manual_seed(3);
  // Documents of another length in each row.
  const Tensor length = at::arange(3, 3 + kBatch).unsqueeze(1);
  const Tensor positions = at::arange(kSeq).unsqueeze(0).remainder(length);
  const Tensor tokens = at::zeros({kBatch, kSeq}, at::kLong);
  const Sequence sequence = MakeSequence(config, tokens, positions, at::zeros({kSeq, 4}));
  const std::vector<Sequence> halves = BatchChunks(sequence, kBatch, ChunkCount(config));
  REQUIRE_EQ(halves.size(), 2);
  const Tensor q = at::randn({kBatch, kHeads, kSeq, 8}), k = at::randn_like(q),
               v = at::randn_like(q);
  const Tensor whole = FlexAttention(q, k, v, *sequence.flex, 0.5);
  for (int64_t half = 0; half < 2; ++half) {
    CAPTURE(half);
    const auto cut = [&](const Tensor& x) { return x.narrow(0, 2 * half, 2); };
    const FlexMask& mask = *halves[half].flex;
    CHECK_EQ(mask.mask_buffers[0].size(0), 2);
    CHECK(at::equal(FlexAttention(cut(q), cut(k), cut(v), mask, 0.5), cut(whole)));
  }
}

TEST_CASE("chunks of ranks are the same part of each rank") {
  const ChunkCount count(ChunkConfig({"parallelism.data_parallel_shard_degree=2"}));
  const Tensor x = at::arange(8, at::kFloat).view({8, 1});
  const std::vector<Tensor> chunks = Chunks(x, 0, count);
  REQUIRE_EQ(chunks.size(), 2);
  CHECK(at::equal(chunks[0].flatten(), at::tensor({0, 1, 4, 5}).to(at::kFloat)));
  CHECK(at::equal(chunks[1].flatten(), at::tensor({2, 3, 6, 7}).to(at::kFloat)));
}

/// The types of the inputs of a step that are not state, by name.
struct StepInputs {
  Module module;
  const Graph* step = nullptr;

  explicit StepInputs(const TrainConfig& config) {
    Constants constants;
    REQUIRE_OK(TraceTraining(TrainSpec(config), module, constants));
    REQUIRE_OK(Verify(module));
    step = module.FindGraph(kStepGraph);
  }
  std::string TypeOf(std::string_view name) const {
    return module.types().ToString(step->value(testing::ValueNamed(*step, name)).type);
  }
};

TEST_CASE("PR-01: tokens and labels have the symbol of what is cut") {
  const StepInputs batch(ChunkConfig({}));
  CHECK(batch.TypeOf("tokens").starts_with("i64[s0, 12]"));
  CHECK(batch.TypeOf("labels").starts_with("i64[s0, 12]"));
  const StepInputs seq(ChunkConfig({kExpertsAlone, "compile.ep_overlap.chunk_dim=seq"}));
  CHECK(seq.TypeOf("tokens").starts_with("i64[4, s1]"));
  CHECK(seq.TypeOf("labels").starts_with("i64[4, s1]"));
}

TEST_CASE("PR-02: the hint of the symbol is the size of the run, which chunks can divide") {
  StepInputs inputs(ChunkConfig({}));
  ChunkOptions options;
  const ChunkSymbols symbols = OrDie(ChunkSymbols::Select(*inputs.step, inputs.module, options));
  REQUIRE_EQ(symbols.symbols().size(), 1);
  const DimTable& dims = inputs.module.dims();
  CHECK_EQ(dims.Hint(symbols.symbols()[0]), 4);
  CHECK_EQ(dims.Hint(symbols.Part(symbols.symbols()[0], 1)), 2);
}

TEST_CASE("PR-03: modules that are cut must be named") {
  const std::string message = testing::MessageOf(
      ParseTrainConfig(kSmallDeepSeekV3, ConfigFormat::kToml, "c.toml",
                       std::vector<std::string>{"compile.ep_overlap.enabled=true",
                                                "compile.ep_overlap.module_fqn="}));
  CHECK_MESSAGE(message.find("compile.ep_overlap.module_fqn") != std::string::npos, message);
  CHECK_MESSAGE(message.ends_with("choose one of layers.*, layers.*.moe"), message);
}

TEST_CASE("PR-04: masks of flex attention have rows of what is cut, and sequences of one length") {
  const Overrides flex = {"attn_type=flex", "flex.block_size=4"};
  const StepInputs inputs(ChunkConfig(flex));
  int64_t num_nodes = 0;
  for (const NodeId node : inputs.step->nodes()) {
    if (!IsFlexOp(inputs.step->op(node))) continue;
    ++num_nodes;
    for (const Arg& length : OrDie(ReadFlexNode(*inputs.step, node)).lengths) {
      REQUIRE_EQ(length.kind(), ArgKind::kInt);
      CHECK_EQ(length.as_int(), 12);
    }
  }
  CHECK_EQ(num_nodes, 6);  // of three layers, forward and backward

  Overrides seq = flex;
  seq.insert(seq.end(), {"seq_len=12", "compile.ep_overlap.enabled=true", kExpertsAlone,
                         "compile.ep_overlap.chunk_dim=seq"});
  const auto parse = [&] {
    return ParseTrainConfig(kSmallDeepSeekV3, ConfigFormat::kToml, "c.toml", seq);
  };
  const std::string message = testing::MessageOf(parse());
  CHECK_MESSAGE(message.ends_with("block masks of flex attention have constant sizes, take "
                                  "'batch' or strategy = 'eager'"),
                message);
  seq.emplace_back("compile.ep_overlap.strategy=eager");
  CHECK_OK(parse());
}

TEST_CASE("EA-02: without the key nothing is called in chunks, and sizes are numbers") {
  const StepInputs inputs(ChunkConfig({"compile.ep_overlap.enabled=false"}));
  CHECK(inputs.TypeOf("tokens").starts_with("i64[4, 12]"));
}

}  // namespace
}  // namespace strata
