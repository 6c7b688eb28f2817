#include "runtime/ranks/processes/process_place.h"

#include <map>
#include <string>

#include <doctest/doctest.h>

#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;

Result<std::optional<ProcessPlace>> From(const std::map<std::string, std::string>& variables) {
  return ProcessPlace::FromLauncher([&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
}

ProcessPlace PlaceFrom(const std::map<std::string, std::string>& variables) {
  const std::optional<ProcessPlace> place = OrDie(From(variables));
  REQUIRE(place.has_value());
  return *place;
}

TEST_CASE("torchrun's variables place a process") {
  const ProcessPlace place = PlaceFrom({{"RANK", "5"},
                                        {"WORLD_SIZE", "8"},
                                        {"LOCAL_RANK", "1"},
                                        {"LOCAL_WORLD_SIZE", "4"},
                                        {"MASTER_ADDR", "node7"},
                                        {"MASTER_PORT", "29501"},
                                        {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                        {"TORCHELASTIC_RESTART_COUNT", "2"}});
  CHECK_EQ(place.rank, 5);
  CHECK_EQ(place.world, 8);
  CHECK_EQ(place.local_world, 4);
  CHECK_EQ(place.local_rank, 1);
  CHECK_EQ(place.address, "node7");
  CHECK_EQ(place.port, 29501);
  CHECK(place.launcher_has_store);
  CHECK_EQ(place.attempt, "2");
}

TEST_CASE("a rank sees the GPU of its number on the machine, as the launcher left them") {
  const auto gpu_of = [](int64_t local_rank, std::string visible) {
    const ProcessPlace place{.rank = 9, .world = 16, .local_rank = local_rank};
    return place.VisibleGpu([&](const std::string& name) {
      return name == "CUDA_VISIBLE_DEVICES" ? visible : std::string();
    });
  };
  CHECK_EQ(OrDie(gpu_of(1, "")), "1");
  CHECK_EQ(OrDie(gpu_of(1, "4,6")), "6");
  CHECK_EQ(OrDie(gpu_of(1, "GPU-a9c4,GPU-17b0")), "GPU-17b0");
  CHECK_EQ(OrDie(gpu_of(3, "5")), "5");  // chosen for this process
  CHECK_EQ(MessageOf(gpu_of(2, "4,6")),
           "fewer GPUs than ranks of this machine: CUDA_VISIBLE_DEVICES='4,6': rank 9 is number 2 "
           "here");
}

TEST_CASE("without a launcher, and in a world of one, there is no place") {
  CHECK(!OrDie(From({})));
  CHECK(!OrDie(From({{"RANK", "0"}, {"WORLD_SIZE", "1"}})));
  // A shell that Slurm started.
  CHECK(!OrDie(From({{"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "17"}})));
}

TEST_CASE("srun's ranks meet on the first machine of the step") {
  const auto first = [](std::string list) {
    return PlaceFrom({{"SLURM_PROCID", "3"},
                      {"SLURM_STEP_NUM_TASKS", "6"},
                      {"SLURM_STEP_TASKS_PER_NODE", "2(x3)"},
                      {"SLURM_STEP_NODELIST", std::move(list)},
                      {"SLURM_JOB_ID", "4711"},
                      {"SLURM_STEP_ID", "0"}});
  };
  CHECK_EQ(first("node[03-05,07],login1").address, "node03");
  CHECK_EQ(first("node[11,13]").address, "node11");
  CHECK_EQ(first("a1,node[2-3]").address, "a1");
  CHECK_EQ(first("gpu4").address, "gpu4");
  CHECK_EQ(first("gpu4").rank, 3);
  CHECK_EQ(first("gpu4").local_world, 2);
  CHECK_GE(first("gpu4").port, 15'000);
  CHECK_EQ(first("gpu4").port, first("other").port);  // of the job
}

TEST_CASE("mpirun's ranks on one machine meet there, others need an address") {
  std::map<std::string, std::string> variables = {{"OMPI_COMM_WORLD_RANK", "1"},
                                                  {"OMPI_COMM_WORLD_SIZE", "2"},
                                                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                                  {"PMIX_NAMESPACE", "prterun-host-77@1"}};
  CHECK_EQ(PlaceFrom(variables).address, "127.0.0.1");
  variables["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";
  CHECK_EQ(MessageOf(From(variables)),
           "a variable of the launcher is missing: MASTER_ADDR: mpirun set OMPI_COMM_WORLD_RANK; "
           "set it, or unset OMPI_COMM_WORLD_RANK");
  variables["MASTER_ADDR"] = "host3";
  CHECK_EQ(PlaceFrom(variables).address, "host3");
}

TEST_CASE("incomplete and impossible variables are errors that name them") {
  CHECK_EQ(MessageOf(From({{"RANK", "1"}})),
           "a variable of the launcher is missing: WORLD_SIZE: torchrun set RANK; set it, or unset "
           "RANK");
  CHECK_EQ(MessageOf(From({{"RANK", "2"}, {"WORLD_SIZE", "2"}})),
           "not a number from 0 to 1: RANK='2': set what the launcher sets, or unset it");
  CHECK_EQ(MessageOf(From({{"RANK", "1"}, {"WORLD_SIZE", "2x"}})),
           "not a number from 1 to 1048576: WORLD_SIZE='2x': set what the launcher sets, or unset "
           "it");
  CHECK_EQ(MessageOf(From({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}})),
           "a variable of the launcher is missing: MASTER_PORT: torchrun set RANK; set it, or "
           "unset RANK");
}

}  // namespace
}  // namespace strata
