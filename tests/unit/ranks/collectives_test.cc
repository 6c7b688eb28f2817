#include "runtime/ranks/collectives.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <ATen/ATen.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/exec/executor.h"
#include "runtime/plan/plan.h"
#include "runtime/ranks/thread_team.h"
#include "tests/support/graphs.h"
#include "tests/support/meshes.h"
#include "tests/support/results.h"
#include "tests/unit/ranks/rank_values.h"

namespace strata {
namespace {

using at::Tensor;
using testing::MeshOf;
using testing::MessageOf;
using testing::OrDie;
using testing::ParseBody;
using testing::ValuesOf;

/// The first output of a graph on every rank.
Result<std::vector<Tensor>> RunOn(ThreadTeam& team, std::string_view body,
                                  const std::function<std::vector<Tensor>(int64_t)>& inputs,
                                  const PlanOptions& options = {}) {
  const auto module = ParseBody(body);
  const Graph& graph = *module->FindGraph("g");
  std::vector<Tensor> results(static_cast<size_t>(team.size()));
  std::mutex one_at_a_time;
  STRATA_RETURN_IF_ERROR(team.Run([&](int64_t rank) -> Status {
    std::unique_lock lock(one_at_a_time);
    STRATA_TRY(Plan plan, Lower(graph, options));
    STRATA_TRY(Executor executor, Executor::Bind(std::move(plan), {}));
    lock.unlock();
    // A second run finds nothing of the first.
    STRATA_TRY(std::vector<Tensor> outputs, executor.Run(inputs(rank)));
    STRATA_TRY(outputs, executor.Run(inputs(rank)));
    results[static_cast<size_t>(rank)] = outputs[0].clone();
    return Ok();
  }));
  return results;
}

std::vector<Tensor> RunOrDie(ThreadTeam& team, std::string_view body,
                             const std::function<std::vector<Tensor>(int64_t)>& inputs,
                             const PlanOptions& options = {}) {
  return OrDie(RunOn(team, body, inputs, options));
}

std::string Body(std::string_view input, std::string_view call) {
  return fmt::format(R"(
  x = placeholder : {}
  y = {}
  z = _c10d_functional.wait_tensor.default(y)
  output([z])
)",
                     input, call);
}

TEST_CASE("all_gather_into_tensor concatenates the ranks' tensors, per group") {
  ThreadTeam team(MeshOf("fsdp=2,tp=3"));
  const auto inputs = [](int64_t rank) { return std::vector{ValuesOf(rank, {2, 5})}; };
  const std::vector<Tensor> over_tp = RunOrDie(
      team, Body("f32[2, 5]", "_c10d_functional.all_gather_into_tensor.default(x, 3, 'tp')"),
      inputs);
  const std::vector<Tensor> over_fsdp = RunOrDie(
      team, Body("f32[2, 5]", "_c10d_functional.all_gather_into_tensor.default(x, 2, 'fsdp')"),
      inputs);
  const std::vector<Tensor> over_all = RunOrDie(
      team, Body("f32[2, 5]", "_c10d_functional.all_gather_into_tensor.default(x, 6, 'tp+fsdp')"),
      inputs);
  const auto of = [](const std::vector<int64_t>& ranks) {
    std::vector<Tensor> parts;
    for (const int64_t rank : ranks)
      parts.push_back(ValuesOf(rank, {2, 5}));
    return at::cat(parts);
  };
  CHECK(at::equal(over_tp[4], of({3, 4, 5})));
  CHECK(at::equal(over_fsdp[4], of({1, 4})));
  for (const Tensor& all : over_all)
    CHECK(at::equal(all, of({0, 3, 1, 4, 2, 5})));
}

TEST_CASE("sums add in the order of the ranks, with the same bits on each") {
  ThreadTeam team(MeshOf("fsdp=4"));
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{3, 7}, std::vector<int64_t>{300, 171}}) {
    const auto inputs = [&](int64_t rank) { return std::vector{ValuesOf(rank, sizes)}; };
    Tensor sum = ValuesOf(0, sizes);
    for (int64_t rank = 1; rank < 4; ++rank)
      sum = sum + ValuesOf(rank, sizes);
    const std::string input = fmt::format("f32[{}, {}]", sizes[0], sizes[1]);
    const auto reduced = [&](std::string_view op) {
      return RunOrDie(
          team,
          Body(input, fmt::format("_c10d_functional.all_reduce.default(x, '{}', 'fsdp')", op)),
          inputs);
    };
    const Tensor stacked =
        at::stack({ValuesOf(0, sizes), ValuesOf(1, sizes), ValuesOf(2, sizes), ValuesOf(3, sizes)});
    for (const Tensor& result : reduced("sum"))
      CHECK(at::equal(result, sum));
    CHECK(at::equal(reduced("avg")[1], sum / 4));
    CHECK(at::equal(reduced("max")[2], at::amax(stacked, {0})));
    CHECK(at::equal(reduced("min")[3], at::amin(stacked, {0})));
  }
}

