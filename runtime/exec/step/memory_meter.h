#pragma once
#include <cstdint>
#include <memory>

namespace strata {

/// Counts the bytes that ATen's CPU allocator hands out to the calling thread, while it lives. What
/// was there before does not count. One at a time per thread.
class MemoryMeter {
 public:
  MemoryMeter();
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;
  ~MemoryMeter();

  int64_t peak_bytes() const;
  /// Handed out less taken back: negative when what was there before went.
  int64_t live_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace strata
