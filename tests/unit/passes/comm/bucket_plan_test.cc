#include "passes/comm/bucket_plan.h"

#include <doctest/doctest.h>

#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;
using testing::ParseBody;

using Counts = std::map<int64_t, int64_t>;

TEST_CASE("BP-1, CF-04: a layer whose experts have a bucket of their own has two") {
  const BucketPlan plan = DefaultBuckets(
      {.num_layers = 2, .moe_layers = {1}, .has_chunked_loss = true, .split_experts = true});
  CHECK_EQ(plan, BucketPlan{{"tok_embeddings"},
                            {"layers.0"},
                            {"layers.1.attention_norm", "layers.1.attention", "layers.1.ffn_norm",
                             "layers.1.moe.router", "layers.1.moe.shared_experts"},
                            {"layers.1.moe.experts"},
                            {"norm", "lm_head", "loss"}});
  CHECK_EQ(OrDie(BucketCounts(plan, 2)), Counts{{0, 1}, {1, 2}});
  const BucketPlan joint = DefaultBuckets({.num_layers = 2, .moe_layers = {1}});
  CHECK_EQ(joint, BucketPlan{{"tok_embeddings"}, {"layers.0"}, {"layers.1"}, {"norm", "lm_head"}});
}

TEST_CASE("BP-2: a bucket of two layers, a missing layer and one beyond the last are errors") {
  CHECK_EQ(MessageOf(BucketCounts({{"layers.0", "layers.1.attention"}}, 2)),
           "bucket 'layers.0,layers.1.attention' spans layers 0 and 1: give each layer buckets of "
           "its own");
  CHECK_EQ(MessageOf(BucketCounts({{"norm"}, {"layers.0"}}, 2)),
           "no bucket for layer 1: add 'layers.1' to the plan");
  CHECK_EQ(MessageOf(BucketCounts({{"layers.0"}, {"layers.1"}, {"layers.2"}}, 2)),
           "bucket 'layers.2' names layer 2: the model has 2 layers");
}

TEST_CASE("BP-3: modules are numbered in order of their first parameter") {
  CHECK_EQ(ParameterModules({"a.w", "b.w", "a.b", "x"}),
           std::map<std::string, int64_t, std::less<>>{{"a", 0}, {"b", 1}});
}

TEST_CASE("bucket plan: text names entries, and a pattern is an entry for each layer") {
  CHECK_EQ(
      OrDie(ParseBucketPlan("tok_embeddings | layers.*.attention|norm, lm_head", 2)),
      BucketPlan{
          {"tok_embeddings"}, {"layers.0.attention"}, {"layers.1.attention"}, {"norm", "lm_head"}});
  CHECK_EQ(MessageOf(ParseBucketPlan("norm,|x", 1)), "bucket 'norm,' has an empty module path");
  CHECK_EQ(MessageOf(ParseBucketPlan("layers.*|layers.1.attention", 2)),
           "buckets overlap: 'layers.1' contains 'layers.1.attention': name each module once");
}

TEST_CASE("bucket plan: the module paths of a graph say what its layers are") {
  const auto module = ParseBody(R"(
  p = placeholder : f32[2][1]cpu
  q = placeholder : f32[2][1]cpu
  a = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp') {forward module=layers.0.attention}
  b = _c10d_functional.all_gather_into_tensor.default(q, 1, 'efsdp') {forward module=layers.1.moe.experts}
  output([a, b])
)");
  const BlockStructure blocks = BlockStructure::Of(*module->FindGraph("g"));
  CHECK_EQ(blocks.num_layers, 2);
  CHECK_EQ(blocks.moe_layers, std::vector<int64_t>{1});
  CHECK(blocks.split_experts);
  CHECK_FALSE(blocks.has_chunked_loss);
}

}  // namespace
}  // namespace strata
