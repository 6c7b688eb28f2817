#include "runtime/aten/threads.h"

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <ATen/Parallel.h>

#include <doctest/doctest.h>

#include "runtime/aten/parallel.h"

namespace strata {
namespace {

using Files = std::map<std::string, std::string>;

int Cores(const std::vector<int>& processors, const Files& files) {
  return PhysicalCores(processors, [&](const std::string& path) -> std::optional<std::string> {
    const auto file = files.find(path);
    if (file == files.end()) return std::nullopt;
    return file->second;
  });
}

/// Processors 0 and 2, and 1 and 3, share a core.
const Files kTwoCores = {
    {"/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,2\n"},
    {"/sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1,3\n"},
    {"/sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "0,2\n"},
    {"/sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "1,3\n"},
};

Files With(Files files, const Files& more) {
  files.insert(more.begin(), more.end());
  return files;
}

TEST_CASE(
    "PhysicalCores: processors of one core count once, those outside of the mask not at all") {
  CHECK_EQ(Cores({0, 1, 2, 3}, kTwoCores), 2);
  CHECK_EQ(Cores({0, 2}, kTwoCores), 1);
  CHECK_EQ(Cores({2, 3}, kTwoCores), 2);
  CHECK_EQ(Cores({3}, kTwoCores), 1);
}

TEST_CASE("PhysicalCores: /proc/cpuinfo stands in for sysfs") {
  const Files files = {{"/proc/cpuinfo",
                        "processor\t: 0\nmodel name\t: Xeon: 2 GHz\nphysical id\t: 0\n"
                        "core id\t\t: 0\n\n"
                        "processor\t: 1\nphysical id\t: 0\ncore id\t\t: 0\n\n"
                        "processor\t: 2\nphysical id\t: 1\ncore id\t\t: 0\n\n"
                        "processor\t: 3\nphysical id\t: 1\ncore id\t\t: 1\n"}};
  CHECK_EQ(Cores({0, 1, 2, 3}, files), 3);
  CHECK_EQ(Cores({0, 1}, files), 1);
  CHECK_EQ(Cores({1, 2}, files), 2);
}

TEST_CASE("PhysicalCores: processors of unknown cores are cores") {
  CHECK_EQ(Cores({0, 1, 5}, {}), 3);
  CHECK_EQ(Cores({0, 1, 2}, {{"/proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 50.00\n"}}), 3);
  CHECK_EQ(Cores({}, {}), 1);
}

TEST_CASE("PhysicalCores: a control group of version 2 limits them, and so do those around it") {
  const std::vector<int> all = {0, 1, 2, 3};
  const Files group = {{"/proc/self/cgroup", "0::/pod/container\n"}};
  CHECK_EQ(Cores(all, group), 4);
  CHECK_EQ(Cores(all, With(group, {{"/sys/fs/cgroup/pod/container/cpu.max", "max 100000\n"}})), 4);
  CHECK_EQ(Cores(all, With(group, {{"/sys/fs/cgroup/pod/container/cpu.max", "250000 100000\n"}})),
           2);
  CHECK_EQ(Cores(all, With(group, {{"/sys/fs/cgroup/pod/container/cpu.max", "50000 100000\n"}})),
           1);
  CHECK_EQ(Cores(all, With(group, {{"/sys/fs/cgroup/pod/container/cpu.max", "400000 100000\n"},
                                   {"/sys/fs/cgroup/pod/cpu.max", "300000 100000\n"}})),
           3);
  // A container sees its own group as the root.
  CHECK_EQ(
      Cores(all, {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "200000 100000\n"}}),
      2);
}

TEST_CASE("PhysicalCores: a control group of version 1 limits them") {
  const std::vector<int> all = {0, 1, 2, 3};
  const Files group = {{"/proc/self/cgroup", "9:memory:/\n4:cpu,cpuacct:/docker/1\n0::/\n"}};
  const std::string folder = "/sys/fs/cgroup/cpu,cpuacct/docker/1/";
  CHECK_EQ(Cores(all, With(group, {{folder + "cpu.cfs_quota_us", "-1\n"},
                                   {folder + "cpu.cfs_period_us", "100000\n"}})),
           4);
  CHECK_EQ(Cores(all, With(group, {{folder + "cpu.cfs_quota_us", "200000\n"},
                                   {folder + "cpu.cfs_period_us", "100000\n"}})),
           2);
  CHECK_EQ(Cores(all, With(group, {{"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "100000\n"},
                                   {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"}})),
           1);
}

TEST_CASE("PhysicalCores: damaged files limit nothing") {
  for (const char* text : {"", "max", "x y\n", "100000 0\n", "-1 100000\n", "1 2 3\n"}) {
    CHECK_EQ(Cores({0, 1}, {{"/proc/self/cgroup", "0::/\nnonsense\n:\n"},
                            {"/sys/fs/cgroup/cpu.max", text}}),
             2);
  }
}

TEST_CASE("ThreadsFrom: OMP_NUM_THREADS, else the cores") {
  CHECK_EQ(ThreadsFrom(nullptr, 6), 6);
  CHECK_EQ(ThreadsFrom("3", 6), 3);
  CHECK_EQ(ThreadsFrom(" 8 ", 6), 8);
  CHECK_EQ(ThreadsFrom("4,2,1", 6), 4);
  CHECK_EQ(ThreadsFrom("1000000", 6), kMaxThreads);
  for (const char* text : {"", "0", "-2", "many", "2x", ",4"})
    CHECK_EQ(ThreadsFrom(text, 6), 6);
}

TEST_CASE("ChooseThreads: what is asked for, else OMP_NUM_THREADS, else the cores") {
  const char* const variable = std::getenv("OMP_NUM_THREADS");
  const std::string before = variable != nullptr ? variable : "";
  ::setenv("OMP_NUM_THREADS", "3", /*overwrite=*/1);
  CHECK_EQ(ChooseThreads(0), 3);
  CHECK_EQ(ChooseThreads(2), 2);
  ::unsetenv("OMP_NUM_THREADS");
  CHECK_GE(ChooseThreads(0), 1);
  CHECK_EQ(ChooseThreads(2), 2);
  if (variable != nullptr) ::setenv("OMP_NUM_THREADS", before.c_str(), /*overwrite=*/1);
}

TEST_CASE("SetThreads: ATen's operators and ParallelFor follow it") {
  for (const int threads : {3, 1}) {
    SetThreads(threads);
    CHECK_EQ(NumThreads(), threads);
    CHECK_EQ(at::get_num_threads(), threads);
    std::vector<int> seen(static_cast<size_t>(threads), 0);
    ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        seen[static_cast<size_t>(i)] = at::get_thread_num();
    });
    for (int i = 0; i < threads; ++i)
      CHECK_EQ(seen[static_cast<size_t>(i)], i);
  }
}

}  // namespace
}  // namespace strata
