#include "viewer/compare/workers.h"

#include <doctest/doctest.h>

namespace strata::viewer {
namespace {

/// Delivers until nothing is left.
void Finish(Workers& workers) {
  while (workers.busy()) {
    if (!workers.Poll()) std::this_thread::yield();
  }
}

TEST_CASE("what a job returns runs on the thread that polls") {
  std::atomic<int> wakes = 0;
  Workers workers([&] { ++wakes; });
  const std::thread::id here = std::this_thread::get_id();
  bool delivered = false, elsewhere = false;
  workers.Post("a", [&](const Outdated&) -> Workers::Deliver {
    elsewhere = std::this_thread::get_id() != here;
    return [&] { delivered = std::this_thread::get_id() == here; };
  });
  CHECK(workers.busy("a"));
  Finish(workers);
  CHECK(delivered);
  CHECK(elsewhere);
  CHECK(wakes == 1);
}

TEST_CASE("a newer job makes the earlier one of its slot outdated") {
  Workers workers([] {});
  std::atomic<bool> started = false;
  bool saw_outdated = false, first = false, second = false;
  workers.Post("a", [&](const Outdated& outdated) -> Workers::Deliver {
    started = true;
    while (!outdated)
      std::this_thread::yield();
    saw_outdated = true;
    return [&] { first = true; };
  });
  while (!started)
    std::this_thread::yield();
  workers.Post("a", [&](const Outdated&) -> Workers::Deliver { return [&] { second = true; }; });
  Finish(workers);
  CHECK(second);
  CHECK_FALSE(first);
  while (!saw_outdated)
    std::this_thread::yield();
}

TEST_CASE("a job ahead delivers, and leaves the workers idle") {
  Workers workers([] {});
  bool delivered = false;
  workers.PostAhead("a",
                    [&](const Outdated&) -> Workers::Deliver { return [&] { delivered = true; }; });
  CHECK_FALSE(workers.busy());
  CHECK(workers.busy("a"));
  while (workers.busy("a")) {
    if (!workers.Poll()) std::this_thread::yield();
  }
  CHECK(delivered);
}

TEST_CASE("jobs ahead leave a thread to what the user waits for") {
  Workers workers([] {});
  std::atomic<bool> go = false;
  std::atomic<int> ahead = 0;
  // A job whose slot was cancelled goes on until it asks whether it is outdated.
  for (const char* slot : {"a", "b", "c", "d"}) {
    workers.PostAhead(slot, [&](const Outdated&) -> Workers::Deliver {
      ++ahead;
      while (!go)
        std::this_thread::yield();
      return {};
    });
  }
  while (ahead < 2)
    std::this_thread::yield();
  bool delivered = false;
  workers.Post("now",
               [&](const Outdated&) -> Workers::Deliver { return [&] { delivered = true; }; });
  Finish(workers);
  CHECK(delivered);
  CHECK(ahead == 2);
  go = true;
  while (ahead < 4)
    std::this_thread::yield();
}

TEST_CASE("what is disposed of is destroyed on a worker") {
  std::atomic<bool> elsewhere = false, gone = false;
  const std::thread::id here = std::this_thread::get_id();
  Workers workers([] {});
  workers.Dispose(std::shared_ptr<int>(new int(1), [&](const int* object) {
    elsewhere = std::this_thread::get_id() != here;
    delete object;
    gone = true;
  }));
  while (!gone)
    std::this_thread::yield();
  CHECK(elsewhere);
  CHECK_FALSE(workers.busy());
}

TEST_CASE("a job that waits and one that was cancelled never deliver") {
  Workers workers([] {}, 1);
  std::atomic<bool> go = false;
  int delivered = 0;
  workers.Post("slow", [&](const Outdated&) -> Workers::Deliver {
    while (!go)
      std::this_thread::yield();
    return [&] { ++delivered; };
  });
  workers.Post("b", [&](const Outdated&) -> Workers::Deliver { return [&] { delivered += 10; }; });
  workers.Post("b", [&](const Outdated&) -> Workers::Deliver { return [&] { delivered += 100; }; });
  workers.Cancel("slow");
  go = true;
  Finish(workers);
  CHECK(delivered == 100);
}

}  // namespace
}  // namespace strata::viewer
