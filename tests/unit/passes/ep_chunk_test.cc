#include "passes/expert/ep_chunk.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "passes/core/chunk_attributes.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/unit/passes/chunked_graph.h"

namespace strata {
namespace {

using testing::BodyOf;
using testing::Chunk;
using testing::Chunked;
using testing::ErrorOf;
using testing::kLinear;
using testing::kTwoRoots;
using testing::MessageOf;
using testing::NodeNamed;
using testing::Options;
using testing::OrDie;
using testing::Parsed;
using testing::SeqOptions;

TEST_CASE("CH-01: a region becomes two chunks between one split and one cat") {
  const Chunked chunked(kLinear, Options("layers.*", 1));
  CHECK_SAME_VALUES(chunked);
  CHECK_EQ(BodyOf(*chunked.module), R"(
  w = placeholder
  x = placeholder
  (x_part0, x_part1) = aten.split_with_sizes.default(x, [sym((u0//2)), sym((u0//2))], 0) as x_split
  y_chunk0 = aten.mm.default(x_part0, w)
  y_chunk1 = aten.mm.default(x_part1, w)
  z_chunk0 = aten.relu.default(y_chunk0)
  z_chunk1 = aten.relu.default(y_chunk1)
  z_chunk_materialized = aten.cat.default([z_chunk0, z_chunk1], 0)
  output([z_chunk_materialized])
)");
  const Graph& graph = chunked.graph;
  CHECK_EQ(chunked.ChunksOf("aten.mm.default"), "01");
  const NodeId cat = NodeNamed(graph, "z_chunk_materialized");
  CHECK_EQ(chunked.Role(cat), kMaterializationRole);
  CHECK_EQ(graph.attribute(cat, kChunkIdAttribute), "");
  CHECK_EQ(graph.attribute(NodeNamed(graph, "y_chunk1"), kChunkedOriginalAttribute), "y");
  CHECK_EQ(chunked.TypeOf("y_chunk1"), "f32[(u0//2), 3][3, 1]cpu");
  CHECK_EQ(chunked.TypeOf("z_chunk_materialized"), "f32[u0, 3][3, 1]cpu");
}

TEST_CASE("the first chunk keeps the identity of the nodes, the others are clones") {
  const auto module = Parsed(kLinear);
  const Graph& graph = *module->FindGraph("g");
  const StableId original = graph.node(NodeNamed(graph, "y")).stable_id;
  module->TakeProvenance();
  REQUIRE_OK(Chunk(*module, Options("layers.*", 1)));
  CHECK(graph.node(NodeNamed(graph, "y_chunk0")).stable_id == original);
  const StableId copy = graph.node(NodeNamed(graph, "y_chunk1")).stable_id;
  bool found = false;
  for (const Provenance& birth : module->provenance()) {
    if (birth.node != copy) continue;
    found = true;
    CHECK_EQ(birth.origin, Origin::kCloned);
    REQUIRE_EQ(birth.from.size(), 1);
    CHECK(birth.from[0] == original);
  }
  CHECK(found);
}

TEST_CASE("CH-02: modules outside of the pattern stay whole") {
  const Chunked chunked(kTwoRoots, Options("layers.1"));
  CHECK_SAME_VALUES(chunked);
  CHECK_EQ(chunked.ChunksOf("aten.relu.default"), "-");
  CHECK_EQ(chunked.ChunksOf("aten.neg.default"), "01");
}

TEST_CASE("CH-03: values between two regions are whole") {
  const Chunked chunked(kTwoRoots, Options("layers.*"));
  CHECK_SAME_VALUES(chunked);
  CHECK_EQ(chunked.Calls("aten.cat.default").size(), 2);
  const std::vector<NodeId> splits = chunked.Calls("aten.split_with_sizes.default");
  REQUIRE_EQ(splits.size(), 2);
  CHECK_EQ(chunked.Operands(splits[1]), "r_chunk_materialized");
}

TEST_CASE("CH-04: sizes of a region's results are those of the whole") {
  const Chunked chunked(R"(
  x = placeholder : f32[u0, 3][3, 1]cpu
  r = aten.relu.default(x) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  s = aten.sym_size.int(r, 0) : Sym(u0) {forward module=layers.0}
  output([r, s])
)",
                        Options("layers.*"));
  CHECK_EQ(chunked.Operands(NodeNamed(chunked.graph, "s")), "r_chunk_materialized");
  CHECK_EQ(chunked.ChunksOf("aten.relu.default"), "01");
}

TEST_CASE("CH-05: chunks must divide the size") {
  constexpr std::string_view kThree = "symbol u0 hint=3 unbacked\ngraph g";
  CHECK_EQ(ErrorOf(kLinear, Options("layers.*", 1), kThree),
           "Cannot split selected chunk dimension: symbol u0 is 3: take a size that 2 chunks "
           "divide, or allow uneven chunks");
  ChunkOptions uneven = Options("layers.*", 1);
  uneven.uneven = true;
  const Chunked chunked(kLinear, uneven, kThree);
  CHECK_SAME_VALUES(chunked);
  CHECK_EQ(chunked.TypeOf("y_chunk0"), "f32[((u0 + 1)//2), 3][3, 1]cpu");
}

TEST_CASE("three and four chunks") {
  constexpr std::string_view kTwelve = "symbol u0 hint=12 unbacked\ngraph g";
  for (const int64_t count : {3, 4}) {
    ChunkOptions options = Options("layers.*", 1);
    options.num_chunks = count;
    const Chunked chunked(kLinear, options, kTwelve);
    CHECK_SAME_VALUES(chunked);
    CHECK_EQ(chunked.ChunksOf("aten.mm.default"), std::string("0123").substr(0, count));
  }
}

TEST_CASE("CH-06: forward cannot read what backward computes") {
  CHECK_EQ(ErrorOf(R"(
  x = placeholder : f32[u0, 3][3, 1]cpu
  n = aten.neg.default(x) : f32[u0, 3][3, 1]cpu {backward}
  r = aten.relu.default(n) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  output([r])
)",
                   Options("layers.*")),
           "crossed into the opposite graph direction: graph g: forward node r of layers.0 reads "
           "n, which backward computes: take another module_fqn");
}

TEST_CASE("CH-07: chunks of a sequence do not pass attention") {
  CHECK_EQ(ErrorOf(R"(
  x = placeholder : f32[u0, 3][3, 1]cpu
  r = aten.relu.default(x) : f32[u0, 3][3, 1]cpu {forward module=layers.0.attention}
  output([r])
)",
                   SeqOptions("layers.*")),
           "chunks of a sequence need full-K/V handling in attention: graph g: layers.0, forward: "
           "node r (aten.relu.default): take module_fqn=layers.*.moe or chunk_dim=batch");
}

TEST_CASE("CH-19: a maximum over tokens cannot be put together") {
  CHECK_EQ(ErrorOf(R"(
  x = placeholder : f32[u0, 3][3, 1]cpu
  r = aten.relu.default(x) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  a = aten.amax.default(r, [0]) : f32[3][1]cpu {forward module=layers.0}
  output([r, a])
)",
                   Options("layers.*")),
           "cannot materialize live-out without chunk dimension: graph g: layers.0, forward: a "
           "(aten.amax.default) is read by output: there is no forward accumulation proof or a "
           "backward parameter-gradient consumer");
}

TEST_CASE("CH-20: backward of another module cannot read a chunk") {
  CHECK(ErrorOf(R"(
  x = placeholder : f32[u0, 3][3, 1]cpu
  r = aten.relu.default(x) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  a = aten.amax.default(r) : f32[][]cpu {forward module=layers.0}
  g = aten.mul.Tensor(x, a) : f32[u0, 3][3, 1]cpu {backward module=layers.1}
  output([r, g])
)",
                Options("layers.0"))
            .starts_with("cannot materialize live-out without chunk dimension"));
}

TEST_CASE("CH-21: unread results of a tuple do not matter") {
  const Chunked chunked(R"(
  x = placeholder : f32[u0, 3][3, 1]cpu
  (v, _) = aten.max.dim(x, 1) as m : (f32[u0][1]cpu, i64[u0][1]cpu) {backward module=layers.0}
  r = aten.relu.default(v) : f32[u0][1]cpu {backward module=layers.0}
  output([x, r])
)",
                        Options("layers.*"));
  CHECK_EQ(chunked.ChunksOf("aten.max.dim"), "01");
}

