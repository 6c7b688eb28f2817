#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/ranks/processes/gloo_links.h"

namespace strata {

/// The memory of those processes of a run that are on this machine, as far as the system lets this
/// process read it: process_vm_readv(2) copies once, a connection of the loopback twice and with
/// more work of the processor.
class PeerMemory {
 public:
  /// All processes call it, after they are connected. One that does not answer in time cannot be
  /// read.
  PeerMemory(GlooLinks& links, int64_t rank, int64_t world, std::chrono::milliseconds timeout);
  ~PeerMemory();

  bool CanRead(int64_t rank) const { return pids_[static_cast<size_t>(rank)] != 0; }
  /// Copies what is at `address` in the process of `rank`. False: the process is gone, or the
  /// memory. REQUIRES: CanRead(rank); the memory stays as it is.
  bool Read(int64_t rank, uint64_t address, std::span<std::byte> target) const;

 private:
  struct Card;
  std::unique_ptr<Card> mine_;  // others read it to see whether they can
  std::vector<int32_t> pids_;   // by rank; 0: cannot be read
};

}  // namespace strata