TEST_CASE("sums of narrow floats round once") {
  ThreadTeam team(MeshOf("tp=3"));
  const auto inputs = [](int64_t rank) { return std::vector{ValuesOf(rank, {64}, at::kBFloat16)}; };
  const std::vector<Tensor> results = RunOrDie(
      team, Body("bf16[64]", "_c10d_functional.all_reduce.default(x, 'sum', 'tp')"), inputs);
  const Tensor sum = ValuesOf(0, {64}, at::kBFloat16).to(at::kFloat) +
                     ValuesOf(1, {64}, at::kBFloat16).to(at::kFloat) +
                     ValuesOf(2, {64}, at::kBFloat16).to(at::kFloat);
  for (const Tensor& result : results)
    CHECK(at::equal(result, sum.to(at::kBFloat16)));
}

TEST_CASE("reduce_scatter_tensor gives each rank its part of the sum") {
  ThreadTeam team(MeshOf("dp_replicate=2,fsdp=2"));
  const auto inputs = [](int64_t rank) { return std::vector{ValuesOf(rank, {6, 2})}; };
  const std::vector<Tensor> results = RunOrDie(
      team,
      Body("f32[6, 2]", "_c10d_functional.reduce_scatter_tensor.default(x, 'sum', 2, 'fsdp')"),
      inputs);
  for (int64_t rank = 0; rank < 4; ++rank) {
    const int64_t first = rank / 2 * 2;
    const Tensor sum = ValuesOf(first, {6, 2}) + ValuesOf(first + 1, {6, 2});
    CHECK(at::equal(results[static_cast<size_t>(rank)], sum.narrow(0, rank % 2 * 3, 3)));
  }
}

TEST_CASE("all_to_all_single exchanges as many rows as the splits say") {
  ThreadTeam team(MeshOf("fsdp=2"));
  // Rank 0 keeps 1 row and sends 3; rank 1 sends 2 and keeps none.
  const auto module_inputs = [](int64_t rank) {
    return std::vector{ValuesOf(rank, {rank == 0 ? 4 : 2, 3})};
  };
  std::vector<Tensor> results(2);
  const std::vector<std::string> bodies = {
      Body("f32[4, 3]", "_c10d_functional.all_to_all_single.default(x, [1, 2], [1, 3], 'fsdp')"),
      Body("f32[2, 3]", "_c10d_functional.all_to_all_single.default(x, [3, 0], [2, 0], 'fsdp')")};
  std::mutex one_at_a_time;
  CHECK_OK(team.Run([&](int64_t rank) -> Status {
    std::unique_lock lock(one_at_a_time);
    const auto module = ParseBody(bodies[static_cast<size_t>(rank)]);
    STRATA_TRY(Plan plan, Lower(*module->FindGraph("g")));
    STRATA_TRY(Executor executor, Executor::Bind(std::move(plan), {}));
    lock.unlock();
    STRATA_TRY(const std::vector<Tensor> outputs, executor.Run(module_inputs(rank)));
    results[static_cast<size_t>(rank)] = outputs[0];
    return Ok();
  }));
  CHECK(at::equal(results[0], at::cat({ValuesOf(0, {4, 3}).narrow(0, 0, 1), ValuesOf(1, {2, 3})})));
  CHECK(at::equal(results[1], ValuesOf(0, {4, 3}).narrow(0, 1, 3)));
}

TEST_CASE("broadcast gives all ranks the tensor of one") {
  ThreadTeam team(MeshOf("fsdp=3"));
  const auto inputs = [](int64_t rank) { return std::vector{ValuesOf(rank, {4})}; };
  for (const Tensor& result :
       RunOrDie(team, Body("f32[4]", "_c10d_functional.broadcast.default(x, 2, 'fsdp')"), inputs))
    CHECK(at::equal(result, ValuesOf(2, {4})));
}

