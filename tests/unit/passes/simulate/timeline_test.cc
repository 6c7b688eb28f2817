#include "passes/simulate/timeline.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/verify.h"
#include "passes/comm/overlap.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/topologies.h"
#include "tests/unit/passes/simulate/microseconds.h"

namespace strata {
namespace {

using testing::BodyOf;
using testing::MessageOf;
using testing::OrDie;
using testing::ParseBody;
using testing::Us;

Timeline TimelineOf(const Module& module) {
  const Graph& graph = *module.FindGraph("g");
  const Topology topology = OrDie(Topology::Parse(testing::kSlowTopology, "t.toml", "t"));
  return OrDie(Simulate(graph, OrDie(NodeCost::Make(topology, graph))));
}
Timeline TimelineOf(std::string_view body) {
  return TimelineOf(*ParseBody(body));
}

TEST_CASE("simulate: computation hides a part of a collective, and waits for the remainder") {
  const Timeline timeline = TimelineOf(R"(
  p = placeholder : f32[4][1]cpu
  x = placeholder : f32[8][1]cpu
  g = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp') : f32[8][1]cpu
  a = aten.relu.default(x) : f32[8][1]cpu
  b = aten.relu.default(a) : f32[8][1]cpu
  w = _c10d_functional.wait_tensor.default(g) : f32[8][1]cpu ~g
  v = aten.view.default(w, [8]) : f32[8][1]cpu ~g
  c = aten.add.Tensor(b, v) : f32[8][1]cpu
  output([c])
)");
  CHECK_EQ(timeline.step_us, Us(40));
  CHECK_EQ(timeline.compute_us, Us(30));
  CHECK_EQ(timeline.busy_us(), Us(30));
  CHECK_EQ(timeline.exposed_us(), Us(10));
  REQUIRE_EQ(timeline.groups.size(), 1);
  CHECK_EQ(timeline.groups[0].group, "fsdp");
  CHECK_EQ(timeline.groups[0].bytes, 32);
  CHECK_EQ(timeline.streams, std::vector<std::string>{"compute", "fsdp"});
  REQUIRE_EQ(timeline.events.size(), 5);  // three kernels, an idle time, the collective
  CHECK(timeline.events[2].is_idle);
  CHECK_EQ(timeline.events[2].start_us, Us(20));
}

TEST_CASE("simulate: a kernel that writes its inputs is computed, with the functions of its body") {
  const auto module = testing::ParseOrDie(R"(graph g
  x = placeholder : f32[1000][1]cpu
  kernel = attr kernel(graph(1))
  (y,) = strata.fused.default(kernel, x) as k : (f32[1000][1]cpu,) ~(x,)
  output([y])
graph kernel body
  x = placeholder : f32[1000][1]cpu
  e = aten.exp.default(x) : f32[1000][1]cpu
  s = aten.silu.default(e) : f32[1000][1]cpu
  z = aten.add_.Tensor(x, s) : f32[1000][1]cpu ~x
  output([z])
)");
  const Graph& graph = *module->FindGraph("g");
  Topology topology = OrDie(Topology::Parse(testing::kSlowTopology, "t.toml", "t"));
  const auto us = [&] {
    return OrDie(NodeCost::Make(topology, graph)).ComputeUs(graph, testing::NodeNamed(graph, "k"));
  };
  CHECK_GT(us(), 0);
  topology.device.functions_per_us = {{"exp", 0.1}, {"silu", 0.5}};
  CHECK_EQ(us(), Us(10'000 + 2'000));
  topology.device.functions_per_us = {};
  topology.device.state_bytes_per_us = 4;  // the input, read and written
  CHECK_EQ(us(), Us(2'000));
}

TEST_CASE("simulate: collectives of one group follow each other, those of two share the links") {
  const auto two = [](std::string_view second) {
    return TimelineOf(fmt::format(R"(
  p = placeholder : f32[4][1]cpu
  g = _c10d_functional.all_gather_into_tensor.default(p, 2, 'a') : f32[8][1]cpu
  h = _c10d_functional.all_gather_into_tensor.default(p, 2, '{}') : f32[8][1]cpu
  w = _c10d_functional.wait_tensor.default(g) : f32[8][1]cpu ~g
  r = aten.relu.default(w) : f32[8][1]cpu
  v = _c10d_functional.wait_tensor.default(h) : f32[8][1]cpu ~h
  s = aten.add.Tensor(r, v) : f32[8][1]cpu
  output([s])
)",
                                  second));
  };
  const Timeline serial = two("a");
  CHECK_EQ(serial.step_us, Us(30 + 30 + 10));
  CHECK_EQ(serial.exposed_us(), Us(30 + 20));
  const Timeline shared = two("b");
  CHECK_EQ(shared.step_us, Us(60 + 10 + 10));
  CHECK_EQ(shared.groups.size(), 2);
}

TEST_CASE("simulate: a collective that nothing waits for ends with the step") {
  const Timeline timeline = TimelineOf(R"(
  x = placeholder : f32[8][1]cpu
  a = aten.relu.default(x) : f32[8][1]cpu
  g = _c10d_functional.all_reduce.default(a, 'sum', 'dp') : f32[8][1]cpu
  output([g])
)");
  CHECK_EQ(timeline.step_us, Us(40));
  CHECK_EQ(timeline.exposed_us(), Us(0));
}

TEST_CASE("simulate: products take the time of their floating-point operations") {
  const Timeline timeline = TimelineOf(R"(
  a = placeholder : f32[1000, 1000][1000, 1]cpu
  b = placeholder : f32[1000, 1000][1000, 1]cpu
  m = aten.mm.default(a, b) : f32[1000, 1000][1000, 1]cpu
  output([m])
)");
  CHECK_EQ(timeline.step_us, Us(2e9 / 1e6));  // 1 TFLOP/s are 1e6 operations per µs
}

constexpr std::string_view kLate = R"(
  p = placeholder : f32[4][1]cpu {+input='parameter'}
  q = placeholder : f32[4][1]cpu {+input='parameter'}
  x = placeholder : f32[8][1]cpu {+input='batch'}
  a = aten.relu.default(x) : f32[8][1]cpu {forward}
  b = aten.relu.default(a) : f32[8][1]cpu {forward}
  c = aten.relu.default(b) : f32[8][1]cpu {forward}
  d = aten.relu.default(c) : f32[8][1]cpu {forward}
  g = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp') : f32[8][1]cpu {forward}
  w = _c10d_functional.wait_tensor.default(g) : f32[8][1]cpu ~g {forward}
  e = aten.add.Tensor(d, w) : f32[8][1]cpu {forward}
  r = _c10d_functional.reduce_scatter_tensor.default(e, 'sum', 2, 'fsdp') : f32[4][1]cpu {backward}
  v = _c10d_functional.wait_tensor.default(r) : f32[4][1]cpu ~r {backward}
  h = aten.relu.default(e) : f32[8][1]cpu {backward}
  i = aten.relu.default(h) : f32[8][1]cpu {backward}
  j = aten.relu.default(i) : f32[8][1]cpu {backward}
  k = aten.relu.default(j) : f32[8][1]cpu {backward}
  output([k, v])
)";

TEST_CASE("overlap-collectives: gathers are launched in time, reductions awaited when they end") {
  auto module = ParseBody(kLate);
  CHECK_EQ(TimelineOf(*module).exposed_us(), Us(60));
  CHECK_EQ(OrDie(OverlapCollectives({.topology = "cpu", .max_ahead_mb = 1}).Run(*module)),
           Changed::kYes);
  CHECK_OK(Verify(*module));
  CHECK_EQ(TimelineOf(*module).exposed_us(), Us(0));
}

TEST_CASE("overlap-collectives: an unknown topology is an error") {
  CHECK_NE(
      MessageOf(OverlapCollectives({.topology = "abacus"}).Run(*ParseBody(kLate))).find("abacus"),
      std::string::npos);
}

}  // namespace
}  // namespace strata
