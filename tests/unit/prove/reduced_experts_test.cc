// Meshes with experts, and rows that ranks exchange by data-dependent counts, on smaller meshes.

#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/ops.h"
#include "ir/rewriter.h"
#include "passes/placement/mesh.h"
#include "passes/placement/placement.h"
#include "prove/layers/node_comparison.h"
#include "prove/prove_pass.h"
#include "prove/sizes/reduce.h"
#include "tests/support/graphs.h"

namespace strata::prove {
namespace {

using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;
using testing::ValueNamed;

constexpr int kRanks = 32;

/// Each rank sends counts[i] rows to rank i. `swapped`: rank 3 gets those of rank 4, and the
/// reverse.
std::unique_ptr<Module> Exchange(bool swapped = false) {
  std::string text = R"(
  x = placeholder : f32[4096, 7168]
  counts = placeholder : i64[32]
)";
  std::string numbers;
  for (int i = 0; i < kRanks; ++i) {
    const int rank = !swapped || i < 3 || i > 4 ? i : 7 - i;
    text += fmt::format("  s{0} = aten.select.int(counts, 0, {1}) : i64[] ~counts\n", i, rank);
    text += fmt::format("  n{0} = aten._local_scalar_dense.default(s{0}) : Sym(u{0})\n", i);
    numbers += fmt::format("{}n{}", i == 0 ? "" : ", ", i);
  }
  text += fmt::format(
      "  sent = _c10d_functional.all_to_all_single.default(x, [{0}], [{0}], 'ep') : f32[u99, "
      "7168]\n"
      "  done = _c10d_functional.wait_tensor.default(sent) : f32[u99, 7168] ~sent\n"
      "  output(done)\n",
      numbers);
  auto module = ParseBody(text);
  Graph& graph = *module->FindGraph("g");
  Rewriter(graph).SetAttribute(graph.output(), kMeshAttribute, "fsdp=64,tp=4,ep=32");
  return module;
}

std::string MeshOf(const Graph& graph) {
  return std::string(graph.attribute(graph.output(), kMeshAttribute));
}

TEST_CASE("a mesh with experts becomes smaller, and so do lists of rows for each rank") {
  const auto module = Exchange();
  const Graph& graph = *module->FindGraph("g");
  const auto pair = OrDie(Reduce(graph, graph, {.stable_ids = true}));
  const Mesh mesh = OrDie(Mesh::Parse(MeshOf(*pair.after)));
  CHECK_LE(mesh.num_ranks(), 64);
  // The same grid: experts take ranks of all of tp, and of a part of fsdp.
  CHECK_EQ(mesh.axes().size(), 3);
  CHECK_EQ(mesh.Find("tp")->size, 4);
  const int64_t ranks = mesh.Find("ep")->size;
  CHECK_LT(ranks, kRanks);
  const NodeId sent = NodeNamed(*pair.after, "sent");
  CHECK_EQ(pair.after->args(sent)[1].span_size(), ranks);
  int64_t numbers = 0;
  for (const NodeId node : pair.after->nodes())
    if (BaseName(pair.after->op(node)) == "_local_scalar_dense") ++numbers;
  CHECK_EQ(numbers, ranks);
}

/// A dispatch to the ranks of `ep`: each token goes to 8 experts. `back` is cut by the same counts.
std::unique_ptr<Module> Dispatch() {
  std::string text = R"(
  scores = placeholder : f32[4096, 256]
  x = placeholder : f32[4096, 7168]
  g = placeholder : f32[32768, 7168]
  (top, experts) = aten.topk.default(scores, 8, -1, True, False) as chosen : (f32[4096, 8], i64[4096, 8])
  flat = aten.view.default(experts, [32768]) : i64[32768]
  (sorted, order) = aten.sort.stable(flat, stable=True, dim=0, descending=False) as s : (i64[32768], i64[32768])
  source = aten.floor_divide.default(order, 8) : i64[32768]
  rows = aten.index_select.default(x, 0, source) : f32[32768, 7168]
  zeros = aten.zeros.default([4096, 256], dtype=torch.int64) : i64[4096, 256]
  hot = aten.scatter.value(zeros, 1, experts, 1) : i64[4096, 256]
  perexpert = aten.sum.dim_IntList(hot, [0]) : i64[256]
  perrank = aten.view.default(perexpert, [8, 32]) : i64[8, 32]
  counts = aten.sum.dim_IntList(perrank, [1]) : i64[8]
  received = _c10d_functional.all_to_all_single.default(counts, [1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, 1], 'ep') : i64[8]
  came = _c10d_functional.wait_tensor.default(received) : i64[8] ~received
)";
  std::string in, out;
  for (int i = 0; i < 8; ++i) {
    for (const auto& [name, vector, list] :
         {std::tuple("r", "came", &in), std::tuple("s", "counts", &out)}) {
      text +=
          fmt::format("  {0}e{1} = aten.select.int({2}, 0, {1}) : i64[] ~{2}\n", name, i, vector);
      text += fmt::format("  {0}{1} = aten._local_scalar_dense.default({0}e{1}) : Sym(u{2})\n",
                          name, i, (*name == 'r' ? 0 : 8) + i);
      *list += fmt::format("{}{}{}", i == 0 ? "" : ", ", name, i);
    }
  }
  for (const auto& [name, value] : {std::pair("sent", "rows"), std::pair("back", "g")}) {
    text += fmt::format(
        "  {0} = _c10d_functional.all_to_all_single.default({1}, [{2}], [{3}], 'ep') : f32[u99, "
        "7168]\n"
        "  {0}_done = _c10d_functional.wait_tensor.default({0}) : f32[u99, 7168] ~{0}\n",
        name, value, in, out);
  }
  auto module = ParseBody(text + "  output([sent_done, back_done, top])\n");
  Graph& graph = *module->FindGraph("g");
  Rewriter(graph).SetAttribute(graph.output(), kMeshAttribute, "fsdp=64,ep=8");
  return module;
}

