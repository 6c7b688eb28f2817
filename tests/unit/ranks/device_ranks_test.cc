// Ranks that train on GPUs as processes do: each is a thread with a team, a fake GPU and a fake
// NCCL.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <ATen/ATen.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/exec/executor.h"
#include "runtime/plan/plan.h"
#include "runtime/ranks/processes/gloo_links.h"
#include "runtime/ranks/processes/process_team.h"
#include "runtime/train/data/data.h"
#include "runtime/train/trainer.h"
#include "tests/support/fake_cpu_device.h"
#include "tests/support/fake_nccl.h"
#include "tests/support/graphs.h"
#include "tests/support/rank_courses.h"
#include "tests/support/replaying_fake_device.h"
#include "tests/support/results.h"
#include "tests/support/small_models.h"

namespace strata {
namespace {

using std::chrono::milliseconds;
using testing::CheckClose;
using testing::ConfigOf;
using testing::Copy;
using testing::Course;
using testing::Degree;
using testing::FakeCpuDevice;
using testing::FakeNccl;
using testing::MessageOf;
using testing::OrDie;
using testing::ParseBody;

constexpr std::string_view kDeviceModel = R"(model = "llama3"
dim = 32
n_layers = 2
n_heads = 4
n_kv_heads = 2
vocab_size = 64
multiple_of = 16
seq_len = 16
batch_size = 8
steps = 4
seed = 7
[optimizer]
lr = 3e-3
max_grad_norm = 0.5
)";

constexpr std::string_view kDeviceExperts = R"(model = "deepseek_v3"
dim = 32
n_layers = 2
n_heads = 4
hidden_dim = 32
vocab_size = 64
seq_len = 16
batch_size = 8
steps = 4
seed = 7
[mla]
kv_lora_rank = 12
qk_nope_head_dim = 8
qk_rope_head_dim = 4
v_head_dim = 8
[moe]
num_experts = 4
top_k = 2
moe_hidden_dim = 16
num_shared_experts = 1
[optimizer]
lr = 3e-3
)";

/// Calls `work(place)` on a thread for each rank of `world`.
template <class Work>
void OnRanks(int64_t world, Work work) {
  const ProcessStore store = OrDie(ProcessStore::Open());
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      work(ProcessPlace{
          .rank = rank, .world = world, .port = store.port(), .launcher_has_store = true});
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

/// The course of rank 0.
Course TrainOnDevices(std::string_view model, const std::vector<std::string>& sets) {
  const TrainConfig config = ConfigOf(model, sets);
  Course course;
  OnRanks(config.parallelism.mesh.num_ranks(), [&](const ProcessPlace& place) {
    const auto trainer = OrDie(Trainer::Create({.config = config,
                                                .data = OrDie(OpenDataSource(config)),
                                                .process = place,
                                                .device = std::make_unique<FakeCpuDevice>(),
                                                .nccl = &FakeNccl()}));
    OrDie(trainer->Compile());
    Course mine;
    while (OrDie(trainer->HasNext())) {
      trainer->KeepGradients(mine.steps.empty());
      mine.steps.push_back(OrDie(trainer->Step()).metrics);
      if (mine.steps.size() > 1) continue;
      OrDie(trainer->GatherGradients());
      if (place.rank == 0) mine.gradients = Copy(trainer->Gradients());
    }
    OrDie(trainer->GatherState());
    if (place.rank == 0) {
      mine.parameters = Copy(trainer->Parameters());
      mine.optimizer = Copy(trainer->OptimizerTensors());
      course = std::move(mine);
    }
    OrDie(trainer->Finish());
  });
  return course;
}

TEST_CASE("ranks with GPUs train as those of the CPU do, by the collectives of NCCL") {
  for (const std::vector<std::string>& layout : std::vector<std::vector<std::string>>{
           {Degree("data_parallel_shard", 2)},
           {Degree("data_parallel_shard", 2), Degree("tensor_parallel", 2)},
           {Degree("data_parallel_replicate", 2), Degree("context_parallel", 2)},
           {Degree("pipeline_parallel", 2), Degree("data_parallel_shard", 2)}}) {
    INFO(layout[0]);
    CheckClose(TrainOnDevices(kDeviceModel, layout), testing::Train(kDeviceModel, layout));
  }
}

TEST_CASE("experts on GPUs exchange rows by counts that the host reads") {
  const std::vector<std::string> layout = {Degree("data_parallel_shard", 2),
                                           Degree("expert_parallel", 2)};
  CheckClose(TrainOnDevices(kDeviceExperts, layout), testing::Train(kDeviceExperts, layout));
}

constexpr std::string_view kSum = R"(
  x = placeholder : f32[4][1]cpu
  a = _c10d_functional.all_reduce.default(x, '{}', 'fsdp') : f32[4][1]cpu
  b = _c10d_functional.wait_tensor.default(a) : f32[4][1]cpu
  output([b])
)";

