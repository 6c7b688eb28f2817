#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "runtime/ranks/processes/gloo_links.h"

namespace strata {

/// What a process waits for, published in the store when it takes long; and from the store, whom
/// the ranks that others wait for wait for in their turn.
class WaitWatch {
 public:
  /// REQUIRES: `links` outlives this.
  WaitWatch(GlooLinks& links, int64_t rank);
  ~WaitWatch();

  /// Waits of at least a quarter of `timeout`, at most a second, are published.
  void set_timeout(std::chrono::milliseconds timeout);

  /// The rank now waits for `on` in `where`, a call and its node.
  void Begin(int64_t on, const std::string& where);
  void End();

  /// `, which waits for rank 3 in all_reduce(…) of …`, as often as ranks published that, from
  /// `rank` on; and why the last one failed, if it did.
  std::string Chain(int64_t rank);
  /// Publishes why this rank fails.
  void Fail(const std::string& why);
  /// `rank 3: …` of another rank that failed.
  std::optional<std::string> FindFailure();

 private:
  void Publish();

  GlooLinks& links_;
  int64_t rank_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::chrono::milliseconds patience_{1000};
  int64_t on_ = -1;  // the rank that is waited for
  std::string where_;
  std::chrono::steady_clock::time_point since_;
  bool is_published_ = false;
  bool has_failed_ = false;
  std::thread thread_;
};

}  // namespace strata
