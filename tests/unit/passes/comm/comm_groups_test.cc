// Passes on which collectives there are, and which groups they use.

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "ir/verify.h"
#include "passes/comm/dedup_unshards.h"
#include "passes/comm/isolate_experts.h"
#include "passes/comm/reassign_groups.h"
#include "passes/placement/mesh.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::BodyOf;
using testing::OrDie;
using testing::ParseBody;

template <class P>
std::string After(P pass, std::string_view body, Changed expected = Changed::kYes) {
  auto module = ParseBody(body);
  CHECK_EQ(OrDie(pass.Run(*module)), expected);
  CHECK_OK(Verify(*module));
  CHECK_EQ(OrDie(pass.Run(*module)), Changed::kNo);
  return BodyOf(*module);
}

TEST_CASE("DD-1: a parameter that is read twice is gathered once") {
  constexpr std::string_view kTwice = R"(
  w = placeholder : f32[2][1]cpu
  g0 = _c10d_functional.all_gather_into_tensor.default(w, 2, 'pg') : f32[4][1]cpu
  w0 = _c10d_functional.wait_tensor.default(g0) : f32[4][1]cpu ~g0
  v0 = aten.view.default(w0, [4]) : f32[4][1]cpu ~g0
  g1 = _c10d_functional.all_gather_into_tensor.default(w, 2, 'pg') : f32[4][1]cpu
  w1 = _c10d_functional.wait_tensor.default(g1) : f32[4][1]cpu ~g1
  v1 = aten.view.default(w1, [4]) : f32[4][1]cpu ~g1
  s = aten.add.Tensor(v0, v1) : f32[4][1]cpu
  output([s])
)";
  CHECK_EQ(After(DedupUnshards({}), kTwice), R"(
  w = placeholder
  g0 = _c10d_functional.all_gather_into_tensor.default(w, 2, 'pg')
  w0 = _c10d_functional.wait_tensor.default(g0)
  v0 = aten.view.default(w0, [4])
  v1 = aten.view.default(w0, [4])
  s = aten.add.Tensor(v0, v1)
  output([s])
)");
  auto module = ParseBody(kTwice);
  OrDie(DedupUnshards({}).Run(*module));
  const Graph& graph = *module->FindGraph("g");
  CHECK_EQ(graph.value(testing::ValueNamed(graph, "v1")).alias_of,
           testing::ValueNamed(graph, "g0"));
}

constexpr std::string_view kThrice = R"(
  w = placeholder
  x = placeholder
  g0 = _c10d_functional.all_gather_into_tensor.default(w, 2, 'pg') {forward}
  w0 = _c10d_functional.wait_tensor.default(g0) {forward}
  m0 = aten.mm.default(x, w0) {forward}
  g1 = _c10d_functional.all_gather_into_tensor.default(w, 2, 'pg') {forward}
  w1 = _c10d_functional.wait_tensor.default(g1) {forward}
  m1 = aten.mm.default(m0, w1) {forward}
  g2 = _c10d_functional.all_gather_into_tensor.default(w, 2, 'pg') {backward}
  w2 = _c10d_functional.wait_tensor.default(g2) {backward}
  m2 = aten.mm.default(m1, w2) {backward}
  output([m2])
)";

TEST_CASE("DD-2: reads of one phase share a gather, and those of both if that is wanted") {
  CHECK_EQ(After(DedupUnshards({}), kThrice), R"(
  w = placeholder
  x = placeholder
  g0 = _c10d_functional.all_gather_into_tensor.default(w, 2, 'pg')
  w0 = _c10d_functional.wait_tensor.default(g0)
  m0 = aten.mm.default(x, w0)
  m1 = aten.mm.default(m0, w0)
  g2 = _c10d_functional.all_gather_into_tensor.default(w, 2, 'pg')
  w2 = _c10d_functional.wait_tensor.default(g2)
  m2 = aten.mm.default(m1, w2)
  output([m2])
)");
  CHECK_EQ(After(DedupUnshards({.across_phases = true}), kThrice), R"(
  w = placeholder
  x = placeholder
  g0 = _c10d_functional.all_gather_into_tensor.default(w, 2, 'pg')
  w0 = _c10d_functional.wait_tensor.default(g0)
  m0 = aten.mm.default(x, w0)
  m1 = aten.mm.default(m0, w0)
  m2 = aten.mm.default(m1, w0)
  output([m2])
)");
}

TEST_CASE("DD-3: chains that cast to two types, or use two groups, stay two") {
  constexpr std::string_view kTypes = R"(
  w = placeholder
  x = placeholder
  c0 = aten._to_copy.default(w, dtype=torch.bfloat16)
  g0 = _c10d_functional.all_gather_into_tensor.default(c0, 2, 'pg')
  w0 = _c10d_functional.wait_tensor.default(g0)
  c1 = aten._to_copy.default(w, dtype=torch.float16)
  g1 = _c10d_functional.all_gather_into_tensor.default(c1, 2, 'pg')
  w1 = _c10d_functional.wait_tensor.default(g1)
  g2 = _c10d_functional.all_gather_into_tensor.default(w, 2, 'pg')
  w2 = _c10d_functional.wait_tensor.default(g2)
  g3 = _c10d_functional.all_gather_into_tensor.default(w, 2, 'other')
  w3 = _c10d_functional.wait_tensor.default(g3)
  m = aten.addcmul.default(w0, w1, w2)
  n = aten.add.Tensor(m, w3)
  output([n])
)";
  CHECK_EQ(After(DedupUnshards({}), kTypes, Changed::kNo), BodyOf(*ParseBody(kTypes)));
}

