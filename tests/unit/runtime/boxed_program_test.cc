#include "runtime/exec/boxed/boxed_program.h"

#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <doctest/doctest.h>

#include "passes/compile/fuse.h"
#include "runtime/exec/executor.h"
#include "tests/support/fake_cpu_device.h"
#include "tests/support/graphs.h"
#include "tests/support/replaying_fake_device.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using at::Tensor;
using testing::FakeCpuDevice;
using testing::MessageOf;
using testing::OrDie;
using testing::ParseBody;
using Tensors = std::vector<Tensor>;

constexpr std::string_view kSideStream = R"(
  x = placeholder : f32[4][1]cpu
  g = aten.neg.default(x) : f32[4][1]cpu {forward stream=1}
  a = aten.relu.default(x) : f32[4][1]cpu
  b = aten.mul.Tensor(a, g) : f32[4][1]cpu
  h = aten.exp.default(a) : f32[4][1]cpu {forward stream=1}
  c = aten.neg.default(b) : f32[4][1]cpu
  d = aten.add.Tensor(c, h) : f32[4][1]cpu
  output([d])
)";

Executor Bind(std::string_view body, Device* device) {
  return OrDie(Executor::Bind(OrDie(Lower(*ParseBody(body)->FindGraph("g"))), {}, {}, device));
}

Tensors Numbers(std::initializer_list<double> values) {
  return {at::tensor(std::vector<float>(values.begin(), values.end()))};
}

TEST_CASE("steps go to their streams; events are recorded and waited for where others need them") {
  FakeCpuDevice device;
  const Tensors x = Numbers({-1, 0.5, 2, 3});
  const Tensors expected = OrDie(Bind(kSideStream, nullptr).Run(x));
  Executor executor = Bind(kSideStream, &device);
  const Tensors actual = OrDie(executor.Run(x));
  CHECK(at::equal(actual[0], expected[0]));
  // Events: 0 after g, 1 after a, 2 after h, 3 before all.
  CHECK_EQ(device.log,
           "record3 stream1 wait3 record0 stream0 record1 wait0 stream1 wait1 record2 stream0 "
           "wait2 ");
  device.log.clear();
  CHECK_OK(executor.Run(x));
  CHECK_EQ(device.log.substr(0, 16), "record3 stream1 ");
}

TEST_CASE("an operator that fails is told with its place, and the next run is a fresh one") {
  FakeCpuDevice device;
  const auto module = ParseBody(R"(
  x = placeholder : f32[4]
  y = placeholder : f32[4]
  a = aten.view.default(x, [2, 2])
  b = aten.mm.default(a, y)
  output([b])
)");
  Executor executor = OrDie(Executor::Bind(OrDie(Lower(*module->FindGraph("g"))), {}, {}, &device));
  const Tensor four = at::ones({4});
  const std::string message = MessageOf(executor.Run(Tensors{four, four}));
  CHECK(message.starts_with("graph g failed: "));
  CHECK(message.find("aten.mm.default") != std::string::npos);
  CHECK(device.log.ends_with("stream0 synchronize "));
}

TEST_CASE("fused nodes are the device's kernels") {
  FakeCpuDevice device;
  const auto module = ParseBody(R"(
  x = placeholder : f32[6, 8][8, 1]cpu
  w = placeholder : f32[8][1]cpu
  a = aten.mul.Tensor(x, w) : f32[6, 8][8, 1]cpu
  b = aten.add.Tensor(a, w) : f32[6, 8][8, 1]cpu
  c = aten.neg.default(b) : f32[6, 8][8, 1]cpu
  output([c])
)");
  const Tensors inputs = {at::rand({6, 8}), at::rand({8})};
  const Tensors expected =
      OrDie(OrDie(Executor::Bind(OrDie(Lower(*module->FindGraph("g"))), {})).Run(inputs));
  CHECK(OrDie(Fuse().Run(*module)) == Changed::kYes);
  Plan plan = OrDie(Lower(*module->FindGraph("g")));
  REQUIRE_EQ(plan.kernels.size(), 1);
  Executor executor = OrDie(Executor::Bind(std::move(plan), {}, {}, &device));
  CHECK(at::equal(OrDie(executor.Run(inputs))[0], expected[0]));
  CHECK_EQ(device.num_launched, 1);
}