TEST_CASE("CH-22: shared memory is written by one chunk after the other") {
  const Chunked chunked(R"(
  buf = placeholder : f32[3][1]cpu
  x = placeholder : f32[u0, 3][3, 1]cpu
  cnt = aten.sum.dim_IntList(x, [0]) : f32[3][1]cpu {forward module=layers.0}
  acc = aten.add_.Tensor(buf, cnt) : f32[3][1]cpu ~buf {forward module=layers.0}
  r = aten.relu.default(x) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  output([r])
)",
                        Options("layers.*", 1));
  CHECK_SAME_VALUES(chunked);
  const std::vector<NodeId> writes = chunked.Calls("aten.add_.Tensor");
  REQUIRE_EQ(writes.size(), 2);
  CHECK_EQ(chunked.Operands(writes[0]), "buf cnt_chunk0");
  CHECK_EQ(chunked.Operands(writes[1]), "acc_chunk0 cnt_chunk1");
}

TEST_CASE("shared memory that one chunk writes is not read by another one") {
  CHECK_EQ(ErrorOf(R"(
  buf = placeholder : f32[3][1]cpu
  x = placeholder : f32[u0, 3][3, 1]cpu
  y = aten.mul.Tensor(x, buf) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  cnt = aten.sum.dim_IntList(y, [0]) : f32[3][1]cpu {forward module=layers.0}
  acc = aten.add_.Tensor(buf, cnt) : f32[3][1]cpu ~buf {forward module=layers.0}
  output([y])
)",
                   Options("layers.*", 1)),
           "one chunk would read what another one wrote: graph g: layers.0, forward: node y "
           "(aten.mul.Tensor) reads buf");
  CHECK_EQ(ErrorOf(R"(
  x = placeholder : f32[u0, 3][3, 1]cpu
  y = aten.add_.Tensor(x, 1) : f32[u0, 3][3, 1]cpu ~x {forward module=layers.0}
  output([y])
)",
                   Options("layers.*")),
           "a chunk would write to the whole: graph g: layers.0, forward: node y "
           "(aten.add_.Tensor) writes x");
}

