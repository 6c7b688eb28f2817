#include "passes/expert/ep_chunk.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "ir/rewriter.h"
#include "ir/verify.h"
#include "passes/cleanup/dce.h"
#include "passes/expert/chunk_attributes.h"
#include "passes/expert/chunk_symbols.h"
#include "passes/expert/concretize.h"
#include "prove/proof.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::BodyOf;
using testing::MessageOf;
using testing::NodeNamed;
using testing::OrDie;
using testing::ParseOrDie;

constexpr std::string_view kSymbol = "symbol u0 hint=4 min=2 max=4 unbacked\ngraph g";

std::unique_ptr<Module> Parsed(std::string_view body, std::string_view head = kSymbol) {
  return ParseOrDie(std::string(head) + std::string(body));
}

ChunkOptions Options(std::string_view pattern, int64_t num_static = 0) {
  ChunkOptions options;
  options.module_fqn = pattern;
  options.num_static_inputs = num_static;
  return options;
}

ChunkOptions SeqOptions(std::string_view pattern) {
  ChunkOptions options = Options(pattern);
  options.chunk_dim = ChunkDim::kSeq;
  return options;
}

Status Chunk(Module& module, const ChunkOptions& options) {
  Graph& graph = *module.FindGraph("g");
  return ChunkRegions(graph, ChunkRoots(graph, options.module_fqn), options);
}

std::string ErrorOf(std::string_view body, const ChunkOptions& options,
                    std::string_view head = kSymbol) {
  return MessageOf(Chunk(*Parsed(body, head), options));
}

/// A graph before and after. `same` says that the outputs are those of the whole.
struct Chunked {
  std::unique_ptr<Module> before, module;
  const Graph& graph;

  Chunked(std::string_view body, const ChunkOptions& options, std::string_view head = kSymbol)
      : before(Parsed(body, head)), module(before->Clone()), graph(*module->FindGraph("g")) {
    REQUIRE_OK(Chunk(*module, options));
    CHECK_OK(Verify(*module));
  }

  prove::Proof Proof() const { return prove::Prove(*before->FindGraph("g"), graph, {}); }

  std::vector<NodeId> Calls(std::string_view op) const {
    std::vector<NodeId> nodes;
    for (const NodeId node : graph.nodes())
      if (graph.node(node).kind == NodeKind::kCall && graph.op(node) == op) nodes.push_back(node);
    return nodes;
  }
  /// Chunks of the nodes with an operator: "01" for a copy in each of two.
  std::string ChunksOf(std::string_view op) const {
    std::string chunks;
    for (const NodeId node : Calls(op)) {
      if (Role(node) == kBodyRole)
        chunks += graph.attribute(node, kChunkIdAttribute);
      else
        chunks += '-';
    }
    return chunks;
  }
  std::string_view Role(NodeId node) const { return graph.attribute(node, kChunkRoleAttribute); }
  std::string Operands(NodeId node) const {
    std::string names;
    for (const ValueId operand : graph.operands(node))
      names += std::string(names.empty() ? "" : " ") + std::string(graph.value_name(operand));
    return names;
  }
  std::string TypeOf(std::string_view name) const {
    return module->types().ToString(graph.value(graph.result(NodeNamed(graph, name))).type);
  }
};

#define CHECK_SAME_VALUES(chunked)                                            \
  do {                                                                        \
    const prove::Proof proof = (chunked).Proof();                             \
    INFO(proof.reason, proof.findings.empty() ? "" : proof.findings[0].what); \
    CHECK(proof.verdict == prove::Verdict::kProven);                          \
  } while (false)

constexpr std::string_view kLinear = R"(
  w = placeholder : f32[3, 3][3, 1]cpu
  x = placeholder : f32[u0, 3][3, 1]cpu
  y = aten.mm.default(x, w) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  z = aten.relu.default(y) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  output([z])
)";

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

constexpr std::string_view kTwoRoots = R"(
  x = placeholder : f32[u0, 3][3, 1]cpu
  r = aten.relu.default(x) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  n = aten.neg.default(r) : f32[u0, 3][3, 1]cpu {forward module=layers.1}
  output([n])
)";

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