TEST_CASE("experts of a token become fewer, and axes of as many ranks do, too") {
  const auto module = Dispatch();
  const Graph& graph = *module->FindGraph("g");
  const auto pair = OrDie(Reduce(graph, graph, {.stable_ids = true}));
  const Mesh mesh = OrDie(Mesh::Parse(MeshOf(*pair.after)));
  CHECK_EQ(mesh.axes().size(), 2);
  CHECK_LE(mesh.num_ranks(), 25);
  const int64_t chosen = pair.after->args(NodeNamed(*pair.after, "chosen"))[1].as_int();
  CHECK_LT(chosen, 8);
  CHECK_EQ(pair.after->args(NodeNamed(*pair.after, "source"))[1].as_int(), chosen);
}

TEST_CASE("what is cut by the same counts, and the rows that they count, stay equally many") {
  const auto module = Dispatch();
  const Graph& graph = *module->FindGraph("g");
  const auto pair = OrDie(Reduce(graph, graph, {.stable_ids = true}));
  const auto rows_of = [&](std::string_view name) {
    const Graph& after = *pair.after;
    const Type& type = after.module().types()[after.value(ValueNamed(after, name)).type];
    return *after.module().dims().AsConst(type.sizes[0]);
  };
  CHECK_EQ(rows_of("rows"), rows_of("flat"));
  CHECK_EQ(rows_of("g"), rows_of("flat"));
}

/// The mesh that takes the place of `mesh` for a graph of its ranks.
Mesh SmallerMesh(std::string_view body, std::string_view mesh) {
  const auto module = ParseBody(body);
  Graph& graph = *module->FindGraph("g");
  Rewriter(graph).SetAttribute(graph.output(), kMeshAttribute, mesh);
  return OrDie(Mesh::Parse(MeshOf(*OrDie(Reduce(graph, graph, {.stable_ids = true})).after)));
}

TEST_CASE("a rank may have as many experts as there are ranks") {
  const Mesh mesh = SmallerMesh(R"(
    w = placeholder : f32[4, 7168]
    counts = placeholder : i64[256]
    sent = _c10d_functional.all_to_all_single.default(counts, [16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16], [16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16], 'ep') : i64[256]
    received = _c10d_functional.wait_tensor.default(sent) : i64[256] ~sent
    by_rank = aten.view.default(received, [16, 16]) : i64[16, 16] ~received
    rows = aten.sum.default(by_rank) : i64[]
    of_experts = aten.sum.dim_IntList(by_rank, [0]) : i64[16]
    gathered = _c10d_functional.all_gather_into_tensor.default(w, 4, 'efsdp') : f32[16, 7168]
    experts = _c10d_functional.wait_tensor.default(gathered) : f32[16, 7168] ~gathered
    column = aten.unsqueeze.default(of_experts, 1) : i64[16, 1] ~of_experts
    weighed = aten.mul.Tensor(experts, column) : f32[16, 7168]
    output([rows, weighed])
  )",
                                "fsdp=64,ep=16");
  CHECK_LT(mesh.Find("ep")->size, 16);
}

