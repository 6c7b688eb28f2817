#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "passes/core/chunk_attributes.h"
#include "tests/support/graphs.h"
#include "tests/unit/passes/chunked_graph.h"

namespace strata {
namespace {

using testing::Chunked;
using testing::ErrorOf;
using testing::NodeNamed;
using testing::Options;

TEST_CASE("CB-01: gradients of activations are joined, gradients of parameters are added") {
  const Chunked chunked(R"(
  w = placeholder : f32[3, 3][3, 1]cpu
  x = placeholder : f32[u0, 3][3, 1]cpu
  gy = placeholder : f32[u0, 3][3, 1]cpu
  gx = aten.mm.default(gy, w) : f32[u0, 3][3, 1]cpu {backward module=layers.0}
  xt = aten.t.default(x) : f32[3, u0][1, 3]cpu ~x {backward module=layers.0}
  gw = aten.mm.default(xt, gy) : f32[3, 3][3, 1]cpu {backward module=layers.0}
  output([gx, gw])
)",
                        Options("layers.*", 1));
  CHECK_SAME_VALUES(chunked);
  const Graph& graph = chunked.graph;
  CHECK_EQ(chunked.ChunksOf("aten.mm.default"), "0101");
  CHECK_EQ(chunked.Calls("aten.cat.default").size(), 1);
  const std::vector<NodeId> adds = chunked.Calls("aten.add.Tensor");
  REQUIRE_EQ(adds.size(), 1);
  CHECK_EQ(chunked.Operands(adds[0]), "gw_chunk0 gw_chunk1");
  CHECK_EQ(graph.attribute(adds[0], kChunkProofAttribute), "graph_output_partial_sum");
  CHECK_EQ(graph.node(adds[0]).phase, Phase::kBackward);
  CHECK_EQ(graph.attribute(adds[0], kChunkIdAttribute), "");
}

/// The gradient of a weight, and what follows it.
std::string Gradient(std::string_view dtype, std::string_view rest) {
  const std::string type(dtype);
  return "\n  loss = placeholder : f32[][]cpu\n  x = placeholder : " + type +
         "[u0, 3][3, 1]cpu\n  gy = placeholder : " + type +
         "[u0, 3][3, 1]cpu\n  xt = aten.t.default(x) : " + type +
         "[3, u0][1, 3]cpu ~x {backward module=layers.0}\n  gw = aten.mm.default(xt, gy) : " +
         type + "[3, 3][3, 1]cpu {backward module=layers.0}\n" + std::string(rest);
}

TEST_CASE("CB-02: gradients are added before they are reduced over ranks") {
  for (const std::string op : {"reduce_scatter_tensor.default(gw, 'sum', 1, 'fsdp')",
                               "all_reduce.default(gw, 'sum', 'fsdp')"}) {
    const Chunked chunked(Gradient("f32", "  r = _c10d_functional." + op +
                                              " : f32[3, 3][3, 1]cpu {backward module=layers.0}\n"
                                              "  output([loss, r])\n"),
                          Options("layers.*"));
    CHECK_EQ(chunked.Operands(NodeNamed(chunked.graph, "r")), "gw_chunk_materialized");
    CHECK_EQ(chunked.Calls("aten.add.Tensor").size(), 1);
    CHECK_EQ(chunked.graph.attribute(chunked.Calls("aten.add.Tensor")[0], kChunkProofAttribute),
             "backward_partial_sum");
  }
}

constexpr std::string_view kCast =
    "  f = aten._to_copy.default(gw, dtype=torch.float32) : f32[3, 3][3, 1]cpu {backward "
    "module=layers.0}\n";

TEST_CASE("CB-03, CB-04: chunks are cast before they are added") {
  const Chunked chunked(Gradient("bf16", std::string(kCast) + "  output([loss, f])\n"),
                        Options("layers.*"));
  const std::vector<NodeId> adds = chunked.Calls("aten.add.Tensor");
  REQUIRE_EQ(adds.size(), 1);
  CHECK_EQ(chunked.Operands(adds[0]), "f_chunk0 f_chunk1");
  CHECK_EQ(chunked.TypeOf("f_chunk_materialized"), "f32[3, 3][3, 1]cpu");

  const Chunked reduced(
      Gradient("bf16", std::string(kCast) +
                           "  r = _c10d_functional.reduce_scatter_tensor.default(f, 'sum', 1, "
                           "'fsdp') : f32[3, 3][3, 1]cpu {backward module=layers.0}\n"
                           "  v = _c10d_functional.wait_tensor.default(r) : f32[3, 3][3, 1]cpu ~r "
                           "{backward module=layers.0}\n  output([loss, v])\n"),
      Options("layers.*"));
  CHECK_EQ(reduced.Calls("aten.add.Tensor").size(), 1);
  CHECK_EQ(reduced.Operands(NodeNamed(reduced.graph, "r")), "f_chunk_materialized");
}

TEST_CASE("gradients are added before the cast of a parameter that all chunks share") {
  const Chunked chunked(R"(
  w = placeholder : f32[3, 3][3, 1]cpu
  x = placeholder : bf16[u0, 3][3, 1]cpu
  wc = aten._to_copy.default(w, dtype=torch.bfloat16) : bf16[3, 3][3, 1]cpu {forward module=layers.0 seq=1}
  y = aten.mm.default(x, wc) : bf16[u0, 3][3, 1]cpu {forward module=layers.0 seq=2}
  xt = aten.t.default(x) : bf16[3, u0][1, 3]cpu ~x {backward module=layers.0 seq=2}
  gw = aten.mm.default(xt, y) : bf16[3, 3][3, 1]cpu {backward module=layers.0 seq=2}
  f = aten._to_copy.default(gw, dtype=torch.float32) : f32[3, 3][3, 1]cpu {backward module=layers.0 seq=1}
  output([y, f])
)",
                        Options("layers.*", 1));
  CHECK_EQ(chunked.Operands(NodeNamed(chunked.graph, "f")), "gw_chunk_materialized");
}

