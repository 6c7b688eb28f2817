#include "runtime/ranks/processes/process_team.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>

#include <c10/util/Exception.h>

#include <fmt/format.h>

#include "runtime/ranks/device_collectives.h"
#include "runtime/ranks/processes/device_watch.h"
#include "runtime/ranks/processes/gloo_links.h"
#include "runtime/ranks/processes/peer_memory.h"
#include "runtime/ranks/processes/process_messages.h"
#include "runtime/ranks/processes/wait_watch.h"

namespace strata {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Transfer = GlooLinks::Transfer;

constexpr uint32_t kHeadTag = 1, kBodyTag = 2, kReadTag = 4;

/// Parts of this size are read from the memory of the process that gives them, where that is
/// possible. Below it, the message that they are read costs as much as the part.
constexpr size_t kDirect = size_t{64} << 10;

/// What a member says before it sends: who receives it sees whether both mean the same exchange.
/// Small parts travel inside.
struct Head {
  static constexpr size_t kText = 480, kSmall = 512;

  uint64_t call_hash = 0;  ///< of the whole text
  uint64_t gives = 0;      ///< bytes, to the receiver
  uint64_t expects = 0;    ///< bytes, from the receiver
  uint64_t address = 0;    ///< of what it gives
  uint64_t reads = 0;      ///< 1: it reads what it expects from the receiver's memory
  std::array<char, kText> call = {}, node = {};
  std::array<std::byte, kSmall> small = {};
};

/// As much of the text as there is room for, ended by a zero.
void Store(std::string_view text, std::array<char, Head::kText>& room) {
  const size_t length = std::min(text.size(), room.size() - 1);
  std::memcpy(room.data(), text.data(), length);
  room[length] = 0;
}

uint64_t Hash(std::string_view text) {
  uint64_t hash = 14695981039346656037U;  // FNV-1a: equal in all processes
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

std::span<std::byte> BytesOf(Head& head) {
  return std::as_writable_bytes(std::span(&head, 1));
}

std::string CallPlace(std::string_view call, std::string_view node) {
  return fmt::format("{}{}{}", call, node.empty() ? "" : " in ", node);
}

}  // namespace

struct ProcessTeam::State {
  State(std::unique_ptr<GlooLinks> made, const ProcessPlace& place, milliseconds time)
      : links(std::move(made)),
        rank(place.rank),
        memory(*links, place.rank, place.world, time),
        watch(*links, place.rank),
        messages(*links, watch, place.rank) {}

  std::unique_ptr<GlooLinks> links;
  int64_t rank;
  PeerMemory memory;
  WaitWatch watch;
  ProcessMessages messages;
  milliseconds timeout{0};
  std::map<std::string, std::unique_ptr<Member>> groups;
  std::unique_ptr<DeviceCollectives> device;  // null: the CPU
  std::unique_ptr<DeviceWatch> device_watch;
};

// --- Groups --------------------------------------------------------------------------------------

class ProcessTeam::Member final : public RankGroup {
 public:
  Member(State& team, std::string name, std::vector<int64_t> ranks, size_t index)
      : RankGroup(std::move(name), std::move(ranks), index), team_(team), peers_(size()) {}

  std::vector<ByteSpan> Exchange(Offer offer) override {
    WaitForSends(team_.timeout);
    offer.call += fmt::format(" over {}", name());
    deadline_ = steady_clock::now() + team_.timeout;
    node_ = offer.node;
    where_ = CallPlace(offer.call, node_);
    offers_.push_back(std::move(offer));  // until `Leave`: others read its parts
    const Offer& mine = offers_.back();
    const std::vector<std::span<std::byte>> places = Places(mine);
    SendHeads(mine, places);
    ReceiveHeads(mine);
    std::vector<ByteSpan> received;
    for (size_t i = 0; i < size(); ++i) {
      if (i != index() && IsLarge(mine.parts[i].size())) SendBody(i, mine.parts[i]);
    }
    for (size_t i = 0; i < size(); ++i) {
      if (i == index()) {
        received.push_back(mine.parts[i]);
        continue;
      }
      if (Reads(i, mine.expects[i])) ReadBody(i, places[i]);
      if (peers_[i].body) Finish(i, *std::exchange(peers_[i].body, nullptr));
      received.push_back(IsLarge(mine.expects[i])
                             ? ByteSpan(places[i])
                             : ByteSpan(peers_[i].theirs.small).first(mine.expects[i]));
    }
    team_.watch.End();
    return received;
  }

  void Leave() override {
    deadline_ = steady_clock::now() + team_.timeout;
    WaitForSends(team_.timeout);
    for (size_t i = 0; i < size(); ++i) {
      for (const std::unique_ptr<Transfer>& read : std::exchange(peers_[i].reads, {}))
        Finish(i, *read);
    }
    team_.watch.End();
    offers_.clear();
  }

