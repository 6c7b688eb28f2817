#include "runtime/ranks/processes/peer_memory.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace strata {
namespace {

constexpr uint32_t kCardTag = 3;

/// Equal in processes whose ids mean the same: of one boot of a machine, in one namespace.
uint64_t Machine() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  struct stat space{};
  if (id.empty() || ::stat("/proc/self/ns/pid", &space) != 0) return 0;
  return std::hash<std::string>()(id + std::to_string(space.st_ino));
}

}  // namespace

/// How a process is found, and what is in its memory.
struct PeerMemory::Card {
  uint64_t machine = 0;  ///< 0: unknown
  uint64_t address = 0;  ///< of the card
  uint64_t secret = 0;
  int32_t pid = 0;
};

PeerMemory::PeerMemory(GlooLinks& links, int64_t rank, int64_t world,
                       std::chrono::milliseconds timeout)
    : mine_(std::make_unique<Card>()), pids_(static_cast<size_t>(world)) {
  std::random_device random;
  *mine_ = {.machine = Machine(),
            .address = reinterpret_cast<uint64_t>(mine_.get()),
            .secret = uint64_t{random()} << 32 | random(),
            .pid = ::getpid()};
  std::vector<Card> cards(static_cast<size_t>(world));
  std::vector<std::unique_ptr<GlooLinks::Transfer>> sent, received;
  for (int64_t other = 0; other < world; ++other) {
    if (other == rank) continue;
    received.push_back(links.Receive(
        other, kCardTag, std::as_writable_bytes(std::span(&cards[static_cast<size_t>(other)], 1))));
    sent.push_back(links.Send(other, kCardTag, std::as_bytes(std::span(mine_.get(), 1))));
  }
  for (auto* const transfers : {&received, &sent}) {
    for (const std::unique_ptr<GlooLinks::Transfer>& transfer : *transfers) {
      if (transfer->Wait(timeout) != GlooLinks::Outcome::kDone) return;
    }
  }
  for (size_t other = 0; other < cards.size(); ++other) {
    const Card& card = cards[other];
    if (card.machine == 0 || card.machine != mine_->machine) continue;
    pids_[other] = card.pid;
    Card seen;
    const bool is_read = Read(static_cast<int64_t>(other), card.address,
                              std::as_writable_bytes(std::span(&seen, 1)));
    if (!is_read || seen.secret != card.secret) pids_[other] = 0;
  }
}

PeerMemory::~PeerMemory() = default;

bool PeerMemory::Read(int64_t rank, uint64_t address, std::span<std::byte> target) const {
  constexpr size_t kMost = size_t{1} << 30;  // of a call
  while (!target.empty()) {
    const iovec local{.iov_base = target.data(), .iov_len = std::min(target.size(), kMost)};
    const iovec remote{.iov_base = reinterpret_cast<void*>(address), .iov_len = local.iov_len};
    const ssize_t count =
        ::process_vm_readv(pids_[static_cast<size_t>(rank)], &local, 1, &remote, 1, 0);
    if (count <= 0) return false;
    target = target.subspan(static_cast<size_t>(count));
    address += static_cast<uint64_t>(count);
  }
  return true;
}

}  // namespace strata