TEST_CASE("CB-05, CB-06: what follows the sum of a gradient runs once") {
  for (const std::string metadata : {"{backward module=layers.0}", "{backward}"}) {
    const Chunked chunked(Gradient("f32", "  n = aten.neg.default(gw) : f32[3, 3][3, 1]cpu " +
                                              metadata + "\n  output([loss, n])\n"),
                          Options("layers.*"));
    CHECK_SAME_VALUES(chunked);
    CHECK_EQ(chunked.Operands(NodeNamed(chunked.graph, "n")), "gw_chunk_materialized");
    CHECK_EQ(chunked.ChunksOf("aten.neg.default"), "-");
  }
}

TEST_CASE("H-3: what is not linear does not run on a sum of chunks") {
  CHECK(ErrorOf(Gradient("f32",
                         "  n = aten.relu.default(gw) : f32[3, 3][3, 1]cpu {backward "
                         "module=layers.0}\n  output([loss, n])\n"),
                Options("layers.*"))
            .starts_with("cannot materialize live-out without chunk dimension"));
}

TEST_CASE("a backward region reads the chunks that forward saved") {
  const Chunked chunked(R"(
  w = placeholder : f32[3, 3][3, 1]cpu
  x = placeholder : f32[u0, 3][3, 1]cpu
  y = aten.mm.default(x, w) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  s = aten.sum.default(y) : f32[][]cpu {loss module=loss}
  g = aten.expand.default(s, [sym(u0), 3]) : f32[u0, 3][0, 0]cpu ~s {backward module=loss}
  d = aten.mul.Tensor(g, y) : f32[u0, 3][3, 1]cpu {backward module=layers.0}
  dt = aten.t.default(d) : f32[3, u0][1, 3]cpu ~d {backward}
  gw = aten.mm.default(dt, x) : f32[3, 3][3, 1]cpu {backward module=layers.0}
  output([s, gw])
)",
                        Options("layers.*", 1));
  CHECK_SAME_VALUES(chunked);
  const Graph& graph = chunked.graph;
  CHECK_EQ(chunked.Operands(NodeNamed(graph, "s")), "y_chunk_materialized");
  CHECK_EQ(chunked.Operands(NodeNamed(graph, "d_chunk1")), "g_part1 y_chunk1");
  CHECK_EQ(chunked.ChunksOf("aten.t.default"), "01");
  CHECK_EQ(chunked.Calls("aten.split_with_sizes.default").size(), 3);  // x twice, g
}

}  // namespace
}  // namespace strata