/// What each of two ranks gets that run these bodies on their GPUs; an empty body: none.
std::vector<Status> RunBodies(const std::vector<std::string>& bodies, milliseconds timeout) {
  std::vector<Status> ends(2, Ok());
  OnRanks(2, [&](const ProcessPlace& place) {
    FakeCpuDevice device;
    const auto team =
        OrDie(ProcessTeam::Connect(OrDie(Mesh::Parse("fsdp=2")), place, std::chrono::seconds(20)));
    team->UseDevice(device, FakeNccl());
    team->set_timeout(timeout);
    const auto rank = static_cast<size_t>(place.rank);
    ends[rank] = team->Run([&](int64_t) -> Status {
      for (const std::string& body : {fmt::format(fmt::runtime(kSum), "sum"), bodies[rank]}) {
        if (body.empty()) continue;
        const auto module = ParseBody(body);
        STRATA_TRY(Plan plan, Lower(*module->FindGraph("g"), {}));
        STRATA_TRY(Executor executor, Executor::Bind(std::move(plan), {}, {}, &device));
        STRATA_TRY(const auto out, executor.Run(std::vector{at::ones({4})}));
        if (body != bodies[rank]) CHECK(at::equal(out[0], at::full({4}, 2.0F)));
      }
      return Ok();
    });
    std::this_thread::sleep_for(timeout);  // the other one may still look here
  });
  return ends;
}

TEST_CASE("collectives run between the pieces of a captured graph") {
  const std::string_view body = R"(
  x = placeholder : f32[4][1]cpu {+input='batch'}
  a = aten.exp.default(x) : f32[4][1]cpu
  sum = _c10d_functional.all_reduce.default(a, 'sum', 'fsdp') : f32[4][1]cpu {+cuda_graph='outside'}
  b = aten.neg.default(a) : f32[4][1]cpu
  awaited = _c10d_functional.wait_tensor.default(sum) : f32[4][1]cpu {+cuda_graph='outside'}
  c = aten.add.Tensor(awaited, b) : f32[4][1]cpu
  output([c]) {+cuda_graph='pieces'}
)";
  OnRanks(2, [&](const ProcessPlace& place) {
    testing::ReplayingFakeDevice device;
    const auto team =
        OrDie(ProcessTeam::Connect(OrDie(Mesh::Parse("fsdp=2")), place, std::chrono::seconds(20)));
    team->UseDevice(device, FakeNccl());
    OrDie(team->Run([&](int64_t rank) -> Status {
      const auto module = ParseBody(body);
      STRATA_TRY(Plan plan, Lower(*module->FindGraph("g"), {}));
      STRATA_TRY(Executor executor, Executor::Bind(std::move(plan), {}, {}, &device));
      for (int run = 0; run < 5; ++run) {
        const auto input = [&](int64_t of) {
          return at::full({4}, 0.1F * static_cast<float>(of + 1) + static_cast<float>(run));
        };
        STRATA_TRY(const auto out, executor.Run(std::vector{input(rank)}));
        CHECK(at::equal(out[0], input(0).exp() + input(1).exp() - input(rank).exp()));
      }
      return Ok();
    }));
  });
}

TEST_CASE("GPUs whose ranks call different collectives end with both calls and nodes") {
  const std::vector<Status> ends =
      RunBodies({fmt::format(fmt::runtime(kSum), "max"), fmt::format(fmt::runtime(kSum), "min")},
                milliseconds(600));
  for (const Status& end : ends) {
    INFO(MessageOf(end));
    CHECK(MessageOf(end).find("ranks call different collectives: rank 0 all_reduce(f32[4], max) "
                              "over fsdp") != std::string::npos);
    CHECK(MessageOf(end).find("; rank 1 all_reduce(f32[4], min) over fsdp") != std::string::npos);
  }
}

TEST_CASE("a GPU that waits for a rank which does not come is freed after the timeout") {
  const std::vector<Status> ends =
      RunBodies({fmt::format(fmt::runtime(kSum), "max"), ""}, milliseconds(600));
  INFO(MessageOf(ends[0]));
  CHECK(MessageOf(ends[0]).starts_with("waited 0.6 s in all_reduce(f32[4], max) over fsdp"));
  CHECK(MessageOf(ends[0]).find(" for rank 1") != std::string::npos);
}

}  // namespace
}  // namespace strata