TEST_CASE("CH-08, CH-09: a size of the whole among the arguments is an error, -1 is none") {
  const auto body = [](std::string_view shape) {
    return "\n  x = placeholder : f32[u0, 3][3, 1]cpu\n  v = aten.view.default(x, " +
           std::string(shape) +
           ") : f32[u0, 3][3, 1]cpu ~x {forward module=layers.0.moe loc=('model.py', 7, "
           "'forward', 'x.view(4, 3)')}\n  r = aten.relu.default(v) : f32[u0, 3][3, 1]cpu {forward "
           "module=layers.0.moe}\n  output([r])\n";
  };
  CHECK_EQ(ErrorOf(body("[4, 3]"), Options("layers.*.moe")),
           "the program baked a Python constant into a shape: graph g: node v (aten.view.default) "
           "of layers.0.moe: [4, 3] for f32[u0, 3][3, 1]cpu: use x.shape[i]/x.size(i) or -1\n"
           "  model.py:7: x.view(4, 3)");
  const Chunked chunked(body("[-1, 3]"), Options("layers.*.moe"));
  CHECK_SAME_VALUES(chunked);
  CHECK_EQ(chunked.ChunksOf("aten.view.default"), "01");
}

TEST_CASE("CH-10: a list of dimensions is no shape") {
  const Chunked chunked(R"(
  x = placeholder : f32[u0, 1, 3][3, 3, 1]cpu
  v = aten.squeeze.dims(x, [1]) : f32[u0, 3][3, 1]cpu ~x {forward module=layers.0}
  r = aten.relu.default(v) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  output([r])
)",
                        Options("layers.*"));
  CHECK_SAME_VALUES(chunked);
}

TEST_CASE("CH-11, CH-14: strides of a chunk are its own") {
  const Chunked chunked(R"(
  x = placeholder : f32[u0, 256][256, 1]cpu
  s = aten.sym_stride.int(x, 0) : Sym(256)
  v = aten.as_strided.default(x, [sym(u0), 256], [s, 1]) : f32[u0, 256][256, 1]cpu ~x {forward module=layers.0.moe}
  r = aten.relu.default(v) : f32[u0, 256][256, 1]cpu {forward module=layers.0.moe}
  output([r])
)",
                        SeqOptions("layers.*.moe"));
  CHECK_SAME_VALUES(chunked);
  CHECK_EQ(chunked.ChunksOf("aten.as_strided.default"), "01");
}

TEST_CASE("CH-12: shapes that something outside reads stay whole") {
  const Chunked chunked(R"(
  x = placeholder : f32[u0, 256][256, 1]cpu
  n = aten.sym_size.int(x, 0) : Sym(u0)
  z = aten.zeros.default([n, 256]) : f32[u0, 256][256, 1]cpu {forward module=layers.0.moe}
  bv = aten.view.default(z, [n, 256]) : f32[u0, 256][256, 1]cpu ~z {forward module=layers.0.moe}
  mo = aten.add.Tensor(x, bv) : f32[u0, 256][256, 1]cpu {forward module=layers.0.moe}
  tf = aten.zeros.default([n, 256]) : f32[u0, 256][256, 1]cpu {forward module=layers.0.moe}
  tp = aten.view.default(tf, [n, 256]) : f32[u0, 256][256, 1]cpu ~tf {forward module=layers.0.moe}
  pe = aten.mul.Tensor(tp, 2) : f32[u0, 256][256, 1]cpu {forward module=layers.0}
  output([mo, pe])
)",
                        SeqOptions("layers.*.moe"));
  CHECK_SAME_VALUES(chunked);
  const Graph& graph = chunked.graph;
  CHECK_EQ(chunked.ChunksOf("aten.zeros.default"), "01-");
  CHECK_EQ(chunked.Operands(NodeNamed(graph, "tp")), "tf");
  CHECK_EQ(chunked.Operands(NodeNamed(graph, "pe")), "tp");
}