TEST_CASE("groups of experts are not the ranks that have them") {
  const Mesh mesh = SmallerMesh(R"(
    scores = placeholder : f32[4096, 256]
    counts = placeholder : i64[256]
    sent = _c10d_functional.all_to_all_single.default(counts, [32, 32, 32, 32, 32, 32, 32, 32], [32, 32, 32, 32, 32, 32, 32, 32], 'ep') : i64[256]
    received = _c10d_functional.wait_tensor.default(sent) : i64[256] ~sent
    by_rank = aten.view.default(received, [8, 32]) : i64[8, 32] ~received
    hot = aten.mul.Tensor(scores, received) : f32[4096, 256]
    by_group = aten.view.default(hot, [4096, 8, 32]) : f32[4096, 8, 32] ~hot
    of_groups = aten.sum.dim_IntList(by_group, [2]) : f32[4096, 8]
    (g0, g1, g2, g3, g4, g5, g6, g7) = aten.unbind.int(of_groups, 1) as group : (f32[4096], f32[4096], f32[4096], f32[4096], f32[4096], f32[4096], f32[4096], f32[4096])
    output([by_rank, g0])
  )",
                                "fsdp=64,ep=8");
  CHECK_LT(mesh.Find("ep")->size, 8);  // the groups stay, since there is a value for each
}

/// The ranks of tp stay, since there is a value for each.
constexpr std::string_view kTpStays = R"(
    t = placeholder : f32[1, 640]
    every = _c10d_functional.all_gather_into_tensor.default(t, 8, 'tp') : f32[8, 640]
    all = _c10d_functional.wait_tensor.default(every) : f32[8, 640] ~every
    (t0, t1, t2, t3, t4, t5, t6, t7) = aten.unbind.int(all) as of_ranks : (f32[640], f32[640], f32[640], f32[640], f32[640], f32[640], f32[640], f32[640])
)";

TEST_CASE("pieces that are joined side by side are not those of the ranks that get the rows") {
  const Mesh mesh = SmallerMesh(std::string(kTpStays) + R"(
    y = placeholder : f32[512, 96]
    gy = _c10d_functional.all_gather_into_tensor.default(y, 8, 'tp') : f32[4096, 96]
    g = _c10d_functional.wait_tensor.default(gy) : f32[4096, 96] ~gy
    (p0, p1, p2, p3, p4, p5, p6, p7) = aten.split.Tensor(g, 512) as pieces : (f32[512, 96], f32[512, 96], f32[512, 96], f32[512, 96], f32[512, 96], f32[512, 96], f32[512, 96], f32[512, 96])
    side_by_side = aten.cat.default([p0, p1, p2, p3, p4, p5, p6, p7], 1) : f32[512, 768]
    sent = _c10d_functional.reduce_scatter_tensor.default(side_by_side, 'sum', 8, 'fsdp') : f32[64, 768]
    done = _c10d_functional.wait_tensor.default(sent) : f32[64, 768] ~sent
    output([t0, done])
  )",
                                "fsdp=8,tp=8");
  CHECK_EQ(mesh.Find("tp")->size, 8);
  CHECK_LT(mesh.Find("fsdp")->size, 8);
}

TEST_CASE("parts for the ranks of one axis are not those for as many ranks of another") {
  const Mesh mesh = SmallerMesh(std::string(kTpStays) + R"(
    x = placeholder : f32[32]
    y = placeholder : f32[32]
    gx = _c10d_functional.all_gather_into_tensor.default(x, 8, 'fsdp') : f32[256]
    wx = _c10d_functional.wait_tensor.default(gx) : f32[256] ~gx
    gy = _c10d_functional.all_gather_into_tensor.default(y, 8, 'tp') : f32[256]
    wy = _c10d_functional.wait_tensor.default(gy) : f32[256] ~gy
    output([t0, wx, wy])
  )",
                                "fsdp=8,tp=8");
  CHECK_EQ(mesh.Find("tp")->size, 8);
  CHECK_LT(mesh.Find("fsdp")->size, 8);
}

TEST_CASE("axes of four ranks become smaller, too") {
  const Mesh mesh = SmallerMesh(R"(
    x = placeholder : f32[1024, 512]
    a = _c10d_functional.all_gather_into_tensor.default(x, 4, 'fsdp') : f32[4096, 512]
    wa = _c10d_functional.wait_tensor.default(a) : f32[4096, 512] ~a
    b = _c10d_functional.all_gather_into_tensor.default(wa, 4, 'cp') : f32[16384, 512]
    wb = _c10d_functional.wait_tensor.default(b) : f32[16384, 512] ~b
    c = _c10d_functional.all_gather_into_tensor.default(wb, 4, 'tp') : f32[65536, 512]
    wc = _c10d_functional.wait_tensor.default(c) : f32[65536, 512] ~c
    output(wc)
  )",
                                "fsdp=4,cp=4,tp=4");
  CHECK_EQ(mesh.num_ranks(), 27);
}

TEST_CASE("what four ranks have one each of is as many as the ranks are") {
  const Mesh mesh = SmallerMesh(R"(
    x = placeholder : f32[1, 8192]
    a = _c10d_functional.all_gather_into_tensor.default(x, 4, 'cp') : f32[4, 8192]
    w = _c10d_functional.wait_tensor.default(a) : f32[4, 8192] ~a
    output(w)
  )",
                                "cp=4");
  CHECK_EQ(mesh.num_ranks(), 3);
}