 private:
  struct Peer {
    Head ours, theirs;
    std::vector<std::byte> received;
    std::vector<std::unique_ptr<Transfer>> sends;
    std::vector<std::unique_ptr<Transfer>> reads;  // reports that it read what it was given
    std::unique_ptr<Transfer> head, body;
    std::array<std::byte, 1> has_read = {};
  };

  static bool IsLarge(size_t bytes) { return bytes > Head::kSmall; }
  /// Whether this process reads what member `i` gives from its memory.
  bool Reads(size_t i, size_t bytes) const {
    return i != index() && bytes >= kDirect && team_.memory.CanRead(ranks()[i]);
  }

  void SendBody(size_t i, ByteSpan part) {
    Peer& peer = peers_[i];
    if (peer.theirs.reads != 0) {
      peer.reads.push_back(team_.links->Receive(ranks()[i], kReadTag, peer.has_read));
    } else {
      peer.sends.push_back(team_.links->Send(ranks()[i], kBodyTag, part));
    }
  }

  void ReadBody(size_t i, std::span<std::byte> place) {
    using Outcome = GlooLinks::Outcome;
    static constexpr std::array<std::byte, 1> kHasRead = {};
    Peer& peer = peers_[i];
    const bool is_read = team_.memory.Read(ranks()[i], peer.theirs.address, place);
    Judge(i, is_read ? Outcome::kDone : Outcome::kGone);
    peer.sends.push_back(team_.links->Send(ranks()[i], kReadTag, kHasRead));
  }

  /// Where large parts go.
  std::vector<std::span<std::byte>> Places(const Offer& mine) {
    std::vector<std::span<std::byte>> places;
    std::byte* target = mine.target;
    for (size_t i = 0; i < size(); ++i) {
      const size_t bytes = mine.expects[i];
      std::vector<std::byte>& room = peers_[i].received;
      const bool needs_room = target == nullptr && IsLarge(bytes) && i != index();
      if (needs_room && room.size() < bytes) room.resize(bytes);
      places.emplace_back(target != nullptr ? target : room.data(),
                          needs_room || target != nullptr ? bytes : 0);
      if (target != nullptr) target += bytes;
    }
    return places;
  }

  void SendHeads(const Offer& mine, const std::vector<std::span<std::byte>>& places) {
    for (size_t i = 0; i < size(); ++i) {
      if (i == index()) continue;
      Peer& peer = peers_[i];
      peer.head = team_.links->Receive(ranks()[i], kHeadTag, BytesOf(peer.theirs));
      if (IsLarge(mine.expects[i]) && !Reads(i, mine.expects[i]))
        peer.body = team_.links->Receive(ranks()[i], kBodyTag, places[i]);
    }
    for (size_t i = 0; i < size(); ++i) {
      if (i == index()) continue;
      Head& head = peers_[i].ours;
      head.call_hash = Hash(mine.call);
      head.gives = mine.parts[i].size();
      head.expects = mine.expects[i];
      head.address = reinterpret_cast<uint64_t>(mine.parts[i].data());
      head.reads = Reads(i, mine.expects[i]) ? 1 : 0;
      Store(mine.call, head.call);
      Store(node_, head.node);
      if (!IsLarge(mine.parts[i].size())) std::ranges::copy(mine.parts[i], head.small.begin());
      peers_[i].sends.push_back(team_.links->Send(ranks()[i], kHeadTag, BytesOf(head)));
    }
  }

  void ReceiveHeads(const Offer& mine) {
    for (size_t i = 0; i < size(); ++i) {
      if (i != index()) Finish(i, *std::exchange(peers_[i].head, nullptr));
    }
    for (size_t i = 0; i < size(); ++i) {
      const Head& theirs = peers_[i].theirs;
      if (i == index() || (theirs.call_hash == Hash(mine.call) && theirs.gives == mine.expects[i] &&
                           theirs.expects == mine.parts[i].size())) {
        continue;
      }
      const std::string text =
          theirs.call_hash == Hash(mine.call) ? DescribeSizes(i, mine) : DescribeCalls(i, mine);
      // The others must see the same before this process ends.
      team_.watch.Fail(text);
      WaitForSends(std::min<milliseconds>(team_.timeout, std::chrono::seconds(5)));
      TORCH_CHECK(false, text);
    }
  }

  std::string DescribeCalls(size_t i, const Offer& mine) const {
    const Head& theirs = peers_[i].theirs;
    std::string ours = fmt::format("rank {} {}", ranks()[index()], CallPlace(mine.call, node_));
    std::string other =
        fmt::format("rank {} {}", ranks()[i], CallPlace(theirs.call.data(), theirs.node.data()));
    if (i < index()) std::swap(ours, other);
    return fmt::format("ranks call different collectives: {}; {}", ours, other);
  }

  std::string DescribeSizes(size_t i, const Offer& mine) const {
    const Head& theirs = peers_[i].theirs;
    const bool is_ours = theirs.gives != mine.expects[i];
    return fmt::format("{}: rank {} gives {} bytes, {} are expected{}", mine.call,
                       is_ours ? ranks()[i] : ranks()[index()],
                       is_ours ? theirs.gives : mine.parts[i].size(),
                       is_ours ? mine.expects[i] : theirs.expects,
                       is_ours ? "" : fmt::format(" by rank {}", ranks()[i]));
  }

