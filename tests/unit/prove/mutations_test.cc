#include "prove/mutations/mutations.h"

#include <map>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "passes/placement/lowering/lower.h"
#include "passes/placement/place.h"
#include "tests/support/graphs.h"

namespace strata::prove {
namespace {

using testing::OrDie;
using testing::ParseBody;

constexpr std::string_view kMutatedStep = R"(
  w = placeholder : f32[8, 8][8, 1]cpu {+fqn='layers.0.a.weight' +input='parameter'}
  v = placeholder : f32[8, 8][8, 1]cpu {+fqn='layers.0.b.weight' +input='parameter'}
  x = placeholder : f32[8, 8][8, 1]cpu {+fqn='x' +input='batch'}
  m = aten.mm.default(x, w) : f32[8, 8][8, 1]cpu {forward module=layers.0.a}
  n = aten.mm.default(m, v) : f32[8, 8][8, 1]cpu {forward module=layers.0.b}
  h = aten.mul.Tensor(n, 0.5) : f32[8, 8][8, 1]cpu {forward module=layers.0.b}
  loss = aten.sum.default(h) : f32[][]cpu {loss module=loss}
  p = aten.pow.Tensor_Scalar(h, 2) : f32[8, 8][8, 1]cpu {backward module=layers.0.b}
  mt = aten.t.default(m) : f32[8, 8][1, 8]cpu ~m {backward module=layers.0.b}
  gv = aten.mm.default(mt, p) : f32[8, 8][8, 1]cpu {backward module=layers.0.b}
  vt = aten.t.default(v) : f32[8, 8][1, 8]cpu ~v {backward module=layers.0.b}
  q = aten.mm.default(p, vt) : f32[8, 8][8, 1]cpu {backward module=layers.0.b}
  xt = aten.t.default(x) : f32[8, 8][1, 8]cpu ~x {backward module=layers.0.a}
  gw = aten.mm.default(xt, q) : f32[8, 8][8, 1]cpu {backward module=layers.0.a}
  output([loss, gw, gv])
)";

TEST_CASE("mutations: no edit of a lowered step is proven, and findings are at their sites") {
  std::map<std::string_view, int> sites;
  int caught = 0, named = 0;
  for (const char* mesh : {"fsdp=2", "fsdp=3", "fsdp=4", "dp_replicate=2,fsdp=2", "fsdp=2,tp=2"}) {
    auto placed = ParseBody(kMutatedStep);
    OrDie(Place({.mesh = mesh, .plan = ""}).Run(*placed));
    const auto lowered = placed->Clone();
    OrDie(LowerPlacements().Run(*lowered));
    const Graph& before = *placed->FindGraph("g");
    const Graph& after = *lowered->FindGraph("g");
    for (const Mutation& mutation : Mutations()) {
      for (const NodeId node : after.nodes()) {
        const auto result = TryMutant(before, after, mutation, node, {.stable_ids = true});
        if (!result) continue;
        ++sites[mutation.name];
        CAPTURE(mesh);
        CAPTURE(mutation.name);
        CAPTURE(after.name(node));
        CAPTURE(result->node);
        CHECK(result->outcome != MutantOutcome::kEscaped);
        if (result->outcome != MutantOutcome::kCaught) continue;
        CHECK(result->is_near);
        ++caught;
        named += result->is_class_right ? 1 : 0;
      }
    }
  }
  CHECK_GE(10 * named, 9 * caught);
  for (const char* name :
       {"drop-all-reduce", "keep-own-part",     "repeat-own-part", "own-times-ranks",
        "reduce-twice",    "reduce-anything",   "sum-or-mean",     "sum-or-maximum",
        "other-group",     "first-part-of-sum", "reverse-gather",  "exchange-inputs",
        "other-value",     "other-operand",     "double-literal",  "times-ranks",
        "apply-twice",     "first-rank-only",   "factor-of-rank",  "input-of-rank",
        "drop-wait",       "write-in-flight",   "send-zeros",      "write-saved",
        "reduce-narrow",   "cast-before-sum"}) {
    CAPTURE(name);
    CHECK_GT(sites[name], 0);
  }
}

}  // namespace
}  // namespace strata::prove
