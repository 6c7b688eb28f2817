#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "passes/placement/auto/call_strategies.h"
#include "tests/support/graphs.h"
#include "tests/unit/passes/cost_models.h"

// What ranks may hold of attention with bodies, by the ids of the reference.
namespace strata {
namespace {

using testing::ModelOn;
using testing::NodeNamed;
using testing::OrDie;

/// Attention of 8 heads on `key_heads` heads of keys, whose score adds an element of a buffer
/// `[4, 8]`.
std::string FlexText(int64_t key_heads, std::string_view element) {
  constexpr std::string_view kScalars =
      "  b = placeholder : i32[][]cpu\n  h = placeholder : i32[][]cpu\n"
      "  q_idx = placeholder : i32[][]cpu\n  kv_idx = placeholder : i32[][]cpu\n";
  return fmt::format(
      "graph g\n"
      "  q = placeholder : f32[4, 8, 6, 4][192, 24, 4, 1]cpu\n"
      "  k = placeholder : f32[4, {0}, 6, 4][{1}, 24, 4, 1]cpu\n"
      "  v = placeholder : f32[4, {0}, 6, 4][{1}, 24, 4, 1]cpu\n"
      "  bias = placeholder : f32[4, 8][8, 1]cpu\n"
      "  mask_mod = attr mask_mod(graph(1))\n  score_mod = attr score_mod(graph(2))\n"
      "  (a0, a1, a2, a3, a4, a5, a6, a7) = strata.create_block_mask.default(mask_mod, "
      "[1, 1, 6, 6, 2, 2], (), device('cpu')) as blocks : (i32[1, 1, 3], i32[1, 1, 3, 3], "
      "i32[1, 1, 3], i32[1, 1, 3, 3], i32[1, 1, 3], i32[1, 1, 3, 3], i32[1, 1, 3], "
      "i32[1, 1, 3, 3])\n"
      "  (out, lse) = higher_order.flex_attention(q, k, v, score_mod, (6, 6, a0, a1, a2, a3, a4, "
      "a5, a6, a7, 2, 2, mask_mod), 0.5, {{}}, (bias,), ()) as flex : "
      "(f32[4, 8, 6, 4][192, 24, 4, 1]cpu, f32[4, 8, 6][48, 6, 1]cpu)\n"
      "  output([out])\n"
      "graph mask_mod body\n{2}  mask = aten.ge.Tensor(q_idx, kv_idx) : b8[][]cpu\n"
      "  output(mask)\n"
      "graph score_mod body\n  score = placeholder : f32[][]cpu\n{2}"
      "  bias = placeholder : f32[4, 8][8, 1]cpu\n"
      "  more = aten.index.Tensor(bias, {3}) : f32[][]cpu\n"
      "  y = aten.add.Tensor(score, more) : f32[][]cpu\n  output(y)\n",
      key_heads, key_heads * 24, kScalars, element);
}

/// The placements of query, key and buffer, "S(1) S(1) R", of each way to run it.
std::set<std::string> WaysOf(std::string_view mesh, int64_t key_heads, std::string_view element) {
  const auto module = testing::ParseOrDie(FlexText(key_heads, element));
  Graph& graph = *module->FindGraph("g");
  const CostModel model = ModelOn(mesh);
  const NodeId node = NodeNamed(graph, "flex");
  size_t buffer = 0;
  const std::vector<ValueId> operands = graph.operands(node);
  while (!(operands[buffer] == testing::ValueNamed(graph, "bias")))
    ++buffer;
  std::set<std::string> ways;
  for (const CallStrategy& strategy :
       CallStrategies(graph, node, OrDie(ShardingRuleOf(graph, node)), model, {})) {
    CHECK(strategy.operands[1] == strategy.operands[2]);
    CHECK(strategy.operands[0] == strategy.results[0]);
    ways.insert(fmt::format("{} {} {}", PlacementsText(*module, strategy.operands[0]),
                            PlacementsText(*module, strategy.operands[1]),
                            PlacementsText(*module, strategy.operands[buffer])));
  }
  return ways;
}

using Texts = std::set<std::string>;

TEST_CASE("T23: heads are cut where ranks divide those of keys, of which each serves several") {
  CHECK_EQ(WaysOf("tp=2", 8, "[q_idx, kv_idx]"), Texts{"R R R", "S(0) S(0) R", "S(1) S(1) R"});
  CHECK_EQ(WaysOf("tp=2", 2, "[q_idx, kv_idx]"), Texts{"R R R", "S(0) S(0) R", "S(1) S(1) R"});
  CHECK_EQ(WaysOf("tp=4", 2, "[q_idx, kv_idx]"), Texts{"R R R", "S(0) S(0) R"});
  CHECK_EQ(WaysOf("tp=8", 8, "[q_idx, kv_idx]"), Texts{"R R R", "S(1) S(1) R"});
}

TEST_CASE("T24: a buffer is cut with the batch or heads that select in it, else whole") {
  CHECK_EQ(WaysOf("tp=2", 8, "[b, h]"), Texts{"R R R", "S(0) S(0) S(0)", "S(1) S(1) S(1)"});
  CHECK_EQ(WaysOf("tp=2", 8, "[q_idx, h]"), Texts{"R R R", "S(0) S(0) R", "S(1) S(1) S(1)"});
}

}  // namespace
}  // namespace strata
