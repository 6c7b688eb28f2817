#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace strata {

/// Runs the collectives that a rank launches, one after the other in the order of the launches,
/// beside the rank's thread. A rank that waits for one that has not begun runs it itself.
class CommThread {
 public:
  using Work = std::function<void()>;

  /// `threads`: inside operators.
  explicit CommThread(int threads);
  ~CommThread();
  CommThread(const CommThread&) = delete;
  CommThread& operator=(const CommThread&) = delete;

  // By the rank's thread. After work threw, the rest is dropped, and all three throw the same.

  /// `result` names the work for `Wait`.
  void Launch(const void* result, Work work);
  /// Until the last work launched for `result` is done; at once if there is none.
  void Wait(const void* result);
  void WaitForAll();
  /// The same, without an exception; what threw is forgotten.
  void Drain() noexcept;

 private:
  using Lock = std::unique_lock<std::mutex>;
  void Loop(int threads);
  void RunNext(Lock& lock);
  void WaitFor(uint64_t ticket);

  std::map<const void*, uint64_t> tickets_;  // of the rank's thread: number of the launch
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  uint64_t launched_ = 0, done_ = 0;
  bool is_running_ = false, ends_ = false;
  std::exception_ptr thrown_;
  std::thread thread_;
};

}  // namespace strata