  void WaitForSends(milliseconds timeout) {
    const auto until = steady_clock::now() + timeout;
    for (size_t i = 0; i < size(); ++i) {
      for (const std::unique_ptr<Transfer>& send : std::exchange(peers_[i].sends, {})) {
        const auto left = std::chrono::duration_cast<milliseconds>(until - steady_clock::now());
        Judge(i, send->Wait(left));
      }
    }
    team_.watch.End();
  }

  void Finish(size_t i, Transfer& transfer) {
    team_.watch.Begin(ranks()[i], where_);
    Judge(i,
          transfer.Wait(std::chrono::duration_cast<milliseconds>(deadline_ - steady_clock::now())));
  }

  /// Throws unless the message of member `i` is done.
  void Judge(size_t i, GlooLinks::Outcome outcome) {
    if (outcome == GlooLinks::Outcome::kDone) return;
    const std::string text =
        outcome == GlooLinks::Outcome::kLate
            ? fmt::format("waited {} s in {} for rank {}",
                          std::chrono::duration<double>(team_.timeout).count(), where_, ranks()[i])
            : fmt::format("rank {} ended while rank {} waited for it in {}", ranks()[i],
                          ranks()[index()], where_);
    const std::string whole = text + team_.watch.Chain(ranks()[i]);
    team_.watch.Fail(whole);
    TORCH_CHECK(false, whole);
  }

  State& team_;
  std::vector<Peer> peers_;
  std::vector<Offer> offers_;  // of the collective
  std::string node_, where_;   // of the last collective
  steady_clock::time_point deadline_;
};

// --- The team ------------------------------------------------------------------------------------

ProcessTeam::ProcessTeam(Mesh mesh, std::unique_ptr<State> state)
    : RankTeam(std::move(mesh)), state_(std::move(state)) {}

ProcessTeam::~ProcessTeam() = default;

Result<std::unique_ptr<ProcessTeam>> ProcessTeam::Connect(Mesh mesh, const ProcessPlace& place,
                                                          milliseconds timeout) {
  if (mesh.num_ranks() != place.world) {
    return Error("the mesh {} has {} ranks, the run has {} processes", mesh.Text(),
                 mesh.num_ranks(), place.world);
  }
  STRATA_TRY(std::unique_ptr<GlooLinks> links, GlooLinks::Connect(place, timeout));
  std::unique_ptr<ProcessTeam> team(
      new ProcessTeam(std::move(mesh), std::make_unique<State>(std::move(links), place, timeout)));
  team->set_timeout(timeout);
  return team;
}

int64_t ProcessTeam::rank() const {
  return state_->rank;
}

void ProcessTeam::set_timeout(milliseconds timeout) {
  state_->timeout = timeout;
  state_->watch.set_timeout(timeout);
  state_->messages.set_timeout(timeout);
  if (state_->device_watch) state_->device_watch->set_timeout(timeout);
}

void ProcessTeam::UseDevice(Device& device, const NcclApi& nccl) {
  state_->device = std::make_unique<DeviceCollectives>(nccl, device);
  state_->device_watch =
      std::make_unique<DeviceWatch>(*state_->links, state_->watch, *state_->device, rank());
  state_->device_watch->set_timeout(state_->timeout);
}

DeviceCollectives* ProcessTeam::device() {
  return state_->device.get();
}

Status ProcessTeam::Run(const Work& work) {
  STRATA_CHECK(CurrentRank() < 0, "a rank cannot give work to all ranks");
  BindThread(rank());
  if (state_->device_watch) state_->device_watch->Begin();
  Status status = Call(work, rank());
  if (state_->device_watch) state_->device_watch->End();
  BindThread(-1);
  if (state_->device && !state_->device->why_aborted().empty())
    status = Error(ErrorCode::kInternal, "{}", state_->device->why_aborted());
  if (!status && state_->device) state_->device->Abort(status.error().message());
  if (!status) ReportFailure(status.error());
  return status;
}

void ProcessTeam::ReportFailure(const Error& error) {
  state_->watch.Fail(error.message());
}

void ProcessTeam::SendFrom(int64_t rank, int64_t to, const std::string& key,
                           std::vector<at::Tensor> tensors) {
  STRATA_CHECK(rank == state_->rank);
  state_->messages.Send(to, key, tensors);
}

std::vector<at::Tensor> ProcessTeam::ReceiveAt(int64_t rank, int64_t from, const std::string& key) {
  STRATA_CHECK(rank == state_->rank);
  return state_->messages.Receive(from, key);
}

RankGroup& ProcessTeam::JoinGroup(std::string name, std::vector<int64_t> ranks, size_t index) {
  std::unique_ptr<Member>& member = state_->groups[name];
  if (!member) member = std::make_unique<Member>(*state_, std::move(name), std::move(ranks), index);
  return *member;
}

}  // namespace strata
