#include "passes/compile/place_casts.h"

#include <memory>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "ir/fingerprint.h"
#include "ir/verify.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::ParseBody;

/// The names of the nodes in order after the pass. The reported change must be correct.
std::string OrderAfter(std::string_view body) {
  const auto module = ParseBody(body);
  const Graph& graph = *module->FindGraph("g");
  const Fingerprint before = FingerprintOf(graph);
  const Changed changed = OrDie(PlaceCasts().Run(*module));
  CHECK_EQ(changed == Changed::kYes, FingerprintOf(graph) != before);
  CHECK_OK(Verify(*module));
  CHECK_EQ(OrDie(PlaceCasts().Run(*module)), Changed::kNo);
  std::string names;
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind == NodeKind::kCall) names += std::string(graph.name(node)) + " ";
  }
  return names;
}

TEST_CASE("a cast of an input moves to its first reader, a cast that is an output to its operand") {
  CHECK_EQ(OrderAfter(R"(
  x = placeholder : bf16[4, 4][4, 1]cpu
  v = placeholder : f32[4, 4][4, 1]cpu
  w = placeholder : f32[4, 4][4, 1]cpu
  hv = aten._to_copy.default(v, dtype=torch.bfloat16) : bf16[4, 4][4, 1]cpu
  hw = aten._to_copy.default(w, dtype=torch.bfloat16) : bf16[4, 4][4, 1]cpu
  a = aten.mm.default(x, hv) : bf16[4, 4][4, 1]cpu
  t = aten.t.default(hw) : bf16[4, 4][1, 4]cpu ~hw
  b = aten.mm.default(a, t) : bf16[4, 4][4, 1]cpu
  c = aten.mm.default(b, hv) : bf16[4, 4][4, 1]cpu
  fb = aten._to_copy.default(b, dtype=torch.float32) : f32[4, 4][4, 1]cpu
  fa = aten._to_copy.default(a, dtype=torch.float32) : f32[4, 4][4, 1]cpu
  output([c, fa, fb])
)"),
           "hv a fa hw t b fb c ");
}

TEST_CASE("casts of one position keep their order; a cast at its position stays") {
  CHECK_EQ(OrderAfter(R"(
  v = placeholder : f32[4, 4][4, 1]cpu
  w = placeholder : f32[4, 4][4, 1]cpu
  hv = aten._to_copy.default(v, dtype=torch.bfloat16) : bf16[4, 4][4, 1]cpu
  hw = aten._to_copy.default(w, dtype=torch.bfloat16) : bf16[4, 4][4, 1]cpu
  a = aten.mm.default(hv, hw) : bf16[4, 4][4, 1]cpu
  fa = aten._to_copy.default(a, dtype=torch.float32) : f32[4, 4][4, 1]cpu
  output([fa])
)"),
           "hv hw a fa ");
  // The next node after `b` is a cast that moves elsewhere.
  CHECK_EQ(OrderAfter(R"(
  x = placeholder : bf16[4, 4][4, 1]cpu
  a = aten.mm.default(x, x) : bf16[4, 4][4, 1]cpu
  b = aten.mm.default(a, x) : bf16[4, 4][4, 1]cpu
  fa = aten._to_copy.default(a, dtype=torch.float32) : f32[4, 4][4, 1]cpu
  fb = aten._to_copy.default(b, dtype=torch.float32) : f32[4, 4][4, 1]cpu
  output([fa, fb])
)"),
           "a fa b fb ");
}

TEST_CASE("casts of written memory, casts of casts and casts with other readers stay") {
  CHECK_EQ(OrderAfter(R"(
  w = placeholder : f32[4][1]cpu
  h = aten._to_copy.default(w, dtype=torch.bfloat16) : bf16[4][1]cpu
  s = aten.mul_.Tensor(w, 2.0) : f32[4][1]cpu ~w
  n = aten.neg.default(h) : bf16[4][1]cpu
  f = aten._to_copy.default(n, dtype=torch.float32) : f32[4][1]cpu
  d = aten._to_copy.default(f, dtype=torch.float64) : f64[4][1]cpu
  g = aten._to_copy.default(n, dtype=torch.float32) : f32[4][1]cpu
  e = aten.neg.default(s) : f32[4][1]cpu
  r = aten.abs.default(g) : f32[4][1]cpu
  output([d, e, r])
)"),
           "h s n f d g e r ");
}

}  // namespace
}  // namespace strata
