#include "runtime/ranks/comm_thread.h"

#include <chrono>
#include <latch>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <doctest/doctest.h>

#include "runtime/exec/executor.h"
#include "runtime/exec/step/observer.h"
#include "runtime/plan/in_flight.h"
#include "runtime/plan/memory/buffer_assignment.h"
#include "runtime/plan/plan.h"
#include "runtime/ranks/thread_team.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using at::Tensor;
using testing::MessageOf;
using testing::OrDie;
using testing::ParseBody;

TEST_CASE("launched work runs in its order, and a wait covers what was launched before") {
  std::vector<int> order;
  CommThread comm(1);
  const int keys[3] = {};
  for (int i = 0; i < 3; ++i)
    comm.Launch(&keys[i], [&order, i] { order.push_back(i); });
  comm.Wait(&keys[1]);
  CHECK_GE(order.size(), 2);
  comm.WaitForAll();
  CHECK_EQ(order, std::vector{0, 1, 2});
  comm.Wait(&keys[0]);  // done
  comm.Wait(&order);    // never launched
}

TEST_CASE("what launched work throws is thrown by waits and launches, and later work is dropped") {
  CommThread comm(1);
  const int keys[2] = {};
  bool has_run = false;
  comm.Launch(&keys[0], [] { throw std::runtime_error("gone"); });
  try {
    comm.Launch(&keys[1], [&] { has_run = true; });
  } catch (const std::runtime_error&) {  // it failed before
  }
  CHECK_THROWS_WITH(comm.WaitForAll(), "gone");
  CHECK_THROWS_WITH(comm.Launch(&keys[1], [] {}), "gone");
  CHECK(!has_run);
  comm.Drain();
  comm.Launch(&keys[1], [&] { has_run = true; });
  comm.Wait(&keys[1]);
  CHECK(has_run);
}

Tensor CallOp(const char* name, const std::vector<c10::IValue>& arguments) {
  torch::jit::Stack stack(arguments.begin(), arguments.end());
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(&stack);
  return stack[0].toTensor();
}

TEST_CASE("a rank computes between launch and wait while another has not come") {
  ThreadTeam team(OrDie(Mesh::Parse("fsdp=2")), {.timeout = std::chrono::seconds(20)});
  std::latch launched(1);
  CHECK_OK(team.Run([&](int64_t rank) -> Status {
    const AsyncCollectives async(true);
    // Rank 1 comes when rank 0 has gone on after its launch.
    if (rank == 1) launched.wait();
    const Tensor x = at::full({300}, static_cast<double>(rank + 1));
    const Tensor sum = CallOp("_c10d_functional::all_reduce", {x, "sum", "fsdp"});
    if (rank == 0) launched.count_down();
    CHECK(at::equal(CallOp("_c10d_functional::wait_tensor", {sum}), at::full({300}, 3.0)));
    return Ok();
  }));
}

/// A launch, steps whose results could use the memory of what it reads, and its wait.
constexpr std::string_view kOverlap = R"(
  x = placeholder : f32[64, 64][64, 1]cpu
  a = aten.mul.Tensor(x, x) : f32[64, 64][64, 1]cpu
  g = _c10d_functional.all_gather_into_tensor.default(a, 2, 'fsdp') : f32[128, 64][64, 1]cpu
  b = aten.mm.default(x, x) : f32[64, 64][64, 1]cpu
  c = aten.mm.default(b, x) : f32[64, 64][64, 1]cpu
  d = aten.mm.default(c, b) : f32[64, 64][64, 1]cpu
  e = aten.mm.default(d, c) : f32[64, 64][64, 1]cpu
  w = _c10d_functional.wait_tensor.default(g) : f32[128, 64][64, 1]cpu
  r = aten.mm.default(w, e) : f32[128, 64][64, 1]cpu
  output([r])
)";

TEST_CASE("memory that a launch reads and writes is in use until the wait") {
  const auto module = ParseBody(kOverlap);
  const Plan plan = OrDie(Lower(*module->FindGraph("g"), PlanOptions::Fastest()));
  const InFlight in_flight = FindInFlight(plan);
  CHECK(in_flight.is_overlapped);
  const auto slot = [&](std::string_view name) {
    for (const SlotId id : IdsOf(plan.slots))
      if (plan.slots[id].name == name) return id;
    REQUIRE(false);
    return SlotId();
  };
  const BufferAssignment assignment(plan);
  CHECK_EQ(plan.steps[StepId{6}].op, "_c10d_functional.wait_tensor.default");
  CHECK_EQ(assignment.last_use(slot("a")), StepId{6});
  // The wait's result is what was launched: no copy.
  CHECK_EQ(plan.slots[slot("w")].storage, slot("g"));
  CHECK_EQ(assignment.last_use(slot("g")), StepId{7});
}

