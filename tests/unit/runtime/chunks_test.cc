// Modules that the program itself calls once per chunk, and the inputs whose sizes are then
// symbols.

#include "runtime/models/chunks.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/verify.h"
#include "passes/core/chunk_attributes.h"
#include "passes/expert/chunk_symbols.h"
#include "passes/flex/flex_node.h"
#include "runtime/flex/flex_attention.h"
#include "runtime/models/moe.h"
#include "runtime/train/programs/trace_programs.h"
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
  const ChunkedModule block("layers.1", ChunkCount(ChunkConfig({})));
  const Tensor x = at::arange(4 * 4 * 2, at::kFloat).view({4, 4, 2});
  const Sequence sequence{.rope = at::arange(4 * 4 * 3, at::kFloat).view({4, 4, 3}),
                          .mask = at::arange(4 * 4 * 4, at::kFloat).view({4, 1, 4, 4})};
  const std::vector<Sequence> halves = block.CutBatch(sequence, 4);
  REQUIRE_EQ(halves.size(), 2);
  std::vector<Tensor> counts, seen;
  const Tensor y =
      block.Call(x, false, counts, [&](const Tensor& part, size_t chunk, auto& part_counts) {
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
  const ChunkedModule experts(
      "moe", ChunkCount(ChunkConfig({kExpertsAlone, "compile.ep_overlap.chunk_dim=seq"})));
  const Tensor x = at::arange(2 * 8 * 3, at::kFloat).view({2, 8, 3});
  std::vector<Tensor> counts, seen;
  const Tensor y = experts.Call(x, true, counts, [&](const Tensor& part, size_t, auto&) {
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
  const std::vector<Sequence> halves =
      ChunkedModule("layers.1", ChunkCount(config)).CutBatch(sequence, kBatch);
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

/// What Chunks throws.
template <class Fn>
std::string Thrown(Fn&& fn) {
  try {
    fn();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

TEST_CASE("EA-03: a result that is no chunk of the whole is an error that names the module") {
  const ChunkedModule block("layers.1", ChunkCount(ChunkConfig({})));
  std::vector<Tensor> counts;
  const auto call = [&](const std::function<Tensor(const Tensor&)>& body) {
    return Thrown([&] {
      block.Call(at::zeros({4, 6, 2}), false, counts,
                 [&](const Tensor& part, size_t, auto&) { return body(part); });
    });
  };
  CHECK_EQ(call([](const Tensor& part) { return part.amax({0}); }),
           "cannot join the chunks of layers.1: chunk 0 is [2, 6, 2], its result [6, 2]: dimension "
           "0 differs");
  CHECK_EQ(call([](const Tensor&) { return Tensor(); }),
           "cannot join the chunks of layers.1: chunk 0 is [2, 6, 2], its result []: dimension 0 "
           "differs");
  CHECK_EQ(call([](const Tensor& part) { return part; }), "");
  // Results of other types do not compile.
  using Counts = std::vector<Tensor>;
  const auto returns_two = [](const Tensor& part, size_t, Counts&) {
    return std::pair(part, part);
  };
  static_assert(!std::is_constructible_v<ChunkedModule::Body, decltype(returns_two)>);
}

TEST_CASE("EA-05: a mask has the rows of the batch") {
  const ChunkedModule block("layers.1", ChunkCount(ChunkConfig({})));
  const auto cut = [&](std::vector<int64_t> shape) {
    return Thrown([&] {
      block.CutBatch({.rope = at::zeros({8, 2}), .mask = at::zeros(shape)}, /*batch=*/4);
    });
  };
  CHECK_EQ(cut({1, 1, 6, 6}),
           "cannot cut layers.1 into chunks: its mask is [1, 1, 6, 6], not [4, 1, seq, seq]");
  CHECK_EQ(cut({4, 6}),
           "cannot cut layers.1 into chunks: its mask is [4, 6], not [4, 1, seq, seq]");
  CHECK_EQ(cut({4, 1, 6, 6}), "");
}

TEST_CASE("EA-07: experts read one tensor") {
  using Counts = std::vector<Tensor>;
  static_assert(std::is_invocable_v<const MixtureOfExperts&, const Tensor&, Counts&>);
  static_assert(
      !std::is_invocable_v<const MixtureOfExperts&, const Tensor&, const Tensor&, Counts&>);
}

TEST_CASE("chunks of ranks are the same part of each rank") {
  const ChunkedModule module("moe",
                             ChunkCount(ChunkConfig({"parallelism.data_parallel_shard_degree=2"})));
  const Tensor x = at::arange(8, at::kFloat).view({8, 1});
  const std::vector<Tensor> chunks = module.Cut(x, 0);
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

/// The nodes of a step that have an attribute, by region, direction, role, and chunk.
std::map<std::string, int> ChunkNodes(const Graph& step) {
  std::map<std::string, int> counts;
  for (const NodeId node : step.nodes()) {
    const auto attribute = [&](std::string_view key) { return step.attribute(node, key); };
    if (attribute(kChunkRoleAttribute).empty()) continue;
    counts[fmt::format(
        "{}{} {}{}{}", attribute(kChunkedRegionAttribute),
        step.node(node).phase == Phase::kBackward ? "'" : "", attribute(kChunkRoleAttribute),
        attribute(kChunkIdAttribute).empty() ? "" : " ", attribute(kChunkIdAttribute))] += 1;
  }
  return counts;
}

TEST_CASE("EA-08: nodes say which chunk of which module they are of, forward and backward") {
  const StepInputs inputs(ChunkConfig({"compile.ep_overlap.strategy=eager", kExpertsAlone}));
  std::map<std::string, int> nodes = ChunkNodes(*inputs.step);
  for (const std::string region : {"layers.1.moe", "layers.2.moe"}) {
    CAPTURE(region);
    CHECK_EQ(nodes[region + " split_boundary"], 1);
    CHECK_EQ(nodes[region + " materialization"], 2);  // tokens and counts
    for (const std::string direction : {" ", "' "}) {
      CAPTURE(direction);
      CHECK_GT(nodes[region + direction + "body 0"], 10);
      CHECK_EQ(nodes[region + direction + "body 0"], nodes[region + direction + "body 1"]);
      CHECK_EQ(nodes[region + direction + "body"], 0);
    }
  }
  for (const auto& [text, count] : nodes)
    CHECK_MESSAGE(text.starts_with("layers."), text);
}

TEST_CASE("gradients of parameters are sums over the chunks, and nothing else reads a chunk") {
  for (const std::string modules : {"layers.*", "layers.*.moe"}) {
    CAPTURE(modules);
    const StepInputs inputs(
        ChunkConfig({"compile.ep_overlap.strategy=eager", "compile.ep_overlap.num_chunks=4",
                     "compile.ep_overlap.module_fqn=" + modules}));
    const Graph& step = *inputs.step;
    int num_sums = 0;
    for (const NodeId node : step.nodes()) {
      const std::string_view role = step.attribute(node, kChunkRoleAttribute);
      num_sums += step.attribute(node, kChunkProofAttribute) == kBoundarySumProof ? 1 : 0;
      if (role != kBodyRole) continue;
      for (size_t i = 0; i < step.node(node).num_results; ++i) {
        for (const Use use : step.uses(step.result(node, i))) {
          const auto is_equal = [&](std::string_view key) {
            return step.attribute(use.user, key) == step.attribute(node, key);
          };
          CHECK_MESSAGE(is_equal(kChunkedRegionAttribute),
                        fmt::format("{} reads {}", step.name(use.user), step.name(node)));
          const bool is_same = is_equal(kChunkIdAttribute) ||
                               step.attribute(use.user, kChunkRoleAttribute) != kBodyRole;
          CHECK_MESSAGE(is_same, fmt::format("{} reads {}", step.name(use.user), step.name(node)));
        }
      }
    }
    CHECK_GT(num_sums, 3 * 3 * 2);  // four chunks, at least three parameters, two layers
  }
}

TEST_CASE("EA-01: what is in a chunk is not cut again") {
  const StepInputs inputs(ChunkConfig({"compile.ep_overlap.strategy=eager"}));
  for (const auto& [text, count] : ChunkNodes(*inputs.step))
    CHECK_MESSAGE(text.find(".moe") == std::string::npos, text);
}

TEST_CASE("EA-02: without the key nothing is called in chunks, and sizes are numbers") {
  const StepInputs inputs(ChunkConfig({"compile.ep_overlap.enabled=false"}));
  CHECK(inputs.TypeOf("tokens").starts_with("i64[4, 12]"));
}

}  // namespace
}  // namespace strata