TEST_CASE("CH-23: collectives of others cannot run per chunk") {
  CHECK_EQ(ErrorOf(R"(
  x = placeholder : f32[u0, 3][3, 1]cpu
  r = aten.relu.default(x) : f32[u0, 3][3, 1]cpu {forward module=layers.0.moe}
  a = _c10d_functional.all_reduce.default(r, 'sum', 'tp') : f32[u0, 3][3, 1]cpu {forward module=layers.0.moe}
  output([a])
)",
                   Options("layers.*.moe")),
           "only EP collectives can run per chunk: graph g: layers.0.moe, forward: node a "
           "(_c10d_functional.all_reduce.default): take another module_fqn");
}

TEST_CASE("CH-24: a pattern with more parts selects submodules") {
  const Chunked chunked(R"(
  x = placeholder : f32[u0, 3][3, 1]cpu
  r = aten.relu.default(x) : f32[u0, 3][3, 1]cpu {forward module=layers.0.moe.router}
  n = aten.neg.default(r) : f32[u0, 3][3, 1]cpu {forward module=layers.0.attention}
  output([n])
)",
                        Options("layers.*.moe"));
  CHECK_SAME_VALUES(chunked);
  CHECK_EQ(chunked.ChunksOf("aten.relu.default"), "01");
  CHECK_EQ(chunked.ChunksOf("aten.neg.default"), "-");
  CHECK_EQ(chunked.graph.attribute(NodeNamed(chunked.graph, "r_chunk0"), kChunkedRegionAttribute),
           "layers.0.moe");
}