TEST_CASE("CH-15, CH-29: products of sizes are those of the chunk") {
  const Chunked chunked(R"(
  x = placeholder : f32[b, w][w, 1]cpu
  n = aten.sym_size.int(x, 0) : Sym(b)
  m = aten.sym_size.int(x, 1) : Sym(w)
  p = _operator.mul(n, m) : Sym(b*w)
  v = aten.view.default(x, [p]) : f32[b*w][1]cpu ~x {forward module=layers.0}
  r = aten.relu.default(v) : f32[b*w][1]cpu {forward module=layers.0}
  output([r])
)",
                        Options("layers.*"), "symbol b hint=4 min=2\nsymbol w hint=5\ngraph g");
  CHECK_SAME_VALUES(chunked);
  CHECK_EQ(chunked.TypeOf("v_chunk0"), "f32[w*((b//2))][1]cpu");
  CHECK_EQ(chunked.ChunksOf("aten.view.default"), "01");
}

TEST_CASE("CH-13: tokens that are flattened in the module are cut, too") {
  const Chunked chunked(R"(
  x = placeholder : f32[u0, 4, 8][32, 8, 1]cpu
  f = aten.view.default(x, [-1, 8]) : f32[4*u0, 8][8, 1]cpu ~x {forward module=layers.0.moe}
  a = aten.add.Tensor(f, 1) : f32[4*u0, 8][8, 1]cpu {forward module=layers.0.moe}
  v = aten.view.default(a, [sym(u0), 4, 8]) : f32[u0, 4, 8][32, 8, 1]cpu ~a {forward module=layers.0.moe}
  r = aten.relu.default(v) : f32[u0, 4, 8][32, 8, 1]cpu {forward module=layers.0.moe}
  output([r])
)",
                        SeqOptions("layers.*.moe"));
  CHECK_SAME_VALUES(chunked);
  CHECK_EQ(chunked.ChunksOf("aten.view.default"), "0101");
  CHECK_EQ(chunked.ChunksOf("aten.add.Tensor"), "01");
  CHECK_EQ(chunked.TypeOf("f_chunk1"), "f32[4*((u0//2)), 8][8, 1]cpu");
}

TEST_CASE("CH-16: the size of a chunk is a product of numbers, not a rounded quotient") {
  const Chunked chunked(R"(
  x = placeholder : f32[b, w][w, 1]cpu
  v = aten.view.default(x, [sym(b*w)]) : f32[b*w][1]cpu ~x {forward module=layers.0}
  r = aten.relu.default(v) : f32[b*w][1]cpu {forward module=layers.0}
  output([r])
)",
                        Options("layers.*"), "symbol b hint=4 min=2\nsymbol w hint=5\ngraph g");
  CHECK_SAME_VALUES(chunked);
  const std::string after = BodyOf(*chunked.module);
  CHECK_NE(after.find("(x_part0, [sym(w*((b//2)))])"), std::string::npos);
  CHECK_EQ(after.find("floor("), std::string::npos);
}

TEST_CASE("CH-17: a sum of the batch and a data-dependent size is cut, whatever the latter is") {
  const auto module = Parsed(R"(
  x = placeholder : f32[b, 8][8, 1]cpu
  y = aten.nonzero_cat.default(x) : f32[b + r, 8][8, 1]cpu
  output([x, y])
)",
                             "symbol b hint=4 min=2\nsymbol r unbacked\ngraph g");
  const Graph& graph = *module->FindGraph("g");
  const ChunkSymbols symbols = OrDie(ChunkSymbols::Select(graph, *module, Options("layers.*")));
  const TypeId type = graph.value(graph.result(NodeNamed(graph, "y"))).type;
  CHECK_EQ(OrDie(symbols.DimOf(type)), std::optional<size_t>(0));
  DimTable& dims = module->dims();
  const DimId size = module->types()[type].sizes[0];
  CHECK_EQ(dims.Hint(size), std::nullopt);
  const DimId bounds[] = {dims.Const(0), dims.Mul(dims.Const(2048), dims.Sym("b"))};
  CHECK(dims.ProvablyEqual(dims.Make(DimKind::kMin, bounds), dims.Const(0)));
}

