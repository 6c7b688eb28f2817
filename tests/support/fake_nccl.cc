#include "tests/support/fake_nccl.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace strata {

using Message = NcclApi::Message;

/// The members of a communicator, and the collective in which they meet.
struct Meeting {
  struct Offer {
    std::string call;
    const void* send = nullptr;
    std::vector<size_t> counts;  // bytes for each member
  };

  explicit Meeting(int members) : offers(static_cast<size_t>(members)) {}

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Offer> offers;
  size_t arrived = 0, left = 0;
  int64_t round = 0;
};

struct NcclComm {
  std::shared_ptr<Meeting> meeting;
  size_t rank = 0;
  std::atomic<bool> is_aborted = false;
};

namespace testing {
namespace {

constexpr Message kAborted = "the communicator was aborted";

/// Calls `take` with the offers of all members, while these wait.
Message Meet(NcclComm* comm, Meeting::Offer offer,
             const std::function<void(const std::vector<Meeting::Offer>&)>& take) {
  Meeting& meeting = *comm->meeting;
  std::unique_lock lock(meeting.mutex);
  const auto await = [&](const auto& is_there) {
    meeting.changed.wait(lock, [&] { return comm->is_aborted || is_there(); });
    return !comm->is_aborted;
  };
  const auto is_equal = [&](const Meeting::Offer& other) {
    return other.call == meeting.offers[0].call;
  };
  const int64_t round = meeting.round;
  meeting.offers[comm->rank] = std::move(offer);
  ++meeting.arrived;
  meeting.changed.notify_all();
  const auto all_came = [&] {
    return meeting.arrived == meeting.offers.size() &&
           std::ranges::all_of(meeting.offers, is_equal);
  };
  if (!await(all_came)) return kAborted;
  take(meeting.offers);
  if (++meeting.left == meeting.offers.size()) {
    meeting.arrived = meeting.left = 0;
    ++meeting.round;
    meeting.changed.notify_all();
  }
  return await([&] { return meeting.round > round; }) ? nullptr : kAborted;
}

Message Version(int* code) {
  *code = 22809;
  return nullptr;
}

Message DeviceCount(int* count) {
  *count = 1;
  return nullptr;
}

std::mutex meetings_mutex;
std::map<int64_t, std::shared_ptr<Meeting>> meetings;  // by what ids say

Message UniqueId(NcclId* id) {
  static std::atomic<int64_t> next = 1;
  const int64_t number = next++;
  std::memcpy(id->bytes, &number, sizeof number);
  return nullptr;
}

Message CommCreate(const NcclId* id, int ranks, int rank, int /*device*/, NcclComm** comm) {
  int64_t number = 0;
  std::memcpy(&number, id->bytes, sizeof number);
  const std::lock_guard lock(meetings_mutex);
  std::shared_ptr<Meeting>& meeting = meetings[number];
  if (!meeting) meeting = std::make_shared<Meeting>(ranks);
  *comm = new NcclComm{.meeting = meeting, .rank = static_cast<size_t>(rank)};
  return nullptr;
}

Message CommDestroy(NcclComm* comm) {
  delete comm;
  return nullptr;
}

/// The rank may still be in a call: as its memory stays valid, the communicator leaks.
Message CommAbort(NcclComm* comm) {
  const std::lock_guard lock(comm->meeting->mutex);
  comm->is_aborted = true;
  comm->meeting->changed.notify_all();
  return nullptr;
}

Message Broadcast(NcclComm* comm, const void* send, void* receive, size_t count, DType dtype,
                  int root, void*) {
  const size_t bytes = count * static_cast<size_t>(ByteSize(dtype));
  return Meet(comm,
              {.call = fmt::format("broadcast {} {}", bytes, root), .send = send, .counts = {}},
              [&](const auto& offers) {
                std::memcpy(receive, offers[static_cast<size_t>(root)].send, bytes);
              });
}

/// Elements [begin, begin + count) of the members, of type T.
template <class T>
void Reduce(const std::vector<Meeting::Offer>& offers, size_t begin, size_t count,
            NcclReduce reduce, void* receive) {
  std::vector<T> sum(static_cast<const T*>(offers[0].send) + begin,
                     static_cast<const T*>(offers[0].send) + begin + count);
  for (size_t rank = 1; rank < offers.size(); ++rank) {
    const T* more = static_cast<const T*>(offers[rank].send) + begin;
    for (size_t i = 0; i < count; ++i) {
      if (reduce == NcclReduce::kMax) {
        sum[i] = std::max(sum[i], more[i]);
      } else if (reduce == NcclReduce::kMin) {
        sum[i] = std::min(sum[i], more[i]);
      } else {
        sum[i] = static_cast<T>(sum[i] + more[i]);
      }
    }
  }
  if (reduce == NcclReduce::kAverage) {
    for (T& value : sum)
      value = static_cast<T>(value / static_cast<T>(offers.size()));
  }
  std::ranges::copy(sum, static_cast<T*>(receive));
}

bool ReduceAs(DType dtype, const std::vector<Meeting::Offer>& offers, size_t begin, size_t count,
              NcclReduce reduce, void* receive) {
  if (dtype == DType::kF32) {
    Reduce<float>(offers, begin, count, reduce, receive);
  } else if (dtype == DType::kF64) {
    Reduce<double>(offers, begin, count, reduce, receive);
  } else if (dtype == DType::kI64) {
    Reduce<int64_t>(offers, begin, count, reduce, receive);
  } else {
    return false;
  }
  return true;
}

/// Of elements [begin, …) of all members. Results are kept back until every member has its own:
/// a tensor may be reduced in place.
Message ReduceAll(NcclComm* comm, std::string_view name, const void* send, size_t begin,
                  void* receive, size_t count, DType dtype, NcclReduce reduce) {
  std::vector<std::byte> result(count * static_cast<size_t>(ByteSize(dtype)));
  bool is_known = true;
  const Message message = Meet(
      comm,
      {.call = fmt::format("{} {} {} {}", name, count, ShortName(dtype), static_cast<int>(reduce)),
       .send = send,
       .counts = {}},
      [&](const auto& offers) {
        is_known = ReduceAs(dtype, offers, begin, count, reduce, result.data());
      });
  if (message != nullptr) return message;
  if (!is_known) return "the fake does not add this type";
  std::ranges::copy(result, static_cast<std::byte*>(receive));
  return nullptr;
}

Message AllReduce(NcclComm* comm, const void* send, void* receive, size_t count, DType dtype,
                  NcclReduce reduce, void*) {
  return ReduceAll(comm, "all_reduce", send, 0, receive, count, dtype, reduce);
}

Message ReduceScatter(NcclComm* comm, const void* send, void* receive, size_t count, DType dtype,
                      NcclReduce reduce, void*) {
  return ReduceAll(comm, "reduce_scatter", send, comm->rank * count, receive, count, dtype, reduce);
}

Message AllGather(NcclComm* comm, const void* send, void* receive, size_t count, DType dtype,
                  void*) {
  const size_t bytes = count * static_cast<size_t>(ByteSize(dtype));
  return Meet(comm, {.call = fmt::format("all_gather {}", bytes), .send = send, .counts = {}},
              [&](const auto& offers) {
                auto* to = static_cast<std::byte*>(receive);
                for (const Meeting::Offer& offer : offers) {
                  std::memcpy(to, offer.send, bytes);
                  to += bytes;
                }
              });
}

Message AllToAll(NcclComm* comm, const void* send, const size_t* send_counts, void* receive,
                 const size_t* /*receive_counts*/, DType dtype, void*) {
  std::vector<size_t> counts;
  for (size_t rank = 0; rank < comm->meeting->offers.size(); ++rank)
    counts.push_back(send_counts[rank] * static_cast<size_t>(ByteSize(dtype)));
  return Meet(comm, {.call = "all_to_all", .send = send, .counts = std::move(counts)},
              [&](const auto& offers) {
                auto* to = static_cast<std::byte*>(receive);
                for (const Meeting::Offer& offer : offers) {
                  const auto* from = static_cast<const std::byte*>(offer.send);
                  for (size_t rank = 0; rank < comm->rank; ++rank)
                    from += offer.counts[rank];
                  to = std::copy_n(from, offer.counts[comm->rank], to);
                }
              });
}

constexpr NcclApi kApi = {Version,   DeviceCount, UniqueId,  CommCreate,    CommDestroy, CommAbort,
                          Broadcast, AllReduce,   AllGather, ReduceScatter, AllToAll};

}  // namespace

const NcclApi& FakeNccl() {
  return kApi;
}

}  // namespace testing
}  // namespace strata