TEST_CASE("experts that ranks gather index as many experts as they were chosen of") {
  const auto module = ParseBody(R"(
    scores = placeholder : f32[4096, 256]
    by_group = aten.view.default(scores, [4096, 8, 32]) : f32[4096, 8, 32] ~scores
    cosines = aten.cos.default(by_group) : f32[4096, 8, 32]
    all = aten.view.default(cosines, [4096, 256]) : f32[4096, 256] ~cosines
    (top, experts) = aten.topk.default(all, 8, -1, True, False) as chosen : (f32[4096, 8], i64[4096, 8])
    every = _c10d_functional.all_gather_into_tensor.default(experts, 16, 'tp') : i64[65536, 8]
    of_ranks = _c10d_functional.wait_tensor.default(every) : i64[65536, 8] ~every
    zeros = aten.zeros.default([65536, 256], dtype=torch.int64) : i64[65536, 256]
    hot = aten.scatter.value(zeros, 1, of_ranks, 1) : i64[65536, 256]
    perexpert = aten.sum.dim_IntList(hot, [0]) : i64[256]
    perrank = aten.view.default(perexpert, [64, 4]) : i64[64, 4] ~perexpert
    counts = aten.sum.dim_IntList(perrank, [1]) : i64[64]
    output([top, counts])
  )");
  Graph& graph = *module->FindGraph("g");
  Rewriter(graph).SetAttribute(graph.output(), kMeshAttribute, "fsdp=8,tp=16");
  const auto pair = OrDie(Reduce(graph, graph, {.stable_ids = true}));
  const auto experts_of = [&](std::string_view name) {
    const Graph& after = *pair.after;
    const Type& type = after.module().types()[after.value(ValueNamed(after, name)).type];
    return *after.module().dims().AsConst(type.sizes.back());
  };
  CHECK_EQ(experts_of("all"), experts_of("hot"));
}

TEST_CASE("parts of a size may be equal where ranks make their sum") {
  const Mesh mesh = SmallerMesh(R"(
    a = placeholder : f32[16, 1024]
    b = placeholder : f32[48, 1024]
    c = placeholder : f32[224, 1024]
    d = placeholder : f32[224, 1024]
    e = placeholder : f32[8, 1024]
    cd = aten.add.Tensor(c, d) : f32[224, 1024]
    all = aten.cat.default([a, b, cd, c]) : f32[512, 1024]
    g = _c10d_functional.all_gather_into_tensor.default(e, 64, 'fsdp') : f32[512, 1024]
    w = _c10d_functional.wait_tensor.default(g) : f32[512, 1024] ~g
    sum = aten.add.Tensor(all, w) : f32[512, 1024]
    output(sum)
  )",
                                "fsdp=64");
  CHECK_LT(mesh.num_ranks(), 8);
}

TEST_CASE("counts in another order than the ranks keep the group, of which each rank has one") {
  const auto right = Exchange(), wrong = Exchange(true);
  const auto pair = Reduce(*right->FindGraph("g"), *wrong->FindGraph("g"), {.stable_ids = true});
  CHECK_FALSE(pair.has_value());
  const Proof proof =
      ProvePass(*right->FindGraph("g"), *wrong->FindGraph("g"), {.stable_ids = true});
  CHECK_NE(proof.verdict, Verdict::kProven);
}

TEST_CASE("nodes that read data-dependent sizes are the same with others in their place") {
  const auto module = ParseBody(R"(
    x = placeholder : i64[]
    a = aten._local_scalar_dense.default(x) : Sym(u0)
    b = aten._local_scalar_dense.default(x) : Sym(u1)
    a2 = aten.zeros.default([a, 4]) : f32[2*u0, 4]
    b2 = aten.zeros.default([b, 4]) : f32[2*u1, 4]
    c2 = aten.zeros.default([b, 4]) : f32[2*u0, 4]
    output([a2, b2, c2])
  )");
  const Graph& graph = *module->FindGraph("g");
  NodeComparison nodes(graph, graph, [](ValueId, ValueId) { return true; });
  const auto is_same = [&](std::string_view from, std::string_view to) {
    return nodes.IsSame(NodeNamed(graph, from), NodeNamed(graph, to));
  };
  CHECK_FALSE(is_same("a2", "b2"));  // before it is known which size stands for which
  CHECK(is_same("a", "b"));
  CHECK(is_same("a2", "b2"));
  CHECK_FALSE(is_same("a2", "c2"));
  CHECK_FALSE(is_same("b2", "b2"));  // u1 stands for u0 already
}

}  // namespace
}  // namespace strata::prove