TEST_CASE("CH-18: numbers that a module computes from sizes are the whole's for readers outside") {
  const Chunked chunked(R"(
  x = placeholder : f32[u0, 3][3, 1]cpu
  r = aten.relu.default(x) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  n = aten.sym_size.int(r, 0) : Sym(u0) {forward module=layers.0}
  m = aten.sym_size.int(x, 0) : Sym(u0) {forward module=layers.0}
  t = _operator.add(n, m) : Sym(2*u0) {forward module=layers.0}
  output([r, t])
)",
                        Options("layers.*"));
  CHECK_SAME_VALUES(chunked);
  CHECK_EQ(chunked.TypeOf("t"), "Sym(2*u0)");
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

TEST_CASE("CH-28: sizes read from data are other ones in each chunk") {
  const Chunked chunked(
      R"(
  x = placeholder : f32[u0, 3][3, 1]cpu
  c = aten.sum.dim_IntList(x, [1]) : f32[u0][1]cpu {forward module=layers.0}
  t = aten.sum.default(c) : f32[][]cpu {forward module=layers.0}
  n = aten.item.default(t) : Sym(u7) {forward module=layers.0}
  e = aten.new_zeros.default(x, [n, 3]) : f32[u7, 3][3, 1]cpu {forward module=layers.0}
  p = aten.sum.dim_IntList(e, [0]) : f32[3][1]cpu {forward module=layers.0}
  y = aten.add.Tensor(x, p) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  output([y])
)",
      Options("layers.*"),
      "symbol u0 hint=4 min=2 max=4 unbacked\nsymbol u7 hint=2 unbacked\ngraph g");
  CHECK_EQ(chunked.ChunksOf("aten.item.default"), "01");
  CHECK_EQ(chunked.TypeOf("n_chunk0"), "Sym(u1)");
  CHECK_EQ(chunked.TypeOf("n_chunk1"), "Sym(u2)");
  CHECK_EQ(chunked.TypeOf("e_chunk1"), "f32[u2, 3][3, 1]cpu");
  CHECK_EQ(chunked.Operands(NodeNamed(chunked.graph, "e_chunk1")), "x_part1 n_chunk1");
  const DimTable& dims = chunked.module->dims();
  CHECK_EQ(dims.FindSymbol(chunked.module->strings().Find("u2"))->hint, 1);
}

TEST_CASE("CH-31: tensors made from sizes are made per chunk") {
  const Chunked chunked(R"(
  x = placeholder : f32[u0, 3][3, 1]cpu
  a = aten.new_zeros.default(x, [sym(u0), 3]) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  b = aten.new_zeros.default(x, [sym(u0 + 2), 3]) : f32[u0 + 2, 3][3, 1]cpu {forward module=layers.0}
  c = aten.zeros.default([sym(2*u0), 3]) : f32[2*u0, 3][3, 1]cpu {forward module=layers.0}
  bs = aten.slice.Tensor(b, 0, 0, sym(u0)) : f32[u0, 3][3, 1]cpu ~b {forward module=layers.0}
  cs = aten.slice.Tensor(c, 0, 0, sym(u0)) : f32[u0, 3][3, 1]cpu ~c {forward module=layers.0}
  y = aten.add.Tensor(x, a) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  z = aten.add.Tensor(y, bs) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  q = aten.add.Tensor(z, cs) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  output([q])
)",
                        Options("layers.*"));
  CHECK_SAME_VALUES(chunked);
  CHECK_EQ(chunked.ChunksOf("aten.new_zeros.default"), "0101");
  CHECK_EQ(chunked.ChunksOf("aten.zeros.default"), "01");
  CHECK_EQ(chunked.TypeOf("b_chunk1"), "f32[((u0//2)) + 2, 3][3, 1]cpu");
  CHECK_EQ(chunked.TypeOf("c_chunk1"), "f32[2*((u0//2)), 3][3, 1]cpu");
}

TEST_CASE("CH-32: indices made from sizes count from 0 in each chunk") {
  const Chunked chunked(R"(
  x = placeholder : f32[u0, 3][3, 1]cpu
  i = aten.arange.default(sym(u0)) : i64[u0][1]cpu {forward module=layers.0}
  f = aten.flip.default(i, [0]) : i64[u0][1]cpu {forward module=layers.0}
  y = aten.index_select.default(x, 0, f) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  output([y])
)",
                        Options("layers.*"));
  CHECK_EQ(chunked.ChunksOf("aten.index_select.default"), "01");
  CHECK_EQ(chunked.ChunksOf("aten.flip.default"), "01");
  CHECK_EQ(chunked.Calls("aten.split_with_sizes.default").size(), 1);
  CHECK_EQ(chunked.Proof().verdict, prove::Verdict::kDiffers);  // reversed within chunks
}

