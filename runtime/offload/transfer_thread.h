#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

namespace strata {

/// Copies memory on a thread of its own, one copy after the other, in the order of `Start`.
class TransferThread {
 public:
  /// Which copy: 1 for the first; 0 is complete from the beginning.
  using Ticket = int64_t;

  TransferThread();
  TransferThread(const TransferThread&) = delete;
  TransferThread& operator=(const TransferThread&) = delete;
  /// Waits for all copies.
  ~TransferThread();

  /// Starts a copy. REQUIRES: until it is complete, nothing writes to `from`, and nothing reads or
  /// writes `to`; the two do not overlap.
  Ticket Start(void* to, const void* from, size_t bytes);
  /// Returns when a copy, and so all earlier ones, is complete.
  void Wait(Ticket ticket);
  void WaitForAll();

 private:
  struct Copy {
    void* to = nullptr;
    const void* from = nullptr;
    size_t bytes = 0;
  };
  void Work();

  std::mutex mutex_;
  std::condition_variable started_, completed_;
  std::deque<Copy> open_;
  Ticket last_started_ = 0, last_completed_ = 0;
  bool is_ending_ = false;
  std::thread thread_;  // last: reads what is above
};

}  // namespace strata