TEST_CASE("what an operator lays out otherwise than was traced is laid out as traced") {
  FakeCpuDevice device;
  // The trace says that the sum lies by columns, as another device's kernel might leave it.
  const std::string_view body = R"(
  x = placeholder : f32[2, 3][3, 1]cpu
  a = aten.neg.default(x) : f32[2, 3][1, 2]cpu
  t = aten.t.default(a) : f32[3, 2][2, 1]cpu ~a
  b = aten.view.default(t, [6]) : f32[6][1]cpu ~t
  output([b])
)";
  const Tensor x = at::arange(6, at::kFloat).view({2, 3});
  const Tensors actual = OrDie(Bind(body, &device).Run(Tensors{x}));
  CHECK(at::equal(actual[0], x.neg().t().contiguous().view({6})));
}

constexpr std::string_view kCaptured = R"(
  w = placeholder : f32[4][1]cpu {+input='parameter'}
  x = placeholder : f32[4][1]cpu {+input='batch'}
  a = aten.mul.Tensor(w, x) : f32[4][1]cpu {forward module=attn}
  b = aten.neg.default(a) : f32[4][1]cpu {forward module=attn}
  c = aten.exp.default(b) : f32[4][1]cpu {forward module=ffn}
  output([c]) {+cuda_graph='full'}
)";

TEST_CASE("a plan that can be captured warms up, captures, and is replayed with copied inputs") {
  FakeCpuDevice device;
  Executor executor = Bind(kCaptured, &device);
  const bool is_whole = executor.plan().capture == Capture::kWhole;
  REQUIRE(is_whole);
  REQUIRE(executor.plan().inputs[0].is_static);
  REQUIRE_FALSE(executor.plan().inputs[1].is_static);
  const Tensor w = at::rand({4}), first = at::rand({4}), second = at::rand({4}),
               third = at::rand({4});
  const auto expected = [&](const Tensor& x) { return w.mul(x).neg().exp(); };

  const Tensors warm = OrDie(executor.Run(Tensors{w, first}));
  CHECK_EQ(device.log, "enter leave ");
  CHECK(at::equal(warm[0], expected(first)));
  CHECK_FALSE(executor.reuses_outputs());

  device.log.clear();
  const Tensor kept = second.clone();
  const Tensors captured = OrDie(executor.Run(Tensors{w, kept}));
  CHECK_EQ(device.log, "enter begin end leave replay ");
  CHECK(at::equal(captured[0], expected(second)));
  CHECK(executor.reuses_outputs());

  device.log.clear();
  const Tensors replayed = OrDie(executor.Run(Tensors{w, third}));
  CHECK_EQ(device.log, "copy replay ");
  CHECK(at::equal(kept, third));  // where the graph reads
  CHECK(replayed[0].is_same(captured[0]));
  CHECK_EQ(MessageOf(executor.Run(Tensors{w.clone(), third})),
           "input 0 of a captured run is static and has moved");
}

TEST_CASE("replays compute the bits of the streams, whatever the inputs") {
  testing::ReplayingFakeDevice device;
  Executor streams = Bind(kCaptured, nullptr), graph = Bind(kCaptured, &device);
  const Tensor w = at::rand({4});
  for (int run = 0; run < 6; ++run) {
    INFO("run ", run);
    const Tensors inputs = {w, at::rand({4})};
    const Tensor expected = OrDie(streams.Run(inputs))[0];
    CHECK(at::equal(OrDie(graph.Run(inputs))[0], expected));
  }
}

TEST_CASE("what a replayed graph writes to an input reaches the caller's tensor") {
  testing::ReplayingFakeDevice device;
  const std::string_view body = R"(
  x = placeholder : f32[4][1]cpu {+input='gradient'}
  y = placeholder : f32[4][1]cpu {+input='gradient'}
  a = aten.add_.Tensor(x, y) : f32[4][1]cpu ~x
  output([]) {+cuda_graph='full'}
)";
  Executor graph = Bind(body, &device);
  for (int run = 0; run < 4; ++run) {
    INFO("run ", run);
    const Tensor x = at::rand({4}), y = at::rand({4}), expected = x.add(y);
    CHECK_OK(graph.Run(Tensors{x, y}));
    CHECK(at::equal(x, expected));
  }
}