TEST_CASE("CH-25: values without chunk dimension stay with their chunk") {
  const Chunked chunked(R"(
  x = placeholder : f32[u0, 3][3, 1]cpu
  cnt = aten.sum.dim_IntList(x, [0]) : f32[3][1]cpu {forward module=layers.0.moe}
  scale = aten.sum.default(cnt) : f32[][]cpu {forward module=layers.0.moe}
  y = aten.mul.Tensor(x, scale) : f32[u0, 3][3, 1]cpu {forward module=layers.0.moe}
  a = _c10d_functional.all_to_all_single.default(y, [], [], 'ep') : f32[u0, 3][3, 1]cpu {forward module=layers.0.moe +EP_token_exchange='dispatch'}
  d = _c10d_functional.wait_tensor.default(a) : f32[u0, 3][3, 1]cpu ~a {forward module=layers.0.moe}
  output([d])
)",
                        Options("layers.*.moe"));
  CHECK_EQ(chunked.ChunksOf("aten.sum.dim_IntList"), "01");
  CHECK_EQ(chunked.ChunksOf("aten.sum.default"), "01");
  CHECK_EQ(chunked.ChunksOf("_c10d_functional.all_to_all_single.default"), "01");
  CHECK_EQ(chunked.Calls("aten.add.Tensor").size(), 0);
}

Result<Changed> RunPass(Module& module, std::string_view pattern, bool require_all_to_all) {
  EpChunk::Options options;
  options.chunks.module_fqn = pattern;
  options.require_all_to_all = require_all_to_all;
  return EpChunk(options).Run(module);
}

TEST_CASE("CH-26, CH-27: only layers with experts are cut") {
  const auto body = [](std::string_view exchange) {
    return "\n  x = placeholder : f32[u0, 3][3, 1]cpu\n"
           "  d = aten.relu.default(x) : f32[u0, 3][3, 1]cpu {forward module=layers.0}\n"
           "  m = aten.neg.default(d) : f32[u0, 3][3, 1]cpu {forward module=layers.1.moe "
           "+EP='compute'}\n" +
           std::string(exchange) + "  output([e])\n";
  };
  const std::string with_exchange = body(
      "  e = _c10d_functional.all_to_all_single.default(m, [], [], 'ep') : f32[u0, 3][3, 1]cpu "
      "{forward module=layers.1.moe +EP='dispatch'}\n");
  const std::string without =
      body("  e = aten.exp.default(m) : f32[u0, 3][3, 1]cpu {forward module=layers.1.moe}\n");
  for (const auto& [text, required] : {std::pair(with_exchange, true), {without, false}}) {
    const auto module = Parsed(text);
    OrDie(RunPass(*module, "layers.*", required));
    const Graph& graph = *module->FindGraph("g");
    CHECK_EQ(graph.attribute(NodeNamed(graph, "d"), kChunkRoleAttribute), "");
    CHECK_EQ(graph.attribute(NodeNamed(graph, "m_chunk1"), kChunkedRegionAttribute), "layers.1");
  }
  CHECK(MessageOf(RunPass(*Parsed(without), "layers.*", true))
            .starts_with("No EP all-to-all regions matched"));
  CHECK(
      MessageOf(RunPass(*Parsed(kLinear), "layers.*", false)).starts_with("No EP regions matched"));
}

TEST_CASE("C1, C2, D5: options that cannot be") {
  const auto with = [](auto change) {
    EpChunk::Options options;
    change(options.chunks);
    return MessageOf(EpChunk(options).Run(*Parsed(kLinear)));
  };
  CHECK_EQ(with([](ChunkOptions& o) { o.module_fqn = "blocks"; }),
           "ep_overlap.module_fqn is 'blocks': take layers.* or layers.*.moe");
  CHECK_EQ(with([](ChunkOptions& o) { o.chunk_dim = ChunkDim::kSeq; }),
           "ep_overlap.chunk_dim=seq is only supported with module_fqn=layers.*.moe: attention "
           "needs whole sequences");
  CHECK_EQ(with([](ChunkOptions& o) { o.num_chunks = 1; }),
           "ep_overlap.num_chunks is 1: take 2 or more");
  CHECK_EQ(ErrorOf(R"(
  x = placeholder : f32[4, 3][3, 1]cpu
  r = aten.relu.default(x) : f32[4, 3][3, 1]cpu {forward module=layers.0}
  output([r])
)",
                   Options("layers.*")),
           "expected at least one selected dynamic placeholder dimension: graph g: dimension 0 of "
           "no input is symbolic, trace with compile.symbolic_dims=batch");
  CHECK_EQ(ErrorOf(kTwoRoots, Options("layers.7")),
           "found no regions: graph g: nothing of 'layers.7' depends on the chunked dimension");
}

}  // namespace
}  // namespace strata
