#include "runtime/aten/parallel.h"

#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <ATen/Parallel.h>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace strata {
namespace {

using Part = std::pair<int64_t, int64_t>;

/// By part, the thread that had it.
std::map<Part, std::thread::id> Parts(int64_t count, int64_t grain) {
  std::mutex mutex;
  std::map<Part, std::thread::id> parts;
  ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
    const std::scoped_lock lock(mutex);
    parts[{begin, end}] = std::this_thread::get_id();
  });
  return parts;
}

struct Threads {
  explicit Threads(int count) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(1); }
};

TEST_CASE("ATen's threads are of the only OpenMP that is loaded") {
  const Threads threads(2);
  CHECK_EQ(Parts(2, 1).size(), 2);
  std::set<std::string> libraries;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t name = line.rfind('/');
    if (name == std::string::npos) continue;
    for (const char* open_mp : {"/libgomp", "/libomp", "/libiomp"}) {
      if (line.substr(name).starts_with(open_mp)) libraries.insert(line.substr(line.find('/')));
    }
  }
  INFO(fmt::format("{}", fmt::join(libraries, " ")));
  CHECK_EQ(libraries.size(), 1);
}

TEST_CASE("each of ATen's threads gets a part") {
  const Threads threads(3);
  const auto parts = Parts(10, 1);
  REQUIRE_EQ(parts.size(), 3);
  CHECK(parts.contains({0, 4}));
  CHECK(parts.contains({4, 8}));
  CHECK(parts.contains({8, 10}));
  CHECK_NE(parts.at({0, 4}), parts.at({4, 8}));
  CHECK_NE(parts.at({4, 8}), parts.at({8, 10}));
  CHECK_EQ(parts.at({0, 4}), std::this_thread::get_id());
}

TEST_CASE("parts are not smaller than they are worth, and one thread is asked for no help") {
  {
    const Threads threads(3);
    CHECK_EQ(Parts(10, 5).size(), 2);
    CHECK_EQ(Parts(10, 10).size(), 1);
    CHECK(Parts(0, 1).empty());
  }
  const auto parts = Parts(10, 1);
  REQUIRE_EQ(parts.size(), 1);
  CHECK_EQ(parts.begin()->second, std::this_thread::get_id());
}

TEST_CASE("what a part throws is thrown again when all are done") {
  const Threads threads(2);
  CHECK_THROWS_WITH_AS(ParallelFor(2, 1,
                                   [](int64_t begin, int64_t) {
                                     if (begin == 1) throw std::runtime_error("second part");
                                   }),
                       "second part", std::runtime_error);
}

TEST_CASE("a part that shares its work does it alone") {
  const Threads threads(2);
  std::mutex mutex;
  std::map<std::thread::id, int64_t> inner;
  ParallelFor(2, 1, [&](int64_t, int64_t) {
    ParallelFor(100, 1, [&](int64_t begin, int64_t end) {
      const std::scoped_lock lock(mutex);
      inner[std::this_thread::get_id()] += end - begin;
    });
  });
  CHECK_EQ(inner.size(), 2);
  for (const auto& [thread, count] : inner)
    CHECK_EQ(count, 100);
}

}  // namespace
}  // namespace strata
