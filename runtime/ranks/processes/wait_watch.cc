#include "runtime/ranks/processes/wait_watch.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

namespace strata {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kAnyFailure = "failed";

std::string WaitKey(int64_t rank) {
  return fmt::format("waits/{}", rank);
}
std::string FailureKey(int64_t rank) {
  return fmt::format("failed/{}", rank);
}

}  // namespace

WaitWatch::WaitWatch(GlooLinks& links, int64_t rank)
    : links_(links), rank_(rank), thread_([this] { Publish(); }) {}

WaitWatch::~WaitWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WaitWatch::set_timeout(milliseconds timeout) {
  const std::lock_guard lock(mutex_);
  patience_ = std::min<milliseconds>(timeout / 4, std::chrono::seconds(1));
}

void WaitWatch::Begin(int64_t on, const std::string& where) {
  const std::lock_guard lock(mutex_);
  on_ = on;
  where_ = where;
  since_ = steady_clock::now();
}

void WaitWatch::End() {
  const std::lock_guard lock(mutex_);
  on_ = -1;
}

void WaitWatch::Publish() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    changed_.wait_for(lock,
                      std::clamp<milliseconds>(patience_ / 2, milliseconds(5), milliseconds(250)));
    const bool waits = on_ >= 0 && steady_clock::now() - since_ >= patience_;
    if (waits == is_published_ && !waits) continue;
    const std::string value = waits ? fmt::format("{} {}", on_, where_) : "";
    is_published_ = waits;
    lock.unlock();
    links_.Put(WaitKey(rank_), value);
    lock.lock();
  }
}

std::string WaitWatch::Chain(int64_t rank) {
  std::string text;
  std::set<int64_t> seen = {rank_};
  while (seen.insert(rank).second) {
    if (const auto failure = links_.Find(FailureKey(rank))) return text + ": " + *failure;
    const std::string wait = links_.Find(WaitKey(rank)).value_or("");
    int64_t next = -1;
    const auto [end, error] = std::from_chars(wait.data(), wait.data() + wait.size(), next);
    if (error != std::errc() || next < 0) break;
    text += fmt::format(", which waits for rank {} in{}", next,
                        std::string_view(end, wait.data() + wait.size()));
    rank = next;
  }
  return text;
}

void WaitWatch::Fail(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (has_failed_) return;  // the first failure is the cause
    has_failed_ = true;
  }
  links_.Put(FailureKey(rank_), why);
  links_.Put(kAnyFailure, fmt::format("rank {}: {}", rank_, why));
}

std::optional<std::string> WaitWatch::FindFailure() {
  std::optional<std::string> failure = links_.Find(kAnyFailure);
  if (failure && failure->starts_with(fmt::format("rank {}: ", rank_))) return std::nullopt;
  return failure;
}

}  // namespace strata
