#include <optional>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "passes/core/chunk_attributes.h"
#include "passes/expert/chunk_symbols.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/unit/passes/chunked_graph.h"

namespace strata {
namespace {

using testing::BodyOf;
using testing::Chunked;
using testing::ErrorOf;
using testing::NodeNamed;
using testing::Options;
using testing::OrDie;
using testing::Parsed;
using testing::SeqOptions;

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

}  // namespace
}  // namespace strata