TEST_CASE("overlapped collectives give the bits of those that are waited for at once") {
  ThreadTeam team(OrDie(Mesh::Parse("fsdp=2")));
  const auto module = ParseBody(kOverlap);
  std::mutex one_at_a_time;
  CHECK_OK(team.Run([&](int64_t rank) -> Status {
    at::Generator generator = at::detail::createCPUGenerator(static_cast<uint64_t>(rank));
    const Tensor x = at::randn({64, 64}, generator) * 0.1;
    std::unique_lock lock(one_at_a_time);
    const Graph& graph = *module->FindGraph("g");
    STRATA_TRY(Plan plain_plan, Lower(graph));
    STRATA_TRY(Plan fast_plan, Lower(graph, PlanOptions::Fastest()));
    STRATA_TRY(Executor plain, Executor::Bind(std::move(plain_plan), {}));
    STRATA_TRY(Executor fast, Executor::Bind(std::move(fast_plan), {}));
    lock.unlock();
    for (int run = 0; run < 50; ++run) {
      STRATA_TRY(const std::vector<Tensor> wanted, plain.Run(std::vector{x}));
      STRATA_TRY(const std::vector<Tensor> found, fast.Run(std::vector{x}));
      if (!at::equal(wanted[0], found[0])) return Error("run {} differs", run);
    }
    return Ok();
  }));
}

/// Rank 1 comes to its launch when rank 0 has run the step after its own.
class MeetAfterLaunch final : public ExecutionObserver {
 public:
  MeetAfterLaunch(std::latch& passed, int64_t rank) : passed_(passed), rank_(rank) {}
  void OnStep(const PlanStep& step, std::span<const Tensor> /*results*/) override {
    if (rank_ == 0 && step.op == "aten.mm.default" && !passed_.try_wait()) passed_.count_down();
    if (rank_ == 1 && step.op == "aten.mul.Tensor") passed_.wait();
  }
  bool ReadsResults() const override { return false; }

 private:
  std::latch& passed_;
  const int64_t rank_;
};

TEST_CASE("collectives overlap in a run whose observer does not read results") {
  ThreadTeam team(OrDie(Mesh::Parse("fsdp=2")), {.timeout = std::chrono::seconds(20)});
  const auto module = ParseBody(kOverlap);
  const Plan plan = OrDie(Lower(*module->FindGraph("g"), PlanOptions::Fastest()));
  std::mutex one_at_a_time;
  std::latch passed(1);
  CHECK_OK(team.Run([&](int64_t rank) -> Status {
    std::unique_lock lock(one_at_a_time);
    STRATA_TRY(Executor executor, Executor::Bind(plan, {}));
    lock.unlock();
    MeetAfterLaunch observer(passed, rank);
    STRATA_TRY(const std::vector<Tensor> results,
               executor.Run(std::vector{at::eye(64)}, &observer));
    CHECK(at::equal(results[0], at::cat({at::eye(64), at::eye(64)})));
    return Ok();
  }));
}

TEST_CASE("a plan with a launch that is not waited for runs it at once") {
  const auto module = ParseBody(R"(
  x = placeholder : f32[4][1]cpu
  y = _c10d_functional.all_reduce.default(x, 'sum', 'fsdp') : f32[4][1]cpu
  output([y])
)");
  const Plan plan = OrDie(Lower(*module->FindGraph("g"), PlanOptions::Fastest()));
  CHECK(!FindInFlight(plan).is_overlapped);
  ThreadTeam team(OrDie(Mesh::Parse("fsdp=2")));
  std::mutex one_at_a_time;
  CHECK_OK(team.Run([&](int64_t) -> Status {
    std::unique_lock lock(one_at_a_time);
    STRATA_TRY(Executor executor, Executor::Bind(plan, {}));
    lock.unlock();
    STRATA_TRY(const std::vector<Tensor> sum, executor.Run(std::vector{at::ones({4})}));
    CHECK(at::equal(sum[0], at::full({4}, 2.0)));
    return Ok();
  }));
}

}  // namespace
}  // namespace strata
