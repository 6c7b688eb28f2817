#include "runtime/ranks/wait_watch.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <doctest/doctest.h>

#include "base/interrupt.h"
#include "runtime/ranks/gloo_links.h"
#include "tests/support/fake_cpu_device.h"

namespace strata {
namespace {

using std::chrono::milliseconds;
using testing::OrDie;

struct End {
  int status = 0;  // as of waitpid
  std::string errors;
};

/// How a process of rank 2 ends that does `work` and then hangs.
End EndOf(const std::function<void(WaitWatch&)>& work) {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe[1], STDERR_FILENO);
    ::alarm(60);
    const ProcessStore store = OrDie(ProcessStore::Open());
    const ProcessPlace place{
        .rank = 0, .world = 1, .port = store.port(), .launcher_has_store = true};
    const auto links = OrDie(GlooLinks::Connect(place, std::chrono::seconds(20)));
    WaitWatch watch(*links, 2, milliseconds(50));
    watch.set_timeout(milliseconds(20));
    work(watch);
    while (true)
      std::this_thread::sleep_for(milliseconds(10));
  }
  ::close(pipe[1]);
  End end;
  std::array<char, 256> bytes{};
  for (ssize_t count = 0; (count = ::read(pipe[0], bytes.data(), bytes.size())) > 0;)
    end.errors.append(bytes.data(), static_cast<size_t>(count));
  ::close(pipe[0]);
  REQUIRE(::waitpid(child, &end.status, 0) == child);
  return end;
}

TEST_CASE("ranks: a process whose wait does not end after the timeout ends with the error") {
  const std::string path = std::filesystem::temp_directory_path() / "strata-wait-watch-test";
  std::filesystem::create_directory(path);
  const End end = EndOf([&](WaitWatch& watch) {
    static const TemporaryPath left(path);
    watch.Begin(3, "all_reduce(f32[2], sum) over fsdp in mm");
  });
  CHECK(WIFEXITED(end.status));
  CHECK(WEXITSTATUS(end.status) == 2);
  CHECK(end.errors ==
        "strata: error: rank 2: waited 0.02 s in all_reduce(f32[2], sum) over fsdp in mm for rank "
        "3\n");
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("ranks: a process that is still there long after its failure ends with it") {
  const End end = EndOf([](WaitWatch& watch) { watch.Fail("rank 1 ended"); });
  CHECK(WIFEXITED(end.status));
  CHECK(WEXITSTATUS(end.status) == 2);
  CHECK(end.errors == "strata: error: rank 2: rank 1 ended\n");
}

}  // namespace
}  // namespace strata