TEST_CASE("backward reads the indices that forward made for each chunk") {
  const Chunked chunked(R"(
  x = placeholder : f32[u0, 3][3, 1]cpu
  g = placeholder : f32[u0, 3][3, 1]cpu
  i = aten.arange.default(sym(u0)) : i64[u0][1]cpu {forward module=layers.0}
  y = aten.index_select.default(x, 0, i) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  gx = aten.index_select.default(g, 0, i) : f32[u0, 3][3, 1]cpu {backward module=layers.0}
  output([y, gx])
)",
                        Options("layers.*"));
  CHECK_SAME_VALUES(chunked);
  CHECK_EQ(chunked.ChunksOf("aten.arange.default"), "01");
  CHECK_EQ(chunked.Operands(NodeNamed(chunked.graph, "gx_chunk1")), "g_part1 i_chunk1");
}

TEST_CASE("what a module makes from sizes alone is made per chunk, counts of it included") {
  const Chunked chunked(R"(
  x = placeholder : f32[u0, 3][3, 1]cpu
  i = aten.arange.default(sym(u0)) : i64[u0][1]cpu {forward module=layers.0}
  r = aten.remainder.Scalar(i, 2) : i64[u0][1]cpu {forward module=layers.0}
  c = aten.sum.dim_IntList(r, [0]) : i64[][]cpu {forward module=layers.0}
  y = aten.index_select.default(x, 0, r) : f32[u0, 3][3, 1]cpu {forward module=layers.0}
  output([y, c])
)",
                        Options("layers.*"));
  CHECK_EQ(chunked.ChunksOf("aten.remainder.Scalar"), "01");
  CHECK_EQ(chunked.ChunksOf("aten.sum.dim_IntList"), "01");
  CHECK_EQ(chunked.graph.attribute(NodeNamed(chunked.graph, "c_chunk_materialized"),
                                   kChunkProofAttribute),
           "forward_count");
}

TEST_CASE("counts are added before they are reduced over ranks") {
  const Chunked chunked(R"(
  x = placeholder : f32[u0, 3][3, 1]cpu
  m = aten.gt.Scalar(x, 0) : b8[u0, 3][3, 1]cpu {forward module=layers.0.moe}
  c = aten.sum.dim_IntList(m, [0]) : i64[3][1]cpu {forward module=layers.0.moe}
  a = _c10d_functional.all_reduce.default(c, 'sum', 'fsdp') : i64[3][1]cpu {forward module=layers.0.moe}
  w = _c10d_functional.wait_tensor.default(a) : i64[3][1]cpu ~a {forward module=layers.0.moe}
  y = aten.relu.default(x) : f32[u0, 3][3, 1]cpu {forward module=layers.0.moe}
  output([y, w])
)",
                        Options("layers.*.moe"));
  CHECK_EQ(chunked.Operands(NodeNamed(chunked.graph, "a")), "c_chunk_materialized");
  CHECK_EQ(chunked.ChunksOf("aten.sum.dim_IntList"), "01");
}

TEST_CASE("a part that is not dense is copied") {
  const Chunked chunked(R"(
  x = placeholder : i64[b, s][s, 1]cpu
  r = aten.neg.default(x) : i64[b, s][s, 1]cpu {forward module=layers.0.moe}
  output([r])
)",
                        SeqOptions("layers.*.moe"), "symbol b hint=2\nsymbol s hint=4\ngraph g");
  CHECK_SAME_VALUES(chunked);
  CHECK_EQ(chunked.Calls("aten.clone.default").size(), 2);
  CHECK_EQ(chunked.TypeOf("x_part1_dense"), "i64[b, (s//2)][(s//2), 1]cpu");
  CHECK_EQ(chunked.TypeOf("r_chunk_materialized"), "i64[b, s][s, 1]cpu");
}

// Backward.

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
