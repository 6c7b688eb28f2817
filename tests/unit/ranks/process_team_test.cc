// Ranks that communicate as processes do; here each is a thread with a team of its own.

#include "runtime/ranks/processes/process_team.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <latch>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ATen.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/exec/executor.h"
#include "runtime/plan/plan.h"
#include "runtime/ranks/gather.h"
#include "runtime/ranks/processes/gloo_links.h"
#include "runtime/ranks/processes/peer_memory.h"
#include "runtime/ranks/thread_team.h"
#include "tests/support/graphs.h"
#include "tests/support/meshes.h"
#include "tests/support/results.h"
#include "tests/unit/ranks/rank_values.h"

namespace strata {
namespace {

using at::Tensor;
using std::chrono::milliseconds;
using testing::MeshOf;
using testing::MessageOf;
using testing::OrDie;
using testing::ParseBody;
using testing::ValuesOf;

using TeamWork = std::function<Status(ProcessTeam& team)>;

/// What `work` returns on the team of each rank.
std::vector<Status> OnProcesses(const Mesh& mesh, milliseconds timeout, const TeamWork& work) {
  const ProcessStore store = OrDie(ProcessStore::Open());
  std::vector<Status> ends(static_cast<size_t>(mesh.num_ranks()), Ok());
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < mesh.num_ranks(); ++rank) {
    threads.emplace_back([&, rank] {
      const ProcessPlace place{.rank = rank,
                               .world = mesh.num_ranks(),
                               .port = store.port(),
                               .launcher_has_store = true};
      const auto team = OrDie(ProcessTeam::Connect(mesh, place, std::chrono::seconds(20)));
      team->set_timeout(timeout);
      ends[static_cast<size_t>(rank)] = work(*team);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  return ends;
}

std::mutex one_at_a_time;

Result<Tensor> RunGraph(std::string_view body, const Tensor& input, int times = 2) {
  std::unique_lock lock(one_at_a_time);
  const auto module = ParseBody(body);
  STRATA_TRY(Plan plan, Lower(*module->FindGraph("g"), PlanOptions::Fastest()));
  STRATA_TRY(Executor executor, Executor::Bind(std::move(plan), {}));
  lock.unlock();
  Tensor result;
  for (int i = 0; i < times; ++i) {
    STRATA_TRY(const std::vector<Tensor> outputs, executor.Run(std::vector{input}));
    result = outputs[0].clone();
  }
  return result;
}

std::string Body(std::string_view input, std::string_view output, std::string_view call) {
  return fmt::format(R"(
  x = placeholder : {}
  y = {} : {}
  z = _c10d_functional.wait_tensor.default(y) : {}
  output([z])
)",
                     input, call, output, output);
}

/// Runs the graph on threads of one process and on processes; the bits are equal.
void CheckEqualBits(std::string_view mesh, std::string_view body, at::IntArrayRef sizes,
                    at::ScalarType type = at::kFloat) {
  CAPTURE(body);
  ThreadTeam threads(MeshOf(mesh));
  std::vector<Tensor> wanted(static_cast<size_t>(threads.size())), results(wanted.size());
  CHECK_OK(threads.Run([&](int64_t rank) -> Status {
    STRATA_TRY(wanted[static_cast<size_t>(rank)], RunGraph(body, ValuesOf(rank, sizes, type)));
    return Ok();
  }));
  for (const Status& end :
       OnProcesses(MeshOf(mesh), std::chrono::seconds(20), [&](ProcessTeam& team) {
         return team.Run([&](int64_t rank) -> Status {
           STRATA_TRY(results[static_cast<size_t>(rank)],
                      RunGraph(body, ValuesOf(rank, sizes, type)));
           return Ok();
         });
       })) {
    CHECK_OK(end);
  }
  for (size_t rank = 0; rank < wanted.size(); ++rank)
    CHECK(at::equal(results[rank], wanted[rank]));
}

TEST_CASE("processes give the bits of threads, for small and large tensors of each collective") {
  CheckEqualBits("fsdp=3",
                 Body("f32[2, 5][5, 1]cpu", "f32[6, 5][5, 1]cpu",
                      "_c10d_functional.all_gather_into_tensor.default(x, 3, 'fsdp')"),
                 {2, 5});
  CheckEqualBits("fsdp=3",
                 Body("f32[64, 50][50, 1]cpu", "f32[192, 50][50, 1]cpu",
                      "_c10d_functional.all_gather_into_tensor.default(x, 3, 'fsdp')"),
                 {64, 50});
  CheckEqualBits("fsdp=3",
                 Body("f32[300, 70][70, 1]cpu", "f32[100, 70][70, 1]cpu",
                      "_c10d_functional.reduce_scatter_tensor.default(x, 'sum', 3, 'fsdp')"),
                 {300, 70});
  CheckEqualBits("fsdp=2",
                 Body("f32[300, 71][71, 1]cpu", "f32[300, 71][71, 1]cpu",
                      "_c10d_functional.all_reduce.default(x, 'avg', 'fsdp')"),
                 {300, 71});
  CheckEqualBits("fsdp=2",
                 Body("bf16[]", "bf16[]", "_c10d_functional.all_reduce.default(x, 'sum', 'fsdp')"),
                 {}, at::kBFloat16);
  CheckEqualBits(
      "fsdp=3",
      Body("f32[900][1]cpu", "f32[900][1]cpu", "_c10d_functional.broadcast.default(x, 1, 'fsdp')"),
      {900});
  CheckEqualBits("fsdp=2",
                 Body("f32[800, 3][3, 1]cpu", "f32[800, 3][3, 1]cpu",
                      "_c10d_functional.all_to_all_single.default(x, [400, 400], [400, 400], "
                      "'fsdp')"),
                 {800, 3});
}

TEST_CASE("parts that are read from the memory of their process have the bits of threads") {
  CheckEqualBits("fsdp=3",
                 Body("f32[400, 50][50, 1]cpu", "f32[1200, 50][50, 1]cpu",
                      "_c10d_functional.all_gather_into_tensor.default(x, 3, 'fsdp')"),
                 {400, 50});
  CheckEqualBits("fsdp=3",
                 Body("f32[300, 701][701, 1]cpu", "f32[100, 701][701, 1]cpu",
                      "_c10d_functional.reduce_scatter_tensor.default(x, 'sum', 3, 'fsdp')"),
                 {300, 701});
  CheckEqualBits("fsdp=2",
                 Body("f32[300, 711][711, 1]cpu", "f32[300, 711][711, 1]cpu",
                      "_c10d_functional.all_reduce.default(x, 'sum', 'fsdp')"),
                 {300, 711});
  CheckEqualBits("fsdp=2",
                 Body("f32[30000, 3][3, 1]cpu", "f32[30000, 3][3, 1]cpu",
                      "_c10d_functional.all_to_all_single.default(x, [15000, 15000], [15000, "
                      "15000], 'fsdp')"),
                 {30000, 3});
}

TEST_CASE("processes of one machine read each other's memory") {
  std::atomic<int> readable = 0;
  std::latch both_have_read(2);
  std::vector<int64_t> values = {7, 8};
  const ProcessStore store = OrDie(ProcessStore::Open());
  std::vector<std::thread> threads;
  for (const int64_t rank : {0, 1}) {
    threads.emplace_back([&, rank] {
      const ProcessPlace place{
          .rank = rank, .world = 2, .port = store.port(), .launcher_has_store = true};
      const auto links = OrDie(GlooLinks::Connect(place, std::chrono::seconds(20)));
      const PeerMemory memory(*links, rank, 2, std::chrono::seconds(20));
      const int64_t other = 1 - rank;
      CHECK_FALSE(memory.CanRead(rank));
      if (memory.CanRead(other)) {  // the system may forbid it
        ++readable;
        int64_t value = 0;
        const auto target = std::as_writable_bytes(std::span(&value, 1));
        CHECK(memory.Read(other, reinterpret_cast<uint64_t>(&values[1]), target));
        CHECK_EQ(value, 8);
        CHECK_FALSE(memory.Read(other, 8, target));  // nothing is there
      }
      both_have_read.arrive_and_wait();  // the memory of a rank that ended is gone
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(readable % 2 == 0);
}

TEST_CASE("processes communicate in the groups of a mesh") {
  CheckEqualBits("fsdp=2,tp=2", R"(
  x = placeholder : f32[4, 300][300, 1]cpu
  a = _c10d_functional.all_reduce.default(x, 'sum', 'tp') : f32[4, 300][300, 1]cpu
  b = _c10d_functional.wait_tensor.default(a) : f32[4, 300][300, 1]cpu
  c = _c10d_functional.all_gather_into_tensor.default(b, 2, 'fsdp') : f32[8, 300][300, 1]cpu
  d = _c10d_functional.wait_tensor.default(c) : f32[8, 300][300, 1]cpu
  e = _c10d_functional.all_reduce.default(d, 'max', 'fsdp+tp') : f32[8, 300][300, 1]cpu
  f = _c10d_functional.wait_tensor.default(e) : f32[8, 300][300, 1]cpu
  output([f])
)",
                 {4, 300});
}

TEST_CASE("the first rank gathers what ranks hold, each part once") {
  const Mesh mesh = MeshOf("dp_replicate=2,fsdp=2");
  const Sharding rows = OrDie(Sharding::Parse("DTensor(f32[7, 300][300, 1]cpu, RS(0))", mesh));
  const Tensor whole = ValuesOf(9, {7, 300});
  for (const Status& end : OnProcesses(mesh, std::chrono::seconds(20), [&](ProcessTeam& team) {
         return team.Run([&](int64_t rank) -> Status {
           const Tensor gathered = GatherOnFirst(rows, rows.Shard(whole, rank), "w", {0, 4});
           CHECK_EQ(gathered.defined(), rank == 0);
           if (rank == 0) CHECK(at::equal(gathered, whole));
           CHECK_EQ(IsTrueOnAnyRank(rank == 2, "a question"), true);
           CHECK_EQ(IsTrueOnAnyRank(false, "a question"), false);
           return Ok();
         });
       })) {
    CHECK_OK(end);
  }
}

TEST_CASE("processes with different configurations are named") {
  const auto ends = OnProcesses(MeshOf("fsdp=3"), std::chrono::seconds(20), [](ProcessTeam& team) {
    return team.Run([](int64_t rank) -> Status {
      CheckSameOnRanks("graphs", rank == 1 ? "other" : "the same");
      return Ok();
    });
  });
  CHECK_EQ(MessageOf(ends[0]),
           "ranks have different graphs: rank 0 and ranks 1: 'the same' and 'other': start all "
           "with the same program and "
           "configuration");
  CHECK_EQ(MessageOf(ends[1]),
           "ranks have different graphs: rank 1 and ranks 0, 2: 'other' and 'the same': start all "
           "with the same program "
           "and configuration");
}

constexpr std::string_view kSumCall = "_c10d_functional.all_reduce.default(x, 'sum', '{}')";

std::string Sum(std::string_view group) {
  return Body("f32[4][1]cpu", "f32[4][1]cpu", fmt::format(fmt::runtime(kSumCall), group));
}

Status RunSum(std::string_view group, int64_t rank, int times = 1) {
  auto result = RunGraph(Sum(group), ValuesOf(rank, {4}), times);
  return result ? Ok() : Status(std::move(result).error());
}

TEST_CASE("every rank reports a mismatch with both calls and nodes") {
  const auto ends = OnProcesses(MeshOf("fsdp=2"), std::chrono::seconds(20), [](ProcessTeam& team) {
    return team.Run([](int64_t rank) -> Status {
      if (rank == 0) return RunSum("fsdp", rank);
      auto gathered =
          RunGraph(Body("f32[4][1]cpu", "f32[8][1]cpu",
                        "_c10d_functional.all_gather_into_tensor.default(x, 2, 'fsdp')"),
                   ValuesOf(rank, {4}));
      return gathered ? Ok() : Status(std::move(gathered).error());
    });
  });
  for (const Status& end : ends) {
    CHECK_NE(MessageOf(end).find("ranks call different collectives: rank 0 all_reduce(f32[4], sum) "
                                 "over fsdp in y of graph g; rank 1 "
                                 "all_gather_into_tensor(f32[4]) over fsdp in y of graph g"),
             std::string::npos);
  }
}

TEST_CASE("ranks that expect other numbers of rows are named") {
  const auto ends = OnProcesses(MeshOf("fsdp=2"), std::chrono::seconds(20), [](ProcessTeam& team) {
    return team.Run([](int64_t rank) -> Status {
      const std::string_view splits = rank == 0 ? "[2, 2], [2, 2]" : "[1, 3], [1, 3]";
      auto result = RunGraph(Body("f32[4][1]cpu", "f32[4][1]cpu",
                                  fmt::format("_c10d_functional.all_to_all_single.default(x, {}, "
                                              "'fsdp')",
                                              splits)),
                             ValuesOf(rank, {4}));
      return result ? Ok() : Status(std::move(result).error());
    });
  });
  CHECK_NE(MessageOf(ends[0]).find("all_to_all_single(f32) over fsdp: rank 1 gives 4 bytes, 8 are "
                                   "expected"),
           std::string::npos);
  CHECK_NE(MessageOf(ends[1]).find("all_to_all_single(f32) over fsdp: rank 0 gives 8 bytes, 4 are "
                                   "expected"),
           std::string::npos);
}

TEST_CASE("a rank that ends is named by ranks that wait for it and by those that wait for these") {
  // Ranks 0 and 1 are one group of tp, 2 and 3 the other; fsdp connects 0 with 2 and 1 with 3.
  const auto ends =
      OnProcesses(MeshOf("fsdp=2,tp=2"), std::chrono::seconds(20), [](ProcessTeam& team) -> Status {
        if (team.rank() == 3) {
          team.ReportFailure(Error("no memory left: rank 3: give it more"));
          return Ok();  // its connections close
        }
        return team.Run([](int64_t rank) -> Status {
          if (rank == 0) return RunSum("tp", rank);
          return RunSum(rank == 1 ? "fsdp" : "tp", rank);
        });
      });
  for (const int64_t rank : {1, 2}) {
    CHECK_NE(MessageOf(ends[static_cast<size_t>(rank)])
                 .find(fmt::format("rank 3 ended while rank {} waited for it in all_reduce(f32[4], "
                                   "sum) over {} in y of graph g: no memory left: rank 3: "
                                   "give it more",
                                   rank, rank == 1 ? "fsdp" : "tp")),
             std::string::npos);
  }
  const std::string message = MessageOf(ends[0]);
  CHECK_NE(message.find("rank 1 ended while rank 0 waited for it in all_reduce(f32[4], sum) over "
                        "tp"),
           std::string::npos);
  CHECK_NE(message.find("rank 3 ended while rank 1 waited for it in all_reduce(f32[4], sum) over "
                        "fsdp"),
           std::string::npos);
}

TEST_CASE("a rank that does not come is named after the timeout, through those that wait for it") {
  std::latch failed(3);
  const auto ends =
      OnProcesses(MeshOf("fsdp=2,tp=2"), milliseconds(1500), [&](ProcessTeam& team) -> Status {
        if (team.rank() == 3) {
          failed.wait();
          return Ok();
        }
        // Rank 0 begins to wait first, for a rank that waits for the stalled one.
        if (team.rank() != 0) std::this_thread::sleep_for(milliseconds(100));
        Status end = team.Run([](int64_t rank) { return RunSum(rank == 1 ? "fsdp" : "tp", rank); });
        failed.count_down();
        return end;
      });
  CHECK_NE(
      MessageOf(ends[1]).find("waited 1.5 s in all_reduce(f32[4], sum) over fsdp in y of graph "
                              "g for rank 3"),
      std::string::npos);
  CHECK_NE(
      MessageOf(ends[0]).find("waited 1.5 s in all_reduce(f32[4], sum) over tp in y of graph g "
                              "for rank 1, which waits for rank 3 in "
                              "all_reduce(f32[4], sum) over fsdp in y of graph g"),
      std::string::npos);
}

TEST_CASE("processes that do not come are an error that says where they were awaited") {
  const ProcessStore store = OrDie(ProcessStore::Open());
  const ProcessPlace place{.rank = 0, .world = 2, .port = store.port(), .launcher_has_store = true};
  const std::string message =
      MessageOf(ProcessTeam::Connect(MeshOf("fsdp=2"), place, milliseconds(1000)));
  CHECK(message.starts_with(
      fmt::format("the ranks do not meet: rank 0 of 2 at 127.0.0.1:{}: ", store.port())));
  CHECK_EQ(MessageOf(ProcessTeam::Connect(MeshOf("fsdp=3"), place, milliseconds(1000))),
           "the mesh fsdp=3 has 3 ranks, the run has 2 processes");
}

}  // namespace
}  // namespace strata
