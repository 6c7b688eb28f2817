#pragma once
#include <cstdint>
#include <memory>

namespace strata {

/// Counts the bytes that ATen's CPU allocator gives to the calling thread, from construction to
/// destruction. Earlier allocations do not count. REQUIRES: one at a time per thread.
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