TEST_CASE("a plan in pieces captures each of them, with what lies between them run every time") {
  testing::ReplayingFakeDevice device;
  // The second piece reads a value with gaps; x is read by both, u is written for the caller.
  const std::string_view body = R"(
  w = placeholder : f32[4][1]cpu {+input='parameter'}
  x = placeholder : f32[4][1]cpu {+input='batch'}
  a = aten.mul.Tensor(w, x) : f32[4][1]cpu {forward module=attn}
  s = aten.add_.Tensor(w, a) : f32[4][1]cpu ~w
  n = aten.cumsum.default(a, 0) : f32[4][1]cpu {+cuda_graph='outside'}
  m = aten.slice.Tensor(n, 0, 0, 4, 2) : f32[2][2]cpu ~n {+cuda_graph='outside'}
  b = aten.neg.default(m) : f32[2][1]cpu {forward module=ffn}
  c = aten.cat.default([b, x]) : f32[6][1]cpu {forward module=ffn}
  output([a, c]) {+cuda_graph='pieces'}
)";
  Executor steps = Bind(body, nullptr), graph = Bind(body, &device);
  const Tensor w = at::rand({4}), other = w.clone();
  for (int run = 0; run < 6; ++run) {
    INFO("run ", run);
    const Tensor x = at::rand({4});
    device.log.clear();
    const Tensors expected = OrDie(steps.Run(Tensors{w, x})),
                  actual = OrDie(graph.Run(Tensors{other, x}));
    REQUIRE_EQ(actual.size(), 2);
    CHECK(at::equal(actual[0], expected[0]));
    CHECK(at::equal(actual[1], expected[1]));
    CHECK(at::equal(other, w));
    CHECK_EQ(graph.reuses_outputs(), run > 0);
    if (run == 1)
      CHECK_EQ(device.log, "enter begin end leave replay enter begin end leave replay ");
    if (run > 1) CHECK_EQ(device.log, "copy replay copy copy replay ");
  }
}

/// Counts each operator as one node of the graph that is captured.
class CountingDouble final : public FakeCpuDevice {
 public:
  int64_t NumRecorded() override { return ++num_recorded; }
};

TEST_CASE("KA-1: nodes of a captured graph are annotated with the modules that issued them") {
  CountingDouble device;
  Executor executor = Bind(kCaptured, &device);
  const Tensor w = at::rand({4}), x = at::rand({4});
  CHECK_OK(executor.Run(Tensors{w, x}));
  CHECK(executor.annotations().empty());
  CHECK_OK(executor.Run(Tensors{w, x}));
  const std::vector<KernelAnnotation> expected = {{.module = "attn", .first = 0, .last = 2},
                                                  {.module = "ffn", .first = 2, .last = 3}};
  const bool is_equal = executor.annotations() == expected;
  CHECK(is_equal);
}

TEST_CASE("a capture that fails ends before the failure is told, and is tried again") {
  FakeCpuDevice device;
  const std::string_view body = R"(
  x = placeholder : f32[4]
  i = placeholder : i64[1]
  a = aten.index_select.default(x, 0, i)
  output([a]) {+cuda_graph='full'}
)";
  Executor executor = Bind(body, &device);
  const Tensor x = at::ones({4}), good = at::zeros({1}, at::kLong), bad = good.add(7);
  CHECK_OK(executor.Run(Tensors{x, good}));
  device.log.clear();
  CHECK(MessageOf(executor.Run(Tensors{x, bad})).starts_with("graph g failed: "));
  CHECK_EQ(device.log, "enter begin end leave destroy0 stream0 synchronize ");
  device.log.clear();
  CHECK_OK(executor.Run(Tensors{x, good}));
  CHECK_EQ(device.log, "enter begin end leave replay ");
}

}  // namespace
}  // namespace strata
