#include "scene/memory.h"

#include <string>

#include <doctest/doctest.h>

#include "scene/cost.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::ParseOrDie;

TEST_CASE("the lifetime of a value ends at its last reader, including readers of its views") {
  // Bytes: x 16, a 16, b 16, c 8. The view v keeps a alive until c.
  const auto module = ParseOrDie(R"(graph step
  x = placeholder : f32[4][1]cpu
  a = aten.neg.default(x) : f32[4][1]cpu
  v = aten.view.default(a, [2, 2]) : f32[2, 2][2, 1]cpu ~a
  b = aten.neg.default(x) : f32[4][1]cpu
  c = aten.sum.dim_IntList(v, [0]) : f32[2][1]cpu
  output([c])
)");
  const MemoryProfile profile = ProfileMemory(module->graph({0}));
  CHECK(profile.inputs == 16);
  CHECK(profile.live == std::vector<int64_t>{16, 32, 32, 48, 40, 24});
  CHECK(profile.peak == 48);
  CHECK(profile.peak_at == 3);
  CHECK(profile.unknown == 0);
  REQUIRE(profile.holders.size() == 3);
  CHECK(module->graph({0}).value_name(profile.holders[0].value) == "x");
}

TEST_CASE("what is copied to the host counts as nothing until it comes back") {
  const auto module = ParseOrDie(R"(graph step
  x = placeholder : f32[4][1]cpu
  a = aten.neg.default(x) : f32[4][1]cpu
  r = aten.relu.default(a) : f32[4][1]cpu
  o = ao.offload.default(a) : f32[4][1]cpu
  w = ao.wait_tensor.default(o, a, r) : f32[4][1]cpu ~o
  b = aten.neg.default(x) : f32[4][1]cpu
  g = ao.reload.default(w, device('cpu')) : f32[4][1]cpu
  v = ao.wait_tensor.default(g, w) : f32[4][1]cpu ~g
  c = aten.add.Tensor(v, b) : f32[4][1]cpu
  output([c])
)");
  const MemoryProfile profile = ProfileMemory(module->graph({0}));
  CHECK(profile.live == std::vector<int64_t>{16, 32, 48, 32, 32, 32, 48, 48, 64, 32});
}

TEST_CASE("aliases that a foreign text omits follow from the operators") {
  const auto module = ParseOrDie(R"(graph step
  x = placeholder : f32[4][1]cpu
  a = aten.neg.default(x) : f32[4][1]cpu
  t = aten.view.default(a, [2, 2]) : f32[2, 2][2, 1]cpu
  w = aten.add_.Tensor(t, x) : f32[2, 2][2, 1]cpu
  n = aten.neg.default(w)
  output([n])
)");
  const MemoryProfile profile = ProfileMemory(module->graph({0}));
  CHECK(profile.peak == 32);
  CHECK(profile.unknown == 1);  // n
}

TEST_CASE("a late placeholder is held from the start") {
  const auto module = ParseOrDie(R"(graph step
  x = placeholder : f32[4][1]cpu
  a = aten.neg.default(x) : f32[4][1]cpu
  y = placeholder : f32[8][1]cpu
  output([a, y])
)");
  const MemoryProfile profile = ProfileMemory(module->graph({0}));
  CHECK(profile.live == std::vector<int64_t>{48, 64, 64, 64});
  CHECK(profile.holders.size() == 3);
}

