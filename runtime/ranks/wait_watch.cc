#include "runtime/ranks/wait_watch.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <set>

#include <fmt/format.h>

#include "base/interrupt.h"

namespace strata {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::string WaitKey(int64_t rank) {
  return fmt::format("waits/{}", rank);
}
std::string FailureKey(int64_t rank) {
  return fmt::format("failed/{}", rank);
}

}  // namespace

WaitWatch::WaitWatch(GlooLinks& links, int64_t rank, milliseconds grace)
    : links_(links), rank_(rank), grace_(grace), publisher_([this] { Publish(); }), guard_([this] {
        Guard();
      }) {}

WaitWatch::~WaitWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  publisher_.join();
  {
    // The guard goes last: the store may hang, too.
    const std::lock_guard lock(mutex_);
    is_gone_ = true;
  }
  changed_.notify_all();
  guard_.join();
}

void WaitWatch::set_timeout(milliseconds timeout) {
  const std::lock_guard lock(mutex_);
  timeout_ = timeout;
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
    if (!failure_.empty()) return;  // the first failure is the cause
    failure_ = why;
    failed_ = steady_clock::now();
  }
  links_.Put(FailureKey(rank_), why);
}

bool WaitWatch::has_failed() const {
  const std::lock_guard lock(mutex_);
  return !failure_.empty();
}

std::string WaitWatch::WhyStuck() const {
  const auto now = steady_clock::now();
  if (!failure_.empty()) return now - failed_ >= grace_ ? failure_ : "";
  if (on_ < 0 || timeout_ == milliseconds(0) || now - since_ < timeout_ + grace_) return "";
  return fmt::format("waited {} s in {} for rank {}",
                     std::chrono::duration<double>(timeout_).count(), where_, on_);
}

void WaitWatch::Guard() {
  std::unique_lock lock(mutex_);
  while (!is_gone_) {
    changed_.wait_for(lock, std::min<milliseconds>(grace_, std::chrono::seconds(1)));
    const std::string why = WhyStuck();
    if (why.empty() || is_gone_) continue;
    fmt::print(stderr, "strata: error: rank {}: {}\n", rank_, why);
    std::fflush(stderr);
    RemoveTemporaryAndExit(2);
  }
}

}  // namespace strata
