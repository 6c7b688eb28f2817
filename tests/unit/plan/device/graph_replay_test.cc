#include "runtime/plan/device/graph_replay.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/support/fake_device.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::FakeDevice;
using testing::MessageOf;

/// y = weight * x + bias; the weight stays where it is, the bias is a number.
struct Program {
  FakeDevice device;
  ReplayManager manager{device};
  int64_t weight = 3, y = 0;
  CapturedRun run{
      manager, {0}, [this](std::span<const ReplayInput> inputs) {
        const auto* w = static_cast<int64_t*>(std::get<DeviceBuffer>(inputs[0]).address);
        const auto* x = static_cast<int64_t*>(std::get<DeviceBuffer>(inputs[1]).address);
        const int64_t bias = std::get<int64_t>(inputs[2]);
        device.Issue([this, w, x, bias] { y = *w * *x + bias; });
        return Result<std::vector<DeviceBuffer>>({{&y, 8}});
      }};

  static DeviceBuffer At(int64_t& number) { return {&number, 8}; }
  Result<std::vector<DeviceBuffer>> Call(int64_t& x, int64_t bias = 1) {
    return run.Call(std::vector<ReplayInput>{At(weight), At(x), bias});
  }
};

TEST_CASE(
    "CG-7: the first call warms up, the second captures and replays, later ones copy and replay") {
  Program program;
  int64_t a = 10, b = 20, c = 30;
  CHECK_OK(program.Call(a));
  CHECK_EQ(program.device.log, "enter leave ");
  CHECK_EQ(program.y, 31);

  program.device.log.clear();
  const auto second = program.Call(b);
  REQUIRE(second.has_value());
  CHECK_EQ(program.device.log, "enter begin end leave replay ");
  CHECK_EQ(program.y, 61);

  program.device.log.clear();
  program.weight = 4;  // static: read where it lies
  const auto third = program.Call(c);
  REQUIRE(third.has_value());
  CHECK_EQ(program.device.log, "copy replay ");
  CHECK_EQ(program.y, 121);
  CHECK_EQ(third->front(), second->front());
  CHECK_EQ(b, 30);  // the memory of the second call's input is the graph's
}

TEST_CASE(
    "CG-7, CG-8: errors name the index of inputs that moved, and of other sizes and numbers") {
  Program program;
  int64_t x = 10, other = 5;
  CHECK_OK(program.Call(x));
  CHECK_OK(program.Call(x));
  const auto message = [&](std::vector<ReplayInput> inputs) {
    return MessageOf(program.run.Call(inputs));
  };
  CHECK_EQ(message({Program::At(other), Program::At(x), int64_t{1}}),
           "input 0 of a captured run is static and has moved");
  CHECK_EQ(message({Program::At(program.weight), DeviceBuffer{&x, 4}, int64_t{1}}),
           "input 1 of a captured run has 4 bytes, not 8");
  CHECK_EQ(message({Program::At(program.weight), Program::At(x), int64_t{2}}),
           "input 2 of a captured run is a number that was captured as another: make it a tensor");
  CHECK_EQ(message({Program::At(program.weight), Program::At(x), 1.0}),
           "input 2 of a captured run is of another kind than when it was captured");
  CHECK_EQ(message({Program::At(program.weight)}), "a captured run has 3 inputs, not 1");
  CHECK_OK(program.Call(x));
}

TEST_CASE("inputs that change places after the capture are an error, not each other's numbers") {
  FakeDevice device;
  ReplayManager manager(device);
  CapturedRun run(manager, {}, [](std::span<const ReplayInput>) {
    return Result<std::vector<DeviceBuffer>>(std::vector<DeviceBuffer>());
  });
  int64_t x = 1, y = 2, z = 3;
  const auto call = [&](int64_t& a, int64_t& b) {
    return run.Call(std::vector<ReplayInput>{Program::At(a), Program::At(b)});
  };
  CHECK_OK(call(x, y));
  CHECK_OK(call(x, y));
  CHECK_EQ(MessageOf(call(y, x)),
           "input 0 of a captured run lies where it was captured with another, which is written "
           "over: give a copy");
  CHECK_EQ(x, 1);
  CHECK_OK(call(z, y));
  CHECK_EQ(x, 3);
}

TEST_CASE("a capture that fails ends, frees its graph, and is tried again") {
  FakeDevice device;
  ReplayManager manager(device);
  bool fails = false;
  CapturedRun run(manager, {},
                  [&](std::span<const ReplayInput>) -> Result<std::vector<DeviceBuffer>> {
                    if (fails) return Error("no");
                    return std::vector<DeviceBuffer>{};
                  });
  CHECK_OK(run.Call({}));
  fails = true;
  device.log.clear();
  CHECK_EQ(MessageOf(run.Call({})), "no");
  CHECK_EQ(device.log, "enter begin end leave destroy0 ");
  fails = false;
  CHECK_OK(run.Call({}));
  CHECK(run.state() == CapturedRun::State::kCaptured);
}

TEST_CASE("teardown drops every graph once; later calls are errors") {
  Program program;
  int64_t x = 1;
  CHECK_OK(program.Call(x));
  CHECK_OK(program.Call(x));
  program.device.log.clear();
  CHECK(program.manager.TearDown());
  CHECK_EQ(program.device.log, "destroy0 ");
  CHECK_FALSE(program.manager.TearDown());
  CHECK_EQ(MessageOf(program.Call(x)), "a captured run was called after its graph was torn down");
}

}  // namespace
}  // namespace strata