TEST_CASE("FLOPs equal those of PyTorch's counter") {
  // torch.utils.flop_counter: mm 2*4*8*3, addmm the same, bmm times its batch, attention
  // 2*(2*1*2*6*6*8); backward 2.5 times that when all widths are equal.
  const auto module = ParseOrDie(R"(graph step
  x = placeholder : f32[4, 8][8, 1]cpu
  w = placeholder : f32[8, 3][3, 1]cpu
  b = placeholder : f32[3][1]cpu
  p = placeholder : f32[5, 4, 8][32, 8, 1]cpu
  r = placeholder : f32[5, 8, 3][24, 3, 1]cpu
  q = placeholder : f32[1, 2, 6, 8][96, 48, 8, 1]cpu
  k = placeholder : f32[1, 2, 6, 8][96, 48, 8, 1]cpu
  v = placeholder : f32[1, 2, 6, 8][96, 48, 8, 1]cpu
  mm = aten.mm.default(x, w) : f32[4, 3][3, 1]cpu
  addmm = aten.addmm.default(b, x, w) : f32[4, 3][3, 1]cpu
  bmm = aten.bmm.default(p, r) : f32[5, 4, 3][12, 3, 1]cpu
  at = aten._scaled_dot_product_flash_attention_for_cpu.default(q, k, v)
  gr = aten._scaled_dot_product_flash_attention_for_cpu_backward.default(q, q, k, v, at)
  add = aten.add.Tensor(mm, addmm) : f32[4, 3][3, 1]cpu
  output([add, bmm, gr])
)");
  const Graph& graph = module->graph({0});
  std::vector<double> flops;
  for (NodeId id : graph.nodes()) {
    if (graph.node(id).kind == NodeKind::kCall) flops.push_back(FlopsOf(graph, id));
  }
  CHECK(flops == std::vector<double>{192, 192, 960, 2304, 5760, 0});
  CHECK(FlopsOf(graph) == 9408);
}

TEST_CASE("convolutions count both gradients, transposed convolutions slide over their input") {
  // Two images of 3 x 8 x 8, sixteen filters of 3 x 3 x 3, results 6 x 6.
  const auto module = ParseOrDie(R"(graph step
  x = placeholder : f32[2, 3, 8, 8][192, 64, 8, 1]cpu
  w = placeholder : f32[16, 3, 3, 3][27, 9, 3, 1]cpu
  g = placeholder : f32[2, 16, 6, 6][576, 36, 6, 1]cpu
  y = aten.convolution.default(x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1) : f32[2, 16, 6, 6][576, 36, 6, 1]cpu
  t = aten.convolution.default(g, w, None, [1, 1], [0, 0], [1, 1], True, [0, 0], 1) : f32[2, 3, 8, 8][192, 64, 8, 1]cpu
  b = aten.convolution_backward.default(g, x, w, [16], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, False])
  i = aten.convolution_backward.default(g, x, w, [16], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, False, False])
  output([y, t, b, i])
)");
  const Graph& graph = module->graph({0});
  const double one = 2.0 * 2 * 36 * 16 * 27;
  std::vector<double> flops;
  for (NodeId id : graph.nodes()) {
    if (graph.node(id).kind == NodeKind::kCall) flops.push_back(FlopsOf(graph, id));
  }
  CHECK(flops == std::vector<double>{one, one, 2 * one, one});
}

TEST_CASE("grouped products count each row or column once") {
  // Eight tokens in groups, each group with its own matrix.
  const auto module = ParseOrDie(R"(graph step
  a = placeholder : f32[8, 4][4, 1]cpu
  b = placeholder : f32[3, 4, 6][24, 6, 1]cpu
  ends = placeholder : i32[3][1]cpu
  y = aten._grouped_mm.default(a, b, ends) : f32[8, 6][6, 1]cpu
  c = placeholder : f32[3, 5, 4][20, 4, 1]cpu
  d = placeholder : f32[4, 9][9, 1]cpu
  z = aten._grouped_mm.default(c, d, ends) : f32[5, 9][9, 1]cpu
  output([y, z])
)");
  const Graph& graph = module->graph({0});
  std::vector<double> flops;
  for (NodeId id : graph.nodes()) {
    if (graph.node(id).kind == NodeKind::kCall) flops.push_back(FlopsOf(graph, id));
  }
  CHECK(flops == std::vector<double>{2.0 * 8 * 4 * 6, 2.0 * 5 * 4 * 9});
}

}  // namespace
}  // namespace strata