/// A parameter of FSDP on each of two groups, a gather of activations, a gradient, an exchange.
constexpr std::string_view kGroups = R"(
  p = placeholder
  q = placeholder
  x = placeholder
  y = placeholder
  c = aten._to_copy.default(p, dtype=torch.bfloat16)
  g0 = _c10d_functional.all_gather_into_tensor.default(c, 8, 'fsdp')
  w0 = _c10d_functional.wait_tensor.default(g0)
  g1 = _c10d_functional.all_gather_into_tensor.default(q, 2, 'efsdp')
  w1 = _c10d_functional.wait_tensor.default(g1)
  m = aten.mm.default(x, w0)
  n = aten.mm.default(m, w1)
  g2 = _c10d_functional.all_gather_into_tensor.default(n, 8, 'fsdp')
  w2 = _c10d_functional.wait_tensor.default(g2)
  g3 = _c10d_functional.all_gather_into_tensor.default(n, 4, 'tp')
  w3 = _c10d_functional.wait_tensor.default(g3)
  e = _c10d_functional.all_to_all_single.default(n, [2, 2], [2, 2], 'fsdp')
  we = _c10d_functional.wait_tensor.default(e)
  r = _c10d_functional.reduce_scatter_tensor.default(n, 'sum', 8, 'fsdp')
  wr = _c10d_functional.wait_tensor.default(r)
  output([w2, w3, we, wr])
)";

TEST_CASE("PG-1, PG-2, PG-3: all all-gathers of groups of parameters move, and nothing else") {
  const std::string after = After(ReassignGroups(), kGroups);
  CHECK_EQ(after, R"(
  p = placeholder
  q = placeholder
  x = placeholder
  y = placeholder
  c = aten._to_copy.default(p, dtype=torch.bfloat16)
  g0 = _c10d_functional.all_gather_into_tensor.default(c, 8, 'fsdp#ag')
  w0 = _c10d_functional.wait_tensor.default(g0)
  g1 = _c10d_functional.all_gather_into_tensor.default(q, 2, 'efsdp#ag')
  w1 = _c10d_functional.wait_tensor.default(g1)
  m = aten.mm.default(x, w0)
  n = aten.mm.default(m, w1)
  g2 = _c10d_functional.all_gather_into_tensor.default(n, 8, 'fsdp#ag')
  w2 = _c10d_functional.wait_tensor.default(g2)
  g3 = _c10d_functional.all_gather_into_tensor.default(n, 4, 'tp')
  w3 = _c10d_functional.wait_tensor.default(g3)
  e = _c10d_functional.all_to_all_single.default(n, [2, 2], [2, 2], 'fsdp')
  we = _c10d_functional.wait_tensor.default(e)
  r = _c10d_functional.reduce_scatter_tensor.default(n, 'sum', 8, 'fsdp')
  wr = _c10d_functional.wait_tensor.default(r)
  output([w2, w3, we, wr])
)");
}

TEST_CASE("PG-4: a graph that gathers no parameter stays as it is") {
  constexpr std::string_view kActivations = R"(
  x = placeholder
  y = placeholder
  n = aten.add.Tensor(x, y)
  g = _c10d_functional.all_gather_into_tensor.default(n, 4, 'tp')
  w = _c10d_functional.wait_tensor.default(g)
  output([w])
)";
  CHECK_EQ(After(ReassignGroups(), kActivations, Changed::kNo), BodyOf(*ParseBody(kActivations)));
}

TEST_CASE("PG-5, EP-2: exchanges leave a group that they share with reductions") {
  auto module = ParseBody(kGroups);
  OrDie(ReassignGroups().Run(*module));
  OrDie(IsolateExpertGroups().Run(*module));
  const std::string after = BodyOf(*module);
  CHECK_NE(after.find("all_gather_into_tensor.default(c, 8, 'fsdp#ag')"), std::string::npos);
  CHECK_NE(after.find("all_to_all_single.default(n, [2, 2], [2, 2], 'fsdp#ep')"),
           std::string::npos);
  CHECK_NE(after.find("reduce_scatter_tensor.default(n, 'sum', 8, 'fsdp')"), std::string::npos);
}

TEST_CASE("EP-1: a group of experts with a name of its own stays") {
  constexpr std::string_view kOwn = R"(
  p = placeholder
  t = placeholder
  g = _c10d_functional.all_gather_into_tensor.default(p, 8, 'fsdp')
  w = _c10d_functional.wait_tensor.default(g)
  e = _c10d_functional.all_to_all_single.default(t, [2, 2], [2, 2], 'ep')
  we = _c10d_functional.wait_tensor.default(e)
  output([w, we])
)";
  CHECK_EQ(After(IsolateExpertGroups(), kOwn, Changed::kNo), BodyOf(*ParseBody(kOwn)));
}

TEST_CASE("a communicator with a purpose has the ranks of its group") {
  const Mesh mesh = OrDie(Mesh::Parse("dp_replicate=2,fsdp=2"));
  CHECK_EQ(OrDie(mesh.GroupOf("fsdp#ag", 3)), OrDie(mesh.GroupOf("fsdp", 3)));
  CHECK_EQ(OrDie(mesh.GroupOf("dp_replicate+fsdp#ag", 3)),
           OrDie(mesh.GroupOf("dp_replicate+fsdp", 3)));
}

}  // namespace
}  // namespace strata
