#include "passes/comm/bucket_by_size.h"

#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/verify.h"
#include "passes/core/collectives.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::ParseBody;

/// The number of elements of each all-gather's result after the pass, in program order. Each of
/// `parameters` has 100 elements, 400 bytes, and is gathered from 2 ranks.
std::string GatheredAfter(int parameters, double max_mb) {
  std::string body = "\n", calls, outputs;
  for (int i = 0; i < parameters; ++i) {
    body += fmt::format("  p{} = placeholder : f32[100][1]cpu {{+input='parameter'}}\n", i);
    calls += fmt::format(
        "  g{0} = _c10d_functional.all_gather_into_tensor.default(p{0}, 2, 'fsdp') : "
        "f32[200][1]cpu {{forward}}\n"
        "  w{0} = _c10d_functional.wait_tensor.default(g{0}) : f32[200][1]cpu ~g{0} {{forward}}\n"
        "  n{0} = aten.neg.default(w{0}) : f32[200][1]cpu {{forward}}\n",
        i);
    outputs += fmt::format("{}n{}", i == 0 ? "" : ", ", i);
  }
  auto module = ParseBody(body + calls + "  output([" + outputs + "])\n");
  OrDie(BucketBySize({.max_mb = max_mb, .reorder = true}).Run(*module));
  CHECK_OK(Verify(*module));
  const Graph& graph = *module->FindGraph("g");
  std::string sizes;
  for (const NodeId node : graph.nodes()) {
    if (!IsCollective(graph, node, CollectiveKind::kAllGather)) continue;
    const Type& type = graph.module().types()[graph.value(graph.result(node)).type];
    sizes += fmt::format("{} ", *graph.module().dims().AsConst(type.sizes[0]));
  }
  return sizes;
}

TEST_CASE("T104: neighbours are merged while they fit") {
  CHECK_EQ(GatheredAfter(5, 1600e-6), "400 400 200 ");  // 800 bytes each
  CHECK_EQ(GatheredAfter(5, 2399e-6), "400 400 200 ");
  CHECK_EQ(GatheredAfter(5, 2400e-6), "600 400 ");
  CHECK_EQ(GatheredAfter(5, 2000), "1000 ");
}

TEST_CASE("bucket-by-size: a collective that is larger than a bucket stays alone") {
  CHECK_EQ(GatheredAfter(3, 100e-6), "200 200 200 ");
}

}  // namespace
}  // namespace strata