TEST_CASE("axis_index and axis_shard depend on the rank, in every kind of plan") {
  ThreadTeam team(MeshOf("fsdp=2,tp=2"));
  const auto inputs = [](int64_t) { return std::vector{at::arange(8, at::kFloat).view({2, 4})}; };
  for (const PlanOptions& options : {PlanOptions(), PlanOptions::Fastest()}) {
    const std::vector<Tensor> indices = RunOrDie(team, R"(
  x = placeholder : f32[2, 4][4, 1]cpu
  i = strata.axis_index.default('tp') : i64[][]cpu
  y = aten.add.Tensor(x, i) : f32[2, 4][4, 1]cpu
  output([y])
)",
                                                 inputs, options);
    const std::vector<Tensor> shards = RunOrDie(team, R"(
  x = placeholder : f32[2, 4][4, 1]cpu
  i = strata.axis_shard.default(x, 1, 'fsdp', 2) : f32[2, 2][2, 1]cpu
  output([i])
)",
                                                inputs, options);
    for (int64_t rank = 0; rank < 4; ++rank) {
      const Tensor x = inputs(rank)[0];
      CHECK(at::equal(indices[static_cast<size_t>(rank)], x + rank % 2));
      CHECK(at::equal(shards[static_cast<size_t>(rank)], x.narrow(1, rank / 2 * 2, 2)));
    }
  }
}

TEST_CASE("a static plan with collectives gives the bits of a plain one") {
  ThreadTeam team(MeshOf("fsdp=2"));
  const std::string_view body = R"(
  w = placeholder : f32[4, 8][8, 1]cpu
  x = placeholder : f32[6, 8][8, 1]cpu
  g = _c10d_functional.all_gather_into_tensor.default(w, 2, 'fsdp') : f32[8, 8][8, 1]cpu
  v = _c10d_functional.wait_tensor.default(g) : f32[8, 8][8, 1]cpu
  t = aten.t.default(v) : f32[8, 8][1, 8]cpu
  y = aten.mm.default(x, t) : f32[6, 8][8, 1]cpu
  xt = aten.t.default(x) : f32[8, 6][1, 8]cpu
  d = aten.mm.default(xt, y) : f32[8, 8][8, 1]cpu
  r = _c10d_functional.reduce_scatter_tensor.default(d, 'sum', 2, 'fsdp') : f32[4, 8][8, 1]cpu
  o = _c10d_functional.wait_tensor.default(r) : f32[4, 8][8, 1]cpu
  e = aten.mul.Tensor(o, o) : f32[4, 8][8, 1]cpu
  output([e])
)";
  const auto inputs = [](int64_t rank) {
    return std::vector{ValuesOf(rank, {4, 8}), ValuesOf(rank + 10, {6, 8})};
  };
  const std::vector<Tensor> plain = RunOrDie(team, body, inputs);
  const std::vector<Tensor> fastest = RunOrDie(team, body, inputs, PlanOptions::Fastest());
  const Tensor w = at::cat({ValuesOf(0, {4, 8}), ValuesOf(1, {4, 8})});
  const auto of_rank = [&](int64_t rank) {
    const Tensor x = ValuesOf(rank + 10, {6, 8});
    return x.t().mm(x.mm(w.t()));
  };
  const Tensor d = of_rank(0) + of_rank(1);
  for (int64_t rank = 0; rank < 2; ++rank) {
    const Tensor wanted = d.narrow(0, rank * 4, 4) * d.narrow(0, rank * 4, 4);
    CHECK(at::equal(plain[static_cast<size_t>(rank)], wanted));
    CHECK(at::equal(fastest[static_cast<size_t>(rank)], wanted));
  }
}

TEST_CASE("a rank that fails ends the others, and its message stands alone") {
  ThreadTeam team(MeshOf("fsdp=4"));
  const std::string body = Body("f32[4]", "_c10d_functional.all_reduce.default(x, 'sum', 'fsdp')");
  const auto module = ParseBody(body);
  CHECK_EQ(MessageOf(team.Run([&](int64_t rank) -> Status {
             if (rank == 2) return Error("no memory left: rank {}: give it more", rank);
             STRATA_TRY(Executor executor,
                        Executor::Bind(OrDie(Lower(*module->FindGraph("g"))), {}));
             STRATA_TRY(const std::vector<Tensor> outputs,
                        executor.Run(std::vector{ValuesOf(rank, {4})}));
             return Ok();
           })),
           "rank 2: no memory left: rank 2: give it more");
  CHECK_EQ(MessageOf(team.Run([](int64_t) { return Ok(); })),
           "rank 2: no memory left: rank 2: give it more");
}

TEST_CASE("an exception in a rank is an error of that rank") {
  ThreadTeam team(MeshOf("fsdp=2"));
  CHECK_EQ(MessageOf(team.Run([](int64_t rank) -> Status {
             if (rank == 1) throw std::runtime_error("broken");
             return Ok();
           })),
           "rank 1: broken");
}

TEST_CASE("ranks that meet in different collectives are told which") {
  ThreadTeam team(MeshOf("fsdp=2"));
  const auto sum =
      ParseBody(Body("f32[4]", "_c10d_functional.all_reduce.default(x, 'sum', 'fsdp')"));
  const auto gather =
      ParseBody(Body("f32[4]", "_c10d_functional.all_gather_into_tensor.default(x, 2, 'fsdp')"));
  std::mutex one_at_a_time;
  const std::string message = MessageOf(team.Run([&](int64_t rank) -> Status {
    std::unique_lock lock(one_at_a_time);
    STRATA_TRY(Executor executor,
               Executor::Bind(OrDie(Lower(*(rank == 0 ? sum : gather)->FindGraph("g"))), {}));
    lock.unlock();
    STRATA_TRY(const std::vector<Tensor> outputs, executor.Run(std::vector{ValuesOf(rank, {4})}));
    return Ok();
  }));
  CHECK_EQ(message,
           "rank 0: graph g failed: y: y = _c10d_functional.all_reduce.default(x: f32[4], "
           "'sum', 'fsdp'): ranks call different collectives: rank 0 all_reduce(f32[4], sum) over "
           "fsdp in y of graph g; rank 1 all_gather_into_tensor(f32[4]) over fsdp in y of "
           "graph g");
}

TEST_CASE("a rank that does not come is named after the timeout") {
  ThreadTeam team(MeshOf("fsdp=3"), {.timeout = std::chrono::milliseconds(50)});
  const auto sum =
      ParseBody(Body("f32[4]", "_c10d_functional.all_reduce.default(x, 'sum', 'fsdp')"));
  std::mutex one_at_a_time;
  const std::string message = MessageOf(team.Run([&](int64_t rank) -> Status {
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      return Ok();
    }
    std::unique_lock lock(one_at_a_time);
    STRATA_TRY(Executor executor, Executor::Bind(OrDie(Lower(*sum->FindGraph("g"))), {}));
    lock.unlock();
    STRATA_TRY(const std::vector<Tensor> outputs, executor.Run(std::vector{ValuesOf(rank, {4})}));
    return Ok();
  }));
  CHECK_NE(message.find("waited 0.05 s in all_reduce(f32[4], sum) over fsdp for rank 1"),
           message.npos);
}

/// A network in which each collective takes 30 ms.
Topology SlowNetwork() {
  return OrDie(Topology::Parse(R"([device]
memory_gib = 1
memory_tib_per_s = 1
efficiency = 1.0
launch_us = 1.0
tflops = { f32 = 1.0 }
[network]
model = "simple"
ranks_per_node = 2
base_us = 30000.0
hop_us = 0.0
intra_gb_per_s = 1e9
inter_gb_per_s = 1e9
)",
                               "slow.toml", "slow"));
}

TEST_CASE("a simulated network adds its time to each collective, and changes no result") {
  ThreadTeam team(MeshOf("fsdp=2,tp=2"));
  const auto inputs = [](int64_t rank) { return std::vector{ValuesOf(rank, {4})}; };
  const std::string gather =
      Body("f32[4]", "_c10d_functional.all_gather_into_tensor.default(x, 2, 'tp')");
  const std::vector<Tensor> wanted = RunOrDie(team, gather, inputs);
  team.SimulateNetwork(SlowNetwork());
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Tensor> found = RunOrDie(team, gather, inputs);
  CHECK_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(60));  // two runs
  for (size_t rank = 0; rank < 4; ++rank)
    CHECK(at::equal(found[rank], wanted[rank]));
}

TEST_CASE("a simulated network whose nodes a group fills unevenly is an error of the collective") {
  ThreadTeam team(MeshOf("fsdp=3"));
  team.SimulateNetwork(SlowNetwork());
  const Result<std::vector<Tensor>> results =
      RunOn(team, Body("f32[4]", "_c10d_functional.all_reduce.default(x, 'sum', 'fsdp')"),
            [](int64_t rank) { return std::vector{ValuesOf(rank, {4})}; });
  CHECK_NE(MessageOf(results).find("nodes of 2 ranks are filled unevenly: group fsdp of 3 ranks on "
                                   "topology slow: choose sizes that divide the nodes"),
           std::string::npos);
}

TEST_CASE("collectives outside of ranks say where ranks are") {
  ThreadTeam registered(MeshOf("fsdp=2"));
  const auto sum =
      ParseBody(Body("f32[4]", "_c10d_functional.all_reduce.default(x, 'sum', 'fsdp')"));
  Executor executor = OrDie(Executor::Bind(OrDie(Lower(*sum->FindGraph("g"))), {}));
  const std::string message = MessageOf(executor.Run(std::vector{ValuesOf(0, {4})}));
  CHECK_NE(message.find("group 'fsdp' has no ranks: they run in a training"), message.npos);
}

}  // namespace
}  // namespace strata
